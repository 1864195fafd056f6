//! Commands as tools: names, schemas and descriptions.

use std::collections::HashSet;

use pinion_clip::manifest::{Command, Manifest};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::param_headers::{self, ParamHeader};

/// A tool as clients see it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Tool {
    pub(crate) name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) description: String,
    #[serde(rename = "inputSchema")]
    pub(crate) input_schema: Value,
    /// The command that the tool calls.
    #[serde(skip)]
    pub(crate) command: String,
    /// The arguments that requests over HTTP repeat as headers.
    #[serde(skip)]
    pub(crate) headers: Vec<ParamHeader>,
}

/// The tools of a whole hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HubTool {
    List,
    Info,
    Invoke,
    InvokeStream,
}

impl HubTool {
    const ALL: [Self; 4] = [Self::List, Self::Info, Self::Invoke, Self::InvokeStream];

    fn name(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Info => "info",
            Self::Invoke => "invoke",
            Self::InvokeStream => "invoke_stream",
        }
    }

    fn description(self) -> &'static str {
        match self {
            Self::List => "Lists the clips of the hub with their commands.",
            Self::Info => "Describes one clip: the purpose, input and output of each command.",
            Self::Invoke => "Calls a command of a clip and returns its result.",
            Self::InvokeStream => {
                "Calls a command of a clip and reports each part of its result as it arrives."
            }
        }
    }

    fn schema(self) -> Value {
        let clip = json!({ "type": "string", "description": "The alias of the clip, as returned by list." });
        let command = json!({ "type": "string", "description": "The name of the command, as returned by info." });
        let input = json!({ "type": "object", "description": "What the command takes; see inputSchema in info." });
        match self {
            Self::List => empty(),
            Self::Info => {
                json!({ "type": "object", "properties": { "clip": clip }, "required": ["clip"] })
            }
            Self::Invoke | Self::InvokeStream => json!({
                "type": "object",
                "properties": { "clip": clip, "command": command, "input": input },
                "required": ["clip", "command"],
            }),
        }
    }

    /// Returns the tool with this name, with or without `prefix`.
    pub(crate) fn named(name: &str, prefix: &str) -> Option<Self> {
        let short = name.strip_prefix(prefix).unwrap_or(name);
        Self::ALL.into_iter().find(|tool| tool.name() == short)
    }

    /// Returns all tools of a hub.
    pub(crate) fn tools(prefix: &str) -> Vec<Tool> {
        let tool = |tool: Self| Tool {
            name: format!("{prefix}{}", tool.name()),
            description: tool.description().to_owned(),
            input_schema: tool.schema(),
            command: String::new(),
            headers: Vec::new(),
        };
        Self::ALL.into_iter().map(tool).collect()
    }
}

/// Returns one tool for each command of a clip.
pub(crate) fn of_clip(manifest: &Manifest, prefix: &str) -> Vec<Tool> {
    // If two commands would get the same tool name, the one that already has this name wins.
    let (plain, spaced): (Vec<&Command>, Vec<&Command>) = manifest
        .commands
        .iter()
        .partition(|command| tool_name(&command.name) == command.name);
    let mut taken = HashSet::new();
    let mut tools: Vec<Tool> = Vec::with_capacity(manifest.commands.len());
    for command in plain.into_iter().chain(spaced) {
        let base = format!("{prefix}{}", tool_name(&command.name));
        let numbered = (2..).map(|number| format!("{base}_{number}"));
        let name = std::iter::once(base.clone())
            .chain(numbered)
            .find(|name| !taken.contains(name));
        let name = name.unwrap_or(base);
        taken.insert(name.clone());
        let mut input_schema = object_schema(&command.input);
        // Clients reject a tool with an invalid annotation, so the annotation is removed.
        let headers = param_headers::read(&input_schema).unwrap_or_else(|_| {
            param_headers::remove(&mut input_schema);
            Vec::new()
        });
        tools.push(Tool {
            name,
            description: command.description.clone(),
            input_schema,
            command: command.name.clone(),
            headers,
        });
    }
    tools.sort_by(|left, right| left.name.cmp(&right.name));
    tools
}

/// Replaces the separators between the words of a command by underscores.
fn tool_name(command: &str) -> String {
    command.replace([' ', '/'], "_")
}

/// Returns the schema in `text` if it describes an object, else a schema that accepts any object.
pub(crate) fn object_schema(text: &str) -> Value {
    let Ok(Value::Object(mut schema)) = serde_json::from_str(text) else {
        return empty();
    };
    match schema.get("type") {
        Some(kind) if kind == "object" => Value::Object(schema),
        None if schema.contains_key("properties") => {
            schema.insert("type".to_owned(), "object".into());
            Value::Object(schema)
        }
        _ => empty(),
    }
}

fn empty() -> Value {
    json!({ "type": "object", "properties": {} })
}

/// Describes a command in the output of `info`.
pub(crate) fn described(command: &Command) -> Value {
    let mut object = Map::new();
    let mut tell = |name: &str, value: Value| {
        let is_empty = value.is_null() || value.as_str().is_some_and(str::is_empty);
        if !is_empty {
            object.insert(name.to_owned(), value);
        }
    };
    tell("name", command.name.clone().into());
    tell("description", command.description.clone().into());
    tell("inputSchema", object_schema(&command.input));
    let output = serde_json::from_str(&command.output).unwrap_or_default();
    tell("outputSchema", output);
    tell("inputType", command.input.clone().into());
    tell("outputType", command.output.clone().into());
    Value::Object(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(commands: &Value) -> Manifest {
        Manifest::read(&json!({ "commands": commands }))
    }

    #[test]
    fn commands_are_tools() {
        let schema =
            json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        let manifest = manifest(&json!([
            {"name": "note add", "input": schema.to_string(), "description": "Adds"},
            {"name": "list", "input": "{ text: string }"},
        ]));
        let tools = serde_json::to_value(of_clip(&manifest, "")).unwrap();
        assert_eq!(
            tools,
            json!([
                {"name": "list", "inputSchema": {"type": "object", "properties": {}}},
                {"name": "note_add", "description": "Adds", "inputSchema": schema},
            ])
        );
        assert_eq!(of_clip(&manifest, "p_")[1].name, "p_note_add");
        assert_eq!(of_clip(&manifest, "p_")[1].command, "note add");
    }

    #[test]
    fn names_of_tools_are_told_once() {
        let manifest = manifest(&json!(["a b", "a_b", "a/b", "a_b_2"]));
        let tools = of_clip(&manifest, "");
        let names: Vec<_> = tools
            .iter()
            .map(|tool| (tool.name.as_str(), tool.command.as_str()))
            .collect();
        assert_eq!(
            names,
            [
                ("a_b", "a_b"),
                ("a_b_2", "a_b_2"),
                ("a_b_3", "a b"),
                ("a_b_4", "a/b")
            ]
        );
    }

    #[test]
    fn only_objects_are_taken() {
        for text in [
            "",
            "5",
            "{ a: string }",
            r#"{"type":"string"}"#,
            r#"{"anyOf":[]}"#,
            r#"{"type":["object","null"]}"#,
        ] {
            assert_eq!(object_schema(text), empty(), "{text}");
        }
        let typeless = object_schema(r#"{"properties":{"a":{}}}"#);
        assert_eq!(typeless, json!({"properties": {"a": {}}, "type": "object"}));
    }

    #[test]
    fn the_tools_of_a_hub_go_by_two_names() {
        assert_eq!(HubTool::named("list", "pinix_"), Some(HubTool::List));
        assert_eq!(
            HubTool::named("pinix_invoke_stream", "pinix_"),
            Some(HubTool::InvokeStream)
        );
        assert_eq!(HubTool::named("pinix_list", ""), None);
        assert_eq!(HubTool::tools("pinix_")[0].name, "pinix_list");
    }
}
