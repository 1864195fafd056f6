//! Arguments of a tool that are repeated as HTTP headers.
//!
//! Since 2026-07-28 a property of a tool's input schema may carry `x-mcp-header: "Name"`. Clients then send the argument as
//! `Mcp-Param-Name` too, so that proxies can route by it, and servers refuse a call whose header and argument differ.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value};

const ANNOTATION: &str = "x-mcp-header";
const PREFIX: &str = "mcp-param-";
/// Depth in a schema to which annotations are searched for.
const MAX_DEPTH: usize = 16;

/// One annotated argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ParamHeader {
    /// The name of the header in lower case, with its prefix.
    pub(crate) name: String,
    /// The path of object members to the argument.
    path: Vec<String>,
}

impl ParamHeader {
    /// Returns the value of the header for these arguments. `None` if the argument is absent or null: no header is sent
    /// then.
    pub(crate) fn value(&self, arguments: &Value) -> Option<String> {
        let mut found = arguments;
        for member in &self.path {
            found = found.get(member)?;
        }
        match found {
            Value::String(text) => Some(text.clone()),
            Value::Bool(_) | Value::Number(_) => Some(found.to_string()),
            _ => None,
        }
    }

    /// Compares the header of a request with the arguments.
    pub(crate) fn matches_arguments(&self, header: Option<&str>, arguments: &Value) -> bool {
        let value = self.value(arguments);
        match (header, value) {
            (None, None) => true,
            (Some(header), Some(value)) => {
                let header = decode(header);
                let header = header.as_deref();
                header == Some(&value) || header.is_some_and(|it| same_integer(it, &value))
            }
            _ => false,
        }
    }
}

fn same_integer(left: &str, right: &str) -> bool {
    matches!((left.parse::<i64>(), right.parse::<i64>()), (Ok(left), Ok(right)) if left == right)
}

/// Finds the annotated arguments of a tool. Fails with the reason if an annotation is not valid.
pub(crate) fn read(schema: &Value) -> Result<Vec<ParamHeader>, String> {
    let mut found = Vec::new();
    collect(schema, &mut Vec::new(), &mut found)?;
    for (position, header) in found.iter().enumerate() {
        if found[..position].iter().any(|it| it.name == header.name) {
            return Err(format!(
                "two arguments have {ANNOTATION} \"{}\"",
                &header.name[PREFIX.len()..]
            ));
        }
    }
    Ok(found)
}

fn collect(
    schema: &Value,
    path: &mut Vec<String>,
    found: &mut Vec<ParamHeader>,
) -> Result<(), String> {
    let Some(Value::Object(properties)) = schema.get("properties") else {
        return Ok(());
    };
    for (name, property) in properties {
        path.push(name.clone());
        if let Some(annotation) = property.get(ANNOTATION) {
            found.push(ParamHeader {
                name: header_name(name, property, annotation)?,
                path: path.clone(),
            });
        }
        if path.len() < MAX_DEPTH {
            collect(property, path, found)?;
        }
        path.pop();
    }
    Ok(())
}

fn header_name(property: &str, schema: &Value, annotation: &Value) -> Result<String, String> {
    let valid = |name: &&str| {
        !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
    };
    let Some(name) = annotation.as_str().filter(valid) else {
        return Err(format!(
            "{ANNOTATION} of \"{property}\" is {annotation}, which is not a header name"
        ));
    };
    let kind = schema
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if !matches!(kind, "string" | "integer" | "boolean") {
        return Err(format!(
            "{ANNOTATION} of \"{property}\" requires type string, integer or boolean"
        ));
    }
    Ok(format!("{PREFIX}{}", name.to_ascii_lowercase()))
}

/// Removes all annotations from a schema.
pub(crate) fn remove(schema: &mut Value) {
    match schema {
        Value::Object(members) => remove_from(members),
        Value::Array(items) => items.iter_mut().for_each(remove),
        _ => {}
    }
}

fn remove_from(members: &mut Map<String, Value>) {
    members.shift_remove(ANNOTATION);
    members.values_mut().for_each(remove);
}

/// Encodes a value for a header: unchanged, or in Base64 between `=?base64?` and `?=`.
pub(crate) fn encode(value: &str) -> String {
    let is_plain = value.bytes().all(|byte| (0x20..0x7f).contains(&byte)) && value.trim() == value;
    let looks_encoded = value.starts_with("=?base64?") && value.ends_with("?=");
    if is_plain && !looks_encoded {
        return value.to_owned();
    }
    format!("=?base64?{}?=", BASE64_STANDARD.encode(value))
}

/// Decodes the value of a header. `None` if its Base64 is invalid.
pub(crate) fn decode(value: &str) -> Option<String> {
    let Some(encoded) = value
        .strip_prefix("=?base64?")
        .and_then(|it| it.strip_suffix("?="))
    else {
        return Some(value.to_owned());
    };
    String::from_utf8(BASE64_STANDARD.decode(encoded).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn schema(properties: Value) -> Value {
        json!({ "type": "object", "properties": properties })
    }

    #[test]
    fn headers_and_arguments_are_compared() {
        let headers = read(&schema(json!({
            "region": { "type": "string", "x-mcp-header": "Region" },
            "deep": { "type": "object", "properties": { "n": { "type": "integer", "x-mcp-header": "N" } } },
            "free": { "type": "number" },
        })))
        .unwrap();
        let names: Vec<_> = headers.iter().map(|header| header.name.as_str()).collect();
        assert_eq!(names, ["mcp-param-region", "mcp-param-n"]);

        let arguments = json!({ "region": "Hello", "deep": { "n": 42 } });
        let region = &headers[0];
        assert!(region.matches_arguments(Some("Hello"), &arguments));
        assert!(region.matches_arguments(Some("=?base64?SGVsbG8=?="), &arguments));
        for wrong in [
            "hello",
            "=?base64?SGVsbG8?=",
            "=?base64?SGVs!!!bG8=?=",
            "SGVsbG8=",
            "",
        ] {
            assert!(
                !region.matches_arguments(Some(wrong), &arguments),
                "{wrong}"
            );
        }
        assert!(!region.matches_arguments(None, &arguments));
        assert!(headers[1].matches_arguments(Some("042"), &arguments));
        assert!(!headers[1].matches_arguments(Some("42.5"), &arguments));
        for absent in [json!({}), json!({ "region": null })] {
            assert!(region.matches_arguments(None, &absent));
            assert!(!region.matches_arguments(Some("x"), &absent));
        }
    }

    #[test]
    fn annotations_that_cannot_be_headers_are_refused() {
        for (property, name) in [
            (json!("string"), json!("")),
            (json!("string"), json!(5)),
            (json!("string"), json!("My Region")),
            (json!("string"), json!("Région")),
            (json!("string"), json!("a:b")),
            (json!("string"), json!("a\tb")),
            (json!("object"), json!("X")),
            (json!("array"), json!("X")),
            (json!("null"), json!("X")),
            (json!("number"), json!("X")),
        ] {
            let property = json!({ "type": property, "x-mcp-header": name });
            assert!(
                read(&schema(json!({ "a": property }))).is_err(),
                "{property}"
            );
        }
        let twice = json!({ "type": "string", "x-mcp-header": "Field" });
        let other = json!({ "type": "string", "x-mcp-header": "field" });
        let mut twice = schema(json!({ "a": twice, "b": other }));
        assert!(read(&twice).unwrap_err().contains("two arguments"));
        remove(&mut twice);
        assert_eq!(read(&twice), Ok(vec![]));
    }

    proptest! {
        #[test]
        fn every_text_survives_as_a_header(text: String) {
            let header = encode(&text);
            prop_assert!(header.bytes().all(|byte| (0x20..0x7f).contains(&byte)));
            prop_assert_eq!(header.trim(), &header);
            prop_assert_eq!(decode(&header), Some(text));
        }
    }
}
