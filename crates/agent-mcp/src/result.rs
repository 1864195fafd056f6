//! Converts the answer of a server to the output of a tool.

use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pinion_message::Block;
use pinion_tools::{ToolOutput, write_output_file};
use serde_json::{Value, json};

/// The longest text for the model, in bytes; the middle of a longer one is left out.
const MAX_TEXT_BYTES: usize = 20 << 10;

/// Returns the output of a tool for the answer `result`.
pub(crate) async fn output(server: &str, tool: &str, result: Value) -> ToolOutput {
    let mut blocks = Vec::new();
    for part in result["content"].as_array().into_iter().flatten() {
        blocks.push(block(server, part).await);
    }
    if blocks.is_empty()
        && let Some(data) = result.get("structuredContent")
    {
        blocks.push(Block::text(data.to_string()));
    }
    let mut details = json!({"server": server, "tool": tool});
    let (content, full) = limited(blocks).await;
    if let Some(path) = full {
        details["fullOutputPath"] = path.to_string_lossy().into();
    }
    ToolOutput {
        content,
        details: Some(details),
        is_error: result["isError"] == true,
        structured_content: Some(result),
        ..ToolOutput::default()
    }
}

async fn block(server: &str, part: &Value) -> Block {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match part["type"].as_str().unwrap_or_default() {
        "text" => Block::text(text(&part["text"])),
        "image" if is_shown(&part["mimeType"]) => Block::Image {
            data: text(&part["data"]),
            mime_type: text(&part["mimeType"]),
        },
        "image" | "audio" => saved(&part["data"], &part["mimeType"]).await,
        "resource" => {
            let resource = &part["resource"];
            match resource["text"].as_str() {
                Some(text) => Block::text(text),
                None if is_shown(&resource["mimeType"]) => Block::Image {
                    data: text(&resource["blob"]),
                    mime_type: text(&resource["mimeType"]),
                },
                None => saved(&resource["blob"], &resource["mimeType"]).await,
            }
        }
        "resource_link" => Block::text(format!(
            "[Resource {} of MCP server {server}: {}]",
            text(&part["name"]),
            text(&part["uri"])
        )),
        _ => Block::text(part.to_string()),
    }
}

/// Reports whether models accept images of this type.
fn is_shown(mime: &Value) -> bool {
    matches!(
        mime.as_str(),
        Some("image/png" | "image/jpeg" | "image/gif" | "image/webp")
    )
}

/// Saves data that the model cannot see, and returns a text with the path.
async fn saved(data: &Value, mime: &Value) -> Block {
    let mime = mime.as_str().unwrap_or("application/octet-stream");
    let data = data.as_str().unwrap_or_default();
    let Ok(bytes) = STANDARD.decode(data) else {
        return Block::text(format!("[Data of type {mime} that is not base64]"));
    };
    let length = bytes.len();
    Block::text(match write_output_file("pi-mcp", "bin", bytes).await {
        Ok(path) => format!("[{length} bytes of {mime} saved to {}]", path.display()),
        Err(error) => format!("[{length} bytes of {mime} could not be saved: {error}]"),
    })
}

/// Joins texts that are too long together to one with a gap, and saves the whole text. Returns the path of the file.
async fn limited(blocks: Vec<Block>) -> (Vec<Block>, Option<PathBuf>) {
    let length: usize = blocks.iter().filter_map(Block::as_text).map(str::len).sum();
    if length <= MAX_TEXT_BYTES {
        return (blocks, None);
    }
    let texts: Vec<&str> = blocks.iter().filter_map(Block::as_text).collect();
    let whole = texts.join("\n");
    let half = MAX_TEXT_BYTES / 2;
    let head = &whole[..whole.floor_char_boundary(half)];
    let tail = &whole[whole.ceil_char_boundary(whole.len() - half)..];
    let gap = whole.len() - head.len() - tail.len();
    let mut text = format!("{head}…{gap} chars truncated…{tail}");
    let file = write_output_file("pi-mcp", "txt", whole.clone().into_bytes()).await;
    match &file {
        Ok(path) => text.push_str(&format!("\n\n[Full output: {}]", path.display())),
        Err(error) => text.push_str(&format!(
            "\n\n[The full output could not be saved: {error}]"
        )),
    }
    let images = blocks.into_iter().filter(|block| block.as_text().is_none());
    let content = std::iter::once(Block::text(text)).chain(images).collect();
    (content, file.ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn answers_become_outputs() {
        let answer = json!({"content": [
            {"type": "text", "text": "a"},
            {"type": "image", "data": "aGk=", "mimeType": "image/png"},
            {"type": "resource_link", "uri": "file:///x", "name": "x"},
            {"type": "resource", "resource": {"uri": "u", "text": "b"}},
        ], "isError": true});
        let output = output("lab", "t", answer.clone()).await;
        assert!(output.is_error);
        assert_eq!(output.details, Some(json!({"server": "lab", "tool": "t"})));
        assert_eq!(output.structured_content, Some(answer));
        assert_eq!(output.content.len(), 4);
        assert_eq!(output.content[0], Block::text("a"));
        assert!(matches!(output.content[1], Block::Image { .. }));
        assert_eq!(output.content[3], Block::text("b"));
    }

    #[tokio::test]
    async fn a_long_text_keeps_its_ends_and_is_saved() {
        let text = format!("begin{}end", "é".repeat(30_000));
        let answer = json!({"content": [{"type": "text", "text": text}]});
        let output = output("lab", "t", answer).await;
        let shown = output.content[0].as_text().unwrap();
        assert!(shown.len() < MAX_TEXT_BYTES + 200);
        assert!(shown.starts_with("begin") && shown.contains("end\n\n[Full output: "));
        let path = output.details.unwrap()["fullOutputPath"]
            .as_str()
            .unwrap()
            .to_owned();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        std::fs::remove_file(path).unwrap();
    }
}
