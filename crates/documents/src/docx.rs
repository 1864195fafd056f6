//! Word documents: an archive of XML parts. The text, the notes, and the marks of headings, lists
//! and links are read; macros, headers, comments and deleted text are not.

mod body;
mod formatting;

use std::borrow::Cow;
use std::io::{Cursor, Read};

use encoding_rs::Encoding;
use zip::ZipArchive;
use zip::result::ZipError;

use crate::blocks::Blocks;
use crate::output::Output;
use crate::{Document, DocumentError, Limits};
use formatting::{Formatting, relationships};

/// The content of an archive, recognised by the names in it.
pub(crate) enum ArchiveKind {
    Word,
    /// Another kind, named with its article.
    Other(&'static str),
    /// The archive's directory cannot be read.
    Unreadable,
}

pub(crate) fn archive_kind(bytes: &[u8]) -> ArchiveKind {
    let Ok(archive) = ZipArchive::new(Cursor::new(bytes)) else {
        return ArchiveKind::Unreadable;
    };
    let holds = |start: &str| {
        archive
            .file_names()
            .flatten()
            .any(|name| name.starts_with(start))
    };
    if holds("word/") {
        ArchiveKind::Word
    } else if holds("xl/") {
        ArchiveKind::Other("an Excel workbook")
    } else if holds("ppt/") {
        ArchiveKind::Other("a PowerPoint presentation")
    } else if holds("content.xml") {
        ArchiveKind::Other("an OpenDocument file")
    } else {
        ArchiveKind::Other("a ZIP archive")
    }
}

/// Writes the text of a Word document.
pub(crate) fn write(
    document: &Document<'_>,
    limits: &Limits,
    output: &mut Output,
) -> Result<(), DocumentError> {
    let mut parts = Parts::open(document, limits)?;
    let main = parts.main()?;
    let folder = main
        .rsplit_once('/')
        .map_or("", |(folder, _)| folder)
        .to_owned();
    let file = main
        .rsplit_once('/')
        .map_or(main.as_str(), |(_, file)| file);
    let text = parts
        .read(&main)?
        .ok_or_else(|| parts.broken("its main part is missing"))?;
    let links = parts
        .read(&format!("{folder}/_rels/{file}.rels"))?
        .unwrap_or_default();
    let styles = parts
        .read(&format!("{folder}/styles.xml"))?
        .unwrap_or_default();
    let numbering = parts
        .read(&format!("{folder}/numbering.xml"))?
        .unwrap_or_default();
    let formatting = Formatting::new(&styles, &numbering, &links);

    let mut blocks = Blocks::new(output);
    let well_formed = body::write(&text, &formatting, &mut blocks);
    for notes in ["footnotes.xml", "endnotes.xml"] {
        if let Some(notes) = parts.read(&format!("{folder}/{notes}"))? {
            let _ = body::write(&notes, &formatting, &mut blocks);
        }
    }
    blocks.finish();
    if well_formed {
        Ok(())
    } else {
        Err(parts.broken("its text is not well-formed XML"))
    }
}

/// The parts of the archive, unpacked one at a time within one limit for all.
struct Parts<'a> {
    document: Document<'a>,
    archive: ZipArchive<Cursor<&'a [u8]>>,
    left: usize,
    limit: usize,
}

impl<'a> Parts<'a> {
    fn open(document: &Document<'a>, limits: &Limits) -> Result<Self, DocumentError> {
        let archive = ZipArchive::new(Cursor::new(document.bytes))
            .map_err(|_| DocumentError::broken(document, "it is not a ZIP archive"))?;
        Ok(Self {
            document: *document,
            archive,
            left: limits.unpacked,
            limit: limits.unpacked,
        })
    }

    /// Returns the name of the part that holds the text.
    fn main(&mut self) -> Result<String, DocumentError> {
        let root = self.read("_rels/.rels")?.unwrap_or_default();
        let named = relationships(&root)
            .find(|relationship| relationship.kind.ends_with("/officeDocument"))
            .map(|relationship| relationship.target.trim_start_matches('/').to_owned())
            .filter(|name| self.archive.index_for_name(name).is_some());
        Ok(named.unwrap_or_else(|| "word/document.xml".to_owned()))
    }

    /// Returns the text of a part, or `None` if the archive does not have it.
    fn read(&mut self, name: &str) -> Result<Option<String>, DocumentError> {
        let Some(index) = self.archive.index_for_name(name) else {
            return Ok(None);
        };
        let damaged = self.broken("a part of it is damaged");
        let part = match self.archive.by_index(index) {
            Ok(part) => part,
            Err(ZipError::UnsupportedArchive(ZipError::PASSWORD_REQUIRED)) => {
                return Err(DocumentError::Encrypted {
                    name: self.document.name.to_owned(),
                });
            }
            Err(_) => return Err(damaged),
        };
        // The sizes stated in the archive are not trusted: the reader requests one byte more than
        // the limit, and receiving it means that the part is too large.
        let mut bytes = Vec::new();
        let read = part.take(self.left as u64 + 1).read_to_end(&mut bytes);
        if bytes.len() > self.left {
            return Err(DocumentError::TooComplex {
                name: self.document.name.to_owned(),
                limit: self.limit,
            });
        }
        read.map_err(|_| damaged)?;
        self.left -= bytes.len();
        Ok(Some(decode(&bytes).into_owned()))
    }

    fn broken(&self, reason: &'static str) -> DocumentError {
        DocumentError::broken(&self.document, reason)
    }
}

fn decode(bytes: &[u8]) -> Cow<'_, str> {
    match Encoding::for_bom(bytes) {
        Some((encoding, mark)) => encoding.decode_without_bom_handling(&bytes[mark..]).0,
        None => String::from_utf8_lossy(bytes),
    }
}
