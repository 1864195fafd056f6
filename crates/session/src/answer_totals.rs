//! Counts the tool calls and the usage of a stored answer without parsing the whole message.

use std::fmt;

use pinion_message::{AssistantMessage, Usage};
use serde::Deserialize;
use serde::de::{self, Deserializer, IgnoredAny, SeqAccess, Visitor};

use crate::decode::FlatUsage;
use crate::json;

/// The tool calls and the usage of an answer.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct AnswerTotals {
    pub tool_calls: usize,
    pub usage: Usage,
}

#[derive(Deserialize)]
struct AnswerLine {
    message: Answer,
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    content: ToolCalls,
    #[serde(default)]
    usage: Option<FlatUsage>,
}

/// Counts an answer from its line; zero if the line cannot be read.
pub(crate) fn answer_totals(line: &[u8]) -> AnswerTotals {
    let Some(AnswerLine { message }) = json::from_slice(line) else {
        return AnswerTotals::default();
    };
    AnswerTotals {
        tool_calls: message.content.0,
        usage: message.usage.unwrap_or_default().into(),
    }
}

impl From<&AssistantMessage> for AnswerTotals {
    fn from(answer: &AssistantMessage) -> Self {
        Self {
            tool_calls: answer.tool_calls().count(),
            usage: answer.usage,
        }
    }
}

/// The number of tool calls in a list of blocks.
#[derive(Default)]
struct ToolCalls(usize);

#[derive(Deserialize)]
struct Block {
    #[serde(default, rename = "type")]
    kind: BlockKind,
    #[serde(default)]
    id: Option<IgnoredAny>,
    #[serde(default)]
    name: Option<IgnoredAny>,
}

#[derive(Default, PartialEq)]
enum BlockKind {
    ToolCall,
    #[default]
    Other,
}

impl<'de> Deserialize<'de> for BlockKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KindVisitor;
        impl Visitor<'_> for KindVisitor {
            type Value = BlockKind;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the type of a block")
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<BlockKind, E> {
                Ok(match word {
                    "toolCall" => BlockKind::ToolCall,
                    _ => BlockKind::Other,
                })
            }
        }
        deserializer.deserialize_str(KindVisitor)
    }
}

impl<'de> Deserialize<'de> for ToolCalls {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct BlocksVisitor;
        impl<'de> Visitor<'de> for BlocksVisitor {
            type Value = ToolCalls;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text or a list of blocks")
            }

            fn visit_str<E: de::Error>(self, _text: &str) -> Result<ToolCalls, E> {
                Ok(ToolCalls(0))
            }

            fn visit_unit<E: de::Error>(self) -> Result<ToolCalls, E> {
                Ok(ToolCalls(0))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<ToolCalls, A::Error> {
                let mut calls = 0;
                while let Some(block) = seq.next_element::<Block>()? {
                    let is_call = block.kind == BlockKind::ToolCall
                        && block.id.is_some()
                        && block.name.is_some();
                    calls += usize::from(is_call);
                }
                Ok(ToolCalls(calls))
            }
        }
        deserializer.deserialize_any(BlocksVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode;
    use pinion_message::Message;

    #[test]
    fn totals_from_the_line_equal_totals_from_the_message() {
        let contents = [
            r#""only text""#,
            "null",
            "[]",
            r#"[{"type":"text","text":"a"},{"type":"toolCall","id":"c","name":"bash","arguments":{}}]"#,
            r#"[{"type":"toolCall","id":"c","arguments":{}},{"type":"toolCall","id":"c","name":"ls"},{"type":"later"}]"#,
        ];
        let usages = [
            r#"{"input":7,"output":2.0,"cacheRead":null,"cost":{"total":0.25}}"#,
            "null",
            "{}",
        ];
        for content in contents {
            for usage in usages {
                let line = format!(
                    r#"{{"type":"message","id":"a","message":{{"role":"assistant","content":{content},"usage":{usage},"stopReason":"stop"}}}}"#
                );
                let Some(Message::Assistant(answer)) = decode::message(line.as_bytes()) else {
                    panic!("not read: {line}")
                };
                assert_eq!(
                    answer_totals(line.as_bytes()),
                    AnswerTotals::from(&answer),
                    "{line}"
                );
            }
        }
        assert_eq!(answer_totals(b"{}"), AnswerTotals::default());
    }
}
