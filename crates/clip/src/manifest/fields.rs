//! The members of a command's input, read from the JSON Schema in its manifest.

use serde_json::Value;

/// One member of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputField {
    pub name: String,
    /// The type of its values as far as the schema defines it, such as `integer|null` or `low|high`, else `value`.
    pub kind: String,
    pub required: bool,
    pub description: String,
}

/// Returns the members of an input, the required ones first; none if the schema does not describe an object.
pub fn input_fields(schema: &str) -> Vec<InputField> {
    let schema: Value = serde_json::from_str(schema).unwrap_or_default();
    let required: Vec<&str> = schema["required"]
        .as_array()
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let properties = schema["properties"].as_object().into_iter().flatten();
    let mut fields: Vec<InputField> = properties
        .map(|(name, property)| InputField {
            name: name.clone(),
            kind: kind(property),
            required: required.contains(&name.as_str()),
            description: property["description"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        })
        .collect();
    let position = |field: &InputField| required.iter().position(|name| *name == field.name);
    fields.sort_by_key(|field| position(field).unwrap_or(usize::MAX));
    fields
}

fn kind(property: &Value) -> String {
    if let Some(values) = property["enum"].as_array() {
        let values: Vec<String> = values
            .iter()
            .map(|value| {
                value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned)
            })
            .collect();
        return values.join("|");
    }
    match &property["type"] {
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => {
            let kinds: Vec<&str> = kinds.iter().filter_map(Value::as_str).collect();
            kinds.join("|")
        }
        _ => "value".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn required_fields_come_first_in_the_order_of_the_schema() {
        let schema = r#"{"type":"object","properties":{"a":{"type":"string"},"b":{"type":["integer","null"],"description":"B"},"c":{"enum":["x",1]}},"required":["c","b"]}"#;
        let read = input_fields(schema);
        let names: Vec<(&str, &str, bool)> = read
            .iter()
            .map(|field| (field.name.as_str(), field.kind.as_str(), field.required))
            .collect();
        assert_eq!(
            names,
            [
                ("c", "x|1", true),
                ("b", "integer|null", true),
                ("a", "string", false)
            ]
        );
        for nothing in ["", "{", "[]", "\"text\"", "{ text: string }"] {
            assert!(input_fields(nothing).is_empty(), "{nothing}");
        }
    }
}
