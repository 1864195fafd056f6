//! Composes the system prompt from the files on disk and the active tools.

use std::sync::Arc;

use pinion_agent::SystemPrompt;
use pinion_agent_mcp::McpServers;
use pinion_config::{
    ContextFile, Dirs, LazyResources, ProjectTrust, PromptParts, PromptTexts, Skill,
    compose_system_prompt, load_context_files, system_prompt_sections, today,
};
use pinion_extensions::PromptOptions;
use pinion_sync::Interner;
use pinion_tools::Tool;
use serde_json::{Value, json};

use super::{Shared, tell};
use crate::cli::Flags;

/// The parts of the system prompt except the tools.
pub(crate) struct Prompter {
    dirs: Dirs,
    texts: PromptTexts,
    context_files: Arc<[ContextFile]>,
    /// The prompts of all sessions, so that equal ones share memory.
    prompts: Arc<Interner<str>>,
    resources: Arc<LazyResources>,
    servers: Option<Arc<McpServers>>,
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
            servers: None,
        }
    }

    /// Lists these servers in the prompt.
    pub fn with_servers(self, servers: Option<Arc<McpServers>>) -> Self {
        Self { servers, ..self }
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

impl Prompter {
    /// Composes the prompt from the parts that extensions changed. They choose among the known skills by name.
    pub fn compose_from(&self, parts: &PromptOptions) -> String {
        let files = parts.context_files.iter();
        let files: Vec<ContextFile> = files
            .map(|file| ContextFile {
                path: file.path.clone().into(),
                content: file.content.clone(),
            })
            .collect();
        let resources = self.resources.get();
        let is_chosen = |skill: &&Skill| parts.skills.iter().any(|it| it.name == skill.name);
        let skills: Vec<Skill> = resources
            .skills()
            .iter()
            .filter(is_chosen)
            .cloned()
            .collect();
        compose_system_prompt(&PromptParts {
            tools: &parts.tools(),
            guidelines: &parts.guidelines(),
            custom: parts.custom_prompt.as_deref(),
            append: parts.append_system_prompt.as_deref(),
            context_files: &files,
            skills: &skills,
            cwd: &self.dirs.cwd,
            date: &today(),
        })
    }
}

impl SystemPrompt for Prompter {
    fn compose(&self, active: &[Arc<dyn Tool>]) -> Arc<str> {
        let mut prompt = self.with_parts(active, compose_system_prompt);
        if let Some(section) = self.servers_section() {
            prompt.push_str("\n\n");
            prompt.push_str(&section);
        }
        self.prompts.the(prompt.into())
    }

    fn sections(&self, active: &[Arc<dyn Tool>]) -> Vec<(String, String)> {
        let sections = self.with_parts(active, system_prompt_sections).into_iter();
        let servers = self.servers_section().map(|text| ("mcp_servers", text));
        sections
            .chain(servers)
            .map(|(name, text)| (name.to_owned(), text))
            .collect()
    }
}

impl Prompter {
    /// Returns the section about MCP servers, if there are any.
    fn servers_section(&self) -> Option<String> {
        let section = self.servers.as_ref()?.section();
        (!section.is_empty()).then_some(section)
    }

    /// Returns what `make` makes of the parts of the prompt for these tools.
    fn with_parts<T>(
        &self,
        active: &[Arc<dyn Tool>],
        make: impl FnOnce(&PromptParts<'_>) -> T,
    ) -> T {
        let purposes: Vec<(&str, &str)> = active
            .iter()
            .filter_map(|tool| Some((tool.spec().name.as_str(), tool.snippet()?)))
            .collect();
        let guidelines = guidelines(active);
        make(&PromptParts {
            tools: &purposes,
            guidelines: &guidelines,
            custom: self.texts.custom.as_deref(),
            append: self.texts.append.as_deref(),
            context_files: &self.context_files,
            skills: self.resources.get().skills(),
            cwd: &self.dirs.cwd,
            date: &today(),
        })
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
