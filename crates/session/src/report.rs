//! Sessions for people and programs to read.

use std::fmt::Write;

use pinion_jsonl::json::to_string;
use pinion_message::{Block, Message};
use serde_json::json;

use crate::SessionInfo;

/// Characters of the id in a row.
const SHORT_ID: usize = 8;
/// Characters of the title in a row.
const TITLE: usize = 72;

impl SessionInfo {
    /// Returns the session as one line of JSON.
    pub fn json_line(&self) -> String {
        let line = to_string(&json!({
            "path": self.path,
            "id": self.id,
            "cwd": self.cwd,
            "name": self.name,
            "created": self.created,
            "modified": self.modified,
            "messageCount": self.message_count,
            "firstMessage": self.first_message,
        }));
        line + "\n"
    }

    /// Returns the session as one line for people: the beginning of its id, its length and its title.
    pub fn row(&self) -> String {
        let id: String = self.id.chars().take(SHORT_ID).collect();
        let title = self.name.as_deref().unwrap_or(&self.first_message);
        let title = title.lines().next().unwrap_or_default();
        let title: String = title.chars().take(TITLE).collect();
        format!("{id}  {:>5} messages  {title}\n", self.message_count)
    }
}

/// Returns a conversation as plain text, without reasoning and images.
pub fn plain_text<'a>(messages: impl IntoIterator<Item = &'a Message>) -> String {
    let mut text = String::new();
    for message in messages {
        add(message, &mut text);
    }
    text
}

fn add(message: &Message, text: &mut String) {
    let mut part = |author: &str, words: &str| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{author}: {}\n", words.trim_end());
    };
    match message {
        Message::User(user) => part("user", &user.content.joined_text("\n")),
        Message::Custom(custom) => part(&custom.custom_type, &custom.content.joined_text("\n")),
        Message::Assistant(answer) => {
            for block in &answer.content {
                match block {
                    Block::Text(block) => part("assistant", &block.text),
                    Block::ToolCall(call) => {
                        part(&format!("call {}", call.name), &call.arguments.to_string());
                    }
                    Block::Thinking(_) | Block::Image { .. } => {}
                }
            }
            if let Some(error) = &answer.error_message {
                part("error", error);
            }
        }
        Message::ToolResult(result) => {
            let texts: Vec<&str> = result.content.iter().filter_map(Block::as_text).collect();
            part(&format!("result {}", result.tool_name), &texts.join("\n"));
        }
        Message::BashExecution(bash) => part(&format!("$ {}", bash.command), &bash.output),
        Message::CompactionSummary(summary) => part("summary", &summary.summary),
        Message::BranchSummary(summary) => part("branch summary", &summary.summary),
        Message::System(_) => {}
    }
}
