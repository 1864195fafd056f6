//! Patterns over JSON values, and the substitution of remembered values.

use std::collections::HashMap;

use serde_json::Value;

/// Reports whether `value` contains `pattern`.
///
/// Objects need to have the fields of the pattern and may have more. Lists have the same length, unless the
/// pattern ends in `"…"`. Texts are equal, or fit around each `…` in the pattern; `"…"` alone fits
/// any value. Numbers are compared as numbers.
pub fn fits(pattern: &Value, value: &Value) -> bool {
    match (pattern, value) {
        (Value::String(text), _) if text == "…" => true,
        (Value::Object(wanted), Value::Object(given)) => wanted
            .iter()
            .all(|(name, wanted)| given.get(name).is_some_and(|given| fits(wanted, given))),
        (Value::Array(wanted), Value::Array(given)) => match wanted.split_last() {
            Some((Value::String(rest), wanted)) if rest == "…" => {
                wanted.len() <= given.len() && all_fit(wanted, given)
            }
            _ => wanted.len() == given.len() && all_fit(wanted, given),
        },
        (Value::String(wanted), Value::String(given)) => text_fits(wanted, given),
        (Value::Number(wanted), Value::Number(given)) => {
            wanted == given || wanted.as_f64() == given.as_f64()
        }
        _ => pattern == value,
    }
}

fn all_fit(wanted: &[Value], given: &[Value]) -> bool {
    wanted
        .iter()
        .zip(given)
        .all(|(wanted, given)| fits(wanted, given))
}

fn text_fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Returns the value at a dotted path such as `data.messages.0.entryId`.
pub fn dig<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, |value, part| match value {
        Value::Array(items) => items.get(part.parse::<usize>().ok()?),
        _ => value.get(part),
    })
}

/// Replaces `${NAME}` by remembered values in all texts of `value`; unknown names stay.
pub fn fill(value: &Value, names: &HashMap<String, String>) -> Value {
    match value {
        Value::String(text) => Value::String(fill_text(text, names)),
        Value::Array(items) => items.iter().map(|item| fill(item, names)).collect(),
        Value::Object(fields) => {
            let filled = fields
                .iter()
                .map(|(name, value)| (name.clone(), fill(value, names)));
            Value::Object(filled.collect())
        }
        other => other.clone(),
    }
}

pub(super) fn fill_text(text: &str, names: &HashMap<String, String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, found) = rest.split_at(at);
        out.push_str(before);
        let known = found
            .find('}')
            .and_then(|end| Some((names.get(&found[2..end])?, end)));
        match known {
            Some((value, end)) => {
                out.push_str(value);
                rest = &found[end + 1..];
            }
            None => {
                out.push_str("${");
                rest = &found[2..];
            }
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_pattern_fits_by_what_it_names() {
        let line = json!({"type": "response", "id": "a", "data": {"n": 1, "list": [1, 2, 3]}});
        assert!(fits(&json!({"type": "response"}), &line));
        assert!(fits(&json!({"data": {"n": 1.0}}), &line));
        assert!(fits(&json!({"data": {"list": [1, "…"]}}), &line));
        assert!(fits(&json!({"data": "…"}), &line));
        assert!(!fits(&json!({"data": {"list": [1, 2]}}), &line));
        assert!(!fits(&json!({"type": "event"}), &line));
        assert!(!fits(&json!({"missing": "…"}), &line));
    }

    #[test]
    fn a_text_fits_around_its_gaps() {
        let cases = [
            ("abc", "abc", true),
            ("abc", "abcd", false),
            ("a…", "abc", true),
            ("…c", "abc", true),
            ("a…c", "ac", true),
            ("a…b…c", "a--b--c", true),
            ("a…b…c", "a--c--b", false),
            ("ab…ba", "aba", false),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(text_fits(pattern, text), expected, "{pattern} and {text}");
        }
    }

    #[test]
    fn remembered_values_are_put_in_and_unknown_names_stay() {
        let names = HashMap::from([("A".to_owned(), "1".to_owned())]);
        assert_eq!(fill_text("${A}${B} $ ${", &names), "1${B} $ ${");
        assert_eq!(dig(&json!({"a": [{"b": 5}]}), "a.0.b"), Some(&json!(5)));
    }
}
