//! What a timeline shows, as the messages a chat is made of.
//!
//! A timeline is for looking at: it has what people saw, failures and thinking included, and nothing of what only the
//! model needs.

use pinion_message::{
    AssistantMessage, Block, Content, Message, StopReason, TextBlock, ThinkingBlock, ToolCall,
    ToolResultMessage, UserMessage,
};
use serde_json::Value;

use crate::message::decode;
use crate::pb;
use crate::timeline::Shown;
use crate::translate::told;
use crate::turns::{arguments, blank};

/// The entities of a session as messages, in their order. What a chat has no place for is left out.
pub fn recalled(entities: &[Shown]) -> Vec<Message> {
    let mut recalling = Recalling::default();
    for entity in entities {
        recalling.entity(entity);
    }
    recalling.end_answer();
    recalling.messages
}

#[derive(Default)]
struct Recalling {
    messages: Vec<Message>,
    /// What the model says until somebody else does.
    answer: Option<AssistantMessage>,
}

impl Recalling {
    fn entity(&mut self, entity: &Shown) {
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
        let text = match message.content.is_empty() {
            true => message.text.to_string(),
            false => message.content.to_string(),
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
            "thinking" => self.said(
                message,
                Block::Thinking(ThinkingBlock {
                    thinking: text,
                    thinking_signature: None,
                    redacted: None,
                }),
            ),
            _ => self.said(
                message,
                Block::Text(TextBlock {
                    text,
                    text_signature: None,
                }),
            ),
        }
    }

    fn said(&mut self, message: &pb::ChatMessageEntity, block: Block) {
        let answer = self.answer();
        // What is still growing in a store was cut off when its writer was ended.
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
            content: vec![Block::text(told(&result.result))],
            details: None,
            is_error: &*result.status == "error",
            timestamp: 0,
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

    fn shown(kind: &str, payload: Value) -> Shown {
        Shown {
            kind: kind.into(),
            id: "id".into(),
            created_ordinal: 1,
            last_event_ordinal: 1,
            payload: payload.to_string().into(),
        }
    }

    fn said(role: &str, content: &str, status: &str) -> Shown {
        shown(
            "ChatMessage",
            json!({"role": role, "content": content, "status": status}),
        )
    }

    /// A message in a few words.
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
            said("user", "How warm?", "accepted"),
            said("thinking", "Let me look.", "finished"),
            shown(
                "ChatToolCall",
                json!({"toolCallId": "c1", "toolName": "read", "input": "{\"path\":\"a\"}"}),
            ),
            shown(
                "ChatToolResult",
                json!({"toolCallId": "c1", "toolName": "read", "result": "-3", "status": "success"}),
            ),
            said("assistant", "Minus three.", "finished"),
            shown("AgentMode", json!({"title": "other"})),
            said("user", "And now?", "accepted"),
            said("assistant", "It is", "stopped"),
            said("user", "And now?", "accepted"),
            said("assistant", "Well,", "failed"),
            said("error", "the line broke", "failed"),
            said("user", "Hm.", "accepted"),
            shown(
                "ChatMessage",
                json!({"role": "assistant", "content": "Cut o", "status": "streaming", "streaming": true}),
            ),
        ];
        let lines: Vec<String> = recalled(&entities).iter().map(outline).collect();
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
        let mut torn = said("user", "x", "accepted");
        torn.payload = "{".into();
        let entities = [torn, said("error", "boom", "failed")];
        let lines: Vec<String> = recalled(&entities).iter().map(outline).collect();
        assert_eq!(lines, ["Error:  boom"]);
    }
}
