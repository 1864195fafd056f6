//! Cuts text into deltas, and estimates its tokens.

use std::sync::Arc;

use pinion_message::{Block, Content, Message};

use crate::Request;

/// Text cut into deltas, one at a time.
pub(super) enum Pieces {
    Cut {
        text: String,
        at: usize,
        chunk: usize,
    },
    Numbered {
        next: u64,
        count: u64,
        size: usize,
    },
}

impl Iterator for Pieces {
    type Item = Arc<str>;

    fn next(&mut self) -> Option<Arc<str>> {
        match self {
            Self::Cut { text, at, chunk } => {
                let rest = text.get(*at..).filter(|rest| !rest.is_empty())?;
                let length = rest
                    .char_indices()
                    .nth(*chunk)
                    .map_or(rest.len(), |(end, _)| end);
                *at += length;
                Some(Arc::from(&rest[..length]))
            }
            Self::Numbered { next, count, size } => {
                if next == count {
                    return None;
                }
                *next += 1;
                Some(numbered(*next, *size))
            }
        }
    }
}

/// The delta with this number: its digits, then filler, then a space. The numbers show which deltas
/// are missing in the whole text.
fn numbered(number: u64, size: usize) -> Arc<str> {
    let digits = number.to_string();
    // Of a number that does not fit, the last digits differ most.
    let shown = digits
        .get(digits.len().saturating_sub(size)..)
        .unwrap_or_default();
    let mut text = String::with_capacity(size);
    text.push_str(shown);
    while text.len() + 1 < size {
        text.push('.');
    }
    if text.len() < size {
        text.push(' ');
    }
    text.into()
}

/// An estimate: four characters per token.
pub(super) fn prompt_tokens(request: &Request) -> u64 {
    let text = |text: &str| text.chars().count();
    let blocks = |blocks: &[Block]| -> usize {
        let sizes = blocks.iter().map(|block| match block {
            Block::Text(block) => text(&block.text),
            Block::Thinking(block) => text(&block.thinking),
            Block::ToolCall(call) => text(&call.name) + call.arguments.to_string().len(),
            // What pi assumes for an image.
            Block::Image { .. } => 4800,
        });
        sizes.sum()
    };
    let messages = request.messages.iter().map(|message| match &**message {
        Message::User(user) => match &user.content {
            Content::Text(words) => text(words),
            Content::Blocks(list) => blocks(list),
        },
        Message::Assistant(assistant) => blocks(&assistant.content),
        Message::ToolResult(result) => blocks(&result.content),
        _ => 0,
    });
    let tools = request
        .tools
        .iter()
        .map(|tool| text(&tool.description) + text(&tool.name));
    let characters = request.system_prompt.as_deref().map_or(0, text)
        + messages.sum::<usize>()
        + tools.sum::<usize>();
    (characters as u64).div_ceil(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn pieces_add_up_to_the_text(text in "\\PC{0,50}", chunk in 1usize..9) {
            let pieces: Vec<Arc<str>> = Pieces::Cut { text: text.clone(), at: 0, chunk }.collect();
            proptest::prop_assert_eq!(pieces.concat(), text);
            proptest::prop_assert!(pieces.iter().all(|piece| (1..=chunk).contains(&piece.chars().count())));
        }

        #[test]
        fn numbered_deltas_have_their_size(number in proptest::num::u64::ANY, size in 1usize..40) {
            proptest::prop_assert_eq!(numbered(number, size).len(), size);
        }
    }
}
