//! The content of prompts: checks the blocks of the client, and converts them to those of the engine.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pinion_agent::prepare_encoded_image;
use pinion_documents::{Document, Limits, extract};
use pinion_message::Block;
use serde_json::Value;
use url::Url;

use crate::error::AcpError;

/// Limit on the blocks of one prompt.
const MAX_BLOCKS: usize = 1000;

/// A block of a prompt whose members are valid.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PromptBlock {
    Text(String),
    Image {
        data: String,
        mime_type: String,
    },
    Link {
        name: String,
        uri: String,
    },
    /// The text of a file.
    File {
        name: String,
        text: String,
    },
    /// The bytes of a file, in base64.
    Blob {
        name: String,
        data: String,
        mime_type: Option<String>,
    },
}

/// A prompt for the engine.
#[derive(Debug, PartialEq)]
pub(crate) struct EnginePrompt {
    /// The text that templates, skills and commands are looked for in.
    pub text: String,
    /// The blocks that follow it.
    pub blocks: Vec<Block>,
}

/// Reads the member `prompt`.
pub(crate) fn read(blocks: &[Value]) -> Result<Vec<PromptBlock>, AcpError> {
    if blocks.is_empty() {
        return Err(AcpError::invalid_params("prompt is empty"));
    }
    if blocks.len() > MAX_BLOCKS {
        let problem = format!("prompt has more than {MAX_BLOCKS} blocks");
        return Err(AcpError::invalid_params(problem));
    }
    blocks
        .iter()
        .enumerate()
        .map(|(at, block)| read_block(at, block))
        .collect()
}

fn read_block(at: usize, block: &Value) -> Result<PromptBlock, AcpError> {
    let text = |value: &Value, name: &str| match &value[name] {
        Value::String(text) => Ok(text.clone()),
        _ => Err(AcpError::invalid_params(format_args!(
            "prompt[{at}]: {name} must be a string"
        ))),
    };
    match block["type"].as_str() {
        Some("text") => Ok(PromptBlock::Text(text(block, "text")?)),
        Some("image") => {
            let data = text(block, "data")?;
            if data.is_empty() || STANDARD.decode(&data).is_err() {
                let problem = format!("prompt[{at}]: data must be base64");
                return Err(AcpError::invalid_params(problem));
            }
            let mime_type = text(block, "mimeType")?;
            Ok(PromptBlock::Image { data, mime_type })
        }
        Some("audio") => Err(AcpError::invalid_params("audio is not supported")),
        Some("resource_link") => Ok(PromptBlock::Link {
            name: text(block, "name")?,
            uri: text(block, "uri")?,
        }),
        Some("resource") => {
            let resource = &block["resource"];
            let name = name_of(&text(resource, "uri")?);
            if resource["text"].is_string() {
                let text = text(resource, "text")?;
                return Ok(PromptBlock::File { name, text });
            }
            let mime_type = resource["mimeType"].as_str().map(str::to_owned);
            let data = text(resource, "blob")?;
            Ok(match mime_type {
                Some(mime_type) if mime_type.starts_with("image/") => {
                    PromptBlock::Image { data, mime_type }
                }
                mime_type => PromptBlock::Blob {
                    name,
                    data,
                    mime_type,
                },
            })
        }
        Some(other) => Err(AcpError::invalid_params(format_args!(
            "prompt[{at}]: unknown type \"{other}\"; use text, image, resource_link or resource"
        ))),
        None => Err(AcpError::invalid_params(format_args!(
            "prompt[{at}]: type must be a string"
        ))),
    }
}

/// Returns the path of a `file:` address, else the address.
fn name_of(uri: &str) -> String {
    let url = Url::parse(uri).ok().filter(|url| url.scheme() == "file");
    let path = url.and_then(|url| url.to_file_path().ok());
    path.map_or_else(|| uri.to_owned(), |path| path.display().to_string())
}

impl PromptBlock {
    /// Returns the text that the block adds to the prompt's own text.
    fn as_words(&self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.clone()),
            Self::Link { name, uri } => Some(format!("[{name}]({})", name_of(uri))),
            _ => None,
        }
    }
}

/// Converts a prompt. Blocks while it decodes images and documents. `resizes` scales down images that are too large for
/// models.
pub(crate) fn convert(prompt: Vec<PromptBlock>, resizes: bool) -> Result<EnginePrompt, AcpError> {
    let mut text = String::new();
    let mut blocks: Vec<Block> = Vec::new();
    let mut leads = true;
    // The last block is words, to which further words are joined.
    let mut joins = false;
    for block in prompt {
        if let Some(words) = block.as_words() {
            match blocks.last_mut() {
                _ if leads => text.push_str(&words),
                Some(Block::Text(last)) if joins => last.text.push_str(&words),
                _ => blocks.push(Block::text(words)),
            }
            joins = true;
            continue;
        }
        joins = false;
        match block {
            PromptBlock::File { name, text: file } => {
                let file = format!("<file name=\"{name}\">\n{file}\n</file>\n");
                if leads && text.is_empty() {
                    // Files before the first words, as `@file` arguments are.
                    text.push_str(&file);
                    continue;
                }
                blocks.push(Block::text(file));
            }
            PromptBlock::Image { data, mime_type } => {
                let fitting = if resizes {
                    prepare_encoded_image(&data)
                } else {
                    None
                };
                match fitting {
                    Some((image, note)) => {
                        blocks.push(image);
                        blocks.push(Block::text(note));
                    }
                    None => blocks.push(Block::Image { data, mime_type }),
                }
            }
            PromptBlock::Blob {
                name,
                data,
                mime_type,
            } => blocks.push(Block::text(document(&name, &data, mime_type.as_deref())?)),
            PromptBlock::Text(_) | PromptBlock::Link { .. } => {}
        }
        leads = false;
    }
    if text.trim().is_empty() && blocks.is_empty() {
        return Err(AcpError::invalid_params("prompt is empty"));
    }
    Ok(EnginePrompt { text, blocks })
}

/// Returns the text of a document in the form of an attached file.
fn document(name: &str, data: &str, mime_type: Option<&str>) -> Result<String, AcpError> {
    let bytes = STANDARD.decode(data);
    let bytes =
        bytes.map_err(|_| AcpError::invalid_params(format_args!("{name}: blob must be base64")))?;
    let document = Document {
        name,
        mime: mime_type,
        bytes: &bytes,
    };
    let extracted = extract(&document, &Limits::default()).map_err(AcpError::invalid_params)?;
    let text = extracted.text.trim_end_matches('\n');
    Ok(format!("<file name=\"{name}\">\n{text}\n</file>\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn converted(prompt: Value) -> Result<EnginePrompt, AcpError> {
        convert(read(prompt.as_array().unwrap())?, false)
    }

    #[test]
    fn blocks_keep_their_order() {
        let prompt = converted(json!([
            {"type": "text", "text": "Compare "},
            {"type": "resource_link", "uri": "file:///home/u/a%20b.txt", "name": "a b.txt"},
            {"type": "text", "text": " with this"},
            {"type": "resource", "resource": {"uri": "file:///home/u/b.txt", "text": "two\n"}},
            {"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="},
            {"type": "text", "text": "and "},
            {"type": "resource_link", "uri": "https://example.com", "name": "that"},
            {"type": "resource", "resource": {"uri": "zed:///x.html", "mimeType": "text/html", "blob": "PHA+aGk8L3A+"}},
        ]))
        .unwrap();
        assert_eq!(prompt.text, "Compare [a b.txt](/home/u/a b.txt) with this");
        let shown: Vec<String> = prompt
            .blocks
            .iter()
            .map(|block| block.as_text().unwrap_or("image").to_owned())
            .collect();
        assert_eq!(
            shown,
            [
                "<file name=\"/home/u/b.txt\">\ntwo\n\n</file>\n",
                "image",
                "and [that](https://example.com)",
                "<file name=\"zed:///x.html\">\nhi\n</file>\n",
            ]
        );
    }

    #[test]
    fn files_before_the_first_words_are_part_of_the_text() {
        let prompt = converted(json!([
            {"type": "resource", "resource": {"uri": "file:///a", "text": "x"}},
            {"type": "text", "text": "What is this?"},
        ]));
        let text = "<file name=\"/a\">\nx\n</file>\nWhat is this?";
        assert_eq!(prompt.unwrap().text, text);
    }

    #[test]
    fn invalid_blocks_are_named() {
        for (prompt, words) in [
            (json!([]), "prompt is empty"),
            (json!([{"type": "text", "text": " "}]), "prompt is empty"),
            (
                json!([{"type": "text"}]),
                "prompt[0]: text must be a string",
            ),
            (json!([{"type": "audio"}]), "audio is not supported"),
            (json!([{"type": "video"}]), "unknown type \"video\""),
            (json!([5]), "prompt[0]: type must be a string"),
            (
                json!([{"type": "image", "data": "?", "mimeType": "image/png"}]),
                "data must be base64",
            ),
            (
                json!([{"type": "resource", "resource": {"uri": "a"}}]),
                "blob must be a string",
            ),
            (
                json!([{"type": "resource", "resource": {"uri": "a.zip", "mimeType": "application/x-7z", "blob": "N3q8rycc"}}]),
                "a.zip",
            ),
        ] {
            let error = converted(prompt.clone()).unwrap_err().to_string();
            assert!(
                error.starts_with("Invalid params: ") && error.contains(words),
                "{prompt}: {error}"
            );
        }
    }
}
