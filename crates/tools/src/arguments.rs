//! Reads validated arguments, and writes the schemas they were validated against.

use serde_json::{Map, Value, json};

use pinion_message::ToolSpec;

use crate::ToolError;

/// A tool's description for the model, from rows of (name, type, description). Parameters named in
/// `required` must be given.
pub(crate) fn spec(
    name: &str,
    description: &str,
    parameters: &[(&str, &str, &str)],
    required: &[&str],
) -> ToolSpec {
    let properties: Map<String, Value> = parameters
        .iter()
        .map(|&(name, kind, description)| {
            (
                name.to_owned(),
                json!({"description": description, "type": kind}),
            )
        })
        .collect();
    let mut parameters = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        parameters["required"] = json!(required);
    }
    ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters,
    }
}

/// A string that the schema requires.
pub(crate) fn text<'a>(arguments: &'a Value, name: &str) -> Result<&'a str, ToolError> {
    optional_text(arguments, name).ok_or_else(|| {
        ToolError(format!(
            "The argument {name} is missing. Call the tool again with {name}."
        ))
    })
}

/// A string that may be left out.
pub(crate) fn optional_text<'a>(arguments: &'a Value, name: &str) -> Option<&'a str> {
    arguments.get(name).and_then(Value::as_str)
}

/// A number that may be left out.
pub(crate) fn number(arguments: &Value, name: &str) -> Option<f64> {
    arguments.get(name).and_then(Value::as_f64)
}

/// A count that may be left out; fractions and signs are cut off.
pub(crate) fn count(arguments: &Value, name: &str) -> Option<usize> {
    // A float-to-integer cast saturates, which is right for a count.
    number(arguments, name).map(|number| number as usize)
}

/// A flag that is off unless given.
pub(crate) fn flag(arguments: &Value, name: &str) -> bool {
    arguments
        .get(name)
        .and_then(Value::as_bool)
        .unwrap_or(false)
}
