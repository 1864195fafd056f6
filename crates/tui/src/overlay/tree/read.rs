//! Parses the session tree from the JSON answer of the engine.
//!
//! The answer nests as deep as the conversation is long, so it is parsed with a stack instead of
//! recursion. Only the head of each entry is parsed; the position of its JSON is stored for when it
//! is shown.

use std::borrow::Cow;
use std::ops::Range;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Deserializer;
use serde_json::value::RawValue;

use crate::overlay::Author;

/// An entry of the tree.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub id: String,
    pub kind: NodeKind,
    /// The index of its parent, which precedes it in the list.
    pub parent: Option<usize>,
    pub label: Option<String>,
    /// The position of its JSON in the answer.
    pub json: Range<usize>,
}

/// The kind of an entry, on which its visibility depends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NodeKind {
    /// A message of the user.
    User,
    /// A message of the model, a tool result or a summary.
    Conversation,
    /// An answer that only calls tools; their results describe it sufficiently.
    Calls,
    /// A change of model or thinking, a name, data of an extension.
    Bookkeeping,
}

impl NodeKind {
    pub fn author(self) -> Author {
        match self {
            Self::User => Author::User,
            _ => Author::Other,
        }
    }
}

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow, default)]
    id: Cow<'a, str>,
    #[serde(borrow, default)]
    r#type: Cow<'a, str>,
    #[serde(borrow, default)]
    message: Option<MessageHead<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MessageHead<'a> {
    #[serde(borrow, default)]
    role: Cow<'a, str>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error_message: Option<Cow<'a, str>>,
}

impl Head<'_> {
    fn kind(&self) -> NodeKind {
        let message = self.message.as_ref();
        match (&*self.r#type, message.map(|message| &*message.role)) {
            ("message", Some("user")) => NodeKind::User,
            ("message", Some("assistant")) if message.is_some_and(MessageHead::only_calls) => {
                NodeKind::Calls
            }
            ("model_change" | "thinking_level_change" | "label" | "session_info" | "custom", _) => {
                NodeKind::Bookkeeping
            }
            _ => NodeKind::Conversation,
        }
    }
}

impl MessageHead<'_> {
    /// Quotes inside strings are escaped, so this finds members and never text.
    fn only_calls(&self) -> bool {
        let content = self.content.map_or("", RawValue::get);
        let calls = content.contains("\"type\":\"toolCall\"");
        calls && !content.contains("\"type\":\"text\"") && self.error_message.is_none()
    }
}

/// A node whose end has not been read.
#[derive(Default)]
struct OpenNode {
    /// Its index, once its entry was read.
    at: Option<usize>,
}

/// Parses `[{"entry":…,"children":[…],"label":…}]`; parents precede their children.
pub(super) fn read(text: &str) -> Result<Vec<Node>, String> {
    let mut reader = Reader { text, at: 0 };
    let mut nodes: Vec<Node> = Vec::new();
    let mut open: Vec<OpenNode> = Vec::new();
    while let Some(byte) = reader.next_token() {
        match byte {
            b'[' | b']' | b',' => reader.at += 1,
            b'{' => {
                reader.at += 1;
                open.push(OpenNode::default());
            }
            b'}' => {
                reader.at += 1;
                open.pop().ok_or_else(|| reader.error())?;
            }
            b'"' => {
                let name: String = reader.value()?;
                if reader.next_token() != Some(b':') {
                    return Err(reader.error());
                }
                reader.at += 1;
                let parent = open.iter().rev().skip(1).find_map(|node| node.at);
                let node = open.last_mut().ok_or_else(|| reader.error())?;
                match name.as_str() {
                    "entry" => {
                        reader.next_token();
                        let start = reader.at;
                        let head: Head<'_> = reader.value()?;
                        node.at = Some(nodes.len());
                        nodes.push(Node {
                            kind: head.kind(),
                            id: head.id.into_owned(),
                            parent,
                            label: None,
                            json: start..reader.at,
                        });
                    }
                    "label" => {
                        let label: Option<String> = reader.value()?;
                        if let Some(node) = node.at.and_then(|at| nodes.get_mut(at)) {
                            node.label = label.filter(|label| !label.is_empty());
                        }
                    }
                    "children" => {}
                    _ => {
                        reader.value::<IgnoredAny>()?;
                    }
                }
            }
            _ => return Err(reader.error()),
        }
    }
    if open.is_empty() {
        Ok(nodes)
    } else {
        Err(reader.error())
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn next_token(&mut self) -> Option<u8> {
        let rest = &self.text.as_bytes()[self.at..];
        let space = rest.iter().take_while(|byte| byte.is_ascii_whitespace());
        self.at += space.count();
        self.text.as_bytes().get(self.at).copied()
    }

    fn value<T: Deserialize<'a>>(&mut self) -> Result<T, String> {
        let mut values = Deserializer::from_str(&self.text[self.at..]).into_iter::<T>();
        match values.next() {
            Some(Ok(value)) => {
                self.at += values.byte_offset();
                Ok(value)
            }
            _ => Err(self.error()),
        }
    }

    fn error(&self) -> String {
        format!("the session tree cannot be read at byte {}", self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nodes_are_read_in_any_order_of_members() {
        let text = r#"[ {"entry":{"type":"message","id":"a","message":{"role":"user","content":"x"}},
            "children":[{"extra":{"deep":[1]},"entry":{"id":"b","type":"message","message":{"role":"assistant"}},"children":[]},
                        {"entry":{"id":"c","type":"model_change"},"children":[],"label":"here"}],"label":""},
            {"entry":null_is_not_an_entry}]"#;
        let calls = r#"[{"entry":{"type":"message","id":"x","message":{"role":"assistant",
            "content":[{"type":"thinking","thinking":"\"type\":\"text\""},{"type":"toolCall","name":"ls"}]}},"children":[]}]"#;
        assert_eq!(read(calls).unwrap()[0].kind, NodeKind::Calls);
        let says = calls.replace("thinking\",", "text\",");
        assert_eq!(read(&says).unwrap()[0].kind, NodeKind::Conversation);
        assert!(read(text).unwrap_err().contains("byte"));
        let text = text.replace(",\n            {\"entry\":null_is_not_an_entry}", "");
        let nodes = read(&text).unwrap();
        let seen: Vec<_> = nodes
            .iter()
            .map(|node| {
                (
                    node.id.as_str(),
                    node.kind,
                    node.parent,
                    node.label.as_deref(),
                )
            })
            .collect();
        assert_eq!(
            seen,
            [
                ("a", NodeKind::User, None, None),
                ("b", NodeKind::Conversation, Some(0), None),
                ("c", NodeKind::Bookkeeping, Some(0), Some("here")),
            ]
        );
        assert!(text[nodes[2].json.clone()].starts_with(r#"{"id":"c""#));
    }

    #[test]
    fn deep_trees_are_read() {
        let deep = 50_000;
        let open = r#"{"entry":{"id":"x","type":"message"},"children":["#;
        let text = format!("[{}{}]", open.repeat(deep), "]}".repeat(deep));
        let nodes = read(&text).unwrap();
        assert_eq!(nodes.len(), deep);
        assert_eq!(nodes.last().unwrap().parent, Some(deep - 2));
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in r#"[\[\]{}":, a-z]{0,60}"#, free in any::<String>()) {
            let _ = read(&text);
            let _ = read(&free);
        }
    }
}
