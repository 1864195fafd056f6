//! The kinds of lines a schema knows, and the kinds a line shows, so that tests can say what they have not seen.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Schema;

impl Schema {
    /// Every kind of line, such as `event agent_start`, `update text_delta`, `command prompt`.
    pub fn kinds(self) -> BTreeSet<String> {
        let definitions = &self.ready().document["$defs"];
        let mut kinds = BTreeSet::new();
        for (word, union, member) in [
            ("event", "event", "type"),
            ("update", "AssistantMessageEvent", "type"),
            ("response", "response", "command"),
            ("request", "extensionUiRequest", "method"),
            ("command", "command", "type"),
        ] {
            let branches = definitions[union]["oneOf"].as_array();
            for branch in branches.into_iter().flatten() {
                let name = branch["$ref"].as_str().expect("a named kind");
                let name = name.trim_start_matches("#/$defs/");
                let tag = &definitions[name]["properties"][member]["const"];
                kinds.extend(tag.as_str().map(|tag| format!("{word} {tag}")));
            }
        }
        if definitions.get("extensionUiResponse").is_some() {
            kinds.insert("choice".to_owned());
        }
        kinds
    }
}

/// The kinds that a printed line shows.
pub fn of_output(line: &Value) -> Vec<String> {
    let kind = line["type"].as_str().unwrap_or_default();
    let named = |word: &str, name: &Value| name.as_str().map(|name| format!("{word} {name}"));
    match kind {
        "response" if line["success"] == true => named("response", &line["command"]),
        "response" | "session" => None,
        "extension_ui_request" => named("request", &line["method"]),
        "message_update" => named("update", &line["assistantMessageEvent"]["type"]),
        _ => None,
    }
    .into_iter()
    .chain(Some(format!("event {kind}")))
    .collect()
}

/// The kind that a line of a client shows.
pub fn of_input(line: &Value) -> String {
    match line["type"].as_str() {
        Some("extension_ui_response") => "choice".to_owned(),
        kind => format!("command {}", kind.unwrap_or_default()),
    }
}
