//! The parts of the system prompt, which handlers of `before_agent_start` may change.

use std::collections::BTreeMap;

use pinion_agent::SessionApi;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::extensions::Inner;

/// The parts of the system prompt as extensions return them.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PromptOptions {
    /// The text that replaces the default beginning.
    pub custom_prompt: Option<String>,
    /// The text before the context files.
    pub append_system_prompt: Option<String>,
    /// The names of the tools that the model may call.
    pub selected_tools: Vec<String>,
    /// The names of tools that the prompt does not mention.
    pub hidden_tools: Vec<String>,
    /// The line about each tool, by its name.
    pub tool_snippets: BTreeMap<String, String>,
    /// The guidelines of each tool, by its name.
    pub tool_guidelines: BTreeMap<String, Vec<String>>,
    /// Further guidelines.
    pub prompt_guidelines: Vec<String>,
    /// The context files.
    pub context_files: Vec<PromptContextFile>,
    /// The skills.
    pub skills: Vec<PromptSkill>,
    /// Further sections by the name of their tag, in the order in which they were added.
    pub sections: Map<String, Value>,
}

/// A context file of a system prompt.
#[derive(Debug, Clone, Deserialize)]
pub struct PromptContextFile {
    /// The path as the prompt shows it.
    pub path: String,
    /// The text of the file.
    pub content: String,
}

/// A skill of a system prompt.
#[derive(Debug, Clone, Deserialize)]
pub struct PromptSkill {
    /// The name, by which the program knows the skill.
    pub name: String,
}

impl PromptOptions {
    /// Returns the tools that the prompt mentions, with the line about each.
    pub fn tools(&self) -> Vec<(&str, &str)> {
        let snippet = |name: &String| self.tool_snippets.get_key_value(name);
        let tools = self.mentioned_tools().filter_map(snippet);
        tools
            .map(|(name, text)| (name.as_str(), text.as_str()))
            .collect()
    }

    /// Returns the guidelines without duplicates.
    pub fn guidelines(&self) -> Vec<&str> {
        let of_tools = self
            .mentioned_tools()
            .filter_map(|name| self.tool_guidelines.get(name));
        let mut guidelines = Vec::new();
        for advice in of_tools.flatten().chain(&self.prompt_guidelines) {
            let advice = advice.trim();
            if !advice.is_empty() && !guidelines.contains(&advice) {
                guidelines.push(advice);
            }
        }
        guidelines
    }

    fn mentioned_tools(&self) -> impl Iterator<Item = &String> {
        let selected = self.selected_tools.iter();
        selected.filter(|name| !self.hidden_tools.contains(name))
    }

    /// Returns the further sections as text, each in its tag.
    fn sections_text(&self) -> String {
        let sections = self.sections.iter();
        let sections = sections.filter_map(|(name, text)| Some((name, text.as_str()?)));
        sections
            .map(|(name, text)| format!("\n\n<{name}>\n{text}\n</{name}>"))
            .collect()
    }
}

impl Inner {
    /// Returns the parts of the system prompt with the active tools.
    pub(super) fn prompt_options(&self, desk: &SessionApi) -> Value {
        let mut options = self.options.services.prompt_options();
        let active = desk.active_tools();
        let tools = desk.tools();
        let tools = tools
            .iter()
            .filter(|tool| active.contains(&tool.spec().name));
        let mut snippets = Map::new();
        let mut guidelines = Map::new();
        for tool in tools {
            let name = &tool.spec().name;
            if let Some(snippet) = tool.snippet() {
                snippets.insert(name.clone(), snippet.into());
            }
            if !tool.guidelines().is_empty() {
                guidelines.insert(name.clone(), json!(tool.guidelines()));
            }
        }
        if let Some(options) = options.as_object_mut() {
            options.insert("selectedTools".into(), json!(active));
            options.insert("toolSnippets".into(), snippets.into());
            options.insert("toolGuidelines".into(), guidelines.into());
        }
        options
    }

    /// Composes the system prompt from parts that handlers changed.
    pub(super) fn compose_prompt(
        &self,
        desk: &SessionApi,
        options: &Value,
    ) -> Result<String, String> {
        let parts: PromptOptions = serde_json::from_value(without_nulls(options))
            .map_err(|error| format!("Invalid systemPromptOptions: {error}"))?;
        let composed = self.options.services.compose_prompt(&parts);
        let mut prompt = composed.unwrap_or_else(|| {
            desk.system_prompt()
                .map_or_else(String::new, |text| text.to_string())
        });
        prompt.push_str(&parts.sections_text());
        Ok(prompt)
    }
}

/// Removes members without a value, which stand for their defaults.
fn without_nulls(options: &Value) -> Value {
    let members = options.as_object().into_iter().flatten();
    let members = members.filter(|(_, value)| !value.is_null());
    Value::Object(
        members
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
    )
}
