//! System messages: the system prompt by sections and the declared tools, and what changed in them later.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Content, Millis, ToolSpec};

/// The system prompt and the tools of a session from here on. The first one has all sections and tools; later ones have
/// only the changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SystemMessage {
    /// Further text; empty in the messages of pinion.
    #[serde(default = "no_text")]
    #[schemars(with = "String")]
    pub content: Content,
    /// Sections of the prompt by name, in order; `null` removes one.
    #[serde(default)]
    #[schemars(with = "Map<String, Value>")]
    pub sections: Map<String, Value>,
    /// The time of creation, in milliseconds since 1970.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub timestamp: Millis,
    /// Tools that the model may call from here on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools_added: Vec<DeclaredTool>,
    /// Tools that the model may no longer call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools_removed: Vec<RemovedTool>,
}

/// A tool in a system message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeclaredTool {
    /// The name, unique within a session.
    pub name: String,
    /// The description for the model.
    #[serde(default)]
    pub description: String,
    /// JSON Schema of the arguments.
    #[serde(default)]
    pub parameters: Value,
    /// The requirement that the provider samples arguments by the schema only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constrained_sampling: Option<Value>,
}

/// The name of a tool that is no longer declared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RemovedTool {
    /// The name, unique within a session.
    pub name: String,
}

fn no_text() -> Content {
    Content::Text(String::new())
}

impl DeclaredTool {
    /// Declares a tool without constrained sampling.
    pub fn of(spec: &ToolSpec) -> Self {
        Self {
            name: spec.name.clone(),
            description: spec.description.clone(),
            parameters: spec.parameters.clone(),
            constrained_sampling: None,
        }
    }
}

impl SystemMessage {
    /// Creates the message of a whole prompt and of all tools.
    pub fn of(sections: Map<String, Value>, tools: Vec<DeclaredTool>, timestamp: Millis) -> Self {
        Self {
            content: no_text(),
            sections,
            timestamp,
            tools_added: tools,
            tools_removed: Vec::new(),
        }
    }

    /// Applies a later message to the prompt and the tools that this message describes.
    pub fn apply(&mut self, later: &Self) {
        for (name, text) in &later.sections {
            if text.is_null() {
                self.sections.shift_remove(name);
            } else {
                self.sections.insert(name.clone(), text.clone());
            }
        }
        let removed = |tool: &DeclaredTool| later.tools_removed.iter().any(|t| t.name == tool.name);
        self.tools_added.retain(|tool| !removed(tool));
        for tool in &later.tools_added {
            match self.tools_added.iter_mut().find(|t| t.name == tool.name) {
                Some(known) => *known = tool.clone(),
                None => self.tools_added.push(tool.clone()),
            }
        }
    }

    /// Returns the message that changes `self` into `wanted`; `None` if nothing changes. The order of sections and
    /// tools is not compared.
    pub fn change_to(&self, wanted: &Self) -> Option<Self> {
        let mut sections = Map::new();
        for (name, text) in &wanted.sections {
            if self.sections.get(name) != Some(text) {
                sections.insert(name.clone(), text.clone());
            }
        }
        for name in self.sections.keys() {
            if !wanted.sections.contains_key(name) {
                sections.insert(name.clone(), Value::Null);
            }
        }
        let added = wanted.tools_added.iter();
        let tools_added: Vec<DeclaredTool> = added
            .filter(|tool| !self.tools_added.contains(tool))
            .cloned()
            .collect();
        let remains = |name: &str| wanted.tools_added.iter().any(|tool| tool.name == name);
        let removed = self.tools_added.iter().filter(|tool| !remains(&tool.name));
        let tools_removed: Vec<RemovedTool> = removed
            .map(|tool| RemovedTool {
                name: tool.name.clone(),
            })
            .collect();
        let is_empty = sections.is_empty() && tools_added.is_empty() && tools_removed.is_empty();
        (!is_empty).then(|| Self {
            content: no_text(),
            sections,
            timestamp: wanted.timestamp,
            tools_added,
            tools_removed,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(sections: Value, tools: &[&str]) -> SystemMessage {
        let Value::Object(sections) = sections else {
            panic!("sections are an object");
        };
        let declared = |name: &&str| DeclaredTool {
            name: (*name).to_owned(),
            description: String::new(),
            parameters: json!({}),
            constrained_sampling: None,
        };
        SystemMessage::of(sections, tools.iter().map(declared).collect(), 7)
    }

    #[test]
    fn a_change_has_only_what_differs_and_applying_it_gives_the_wanted_message() {
        let mut before = message(
            json!({"preamble": "p", "tools": "a", "old": "x"}),
            &["read", "bash"],
        );
        let after = message(json!({"preamble": "p", "tools": "b"}), &["read", "grep"]);
        let change = before.change_to(&after).unwrap();
        assert_eq!(json!(change.sections), json!({"tools": "b", "old": null}));
        assert_eq!(change.tools_added, [after.tools_added[1].clone()]);
        assert_eq!(
            change.tools_removed,
            [RemovedTool {
                name: "bash".into()
            }]
        );
        before.apply(&change);
        assert_eq!(before, after);
        assert_eq!(before.change_to(&after), None);
    }
}
