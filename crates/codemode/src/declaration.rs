//! Tools as TypeScript declarations, made of their JSON Schemas.

use pinion_tools::Tool;
use serde_json::Value;

use crate::catalogue::identifier;

/// The depth to which a schema is written out.
const MAX_DEPTH: u32 = 8;
/// The most alternatives of a type that are written out.
const MAX_ALTERNATIVES: usize = 20;

/// Returns the description and advice of a tool, and its declaration.
pub(crate) fn described(tool: &dyn Tool) -> String {
    let mut text = tool.spec().description.trim().to_owned();
    for advice in tool.guidelines() {
        text.push_str("\n- ");
        text.push_str(advice.trim());
    }
    format!("{text}\n\n{}", declared(tool))
}

/// Returns the declaration of a tool as a method of `tools`.
pub(crate) fn declared(tool: &dyn Tool) -> String {
    let spec = tool.spec();
    let arguments = type_of(&spec.parameters, MAX_DEPTH);
    let result = match tool.output_schema() {
        Some(schema) => type_of(schema, MAX_DEPTH),
        None => "string".to_owned(),
    };
    let name = identifier(&spec.name);
    format!("tools.{name}(args: {arguments}): Promise<{result}>;")
}

fn type_of(schema: &Value, depth: u32) -> String {
    let Some(depth) = depth.checked_sub(1) else {
        return "unknown".into();
    };
    if let Some(value) = schema.get("const") {
        return value.to_string();
    }
    let alternatives = |values: &[Value], write: &dyn Fn(&Value) -> String| {
        let mut written: Vec<String> = Vec::new();
        for value in values.iter().take(MAX_ALTERNATIVES) {
            let text = write(value);
            if !written.contains(&text) {
                written.push(text);
            }
        }
        if values.len() > MAX_ALTERNATIVES {
            written.push("unknown".into());
        }
        written.join(" | ")
    };
    if let Some(values) = schema["enum"].as_array() {
        return alternatives(values, &Value::to_string);
    }
    for name in ["anyOf", "oneOf"] {
        if let Some(schemas) = schema[name].as_array() {
            return alternatives(schemas, &|schema| type_of(schema, depth));
        }
    }
    match &schema["type"] {
        Value::Array(types) => alternatives(types, &|name| {
            let mut one = schema.clone();
            one["type"] = name.clone();
            type_of(&one, depth)
        }),
        Value::String(name) => match name.as_str() {
            "string" => "string".into(),
            "number" | "integer" => "number".into(),
            "boolean" => "boolean".into(),
            "null" => "null".into(),
            "array" => format!("Array<{}>", type_of(&schema["items"], depth)),
            "object" => object(schema, depth),
            _ => "unknown".into(),
        },
        _ if schema["properties"].is_object() => object(schema, depth),
        _ => "unknown".into(),
    }
}

fn object(schema: &Value, depth: u32) -> String {
    let Some(properties) = schema["properties"].as_object().filter(|it| !it.is_empty()) else {
        return "Record<string, unknown>".into();
    };
    let required = schema["required"].as_array();
    let members = properties.iter().map(|(name, property)| {
        let is_required = required.is_some_and(|names| names.iter().any(|known| known == name));
        let mark = if is_required { "" } else { "?" };
        let is_identifier = identifier(name) == *name;
        let shown = if is_identifier {
            name.clone()
        } else {
            Value::from(name.as_str()).to_string()
        };
        format!("{shown}{mark}: {}", type_of(property, depth))
    });
    format!("{{ {} }}", members.collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn schemas_become_types() {
        for (schema, expected) in [
            (json!({"type": "string"}), "string"),
            (json!({"type": ["integer", "null"]}), "number | null"),
            (json!({"enum": ["a", "b"]}), "\"a\" | \"b\""),
            (
                json!({"anyOf": [{"type": "string"}, {"type": "string"}]}),
                "string",
            ),
            (json!({"type": "array", "items": {"const": 5}}), "Array<5>"),
            (json!({"type": "object"}), "Record<string, unknown>"),
            (json!({}), "unknown"),
            (
                json!({"properties": {"a": {"type": "boolean"}, "b-c": {}}, "required": ["a"]}),
                "{ a: boolean; \"b-c\"?: unknown }",
            ),
        ] {
            assert_eq!(type_of(&schema, MAX_DEPTH), expected, "{schema}");
        }
        let mut deep = json!({"type": "string"});
        for _ in 0..100 {
            deep = json!({"type": "array", "items": deep});
        }
        assert!(type_of(&deep, MAX_DEPTH).contains("unknown"));
    }
}
