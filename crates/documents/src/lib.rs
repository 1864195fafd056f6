//! Extraction of text from documents that a client attaches.
//!
//! [`extract`] receives the bytes as they were sent and returns the text for a model, or a
//! [`DocumentError`] that states what to do instead. It opens no file and no socket, starts no
//! process and no thread, and stores nothing. It is plain work on a processor: call it where
//! blocking is allowed.
//!
//! Whatever the bytes are, the work is bounded: the size of the input, of the data unpacked from
//! it, of the resulting text, the number of pages, the depth of nesting and, for a PDF, the number
//! of steps ([`Limits`]).
//!
//! The parsers for PDF and HTML are written here, for measured reasons. Of the PDF libraries one
//! inflates without a bound, and another parses every object of a file up front, even when a small
//! file names the same large object a million times; so `pdf` reads only what text needs, under one
//! budget. An external HTML tokenizer adds half a megabyte to three quarters to the program, most
//! of it a table of entities; `html` needs tags and text only. Archives, XML, compression and
//! encodings are crates.
//!
//! Deliberately absent: recognition of text in images, passwords, macros, layout beyond lines and
//! paragraphs.

use std::panic::{AssertUnwindSafe, catch_unwind};

mod blocks;
mod docx;
mod error;
mod html;
mod kind;
mod output;
mod pdf;
mod plain;

pub use error::DocumentError;
pub use kind::DocumentKind;

use output::Output;

/// A document as it was sent.
#[derive(Debug, Clone, Copy)]
pub struct Document<'a> {
    /// The file name from the client; its extension is the last hint about the kind.
    pub name: &'a str,
    /// The MIME type from the client, with or without parameters.
    pub mime: Option<&'a str>,
    pub bytes: &'a [u8],
}

/// Limits of the work for one document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the file; more is an error.
    pub bytes: usize,
    /// Bytes of text; longer text is cut at a character, with a note in the text.
    pub text: usize,
    /// Bytes unpacked from inside the file and held at a time; more is an error. It also limits the
    /// steps for a PDF.
    pub unpacked: usize,
    /// Pages of a PDF; further pages are left out, with a note in the text.
    pub pages: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes: 20 << 20,
            text: 1 << 20,
            unpacked: 64 << 20,
            pages: 2_000,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extracted {
    /// The text, never longer than [`Limits::text`] bytes.
    pub text: String,
    /// Text was left out because of a limit; the text then ends with a note.
    pub truncated: bool,
    /// The kind the document was read as.
    pub kind: DocumentKind,
    /// The number of pages, if the document has pages.
    pub pages: Option<usize>,
}

/// Extracts the text of a document.
pub fn extract(document: &Document<'_>, limits: &Limits) -> Result<Extracted, DocumentError> {
    // The input comes from strangers. No parser is known to panic; if one did, only this document
    // would fail and not the session.
    catch_unwind(AssertUnwindSafe(|| read(document, limits))).unwrap_or_else(|_| {
        Err(DocumentError::broken(
            document,
            "its structure makes no sense",
        ))
    })
}

fn read(document: &Document<'_>, limits: &Limits) -> Result<Extracted, DocumentError> {
    if document.bytes.len() > limits.bytes {
        return Err(DocumentError::TooLarge {
            name: document.name.to_owned(),
            size: document.bytes.len(),
            limit: limits.bytes,
        });
    }
    let kind = kind::of(document)?;
    let mut output = Output::new(limits.text);
    let pages = match kind {
        DocumentKind::Text => {
            output.push(&plain::decode(document)?);
            None
        }
        DocumentKind::Html => {
            html::write(&plain::decode(document)?, &mut output);
            None
        }
        DocumentKind::Docx => {
            docx::write(document, limits, &mut output)?;
            None
        }
        DocumentKind::Pdf => Some(pdf::write(document, limits, &mut output)?),
    };
    let (text, truncated) = output.finish();
    if text.trim().is_empty() {
        return Err(DocumentError::NoText {
            name: document.name.to_owned(),
            kind,
        });
    }
    Ok(Extracted {
        text,
        truncated,
        kind,
        pages,
    })
}
