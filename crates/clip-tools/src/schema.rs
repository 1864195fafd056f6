//! The input of a command as the parameters of a tool: always an object, because models write nothing else.
//!
//! The model receives the schema, but pinion does not enforce it: the clip checks its input itself, and schemas of the
//! public SDK mark fields with a default as required.

use serde_json::{Map, Value, json};

/// An object with one of these keys at the top is a JSON Schema; any other object is the shorthand.
const SCHEMA_KEYS: [&str; 10] = [
    "type",
    "properties",
    "$schema",
    "$ref",
    "anyOf",
    "oneOf",
    "allOf",
    "enum",
    "const",
    "items",
];
/// Keys whose values are referenced by their path from the root of the schema.
const SHARED: [&str; 2] = ["$defs", "definitions"];
/// The parameter that holds an input that is not an object.
const INPUT: &str = "input";

/// The relation between the arguments of a call and the input of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// The arguments are the input.
    Whole,
    /// The input is the value of the arguments' only member.
    Wrapped,
    /// The arguments contain the name of a command and its input.
    Any,
}

#[derive(Debug, PartialEq)]
pub(super) struct Parameters {
    pub schema: Value,
    pub shape: Shape,
    /// A description of the input that is not a schema, for the tool's description.
    pub note: Option<String>,
}

impl Parameters {
    /// Returns the parameters of a command whose manifest has `text` as its input.
    pub fn of(text: &str) -> Self {
        let text = text.trim();
        let whole = |schema| Self {
            schema,
            shape: Shape::Whole,
            note: None,
        };
        match serde_json::from_str::<Value>(text) {
            Ok(Value::Object(schema)) if schema.is_empty() => whole(anything()),
            Ok(Value::Object(schema)) if is_shorthand(&schema) => whole(written_out(schema)),
            Ok(Value::Object(schema)) if is_object_schema(&schema) => whole(completed(schema)),
            Ok(Value::Object(schema)) => Self {
                schema: wrapped(schema),
                shape: Shape::Wrapped,
                note: None,
            },
            _ => Self {
                note: (!text.is_empty() && text != "true").then(|| format!("Input: {text}")),
                ..whole(anything())
            },
        }
    }

    /// Returns the parameters of a clip that accepts every command.
    pub fn any() -> Self {
        Self {
            schema: json!({
                "type": "object",
                "properties": {
                    "command": {"type": "string", "description": "The command"},
                    "input": {"type": "object", "description": "Its input"},
                },
                "required": ["command"],
            }),
            shape: Shape::Any,
            note: None,
        }
    }
}

/// Returns the command, if the arguments name it, and its input as JSON text.
pub(super) fn input(
    shape: Shape,
    mut arguments: Value,
) -> Result<(Option<String>, String), String> {
    match shape {
        Shape::Whole => Ok((None, arguments.to_string())),
        Shape::Wrapped => Ok((None, arguments[INPUT].take().to_string())),
        Shape::Any => {
            let command = arguments["command"].as_str().map(str::trim);
            let command = command.filter(|command| !command.is_empty());
            let command = command.ok_or("\"command\" is required")?.to_owned();
            let input = match arguments[INPUT].take() {
                Value::Null => json!({}),
                input => input,
            };
            Ok((Some(command), input.to_string()))
        }
    }
}

fn anything() -> Value {
    json!({"type": "object", "properties": {}, "additionalProperties": true})
}

fn is_shorthand(object: &Map<String, Value>) -> bool {
    !SCHEMA_KEYS.iter().any(|key| object.contains_key(*key))
        && object.values().all(Value::is_object)
}

fn is_object_schema(schema: &Map<String, Value>) -> bool {
    let alternatives = ["anyOf", "oneOf", "allOf", "$ref"];
    match schema.get("type") {
        Some(kind) => kind == "object",
        None => {
            schema.contains_key("properties")
                && !alternatives.iter().any(|key| schema.contains_key(*key))
        }
    }
}

fn completed(mut schema: Map<String, Value>) -> Value {
    schema.shift_remove("$schema");
    schema.insert("type".into(), "object".into());
    if !schema.get("properties").is_some_and(Value::is_object) {
        schema.insert("properties".into(), json!({}));
    }
    Value::Object(schema)
}

/// Converts the shorthand `{"query": {"type": "string", "required": true}}` to an object schema.
fn written_out(fields: Map<String, Value>) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (name, mut field) in fields {
        if let Some(keys) = field.as_object_mut()
            && let Some(flag) = keys.get("required").and_then(Value::as_bool)
        {
            keys.shift_remove("required");
            if flag {
                required.push(Value::from(name.as_str()));
            }
        }
        properties.insert(name, field);
    }
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = Value::Array(required);
    }
    schema
}

/// Returns an object schema with the input as its only member. Shared definitions stay at the root, where references
/// look for them.
fn wrapped(mut schema: Map<String, Value>) -> Value {
    schema.shift_remove("$schema");
    let mut outer = json!({"type": "object"});
    for key in SHARED {
        if let Some(shared) = schema.shift_remove(key) {
            outer[key] = shared;
        }
    }
    outer["properties"] = json!({ INPUT: schema });
    outer["required"] = json!([INPUT]);
    outer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> Value {
        let parameters = Parameters::of(text);
        assert_eq!(
            (parameters.shape, parameters.note),
            (Shape::Whole, None),
            "{text}"
        );
        parameters.schema
    }

    #[test]
    fn object_schemas_are_told_as_they_are() {
        let schema = r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}"#;
        assert_eq!(
            whole(schema),
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false})
        );
        assert_eq!(
            whole(r#"{"properties":{"a":{}}}"#),
            json!({"properties": {"a": {}}, "type": "object"})
        );
        assert_eq!(
            whole(r#"{"type":"object"}"#),
            json!({"type": "object", "properties": {}})
        );
    }

    #[test]
    fn the_shorthand_is_written_out() {
        assert_eq!(
            whole(
                r#"{"query":{"type":"string","required":true},"limit":{"type":"integer","default":5,"required":false}}"#
            ),
            json!({
                "type": "object",
                "properties": {"query": {"type": "string"}, "limit": {"type": "integer", "default": 5}},
                "required": ["query"],
            })
        );
    }

    #[test]
    fn a_text_for_people_becomes_a_note() {
        let words = "{ text: string; times?: number (default: 1) }";
        let parameters = Parameters::of(words);
        assert_eq!(parameters.schema, anything());
        assert_eq!(
            parameters.note.as_deref(),
            Some("Input: { text: string; times?: number (default: 1) }")
        );
        for nothing in ["", "  ", "true", "{}"] {
            assert_eq!(whole(nothing), anything());
        }
    }

    #[test]
    fn other_inputs_are_wrapped_and_unwrapped() {
        let parameters = Parameters::of(
            r##"{"$defs":{"a":{}},"anyOf":[{"$ref":"#/$defs/a"},{"type":"object"}]}"##,
        );
        assert_eq!(
            parameters.schema,
            json!({
                "type": "object",
                "$defs": {"a": {}},
                "properties": {"input": {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "object"}]}},
                "required": ["input"],
            })
        );
        for text in [
            r#"{"type":"string"}"#,
            r#"{"type":["object","null"]}"#,
            r#"{"enum":[1,2]}"#,
        ] {
            assert_eq!(Parameters::of(text).shape, Shape::Wrapped, "{text}");
        }
        let text = |shape, arguments| input(shape, arguments).unwrap();
        assert_eq!(
            text(Shape::Wrapped, json!({"input": [1]})),
            (None, "[1]".into())
        );
        assert_eq!(text(Shape::Wrapped, json!({})), (None, "null".into()));
        assert_eq!(
            text(Shape::Whole, json!({"a": 1})),
            (None, r#"{"a":1}"#.into())
        );
        assert_eq!(
            text(Shape::Any, json!({"command": " list "})),
            (Some("list".into()), "{}".into())
        );
        assert!(input(Shape::Any, json!({"input": {}})).is_err());
    }
}
