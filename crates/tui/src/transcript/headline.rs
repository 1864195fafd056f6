//! The one-line description of a tool call.

use std::borrow::Cow;

use pinion_text::amount;
use serde_json::Value;

use super::preview::start_of;

/// Characters of an argument that are shown in one line.
const MAX_ARGUMENT: usize = 400;

/// Returns the subject of a call: `src/main.rs:1-40`, `$ cargo test`.
pub(crate) fn subject(name: &str, arguments: &Value) -> String {
    let text = |member: &str| arguments.get(member).and_then(Value::as_str);
    let path = || text("path").or_else(|| text("file_path")).unwrap_or("");
    match name {
        "read" => format!("{}{}", path(), range(arguments)),
        "bash" => format!("$ {}", first_line(text("command").unwrap_or(""))),
        "edit" => path().to_owned(),
        "write" => match text("content") {
            Some(content) => {
                format!(
                    "{} ({})",
                    path(),
                    amount::count(content.lines().count(), "line")
                )
            }
            None => path().to_owned(),
        },
        "grep" => {
            let glob = text("glob").map_or(String::new(), |glob| format!(" ({glob})"));
            let pattern = first_line(text("pattern").unwrap_or(""));
            format!("/{pattern}/ in {}{glob}", place(path()))
        }
        "find" => {
            let pattern = first_line(text("pattern").unwrap_or(""));
            format!("{pattern} in {}", place(path()))
        }
        "ls" => place(path()).to_owned(),
        _ => short_arguments(arguments),
    }
}

/// The directory of a call without a path.
fn place(path: &str) -> &str {
    if path.is_empty() { "." } else { path }
}

/// The lines that a call reads: `:10-19`, or `:10` for all lines from there.
fn range(arguments: &Value) -> String {
    let number = |member: &str| arguments.get(member).and_then(Value::as_f64);
    let first = number("offset").map(|number| number.max(1.0) as u64);
    let count = number("limit").map(|number| number.max(1.0) as u64);
    match (first, count) {
        (None, None) => String::new(),
        (Some(first), None) => format!(":{first}"),
        (first, Some(count)) => {
            let first = first.unwrap_or(1);
            format!(":{first}-{}", first.saturating_add(count - 1))
        }
    }
}

fn first_line(text: &str) -> Cow<'_, str> {
    let text = text.trim();
    let first = start_of(text.lines().next().unwrap_or(""), MAX_ARGUMENT);
    if first.len() < text.len() {
        Cow::Owned(format!("{first} …"))
    } else {
        Cow::Borrowed(first)
    }
}

/// The arguments of an unknown tool: a single one by its value, several with their names.
fn short_arguments(arguments: &Value) -> String {
    let Some(members) = arguments.as_object() else {
        return match arguments {
            Value::Null => String::new(),
            other => start_of(&other.to_string(), MAX_ARGUMENT).to_owned(),
        };
    };
    let value = |value: &Value| match value {
        Value::String(text) => first_line(text).into_owned(),
        other => start_of(&other.to_string(), MAX_ARGUMENT).to_owned(),
    };
    if members.len() == 1 {
        return members.values().map(value).collect();
    }
    let words = members
        .iter()
        .take(8)
        .map(|(name, member)| format!("{name}={}", value(member)));
    words.collect::<Vec<_>>().join(" ")
}

/// Parses arguments that are still incomplete.
pub(super) fn readable(raw: &str) -> Value {
    const CLOSINGS: [&str; 4] = ["", "}", "\"}", "\":null}"];
    let parsed = CLOSINGS
        .iter()
        .find_map(|closing| serde_json::from_str(&format!("{raw}{closing}")).ok());
    if let Some(parsed) = parsed {
        return parsed;
    }
    // Up to the last complete member.
    let whole = raw
        .rmatch_indices(',')
        .find_map(|(at, _)| serde_json::from_str(&format!("{}}}", &raw[..at])).ok());
    whole.unwrap_or(Value::Null)
}

/// Counts the lines that a diff adds and removes.
pub(crate) fn changes(diff: &str) -> (usize, usize) {
    let is_file_name = |line: &str| line.starts_with("+++ ") || line.starts_with("--- ");
    let count = |mark: char| {
        let marked = |line: &&str| line.starts_with(mark) && !is_file_name(line);
        diff.lines().filter(marked).count()
    };
    (count('+'), count('-'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn calls_have_short_subjects() {
        let cases = [
            ("read", json!({"path": "a.rs"}), "a.rs"),
            ("read", json!({"path": "a.rs", "offset": 10}), "a.rs:10"),
            ("read", json!({"path": "a.rs", "limit": 40}), "a.rs:1-40"),
            (
                "read",
                json!({"path": "a.rs", "offset": 10, "limit": 10}),
                "a.rs:10-19",
            ),
            ("bash", json!({"command": "cargo test"}), "$ cargo test"),
            ("bash", json!({"command": "cd x\nmake"}), "$ cd x …"),
            (
                "write",
                json!({"path": "b", "content": "1\n2\n"}),
                "b (2 lines)",
            ),
            (
                "grep",
                json!({"pattern": "fn", "glob": "*.rs"}),
                "/fn/ in . (*.rs)",
            ),
            (
                "find",
                json!({"pattern": "*.md", "path": "docs"}),
                "*.md in docs",
            ),
            ("ls", json!({}), "."),
            ("weather", json!({"city": "Oslo"}), "Oslo"),
            (
                "weather",
                json!({"city": "Oslo", "days": 2}),
                "city=Oslo days=2",
            ),
            ("odd", json!(null), ""),
            ("odd", json!([1]), "[1]"),
        ];
        for (name, arguments, expected) in cases {
            assert_eq!(subject(name, &arguments), expected, "{name} {arguments}");
        }
    }

    #[test]
    fn arguments_are_readable_before_they_are_complete() {
        let whole = r#"{"path":"src/main.rs","content":"fn main() {\n}"}"#;
        assert_eq!(readable(&whole[..1]), json!({}));
        assert_eq!(readable(&whole[..14]), json!({"path": "src/m"}));
        assert_eq!(readable(&whole[..21])["path"], "src/main.rs");
        assert_eq!(readable(&whole[..25])["path"], "src/main.rs");
        assert_eq!(readable(whole)["content"], "fn main() {\n}");
    }

    #[test]
    fn changes_are_counted_without_the_names_of_files() {
        assert_eq!(changes("--- a\n+++ b\n@@ -1 +1,2 @@\n-x\n+y\n+z\n"), (2, 1));
        assert_eq!(changes(" 1 a\n-2 b\n+2 c"), (1, 1));
    }

    proptest! {
        #[test]
        fn any_arguments_have_a_subject(name in "read|bash|edit|write|grep|find|ls|x", raw in "\\PC{0,60}") {
            subject(&name, &readable(&raw));
            subject(&name, &Value::String(raw));
        }
    }
}
