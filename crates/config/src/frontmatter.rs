//! The YAML header of a Markdown file, between two lines that start with `---`.
//!
//! This module only splits and parses; templates and skills interpret the members.

use serde_json::{Map, Value};

/// The header and the body of a Markdown file.
#[derive(Debug, PartialEq)]
pub(crate) struct Document {
    pub(crate) fields: Map<String, Value>,
    /// Without surrounding blanks if there was a header, else exactly the file.
    pub(crate) body: String,
}

/// The YAML header of a Markdown file, and the rest. Fails if there is a header that is not YAML.
pub fn parse_frontmatter(text: &str) -> Result<(Map<String, Value>, String), String> {
    parse(text).map(|document| (document.fields, document.body))
}

/// Parses a file. Fails only if there is a header that is not YAML.
pub(crate) fn parse(text: &str) -> Result<Document, String> {
    let text = unix_lines(text);
    let Some((header, body)) = split(&text) else {
        return Ok(Document {
            fields: Map::new(),
            body: text,
        });
    };
    let fields = if header.trim().is_empty() {
        Map::new()
    } else {
        match serde_saphyr::from_str::<Value>(header) {
            Ok(Value::Object(fields)) => fields,
            Ok(_) => Map::new(),
            Err(error) => return Err(explain(&error)),
        }
    };
    Ok(Document {
        fields,
        body: body.trim().to_owned(),
    })
}

/// The body alone, without surrounding blanks.
pub(crate) fn body(text: &str) -> String {
    let text = unix_lines(text);
    split(&text)
        .map_or(text.as_str(), |(_, body)| body)
        .trim()
        .to_owned()
}

impl Document {
    /// A member as text; numbers and booleans are converted.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        match self.fields.get(name)? {
            Value::String(text) => Some(text.clone()),
            value @ (Value::Number(_) | Value::Bool(_)) => Some(value.to_string()),
            _ => None,
        }
    }
}

fn unix_lines(text: &str) -> String {
    if text.contains('\r') {
        text.replace("\r\n", "\n").replace('\r', "\n")
    } else {
        text.to_owned()
    }
}

/// Header and rest, if the text starts with `---` and a later line does too.
fn split(text: &str) -> Option<(&str, &str)> {
    let after = text.strip_prefix("---")?;
    let end = after.find("\n---")?;
    let header = after[..end].strip_prefix('\n').unwrap_or(&after[..end]);
    Some((header, &after[end + "\n---".len()..]))
}

/// Explains an error of the header in one line. The line `---` comes before the header.
fn explain(error: &serde_saphyr::Error) -> String {
    let problem = pinion_yaml::problem(error);
    match problem.line {
        0 => problem.message,
        line => format!(
            "line {}, column {}: {}",
            line + 1,
            problem.column,
            problem.message
        ),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn parsed(text: &str) -> (Value, String) {
        let document = parse(text).unwrap();
        (Value::Object(document.fields), document.body)
    }

    #[test]
    fn headers_are_recognised() {
        for (text, fields, body) in [
            ("---\na: b\n---\nbody\n", json!({"a": "b"}), "body"),
            (
                "---\r\na: b\r\n---\r\n\r\nbody\r\n",
                json!({"a": "b"}),
                "body",
            ),
            ("---\n---\nbody", json!({}), "body"),
            ("---\n# nothing\n---\n", json!({}), ""),
            ("---\njust text\n---\nx", json!({}), "x"),
            (
                "---\nhint: <thing>\nflag: true\nn: 3\n--- \nx",
                json!({"hint": "<thing>", "flag": true, "n": 3}),
                "x",
            ),
            ("no header\n", json!({}), "no header\n"),
            ("\n---\na: b\n---\n", json!({}), "\n---\na: b\n---\n"),
            ("---\nnever closed\n", json!({}), "---\nnever closed\n"),
            ("", json!({}), ""),
        ] {
            assert_eq!(parsed(text), (fields, body.to_owned()), "{text:?}");
        }
    }

    #[test]
    fn a_header_that_is_not_yaml_is_an_error() {
        for (text, words) in [
            (
                "---\na: b: c\n---\nx",
                "line 2, column 5: this is not valid YAML: there is a second \": \"",
            ),
            ("---\n[\n---\nx", "this is not valid YAML"),
            (
                "---\na: *none\n---\n",
                "line 2, column 4: an alias names an anchor that does not exist",
            ),
            (
                "---\na: 1\na: 2\n---\n",
                "line 3, column 1: \"a\" appears twice",
            ),
        ] {
            let message = parse(text).unwrap_err();
            assert!(message.contains(words), "{text}: {message}");
            assert!(!message.contains(['\n', '<', '^']), "{message}");
            assert!(!body(text).contains("---"));
        }
    }

    proptest! {
        #[test]
        fn any_text_is_taken_apart(text in "(---\n)?[-a-z:\\[\\]{}&*!|> \r\n]{0,60}(\n---\n)?.*") {
            if let Ok(document) = parse(&text) {
                prop_assert_eq!(document.body.trim(), body(&text));
            }
        }
    }
}
