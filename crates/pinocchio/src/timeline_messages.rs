//! Converts a timeline back to the messages of a chat.
//!
//! A timeline is made for display: it has what people saw, including failures and thinking, and nothing that only the
//! model needs.

use pinion_message::{
    AssistantMessage, Block, Content, Message, StopReason, TextBlock, ThinkingBlock, ToolCall,
    ToolResultMessage, UserMessage,
};
use serde_json::Value;

use crate::message::decode;
use crate::pb;
use crate::timeline::ShownEntity;
use crate::translate::from_json_text;
use crate::turns::{arguments, blank};

/// Converts the entities of a session to messages, in order. Entities without a counterpart in a chat are skipped.
pub fn timeline_messages(entities: &[ShownEntity]) -> Vec<Message> {
    let mut recalling = MessageBuilder::default();
    for entity in entities {
        recalling.entity(entity);
    }
    recalling.end_answer();
    recalling.messages
}

#[derive(Default)]
struct MessageBuilder {
    messages: Vec<Message>,
    /// The model's answer, until another role follows.
    answer: Option<AssistantMessage>,
}

impl MessageBuilder {
    fn entity(&mut self, entity: &ShownEntity) {
        let payload = &entity.payload;
        match &*entity.kind {
            "ChatMessage" => {
                if let Ok(message) = decode(payload) {
                    self.message(&message);
                }
            }
            "ChatToolCall" => {
                if let Ok(call) = decode(payload) {
                    self.call(&call);
                }
            }
            "ChatToolResult" => {
                if let Ok(result) = decode(payload) {
                    self.result(&result);
                }
            }
            _ => {}
        }
    }

    fn message(&mut self, message: &pb::ChatMessageEntity) {
        let text = if message.content.is_empty() {
            message.text.to_string()
        } else {
            message.content.to_string()
        };
        match &*message.role {
            "user" => {
                self.end_answer();
                self.messages.push(Message::User(UserMessage {
                    content: Content::Blocks(vec![Block::text(text)]),
                    timestamp: 0,
                    attachments: None,
                }));
            }
            "error" => {
                let answer = self.answer();
                answer.stop_reason = StopReason::Error;
                answer.error_message = Some(text);
                self.end_answer();
            }
            "thinking" => self.push_block(
                message,
                Block::Thinking(ThinkingBlock {
                    thinking: text,
                    thinking_signature: None,
                    redacted: None,
                }),
            ),
            _ => self.push_block(
                message,
                Block::Text(TextBlock {
                    text,
                    text_signature: None,
                }),
            ),
        }
    }

    fn push_block(&mut self, message: &pb::ChatMessageEntity, block: Block) {
        let answer = self.answer();
        // An entity that is still growing in a store was interrupted when its writer ended.
        if message.streaming || &*message.status == "stopped" {
            answer.stop_reason = StopReason::Aborted;
        }
        answer.content.push(block);
    }

    fn call(&mut self, call: &pb::ToolCallEntity) {
        let answer = self.answer();
        answer.stop_reason = StopReason::ToolUse;
        answer.content.push(Block::ToolCall(ToolCall {
            id: call.tool_call_id.to_string(),
            name: call.tool_name.to_string(),
            arguments: arguments(&Value::from(&*call.input)),
            thought_signature: None,
            arguments_error: None,
        }));
    }

    fn result(&mut self, result: &pb::ToolResultEntity) {
        self.end_answer();
        self.messages.push(Message::ToolResult(ToolResultMessage {
            tool_call_id: result.tool_call_id.to_string(),
            tool_name: result.tool_name.to_string(),
            content: vec![Block::text(from_json_text(&result.result))],
            details: None,
            is_error: &*result.status == "error",
            duration_ms: None,
            timestamp: 0,
            nested_calls: None,
        }));
    }

    fn answer(&mut self) -> &mut AssistantMessage {
        self.answer.get_or_insert_with(blank)
    }

    fn end_answer(&mut self) {
        if let Some(answer) = self.answer.take() {
            self.messages.push(Message::Assistant(answer));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(kind: &str, payload: Value) -> ShownEntity {
        ShownEntity {
            kind: kind.into(),
            id: "id".into(),
            created_ordinal: 1,
            last_event_ordinal: 1,
            payload: payload.to_string().into(),
        }
    }

    fn entity_of(role: &str, content: &str, status: &str) -> ShownEntity {
        shown(
            "ChatMessage",
            json!({"role": role, "content": content, "status": status}),
        )
    }

    /// Summarises a message.
    fn outline(message: &Message) -> String {
        match message {
            Message::User(user) => format!("user: {}", user.content.joined_text("|")),
            Message::ToolResult(result) => format!(
                "result {}: {} {}",
                result.tool_call_id,
                Content::Blocks(result.content.clone()).joined_text("|"),
                result.is_error
            ),
            Message::Assistant(answer) => {
                let blocks: Vec<String> = answer
                    .content
                    .iter()
                    .map(|block| match block {
                        Block::Text(text) => text.text.clone(),
                        Block::Thinking(thinking) => format!("({})", thinking.thinking),
                        Block::ToolCall(call) => format!("{} {}", call.name, call.arguments),
                        Block::Image { .. } => "image".into(),
                    })
                    .collect();
                let stop = answer.stop_reason;
                let error = answer.error_message.as_deref().unwrap_or_default();
                format!("{stop:?}: {} {error}", blocks.join("; "))
            }
            other => other.role().to_owned(),
        }
    }

    #[test]
    fn a_timeline_reads_as_a_conversation() {
        let entities = [
            entity_of("user", "How warm?", "accepted"),
            entity_of("thinking", "Let me look.", "finished"),
            shown(
                "ChatToolCall",
                json!({"toolCallId": "c1", "toolName": "read", "input": "{\"path\":\"a\"}"}),
            ),
            shown(
                "ChatToolResult",
                json!({"toolCallId": "c1", "toolName": "read", "result": "-3", "status": "success"}),
            ),
            entity_of("assistant", "Minus three.", "finished"),
            shown("AgentMode", json!({"title": "other"})),
            entity_of("user", "And now?", "accepted"),
            entity_of("assistant", "It is", "stopped"),
            entity_of("user", "And now?", "accepted"),
            entity_of("assistant", "Well,", "failed"),
            entity_of("error", "the line broke", "failed"),
            entity_of("user", "Hm.", "accepted"),
            shown(
                "ChatMessage",
                json!({"role": "assistant", "content": "Cut o", "status": "streaming", "streaming": true}),
            ),
        ];
        let lines: Vec<String> = timeline_messages(&entities).iter().map(outline).collect();
        assert_eq!(
            lines,
            [
                "user: How warm?",
                "ToolUse: (Let me look.); read {\"path\":\"a\"} ",
                "result c1: -3 false",
                "Stop: Minus three. ",
                "user: And now?",
                "Aborted: It is ",
                "user: And now?",
                "Error: Well, the line broke",
                "user: Hm.",
                "Aborted: Cut o ",
            ]
        );
    }

    #[test]
    fn what_cannot_be_read_costs_only_itself() {
        let mut torn = entity_of("user", "x", "accepted");
        torn.payload = "{".into();
        let entities = [torn, entity_of("error", "boom", "failed")];
        let lines: Vec<String> = timeline_messages(&entities).iter().map(outline).collect();
        assert_eq!(lines, ["Error:  boom"]);
    }
}
