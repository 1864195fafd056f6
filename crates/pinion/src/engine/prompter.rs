//! Composes the system prompt from the files on disk and the active tools.

use std::sync::Arc;

use pinion_agent::SystemPrompt;
use pinion_config::{
    ContextFile, Dirs, LazyResources, ProjectTrust, PromptParts, PromptTexts,
    compose_system_prompt, load_context_files, today,
};
use pinion_tools::Tool;
use serde_json::{Value, json};

use super::shared::Once;
use super::{Shared, tell};
use crate::cli::Flags;

/// The parts of the system prompt except the tools.
pub(crate) struct Prompter {
    dirs: Dirs,
    texts: PromptTexts,
    context_files: Arc<[ContextFile]>,
    /// The prompts of all sessions, so that equal ones share memory.
    prompts: Arc<Once<str>>,
    resources: Arc<LazyResources>,
}

impl Prompter {
    /// Reads the prompt texts and context files. Problems are reported on stderr.
    pub fn read(
        dirs: &Dirs,
        flags: &Flags,
        resources: Arc<LazyResources>,
        trust: ProjectTrust,
        shared: &Shared,
    ) -> Self {
        let (texts, notices) = PromptTexts::load(
            dirs,
            flags.system_prompt.as_deref(),
            &flags.append_system_prompt,
            trust,
        );
        tell(&notices);
        let (context_files, notices) = if flags.no_context_files {
            Default::default()
        } else {
            load_context_files(dirs, trust)
        };
        tell(&notices);
        tell(&resources.notices());
        Self {
            dirs: dirs.clone(),
            texts,
            context_files: shared.context_files.the(context_files.into()),
            prompts: Arc::clone(&shared.prompts),
            resources,
        }
    }
}

impl Prompter {
    /// Returns the parts of the prompt for extensions. The tools are not included, because extensions can query them.
    pub fn options(&self) -> Value {
        let resources = self.resources.get();
        let skills = resources.skills().iter().map(|skill| {
            json!({
                "name": skill.name,
                "description": skill.description,
                "filePath": skill.path,
                "baseDir": skill.path.parent(),
                "sourceInfo": skill.source_info,
            })
        });
        let files = self.context_files.iter();
        let files = files.map(|file| json!({ "path": file.path, "content": file.content }));
        json!({
            "cwd": self.dirs.cwd,
            "skills": skills.collect::<Vec<_>>(),
            "contextFiles": files.collect::<Vec<_>>(),
            "customPrompt": self.texts.custom,
            "appendSystemPrompt": self.texts.append,
        })
    }
}

impl SystemPrompt for Prompter {
    fn compose(&self, active: &[Arc<dyn Tool>]) -> Arc<str> {
        let purposes: Vec<(&str, &str)> = active
            .iter()
            .filter_map(|tool| Some((tool.spec().name.as_str(), tool.snippet()?)))
            .collect();
        let guidelines = guidelines(active);
        let prompt = compose_system_prompt(&PromptParts {
            tools: &purposes,
            guidelines: &guidelines,
            custom: self.texts.custom.as_deref(),
            append: self.texts.append.as_deref(),
            context_files: &self.context_files,
            skills: self.resources.get().skills(),
            cwd: &self.dirs.cwd,
            date: &today(),
        });
        self.prompts.the(prompt.into())
    }
}

/// Returns the guidelines of the active tools without duplicates.
fn guidelines(active: &[Arc<dyn Tool>]) -> Vec<&str> {
    let mut guidelines = Vec::new();
    for advice in active.iter().flat_map(|tool| tool.guidelines()) {
        let advice = advice.trim();
        if !advice.is_empty() && !guidelines.contains(&advice) {
            guidelines.push(advice);
        }
    }
    guidelines
}
