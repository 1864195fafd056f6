//! The partial answer of the model, for handlers of `message_update`.

use pinion_agent::Event;
use pinion_llm::parse_arguments;
use pinion_message::{AssistantMessage, Block, Message};
use serde_json::{Value, json};

/// The model's answer while it is streamed.
#[derive(Debug, Default)]
pub(super) struct PartialAnswer {
    message: Option<AssistantMessage>,
    /// The arguments of the tool call being streamed, as the model writes them.
    arguments: String,
}

impl PartialAnswer {
    /// Applies an event. Returns the payload of a `message_update` if the event causes one.
    pub fn take(&mut self, event: &Event) -> Option<Value> {
        let change = match event {
            Event::MessageStart(message) => {
                if let Message::Assistant(answer) = &**message {
                    self.message = Some(AssistantMessage {
                        content: Vec::new(),
                        ..answer.clone()
                    });
                }
                return None;
            }
            Event::UsageUpdate(usage) => {
                if let Some(message) = &mut self.message {
                    message.usage = *usage;
                }
                return None;
            }
            Event::BlockStart { index, block } => self.open(*index, block),
            Event::BlockDelta { index, delta } => self.grow(*index, delta)?,
            Event::BlockEnd { index, block } => self.close(*index, block),
            _ => return None,
        };
        let message = Message::Assistant(self.message.clone()?);
        Some(json!({
            "type": "message_update",
            "message": message,
            "assistantMessageEvent": change,
        }))
    }

    fn put(&mut self, index: usize, block: &Block) {
        if let Some(message) = &mut self.message {
            message.content.truncate(index);
            message.content.push(block.clone());
        }
    }

    fn open(&mut self, index: usize, block: &Block) -> Value {
        self.arguments.clear();
        self.put(index, block);
        json!({"type": format!("{}_start", kind(block)), "contentIndex": index})
    }

    fn grow(&mut self, index: usize, delta: &str) -> Option<Value> {
        let block = self.message.as_mut()?.content.get_mut(index)?;
        match block {
            Block::Text(text) => text.text.push_str(delta),
            Block::Thinking(thinking) => thinking.thinking.push_str(delta),
            Block::ToolCall(call) => {
                self.arguments.push_str(delta);
                call.arguments = parse_arguments(&self.arguments);
            }
            Block::Image { .. } => return None,
        }
        let name = format!("{}_delta", kind(block));
        Some(json!({"type": name, "contentIndex": index, "delta": delta}))
    }

    fn close(&mut self, index: usize, block: &Block) -> Value {
        self.put(index, block);
        let name = format!("{}_end", kind(block));
        match block {
            Block::Text(text) => {
                json!({"type": name, "contentIndex": index, "content": text.text})
            }
            Block::Thinking(thinking) => {
                json!({"type": name, "contentIndex": index, "content": thinking.thinking})
            }
            call => json!({"type": name, "contentIndex": index, "toolCall": call}),
        }
    }
}

fn kind(block: &Block) -> &'static str {
    match block {
        Block::Thinking(_) => "thinking",
        Block::ToolCall(_) => "toolcall",
        _ => "text",
    }
}
