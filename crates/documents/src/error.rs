//! Why a document gave no text.

use thiserror::Error;

use crate::{Document, Kind};

/// A document that could not be read. The message names the file and says what to do.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// More bytes than are accepted.
    #[error(
        "{name} is too large: {size} bytes, at most {limit} are read; send a part of it or its text"
    )]
    TooLarge {
        /// The file.
        name: String,
        /// Its size in bytes.
        size: usize,
        /// The largest size that is read.
        limit: usize,
    },
    /// The file unpacks, or keeps a reader busy, out of all proportion.
    #[error(
        "{name} was not read: it unpacks to more than {limit} bytes or takes too much work; \
         save it again with another program, or send its text"
    )]
    TooComplex {
        /// The file.
        name: String,
        /// The largest unpacked size that is read.
        limit: usize,
    },
    /// A kind of file nothing here can read.
    #[error(
        "{name} is {what}, not a kind of document that can be read; \
         send text, Markdown, source, CSV, JSON, HTML, PDF or DOCX"
    )]
    Unsupported {
        /// The file.
        name: String,
        /// What it seems to be, with its article.
        what: &'static str,
    },
    /// The file is protected by a password.
    #[error("{name} is encrypted; save a copy without a password and send that")]
    Encrypted {
        /// The file.
        name: String,
    },
    /// The file is damaged, or not what its name or type says.
    #[error("{name} cannot be read as {what}: {reason}; save it again, or send its text")]
    Broken {
        /// The file.
        name: String,
        /// What it was read as, with its article.
        what: &'static str,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The file was read and holds no text.
    #[error("{name} holds no text{}", no_text_advice(*kind))]
    NoText {
        /// The file.
        name: String,
        /// What it was read as.
        kind: Kind,
    },
}

impl DocumentError {
    /// A stable name of the failure, for programs.
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

fn no_text_advice(kind: Kind) -> &'static str {
    match kind {
        Kind::Pdf => {
            " that can be read, perhaps only pictures of pages; \
             run text recognition on it, or send the pages as images"
        }
        _ => "; there is nothing to send",
    }
}
