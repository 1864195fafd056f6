//! Text out of documents that a client attaches.
//!
//! [`extract`] takes the bytes as they were sent and gives the text a model can read, or a
//! [`DocumentError`] that says what to do instead. It opens no file and no socket, starts no
//! process and no thread, and keeps nothing. It is plain work on a processor: call it where
//! blocking is allowed.
//!
//! Whatever the bytes are, the work is bounded: the size of the input, of what is unpacked from
//! it, of the text that comes out, the number of pages, the depth of nesting and, for a PDF, the
//! number of steps ([`Limits`]).
//!
//! PDF and HTML are read by code of our own, for reasons that were measured. Of the PDF libraries one inflates
//! without a bound, another parses every object of a file up front, also when a small file names the
//! same large object a million times; so `pdf` reads what text needs, no more, under one budget. An
//! HTML tokenizer from outside adds half a megabyte to three quarters to the program, most of it a table of
//! entities; `html` needs tags and text only. Archives, XML, compression and encodings are crates.
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
pub use kind::Kind;

use output::Output;

/// A document as it was sent.
#[derive(Debug, Clone, Copy)]
pub struct Document<'a> {
    /// The file name the client gave; its extension is the last hint about the kind.
    pub name: &'a str,
    /// The MIME type the client gave, with or without parameters.
    pub mime: Option<&'a str>,
    /// The file itself.
    pub bytes: &'a [u8],
}

/// How much work one document may cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the file; more is an error.
    pub bytes: usize,
    /// Bytes of text; more is cut at a character, with a note in the text.
    pub text: usize,
    /// Bytes unpacked from inside the file and held at a time; more is an error. The work a PDF may
    /// cause is measured by it too.
    pub unpacked: usize,
    /// Pages of a PDF; what follows is left out, with a note in the text.
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

/// The text of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extracted {
    /// The text, never longer than [`Limits::text`] bytes.
    pub text: String,
    /// Whether something was left out because of a limit; the text then ends with a note.
    pub truncated: bool,
    /// What the document was read as.
    pub kind: Kind,
    /// How many pages the document has, where it has pages.
    pub pages: Option<usize>,
}

/// Reads the text of a document.
pub fn extract(document: &Document<'_>, limits: &Limits) -> Result<Extracted, DocumentError> {
    // The parsers below are fed by strangers. None is known to panic; should one, it costs this
    // document and not the session it was sent to.
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
        Kind::Text => {
            output.push(&plain::decode(document)?);
            None
        }
        Kind::Html => {
            html::write(&plain::decode(document)?, &mut output);
            None
        }
        Kind::Docx => {
            docx::write(document, limits, &mut output)?;
            None
        }
        Kind::Pdf => Some(pdf::write(document, limits, &mut output)?),
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
