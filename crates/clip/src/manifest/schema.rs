//! Converts the forms in which a command describes its input and output to text.

use serde_json::{Map, Value, json};

/// An object with any of these keys is a JSON Schema; without them it is the shorthand.
const SCHEMA_KEYS: [&str; 7] = [
    "type",
    "properties",
    "$schema",
    "$ref",
    "anyOf",
    "oneOf",
    "allOf",
];

/// Returns a schema as text: a text unchanged, an object serialized, the shorthand expanded.
pub(super) fn text(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.trim().to_owned(),
        Some(Value::Object(object)) if is_shorthand(object) => written_out(object).to_string(),
        Some(schema @ (Value::Object(_) | Value::Bool(_))) => schema.to_string(),
        _ => String::new(),
    }
}

fn is_shorthand(object: &Map<String, Value>) -> bool {
    !object.is_empty()
        && !SCHEMA_KEYS.iter().any(|key| object.contains_key(*key))
        && object.values().all(Value::is_object)
}

/// Expands the shorthand, such as `{"query": {"type": "string", "required": true}}`, to an object schema.
fn written_out(fields: &Map<String, Value>) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (name, field) in fields {
        let mut field = field.clone();
        if let Some(keys) = field.as_object_mut()
            && let Some(flag) = keys.get("required").and_then(Value::as_bool)
        {
            // An array under this name belongs to a nested schema and stays.
            keys.shift_remove("required");
            if flag {
                required.push(Value::from(name.as_str()));
            }
        }
        properties.insert(name.clone(), field);
    }
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = Value::Array(required);
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shorthand_is_written_out() {
        let shorthand = json!({
            "query": {"type": "string", "description": "What", "required": true},
            "limit": {"type": "integer", "default": 5, "required": false},
            "filter": {"type": "object", "properties": {"a": {}}, "required": ["a"]},
        });
        let schema: Value = serde_json::from_str(&text(Some(&shorthand))).unwrap();
        assert_eq!(
            schema,
            json!({
                "type": "object",
                "properties": {
                    "query": {"type": "string", "description": "What"},
                    "limit": {"type": "integer", "default": 5},
                    "filter": {"type": "object", "properties": {"a": {}}, "required": ["a"]},
                },
                "required": ["query"],
            })
        );
    }

    #[test]
    fn other_forms_are_kept() {
        let schema =
            json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"});
        assert_eq!(text(Some(&schema)), schema.to_string());
        assert_eq!(
            text(Some(&json!(r#"{"type":"string"}"#))),
            r#"{"type":"string"}"#
        );
        let words = "{ text: string; times?: number (default: 1) }";
        assert_eq!(text(Some(&json!(words))), words);
        for schema in [
            json!({}),
            json!({"$ref": "#/x"}),
            json!({"enum": [1, 2]}),
            json!(true),
        ] {
            assert_eq!(text(Some(&schema)), schema.to_string());
        }
        for nothing in [None, Some(&Value::Null), Some(&json!(5))] {
            assert_eq!(text(nothing), "");
        }
    }
}
