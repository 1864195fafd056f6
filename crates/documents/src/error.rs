//! Errors of documents.

use thiserror::Error;

use crate::{Document, DocumentKind};

/// A document that could not be read. The message names the file and what to do next.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// The file is larger than the limit.
    #[error(
        "{name} is too large: {size} bytes, at most {limit} are read; send a part of it or its text"
    )]
    TooLarge {
        name: String,
        /// The file's size in bytes.
        size: usize,
        /// The largest accepted size, in bytes.
        limit: usize,
    },
    /// The file unpacks to too much, or takes too many steps to read.
    #[error(
        "{name} was not read: it unpacks to more than {limit} bytes or takes too much work; \
         save it again with another program, or send its text"
    )]
    TooComplex {
        name: String,
        /// The largest accepted unpacked size, in bytes.
        limit: usize,
    },
    /// The kind of file is not supported.
    #[error(
        "{name} is {what}, not a kind of document that can be read; \
         send text, Markdown, source, CSV, JSON, HTML, PDF or DOCX"
    )]
    Unsupported {
        name: String,
        /// The kind it seems to be, with its article.
        what: &'static str,
    },
    /// The file is protected by a password.
    #[error("{name} is encrypted; save a copy without a password and send that")]
    Encrypted { name: String },
    /// The file is damaged, or is not of the kind that its name or type states.
    #[error("{name} cannot be read as {what}: {reason}; save it again, or send its text")]
    Broken {
        name: String,
        /// The kind it was read as, with its article.
        what: &'static str,
        reason: &'static str,
    },
    /// The file was read and holds no text.
    #[error("{name} holds no text{}", no_text_advice(*kind))]
    NoText {
        name: String,
        /// The kind it was read as.
        kind: DocumentKind,
    },
}

impl DocumentError {
    /// Returns a stable name of the error, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::TooLarge { .. } => "document_too_large",
            Self::TooComplex { .. } => "document_too_complex",
            Self::Unsupported { .. } => "document_unsupported",
            Self::Encrypted { .. } => "document_encrypted",
            Self::Broken { .. } => "document_broken",
            Self::NoText { .. } => "document_no_text",
        }
    }

    pub(crate) fn broken(document: &Document<'_>, reason: &'static str) -> Self {
        let what = match crate::kind::of(document) {
            Ok(kind) => kind.with_article(),
            Err(_) => "a document",
        };
        Self::Broken {
            name: document.name.to_owned(),
            what,
            reason,
        }
    }
}

fn no_text_advice(kind: DocumentKind) -> &'static str {
    match kind {
        DocumentKind::Pdf => {
            " that can be read, perhaps only pictures of pages; \
             run text recognition on it, or send the pages as images"
        }
        _ => "; there is nothing to send",
    }
}
