//! Structured answers: finds JSON in a text and checks it against the plan's schema.

use serde_json::{Map, Value};

/// Finds the JSON value in an answer: the whole text, else its last fenced block that is JSON, else the part from the
/// first opening to the last closing brace or bracket.
pub(crate) fn find_json(text: &str) -> Option<Value> {
    let text = text.trim();
    if let Ok(value) = serde_json::from_str(text) {
        return Some(value);
    }
    let fenced = text.split("```").skip(1).step_by(2);
    let blocks = fenced.filter_map(|block| {
        let body = block.split_once('\n').map_or(block, |(_, body)| body);
        serde_json::from_str::<Value>(body.trim()).ok()
    });
    if let Some(value) = blocks.last() {
        return Some(value);
    }
    let start = text.find(['{', '['])?;
    let end = text.rfind(['}', ']'])?;
    serde_json::from_str(text.get(start..=end)?).ok()
}

/// Describes how `value` violates `schema`; `None` if it does not.
pub(crate) fn violations(schema: &Value, value: &Value) -> Option<String> {
    let mut problems = Vec::new();
    check(schema, value, "", &mut problems);
    (!problems.is_empty()).then(|| problems.join("; "))
}

/// Checks the keywords of JSON Schema that describe the contents of an answer; other keywords are ignored.
fn check(schema: &Value, value: &Value, at: &str, problems: &mut Vec<String>) {
    let Some(schema) = schema.as_object() else {
        return;
    };
    let here = || {
        if at.is_empty() {
            "it".to_owned()
        } else {
            at.to_owned()
        }
    };
    if let Some(wanted) = types(schema)
        && !wanted.iter().any(|wanted| is_type(value, wanted))
    {
        let wanted = wanted.join(" or ");
        return problems.push(format!("{} must be {wanted}", here()));
    }
    if let Some(choices) = schema.get("enum").and_then(Value::as_array)
        && !choices.contains(value)
    {
        let choices: Vec<String> = choices.iter().map(ToString::to_string).collect();
        problems.push(format!("{} must be one of {}", here(), choices.join(", ")));
    }
    if let Some(constant) = schema.get("const").filter(|constant| *constant != value) {
        problems.push(format!("{} must be {constant}", here()));
    }
    if let Some(number) = value.as_f64() {
        let limit = |name: &str| schema.get(name).and_then(Value::as_f64);
        if limit("minimum").is_some_and(|minimum| number < minimum)
            || limit("maximum").is_some_and(|maximum| number > maximum)
        {
            problems.push(format!("{} is out of range", here()));
        }
    }
    if let Some(members) = value.as_object() {
        check_members(schema, members, at, problems);
    }
    if let (Some(items), Some(schema)) = (value.as_array(), schema.get("items")) {
        for (index, item) in items.iter().enumerate() {
            check(schema, item, &format!("{at}[{index}]"), problems);
        }
    }
}

fn check_members(
    schema: &Map<String, Value>,
    members: &Map<String, Value>,
    at: &str,
    problems: &mut Vec<String>,
) {
    let inside = |name: &str| match at {
        "" => name.to_owned(),
        at => format!("{at}.{name}"),
    };
    let required = schema.get("required").and_then(Value::as_array);
    for name in required.into_iter().flatten().filter_map(Value::as_str) {
        if !members.contains_key(name) {
            problems.push(format!("{} is missing", inside(name)));
        }
    }
    let known = schema.get("properties").and_then(Value::as_object);
    for (name, value) in members {
        match known.and_then(|known| known.get(name)) {
            Some(schema) => check(schema, value, &inside(name), problems),
            None if schema.get("additionalProperties") == Some(&Value::Bool(false)) => {
                problems.push(format!("{} is not expected", inside(name)));
            }
            None => {}
        }
    }
}

fn types(schema: &Map<String, Value>) -> Option<Vec<&str>> {
    match schema.get("type")? {
        Value::String(wanted) => Some(vec![wanted]),
        Value::Array(wanted) => Some(wanted.iter().filter_map(Value::as_str).collect()),
        _ => None,
    }
}

fn is_type(value: &Value, wanted: &str) -> bool {
    match wanted {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_is_found_in_prose() {
        for text in [
            r#"{"a":1}"#,
            "Here it is:\n```json\n{\"a\":1}\n```\nDone.",
            "```\n[2]\n```\nno, rather\n```json\n{\"a\":1}\n```",
            "I think {\"a\":1} is right.",
        ] {
            assert_eq!(find_json(text), Some(json!({"a": 1})), "{text}");
        }
        assert_eq!(find_json("no braces"), None);
        assert_eq!(find_json("} {"), None);
    }

    #[test]
    fn schema_violations_are_described() {
        let schema = json!({"type": "object", "required": ["verdict", "findings"], "additionalProperties": false,
            "properties": {"verdict": {"enum": ["approve", "block"]},
                "findings": {"type": "array", "items": {"type": "object", "required": ["line"],
                    "properties": {"line": {"type": "integer", "minimum": 1}}}}}});
        assert_eq!(
            violations(
                &schema,
                &json!({"verdict": "block", "findings": [{"line": 3}]})
            ),
            None
        );
        let wrong =
            json!({"verdict": "maybe", "findings": [{"line": 0}, {}, {"line": "x"}], "more": 1});
        let words = violations(&schema, &wrong).unwrap();
        for part in [
            "verdict must be one of",
            "findings[0].line is out",
            "findings[1].line is missing",
            "findings[2].line must be integer",
            "more is not expected",
        ] {
            assert!(words.contains(part), "{words}");
        }
        assert_eq!(
            violations(&schema, &json!([])),
            Some("it must be object".into())
        );
    }
}
