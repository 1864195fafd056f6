//! Converts the attachments of a prompt: images unchanged, documents to text.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pinion_documents::{Document, Limits, extract};
use pinion_message::Block;
use serde::Deserialize;
use serde_json::Value;

/// Limit on the attachments of one prompt.
const ATTACHMENT_LIMIT: usize = 100;

/// An attachment; members that only the client uses are ignored.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Attachment {
    r#type: String,
    #[serde(default)]
    file_name: String,
    #[serde(default)]
    mime_type: Option<String>,
    #[serde(default)]
    content: String,
    #[serde(default)]
    extracted_text: Option<String>,
}

/// Returns the blocks that follow the text of a prompt. Blocks while it extracts text from documents.
pub(crate) fn blocks(attachments: &[Value]) -> Result<Vec<Block>, String> {
    if attachments.len() > ATTACHMENT_LIMIT {
        let count = attachments.len();
        return Err(format!(
            "prompt: there are {count} attachments, over the limit of {ATTACHMENT_LIMIT}; send fewer at once"
        ));
    }
    let read = |(at, attachment)| {
        block(attachment).map_err(|(name, words)| {
            if name.is_empty() {
                format!("prompt: attachments[{at}]: {words}")
            } else {
                format!("prompt: attachments[{at}] ({name}): {words}")
            }
        })
    };
    attachments.iter().enumerate().map(read).collect()
}

/// Converts one attachment. The error is its name and a sentence.
fn block(attachment: &Value) -> Result<Block, (String, String)> {
    let attachment = Attachment::deserialize(attachment).map_err(|error| {
        let expected = "it must be {\"type\":\"image\"|\"document\",\"fileName\",\"mimeType\",\"content\":<base64>}";
        (String::new(), format!("{expected}: {error}"))
    })?;
    let named = |words: String| (attachment.file_name.clone(), words);
    match attachment.r#type.as_str() {
        "image" => {
            let mime_type = attachment.mime_type.clone().ok_or_else(|| {
                named("an image needs \"mimeType\", for example image/png".into())
            })?;
            decoded(&attachment.content).map_err(named)?;
            Ok(Block::Image {
                data: attachment.content,
                mime_type,
            })
        }
        "document" => {
            let text = document_text(&attachment).map_err(named)?;
            let name = &attachment.file_name;
            Ok(Block::text(format!("{DOCUMENT}{name}]\n{text}")))
        }
        other => Err(named(format!(
            "the type must be \"image\" or \"document\", not \"{other}\""
        ))),
    }
}

/// The beginning of a document's block.
pub(crate) const DOCUMENT: &str = "\n\n[Document: ";

fn document_text(attachment: &Attachment) -> Result<String, String> {
    if let Some(text) = &attachment.extracted_text {
        return Ok(text.clone());
    }
    let document = Document {
        name: &attachment.file_name,
        mime: attachment.mime_type.as_deref(),
        bytes: &decoded(&attachment.content)?,
    };
    let extracted = extract(&document, &Limits::default()).map_err(|error| error.to_string())?;
    Ok(extracted.text)
}

fn decoded(content: &str) -> Result<Vec<u8>, String> {
    if content.is_empty() {
        return Err("\"content\" is missing; it must be base64".into());
    }
    STANDARD
        .decode(content)
        .map_err(|error| format!("\"content\" is not base64: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fault(attachment: Value) -> String {
        blocks(&[attachment]).unwrap_err()
    }

    #[test]
    fn a_document_is_read_unless_the_client_did() {
        let content = STANDARD.encode("<p>Hello <b>there</b></p>");
        let own =
            json!({"type":"document","fileName":"a.html","mimeType":"text/html","content":content});
        let mut theirs = own.clone();
        theirs["extractedText"] = json!("as they say");
        let blocks = blocks(&[own, theirs]).unwrap();
        assert_eq!(
            blocks,
            [
                Block::text("\n\n[Document: a.html]\nHello there\n"),
                Block::text("\n\n[Document: a.html]\nas they say")
            ]
        );
    }

    #[test]
    fn a_wrong_attachment_is_named() {
        for (attachment, words) in [
            (json!(5), "attachments[0]: it must be"),
            (
                json!({"type":"sound","fileName":"a.mp3"}),
                "attachments[0] (a.mp3): the type must be",
            ),
            (
                json!({"type":"image","fileName":"a.png","content":"AAAA"}),
                "needs \"mimeType\"",
            ),
            (
                json!({"type":"image","fileName":"a.png","mimeType":"image/png","content":"%"}),
                "is not base64",
            ),
            (
                json!({"type":"document","fileName":"a.txt"}),
                "\"content\" is missing",
            ),
        ] {
            let error = fault(attachment);
            assert!(error.contains(words), "{error}");
        }
    }
}
