//! The commands of early clients. None of them is answered.

use schemars::JsonSchema;

use crate::commands::commands;

commands! {
    /// Says something to the agent. While a run is active it waits for its end.
    Prompt "prompt" {
        /// The words.
        message: String,
        attachments: Option<Vec<AttachmentShape>>,
    };

    /// Stops whatever is going on.
    Abort "abort" {};

    /// Summarises the conversation.
    Compact "compact" {
        /// What the summary should look at.
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
    /// The text of a document; without it the document is read.
    extracted_text: Option<String>,
    /// For the client alone, as the next two.
    id: Option<String>,
    size: Option<u64>,
    preview: Option<String>,
}

/// What an attachment is.
#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
#[allow(dead_code, reason = "for the schema: the decoder is more lenient")]
enum AttachmentKind {
    Image,
    Document,
}
