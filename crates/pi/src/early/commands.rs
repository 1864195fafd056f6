//! The commands of early clients, which get no response.

use schemars::JsonSchema;

use crate::commands::commands;

commands! {
    /// Starts a run. While a run is active, the prompt waits for its end.
    Prompt "prompt" {
        /// The text.
        message: String,
        attachments: Option<Vec<AttachmentShape>>,
    };

    /// Stops the run or compaction.
    Abort "abort" {};

    /// Compacts the conversation.
    Compact "compact" {
        /// An additional focus for the summary.
        custom_instructions: Option<String>,
    };
}

/// An image or a document.
#[derive(JsonSchema)]
#[schemars(
    rename = "Attachment",
    rename_all = "camelCase",
    extend("x-optional" = true)
)]
#[allow(dead_code, reason = "for the schema: the decoder is more lenient")]
struct AttachmentShape {
    r#type: AttachmentKind,
    file_name: String,
    /// For example `image/png`.
    mime_type: String,
    /// Base64.
    content: String,
    /// The text of a document; without it pinion extracts the text from `content`.
    extracted_text: Option<String>,
    /// Ignored; for the client's own use.
    id: Option<String>,
    /// Ignored; for the client's own use.
    size: Option<u64>,
    /// Ignored; for the client's own use.
    preview: Option<String>,
}

/// The kind of an attachment.
#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
#[allow(dead_code, reason = "for the schema: the decoder is more lenient")]
enum AttachmentKind {
    Image,
    Document,
}
