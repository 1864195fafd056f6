//! The description of an entry in a row of the tree.

use pinion_text::start;
use serde_json::Value;

use crate::overlay::models::tokens;
use crate::text::one_line;
use crate::transcript::subject;

/// Characters of an entry that are searched and shown.
const MAX_SHOWN: usize = 300;

/// The author of an entry, and a short form of its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Summary {
    pub author: String,
    pub excerpt: String,
    /// Further text that is searched but not shown.
    more: String,
    pub tone: Tone,
}

/// The appearance of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    User,
    Model,
    Quiet,
    Failed,
}

impl Summary {
    /// Describes an entry; `call` is the call that it is the result of.
    pub fn of(entry: &Value, call: Option<&Value>) -> Self {
        let member = |name: &str| short(entry[name].as_str().unwrap_or_default());
        let quiet = |author: &str, excerpt: String| Self {
            author: author.to_owned(),
            excerpt,
            more: String::new(),
            tone: Tone::Quiet,
        };
        match entry["type"].as_str().unwrap_or_default() {
            "message" => Self::of_message(&entry["message"], call),
            "compaction" => {
                let before = entry["tokensBefore"].as_u64().unwrap_or_default();
                quiet(
                    &format!("compaction of {}", tokens(before)),
                    member("summary"),
                )
            }
            "branch_summary" => quiet("summary of a branch", member("summary")),
            "model_change" => quiet(
                "model",
                format!("{}/{}", member("provider"), member("modelId")),
            ),
            "thinking_level_change" => quiet("thinking", member("thinkingLevel")),
            "session_info" => quiet("session name", member("name")),
            "label" => quiet("label", member("label")),
            "custom" => quiet("data", member("customType")),
            "custom_message" => quiet(&member("customType"), text(&entry["content"])),
            "" => quiet("unreadable entry", String::new()),
            other => quiet(&short(other), String::new()),
        }
    }

    fn of_message(message: &Value, call: Option<&Value>) -> Self {
        let mut more = String::new();
        let excerpt = text(&message["content"]);
        let (author, excerpt, tone) = match message["role"].as_str().unwrap_or_default() {
            "user" => ("you".to_owned(), excerpt, Tone::User),
            "assistant" => {
                let error = message["errorMessage"].as_str().unwrap_or_default();
                match (excerpt.as_str(), error) {
                    ("", "") => ("model".to_owned(), calls(&message["content"]), Tone::Quiet),
                    ("", error) => ("model".to_owned(), short(error), Tone::Failed),
                    _ => ("model".to_owned(), excerpt, Tone::Model),
                }
            }
            "toolResult" => {
                let name = short(message["toolName"].as_str().unwrap_or("tool"));
                let tone = match message["isError"].as_bool() {
                    Some(true) => Tone::Failed,
                    _ => Tone::Quiet,
                };
                let called = call.map(|call| short(&subject(&name, &call["arguments"])));
                match called.filter(|called| !called.is_empty()) {
                    Some(called) => {
                        more = excerpt;
                        (name, called, tone)
                    }
                    None => (name, excerpt, tone),
                }
            }
            "bashExecution" => {
                let command = short(message["command"].as_str().unwrap_or_default());
                ("!".to_owned(), command, Tone::Quiet)
            }
            "" => ("message".to_owned(), excerpt, Tone::Quiet),
            other => (short(other), excerpt, Tone::Quiet),
        };
        Self {
            author,
            excerpt,
            more,
            tone,
        }
    }

    /// The text to search in.
    pub fn words(&self) -> String {
        format!("{} {} {}", self.author, self.excerpt, self.more)
    }
}

/// The text of a message's content, which is a string or blocks.
fn text(content: &Value) -> String {
    match content {
        Value::String(text) => short(text),
        Value::Array(blocks) => {
            let of_block = |block: &Value| match block["type"].as_str() {
                Some("text") => Some(short(block["text"].as_str().unwrap_or_default())),
                Some("image") => Some("[image]".to_owned()),
                _ => None,
            };
            let texts: Vec<String> = blocks.iter().filter_map(of_block).collect();
            short(texts.join(" ").trim())
        }
        _ => String::new(),
    }
}

/// The call with this id, if the entry is an answer that contains it.
pub(super) fn call(entry: &Value, id: &str) -> Option<Value> {
    let blocks = entry["message"]["content"].as_array()?;
    let call = blocks
        .iter()
        .find(|block| block["type"] == "toolCall" && block["id"] == id);
    call.cloned()
}

/// The tools that an answer calls.
fn calls(content: &Value) -> String {
    let blocks = content.as_array().into_iter().flatten();
    let names: Vec<String> = blocks
        .filter(|block| block["type"] == "toolCall")
        .map(|block| short(block["name"].as_str().unwrap_or("tool")))
        .collect();
    if names.is_empty() {
        "(nothing)".to_owned()
    } else {
        format!("calls {}", names.join(", "))
    }
}

fn short(text: &str) -> String {
    one_line(start(text, MAX_SHOWN))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_kind_of_entry_has_a_summary() {
        let message = |message: Value| json!({"type": "message", "message": message});
        for (entry, excerpt) in [
            (
                message(json!({"role": "user", "content": "fix\nthe parser"})),
                "you fix the parser",
            ),
            (
                message(
                    json!({"role": "user", "content": [{"type": "text", "text": "see"}, {"type": "image", "data": "…"}]}),
                ),
                "you see [image]",
            ),
            (
                message(
                    json!({"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Done."}]}),
                ),
                "model Done.",
            ),
            (
                message(
                    json!({"role": "assistant", "content": [{"type": "toolCall", "name": "read"}, {"type": "toolCall", "name": "ls"}]}),
                ),
                "model calls read, ls",
            ),
            (
                message(json!({"role": "assistant", "content": [], "errorMessage": "overloaded"})),
                "model overloaded",
            ),
            (
                message(json!({"role": "assistant", "content": []})),
                "model (nothing)",
            ),
            (
                message(
                    json!({"role": "toolResult", "toolName": "bash", "content": [{"type": "text", "text": "ok"}]}),
                ),
                "bash ok",
            ),
            (
                message(json!({"role": "bashExecution", "command": "make"})),
                "! make",
            ),
            (message(json!({})), "message "),
            (
                json!({"type": "compaction", "tokensBefore": 120_000, "summary": "so far"}),
                "compaction of 120k so far",
            ),
            (
                json!({"type": "branch_summary", "summary": "tried X"}),
                "summary of a branch tried X",
            ),
            (
                json!({"type": "model_change", "provider": "p", "modelId": "m"}),
                "model p/m",
            ),
            (
                json!({"type": "thinking_level_change", "thinkingLevel": "high"}),
                "thinking high",
            ),
            (
                json!({"type": "session_info", "name": "n"}),
                "session name n",
            ),
            (json!({"type": "label", "label": "l"}), "label l"),
            (json!({"type": "custom", "customType": "todo"}), "data todo"),
            (
                json!({"type": "custom_message", "customType": "note", "content": "c"}),
                "note c",
            ),
            (json!({"type": "later"}), "later "),
            (json!(null), "unreadable entry "),
        ] {
            let summary = Summary::of(&entry, None);
            assert_eq!(
                format!("{} {}", summary.author, summary.excerpt),
                excerpt,
                "{entry}"
            );
        }
    }

    #[test]
    fn a_result_shows_its_call_and_its_output_is_searched() {
        let calls = json!({"message": {"content": [
            {"type": "toolCall", "id": "1", "name": "read", "arguments": {"path": "a.rs"}},
            {"type": "toolCall", "id": "2", "name": "bash", "arguments": {"command": "ls\ncd"}},
        ]}});
        let result = json!({"type": "message", "message": {"role": "toolResult", "toolName": "bash",
            "toolCallId": "2", "content": [{"type": "text", "text": "a.rs"}]}});
        let summary = Summary::of(&result, call(&calls, "2").as_ref());
        assert_eq!(
            (summary.author.as_str(), summary.tone),
            ("bash", Tone::Quiet)
        );
        assert!(summary.excerpt.starts_with("$ ls"), "{}", summary.excerpt);
        assert!(summary.words().contains("a.rs"));
        assert_eq!(call(&calls, "3"), None);
    }
}
