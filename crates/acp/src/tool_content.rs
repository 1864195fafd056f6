//! The content of tool calls: fenced text, images and diffs.

use std::path::Path;

use pinion_agent::{ChangedTexts, TextChange};
use pinion_message::Block;
use serde_json::{Value, json};

/// Limit on the text of one call, in bytes.
const MAX_TEXT_BYTES: usize = 256 << 10;
/// Limit on the data of the images of one call, in bytes of base64.
const MAX_IMAGE_BYTES: usize = 6 << 20;

/// Returns an item of content for a block.
pub(crate) fn content(block: Value) -> Value {
    json!({"type": "content", "content": block})
}

/// Returns an item of text.
pub(crate) fn text(text: &str) -> Value {
    content(json!({"type": "text", "text": text}))
}

/// Returns a text between fences that are longer than any in it.
pub(crate) fn fenced(text: &str) -> String {
    let mut longest = 2;
    let mut run = 0;
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(longest + 1);
    format!("{fence}\n{}\n{fence}", text.trim_end_matches('\n'))
}

/// Joins the texts of blocks.
pub(crate) fn joined(blocks: &[Block]) -> String {
    let texts: Vec<&str> = blocks.iter().filter_map(Block::as_text).collect();
    texts.join("\n")
}

/// Returns the content of a result. The texts of tools that show files or lists are fenced.
pub(crate) fn of_result(tool: &str, blocks: &[Block]) -> Vec<Value> {
    let fences = matches!(tool, "read" | "bash" | "grep" | "find" | "ls");
    let (mut text_left, mut image_left) = (MAX_TEXT_BYTES, MAX_IMAGE_BYTES);
    let mut items = Vec::new();
    for block in blocks {
        match block {
            Block::Text(block) if !block.text.is_empty() => {
                let shown = cut(&block.text, text_left);
                text_left = text_left.saturating_sub(shown.len());
                items.push(text(&if fences { fenced(&shown) } else { shown }));
            }
            Block::Image { data, mime_type } => {
                if data.len() > image_left {
                    let size = pinion_text::amount::size(data.len() as u64);
                    items.push(text(&format!("[An image of {size} is too large to show.]")));
                } else {
                    image_left -= data.len();
                    items.push(content(image(data, mime_type)));
                }
            }
            _ => {}
        }
    }
    items
}

/// Returns the block of an image.
pub(crate) fn image(data: &str, mime_type: &str) -> Value {
    json!({"type": "image", "data": data, "mimeType": mime_type})
}

fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let shown = &text[..text.floor_char_boundary(most)];
    format!(
        "{shown}\n[{} more bytes are not shown here.]",
        text.len() - shown.len()
    )
}

/// Returns the diffs of a change.
pub(crate) fn diffs(change: &TextChange) -> Vec<Value> {
    let path = &change.path;
    match &change.texts {
        ChangedTexts::Whole { before, after } => vec![diff(path, before.as_deref(), after)],
        ChangedTexts::Hunks(hunks) => hunks
            .iter()
            .map(|hunk| partial(diff(path, Some(&hunk.before), &hunk.after)))
            .collect(),
    }
}

pub(crate) fn diff(path: &Path, before: Option<&str>, after: &str) -> Value {
    json!({
        "type": "diff",
        "path": path.display().to_string(),
        "oldText": before,
        "newText": after,
    })
}

/// Marks a diff that shows only a part of a file.
pub(crate) fn partial(mut diff: Value) -> Value {
    diff["_meta"]["pinion"]["partial"] = json!(true);
    diff
}

/// Returns the diffs of a saved result of `edit`: numbered lines that begin with a blank, `-` or `+`.
pub(crate) fn saved_diffs(path: &Path, saved: &str) -> Vec<Value> {
    let mut diffs = Vec::new();
    let (mut before, mut after) = (String::new(), String::new());
    let mut close = |before: &mut String, after: &mut String| {
        if before != after {
            diffs.push(partial(diff(path, Some(before), after)));
        }
        before.clear();
        after.clear();
    };
    for row in saved.split('\n') {
        let Some(sign) = row.chars().next() else {
            continue;
        };
        let numbered = row[sign.len_utf8()..].trim_start();
        let line = numbered.trim_start_matches(|c: char| c.is_ascii_digit());
        if line.len() == numbered.len() {
            // The rows between two changes that are not shown.
            close(&mut before, &mut after);
            continue;
        }
        let line = line.strip_prefix(' ').unwrap_or(line);
        if sign != '+' {
            before.push_str(line);
            before.push('\n');
        }
        if sign != '-' {
            after.push_str(line);
            after.push('\n');
        }
    }
    close(&mut before, &mut after);
    diffs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_longer_than_any_in_the_text() {
        assert_eq!(fenced("a\n"), "```\na\n```");
        assert_eq!(fenced("````\nb"), "`````\n````\nb\n`````");
    }

    #[test]
    fn long_results_are_cut_and_say_so() {
        let blocks = [Block::text("x".repeat(1 << 20)), Block::text("y")];
        let items = of_result("read", &blocks);
        let shown = items[0]["content"]["text"].as_str().unwrap();
        assert!(shown.len() < MAX_TEXT_BYTES + 100);
        assert!(shown.contains("more bytes are not shown here"));
        let image = Block::Image {
            data: "x".repeat(7 << 20),
            mime_type: "image/png".into(),
        };
        let items = of_result("read", &[image]);
        assert!(
            items[0]["content"]["text"]
                .as_str()
                .unwrap()
                .contains("too large")
        );
    }

    #[test]
    fn saved_diffs_become_parts() {
        let saved = " 1 alpha\n-2 beta\n+2 BETA\n+3 NEW\n 3 gamma\n   ...\n 9 x\n-10 y\n";
        let diffs = saved_diffs(Path::new("/a"), saved);
        assert_eq!(diffs.len(), 2);
        assert_eq!(diffs[0]["oldText"], "alpha\nbeta\ngamma\n");
        assert_eq!(diffs[0]["newText"], "alpha\nBETA\nNEW\ngamma\n");
        assert_eq!(diffs[0]["_meta"]["pinion"]["partial"], true);
        assert_eq!(diffs[1]["newText"], "x\n");
    }
}
