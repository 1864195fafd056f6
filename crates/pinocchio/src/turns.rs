//! Converts turns to messages of the engine, and messages of the engine to blocks of a turn.

mod context;
mod produced;

use pinion_history::{Block, BlockKind, Map, Turn};
use pinion_message::{Block as MessageBlock, Content, Message, UserMessage};
use serde_json::{Value, json};

use crate::ids;

pub use context::{TurnContext, context};
pub(crate) use context::{arguments, blank};
pub use produced::{Produced, final_turn};

/// Displayed if a turn has no prompt.
const EMPTY_PROMPT_TEXT: &str = "(input turn)";

/// The initial content of a command's conversation.
#[derive(Debug, Clone, Copy, Default)]
pub struct Seed<'a> {
    /// The rendered system prompt; ignored if blank.
    pub system_prompt: &'a str,
    /// Rendered messages of the user.
    pub messages: &'a [String],
    /// The rendered prompt; ignored if blank.
    pub prompt: &'a str,
    /// Image blocks; other blocks are ignored.
    pub images: &'a [MessageBlock],
}

/// Creates the first turn of a command. With images the prompt occurs twice: with them, and again after them.
pub fn seed_turn(seed: &Seed<'_>) -> Turn {
    let mut blocks = Vec::new();
    if !seed.system_prompt.trim().is_empty() {
        blocks.push(text_block(BlockKind::System, seed.system_prompt));
    }
    for message in seed.messages {
        blocks.push(text_block(BlockKind::User, message));
    }
    let images = images(seed.images);
    if !images.is_empty() {
        let mut block = text_block(BlockKind::User, seed.prompt);
        block.payload.insert("images".into(), Value::Array(images));
        blocks.push(block);
    }
    if !seed.prompt.trim().is_empty() {
        blocks.push(text_block(BlockKind::User, seed.prompt));
    }
    Turn {
        id: ids::new_id(),
        blocks,
        ..Turn::default()
    }
}

/// Appends a message of the user to a turn; its id stays.
pub fn with_prompt(turn: &Turn, prompt: &str) -> Turn {
    let mut turn = turn.clone();
    turn.blocks.push(text_block(BlockKind::User, prompt));
    turn
}

/// Appends a message of the user with images; the turn's id stays.
pub fn with_prompt_and_images(turn: &Turn, prompt: &str, images: &[MessageBlock]) -> Turn {
    let mut turn = with_prompt(turn, prompt);
    let images = self::images(images);
    if let (Some(block), false) = (turn.blocks.last_mut(), images.is_empty()) {
        put(&mut block.payload, "images", images);
    }
    turn
}

/// Returns all messages of a turn, without the system prompt.
pub fn messages(turn: &Turn) -> Vec<Message> {
    let TurnContext {
        mut history,
        prompt,
        ..
    } = context(turn);
    history.extend(prompt.map(|blocks| {
        Message::User(UserMessage {
            content: Content::Blocks(blocks),
            timestamp: 0,
            attachments: None,
        })
    }));
    history
}

/// Returns the prompt to display: the last text of the user in the turn.
pub fn displayed_prompt(turn: &Turn) -> String {
    let texts = turn.blocks.iter().rev().filter_map(|block| {
        let text = block.payload_text("text").unwrap_or_default().trim();
        (block.kind == BlockKind::User && !text.is_empty()).then_some(text)
    });
    texts
        .map(str::to_owned)
        .next()
        .unwrap_or_else(|| EMPTY_PROMPT_TEXT.to_owned())
}

fn text_block(kind: BlockKind, text: &str) -> Block {
    Block::text(ids::new_id(), kind, text)
}

/// Returns the images in the form of a block's payload.
fn images(blocks: &[MessageBlock]) -> Vec<Value> {
    let image = |block: &MessageBlock| match block {
        MessageBlock::Image { data, mime_type } => {
            Some(json!({"media_type": mime_type, "content": data}))
        }
        _ => None,
    };
    blocks.iter().filter_map(image).collect()
}

fn put(map: &mut Map, name: &str, value: impl Into<Value>) {
    map.insert(name.to_owned(), value.into());
}

#[cfg(test)]
mod tests;
