//! Converts the messages of a session into messages for a provider.

use std::sync::Arc;

use pinion_message::{BashExecutionMessage, Block, Content, Message, UserMessage};

/// The text that replaces a blocked image.
const IMAGE_BLOCKED: &str = "Image reading is disabled.";

/// The treatment of images in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Images {
    /// They are sent.
    Sent,
    /// A sentence is sent instead.
    Blocked,
}

/// Returns the messages for a provider: messages of kinds that only sessions have become user messages or are left out.
pub(crate) fn for_model(messages: &[Arc<Message>], images: Images) -> Vec<Arc<Message>> {
    let converted = messages.iter().filter_map(convert);
    match images {
        Images::Sent => converted.collect(),
        Images::Blocked => converted.map(|message| without_images(&message)).collect(),
    }
}

fn convert(message: &Arc<Message>) -> Option<Arc<Message>> {
    let user = |content: Vec<Block>, timestamp| {
        Arc::new(Message::User(UserMessage {
            content: Content::Blocks(content),
            timestamp,
            attachments: None,
        }))
    };
    match &**message {
        Message::User(_) | Message::Assistant(_) | Message::ToolResult(_) => {
            Some(Arc::clone(message))
        }
        Message::BashExecution(bash) => (bash.exclude_from_context != Some(true))
            .then(|| user(vec![Block::text(describe_bash(bash))], bash.timestamp)),
        Message::Custom(custom) => {
            let blocks = match &custom.content {
                Content::Text(text) => vec![Block::text(text.clone())],
                Content::Blocks(blocks) => blocks.clone(),
            };
            Some(user(blocks, custom.timestamp))
        }
        // The request has the system prompt and the tools.
        Message::System(_) => None,
        Message::CompactionSummary(summary) => {
            let text = format!(
                "The earlier part of this conversation was replaced by this summary:\n\n<summary>\n{}\n</summary>",
                summary.summary
            );
            Some(user(vec![Block::text(text)], summary.timestamp))
        }
        Message::BranchSummary(summary) => {
            let text = format!(
                "This is a summary of a branch of the conversation that was left and returned from:\n\n<summary>\n{}\n</summary>",
                summary.summary
            );
            Some(user(vec![Block::text(text)], summary.timestamp))
        }
    }
}

fn describe_bash(bash: &BashExecutionMessage) -> String {
    let mut text = format!("Ran `{}`\n", bash.command);
    if bash.output.is_empty() {
        text.push_str("(no output)");
    } else {
        text.push_str("```\n");
        text.push_str(&bash.output);
        text.push_str("\n```");
    }
    if bash.cancelled {
        text.push_str("\n\n(command cancelled)");
    } else if let Some(code) = bash.exit_code.filter(|&code| code != 0) {
        text.push_str(&format!("\n\nCommand exited with code {code}"));
    }
    if let (true, Some(path)) = (bash.truncated, &bash.full_output_path) {
        text.push_str(&format!("\n\n[Output truncated. Full output: {path}]"));
    }
    text
}

fn without_images(message: &Arc<Message>) -> Arc<Message> {
    let has_image = |blocks: &[Block]| blocks.iter().any(|b| matches!(b, Block::Image { .. }));
    match &**message {
        Message::User(user) => match &user.content {
            Content::Blocks(blocks) if has_image(blocks) => {
                let mut user = user.clone();
                user.content = Content::Blocks(replace_images(blocks));
                Arc::new(Message::User(user))
            }
            _ => Arc::clone(message),
        },
        Message::ToolResult(result) if has_image(&result.content) => {
            let mut result = result.clone();
            result.content = replace_images(&result.content);
            Arc::new(Message::ToolResult(result))
        }
        _ => Arc::clone(message),
    }
}

fn replace_images(blocks: &[Block]) -> Vec<Block> {
    let mut out: Vec<Block> = Vec::with_capacity(blocks.len());
    for block in blocks {
        let block = match block {
            Block::Image { .. } => Block::text(IMAGE_BLOCKED),
            other => other.clone(),
        };
        let repeated = block.as_text() == Some(IMAGE_BLOCKED)
            && out.last().and_then(Block::as_text) == Some(IMAGE_BLOCKED);
        if !repeated {
            out.push(block);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bash(output: &str, exit_code: Option<i32>, cancelled: bool) -> Arc<Message> {
        Arc::new(Message::BashExecution(BashExecutionMessage {
            command: "ls".into(),
            output: output.into(),
            exit_code,
            cancelled,
            truncated: false,
            full_output_path: None,
            timestamp: 1,
            exclude_from_context: None,
        }))
    }

    fn text_of(message: &Message) -> String {
        match message {
            Message::User(user) => user.content.joined_text("\n"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_shell_command_becomes_a_user_message() {
        let sent = for_model(
            &[
                bash("a\n", Some(2), false),
                bash("", Some(0), false),
                bash("", None, true),
            ],
            Images::Sent,
        );
        let texts: Vec<String> = sent.iter().map(|message| text_of(message)).collect();
        assert_eq!(
            texts,
            [
                "Ran `ls`\n```\na\n\n```\n\nCommand exited with code 2",
                "Ran `ls`\n(no output)",
                "Ran `ls`\n(no output)\n\n(command cancelled)"
            ]
        );
    }

    #[test]
    fn blocked_images_leave_one_sentence_per_row() {
        let image = || Block::Image {
            data: "AA".into(),
            mime_type: "image/png".into(),
        };
        let user = UserMessage::now(vec![Block::text("see"), image(), image(), Block::text("x")]);
        let sent = for_model(&[Arc::new(Message::User(user))], Images::Blocked);
        assert_eq!(text_of(&sent[0]), format!("see\n{IMAGE_BLOCKED}\nx"));
    }
}
