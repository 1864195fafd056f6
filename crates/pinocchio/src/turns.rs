//! Turns as messages of the engine, and what the engine said as blocks of a turn.

mod context;
mod produced;

use pinion_history::{Block, BlockKind, Map, Turn};
use pinion_message::{Block as MessageBlock, Content, Message, UserMessage};
use serde_json::{Value, json};

use crate::ids;

pub use context::{Context, context};
pub(crate) use context::{arguments, blank};
pub use produced::{Produced, final_turn};

/// What is shown where nobody said anything.
const NOTHING_SAID: &str = "(input turn)";

/// What a command says before anybody else does.
#[derive(Debug, Clone, Copy, Default)]
pub struct Seed<'a> {
    /// Rendered; none if blank.
    pub system_prompt: &'a str,
    /// Rendered, each a message of the user.
    pub messages: &'a [String],
    /// Rendered; none if blank.
    pub prompt: &'a str,
    /// Image blocks; others are left out.
    pub images: &'a [MessageBlock],
}

/// The turn a command begins with. With images the prompt is said twice: with them, and again after them.
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

/// The turn with one more message of the user; its id stays.
pub fn with_prompt(turn: &Turn, prompt: &str) -> Turn {
    let mut turn = turn.clone();
    turn.blocks.push(text_block(BlockKind::User, prompt));
    turn
}

/// The same, with images beside the words.
pub fn with_prompt_and_images(turn: &Turn, prompt: &str, images: &[MessageBlock]) -> Turn {
    let mut turn = with_prompt(turn, prompt);
    let images = self::images(images);
    if let (Some(block), false) = (turn.blocks.last_mut(), images.is_empty()) {
        put(&mut block.payload, "images", images);
    }
    turn
}

/// All that a turn says, as messages. The system prompt is not among them.
pub fn messages(turn: &Turn) -> Vec<Message> {
    let Context {
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

/// What the user is shown to have said: the last words of the user in the turn.
pub fn displayed_prompt(turn: &Turn) -> String {
    let said = turn.blocks.iter().rev().filter_map(|block| {
        let text = block.payload_text("text").unwrap_or_default().trim();
        (block.kind == BlockKind::User && !text.is_empty()).then_some(text)
    });
    said.map(str::to_owned)
        .next()
        .unwrap_or_else(|| NOTHING_SAID.to_owned())
}

fn text_block(kind: BlockKind, text: &str) -> Block {
    Block::text(ids::new_id(), kind, text)
}

/// Images as the payload of a block has them.
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
