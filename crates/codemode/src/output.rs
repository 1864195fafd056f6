//! The output of a script: its items, their limits, and their layout for the model.

use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pinion_message::{Block, image_type};
use pinion_tools::write_output_file;

/// The longest output, in characters of text and bytes of base64.
const MAX_SIZE: usize = 16_777_216;
/// The most items.
const MAX_ITEMS: usize = 100_000;
/// Characters of an estimated token.
const CHARS_PER_TOKEN: usize = 4;

/// One piece of output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Item {
    Text(String),
    /// A line of `console`.
    Console(String),
    Image {
        mime: String,
        data: String,
    },
}

impl Item {
    /// Returns an image; its type is that of its bytes.
    pub fn image(mime: String, data: String) -> Result<Self, String> {
        let bytes = STANDARD
            .decode(&data)
            .map_err(|_| "image() takes base64 data".to_owned())?;
        match image_type(&bytes) {
            Some(found) => Ok(Self::Image {
                mime: found.to_owned(),
                data,
            }),
            None => Err(format!(
                "image() accepts PNG, JPEG, GIF and WebP, not data of type {mime}"
            )),
        }
    }

    fn size(&self) -> usize {
        match self {
            Self::Text(text) | Self::Console(text) => text.len(),
            Self::Image { data, .. } => data.len(),
        }
    }
}

/// The output so far.
#[derive(Debug, Default)]
pub(crate) struct Outputs {
    items: Vec<Item>,
    size: usize,
}

impl Outputs {
    /// Adds an item. Fails beyond the limits.
    pub fn add(&mut self, item: Item) -> Result<(), String> {
        let size = self.size.saturating_add(item.size());
        if size > MAX_SIZE {
            return Err(format!(
                "the script printed more than {MAX_SIZE} characters; write large data to a file with a tool"
            ));
        }
        if self.items.len() >= MAX_ITEMS {
            return Err(format!("the script printed more than {MAX_ITEMS} items"));
        }
        self.size = size;
        self.items.push(item);
        Ok(())
    }

    pub fn take(&mut self) -> Vec<Item> {
        std::mem::take(&mut self.items)
    }
}

/// The content of a result, and the path of the whole text if the model sees only a part of it.
pub(crate) struct Shown {
    pub content: Vec<Block>,
    pub full: Option<PathBuf>,
}

/// Lays out the output: texts with their numbers if there are several, images with the paths of their files, and the
/// lines of `console` at the end. Of a text that is too long only the ends are shown.
pub(crate) async fn show(items: Vec<Item>, token_limit: usize) -> Shown {
    let is_text = |item: &&Item| matches!(item, Item::Text(_));
    let texts = items.iter().filter(is_text).count();
    let mut number = 0;
    let mut console = Vec::new();
    let mut pieces: Vec<Block> = Vec::new();
    for item in items {
        match item {
            Item::Text(text) => {
                number += 1;
                pieces.push(Block::text(if texts > 1 {
                    format!("==> text {number}/{texts} <==\n{text}")
                } else {
                    text
                }));
            }
            Item::Console(line) => console.push(line),
            Item::Image { mime, data } => {
                pieces.push(Block::text(saved(&mime, &data).await));
                pieces.push(Block::Image {
                    data,
                    mime_type: mime,
                });
            }
        }
    }
    if !console.is_empty() {
        let lines = console.join("\n");
        pieces.push(Block::text(format!(
            "<console_output>\n{lines}\n</console_output>"
        )));
    }
    limited(pieces, token_limit).await
}

/// Saves an image, and returns a line with its path: the model cannot reach the data otherwise.
async fn saved(mime: &str, data: &str) -> String {
    let extension = match mime {
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        _ => "webp",
    };
    let bytes = STANDARD.decode(data).unwrap_or_default();
    let kind = format!("{mime}, {} bytes", bytes.len());
    match write_output_file("pi-codemode", extension, bytes).await {
        Ok(path) => format!("[Image saved to {} ({kind})]", path.display()),
        Err(error) => format!("[Image ({kind}) could not be saved: {error}]"),
    }
}

async fn limited(pieces: Vec<Block>, token_limit: usize) -> Shown {
    let texts: Vec<&str> = pieces.iter().filter_map(Block::as_text).collect();
    let whole = texts.join("\n");
    let limit = token_limit.saturating_mul(CHARS_PER_TOKEN);
    if whole.len() <= limit {
        return Shown {
            content: joined(pieces),
            full: None,
        };
    }
    let head = &whole[..whole.floor_char_boundary(limit / 2)];
    let tail = &whole[whole.ceil_char_boundary(whole.len() - limit / 2)..];
    let gap = (whole.len() - head.len() - tail.len()).div_ceil(CHARS_PER_TOKEN);
    let tokens = whole.len().div_ceil(CHARS_PER_TOKEN);
    let mut text = format!(
        "Warning: truncated output (original token count: {tokens})\n\n{head}…{gap} tokens truncated…{tail}"
    );
    let full = write_output_file("pi-codemode", "txt", whole.clone().into_bytes()).await;
    match &full {
        Ok(path) => text.push_str(&format!("\n\n[Full output: {}]", path.display())),
        Err(error) => text.push_str(&format!(
            "\n\n[The full output could not be saved: {error}]"
        )),
    }
    let images = pieces.into_iter().filter(|piece| piece.as_text().is_none());
    Shown {
        content: std::iter::once(Block::text(text)).chain(images).collect(),
        full: full.ok(),
    }
}

/// Joins adjacent texts, each on its own line.
fn joined(pieces: Vec<Block>) -> Vec<Block> {
    let mut content: Vec<Block> = Vec::new();
    for piece in pieces {
        match (piece, content.last_mut()) {
            (Block::Text(text), Some(Block::Text(before))) => {
                if !before.text.is_empty() && !before.text.ends_with('\n') {
                    before.text.push('\n');
                }
                before.text.push_str(&text.text);
            }
            (piece, _) => content.push(piece),
        }
    }
    content
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Item {
        Item::Text(text.into())
    }

    #[tokio::test]
    async fn several_texts_are_numbered_and_console_lines_come_last() {
        let items = vec![text("one"), Item::Console("log".into()), text("3")];
        let shown = show(items, 1000).await;
        assert_eq!(
            shown.content,
            [Block::text(
                "==> text 1/2 <==\none\n==> text 2/2 <==\n3\n<console_output>\nlog\n</console_output>"
            )]
        );
        let shown = show(vec![text("only")], 1000).await;
        assert_eq!(shown.content, [Block::text("only")]);
        assert_eq!(show(Vec::new(), 1000).await.content, []);
    }

    #[tokio::test]
    async fn a_long_output_keeps_its_ends() {
        let long = format!("begin{}end", "é".repeat(1000));
        let shown = show(vec![text(&long)], 20).await;
        let path = shown.full.unwrap();
        let [Block::Text(block)] = &shown.content[..] else {
            panic!("{:?}", shown.content);
        };
        assert!(block.text.contains("begin") && block.text.contains("end\n\n[Full"));
        assert!(block.text.len() < 400, "{}", block.text);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), long);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn output_is_bounded() {
        let mut outputs = Outputs::default();
        outputs.add(text(&"x".repeat(MAX_SIZE))).unwrap();
        assert!(outputs.add(text("x")).is_err());
        let mut outputs = Outputs::default();
        for _ in 0..MAX_ITEMS {
            outputs.add(text("")).unwrap();
        }
        assert!(outputs.add(text("")).is_err());
        assert!(Item::image("image/png".into(), "aGk=".into()).is_err());
        assert!(Item::image("image/png".into(), "%".into()).is_err());
    }
}
