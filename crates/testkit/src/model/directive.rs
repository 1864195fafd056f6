//! Answers that the prompt itself dictates, for tests whose model must follow the client. The user messages since the
//! last answer or tool result are searched for a line that begins with a directive; the first one counts:
//!
//! | line | answer |
//! |---|---|
//! | `CALL tool {…} && tool {…}` | these tool calls, with ids `call_1`, `call_2` and so on |
//! | `SAY text` | that text |
//! | `SLOW ms` | `slow `, a pause, `done` |
//! | none of these | `tools done` right after tool results, else `ok` |

use serde_json::{Deserializer, Value, json};

use super::inspect::RequestView;

/// Returns the turn that answers this request.
pub(super) fn turn(view: &RequestView) -> Value {
    let lines = view.unanswered.iter().flat_map(|text| text.lines());
    let otherwise = || {
        let settled = view.unanswered.is_empty() && view.after_tools;
        json!([if settled { "tools done" } else { "ok" }])
    };
    let steps = lines.filter_map(steps).next().unwrap_or_else(otherwise);
    json!({"steps": steps, "usage": {"input": 10, "output": 5}})
}

fn steps(line: &str) -> Option<Value> {
    if let Some(calls) = line.strip_prefix("CALL ") {
        return Some(tool_calls(calls));
    }
    if let Some(text) = line.strip_prefix("SAY ") {
        return Some(json!([text]));
    }
    let pause: u64 = line.strip_prefix("SLOW ")?.trim().parse().ok()?;
    Some(json!([{"text": ["slow ", {"delay_ms": pause}, "done"]}]))
}

/// Arguments may contain `&&` themselves, so each is parsed as JSON before the next call is searched for.
fn tool_calls(mut rest: &str) -> Value {
    let mut calls = Vec::new();
    loop {
        let (name, after) = rest.split_once(' ').unwrap_or((rest, "{}"));
        let mut values = Deserializer::from_str(after).into_iter::<Value>();
        let arguments = values.next();
        let arguments = arguments.and_then(Result::ok).unwrap_or_else(|| json!({}));
        calls.push(
            json!({"tool": name, "args": arguments, "id": format!("call_{}", calls.len() + 1)}),
        );
        match after[values.byte_offset()..]
            .trim_start()
            .strip_prefix("&& ")
        {
            Some(next) => rest = next,
            None => return json!(calls),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(unanswered: &[&str], after_tools: bool) -> Value {
        let view = RequestView {
            unanswered: unanswered.iter().map(ToString::to_string).collect(),
            after_tools,
            ..RequestView::default()
        };
        turn(&view)["steps"].clone()
    }

    #[test]
    fn the_first_line_that_is_a_directive_counts() {
        assert_eq!(
            asked(&["hello", "well\nSAY this", "SAY that"], false),
            json!(["this"])
        );
        assert_eq!(asked(&["hello"], false), json!(["ok"]));
        assert_eq!(asked(&[], true), json!(["tools done"]));
        assert_eq!(asked(&["and now?"], true), json!(["ok"]));
    }

    #[test]
    fn calls_may_hold_what_separates_them() {
        let found = asked(
            &[r#"CALL bash {"command":"true && false"} && read {"path":"x"}"#],
            false,
        );
        let expected = json!([
            {"tool": "bash", "args": {"command": "true && false"}, "id": "call_1"},
            {"tool": "read", "args": {"path": "x"}, "id": "call_2"},
        ]);
        assert_eq!(found, expected);
    }
}
