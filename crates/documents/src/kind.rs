//! Recognition of a document's kind: by its first bytes, then by its MIME type, then by its name.

use crate::{Document, DocumentError, docx, plain};

/// The kind a document is read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DocumentKind {
    /// Plain text: also Markdown, source, CSV, JSON, XML.
    Text,
    Html,
    Pdf,
    /// A Word document in the format since 2007.
    Docx,
}

impl DocumentKind {
    pub(crate) fn with_article(self) -> &'static str {
        match self {
            Self::Text => "a text",
            Self::Html => "an HTML page",
            Self::Pdf => "a PDF",
            Self::Docx => "a Word document",
        }
    }
}

/// The first bytes of unsupported files, and the names of their kinds.
const OTHERS: &[(&[u8], &str)] = &[
    (b"\x89PNG\r\n", "an image"),
    (b"\xff\xd8\xff", "an image"),
    (b"GIF8", "an image"),
    (b"RIFF", "a media file"),
    (b"\x1f\x8b", "a compressed archive"),
    (b"7z\xbc\xaf\x27\x1c", "a compressed archive"),
    (b"Rar!\x1a\x07", "a compressed archive"),
    (b"{\\rtf", "an RTF file"),
    (b"\x7fELF", "a program"),
    (b"SQLite format 3\0", "a database"),
];

/// The container of Office files before 2007 and of encrypted documents.
const OLE: &[u8] = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1";

/// The largest offset, in bytes, of the PDF header in a file.
const PDF_WINDOW: usize = 1024;

pub(crate) fn of(document: &Document<'_>) -> Result<DocumentKind, DocumentError> {
    let unsupported = |what| {
        Err(DocumentError::Unsupported {
            name: document.name.to_owned(),
            what,
        })
    };
    let bytes = document.bytes;
    let declared = declared(document);
    if bytes.starts_with(b"%PDF-") {
        return Ok(DocumentKind::Pdf);
    }
    if bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06") {
        return match docx::archive_kind(bytes) {
            docx::ArchiveKind::Word => Ok(DocumentKind::Docx),
            docx::ArchiveKind::Other(what) => unsupported(what),
            docx::ArchiveKind::Unreadable if declared == Some(DocumentKind::Docx) => {
                Ok(DocumentKind::Docx)
            }
            docx::ArchiveKind::Unreadable => unsupported("a ZIP archive that cannot be opened"),
        };
    }
    if bytes.starts_with(OLE) {
        if declared == Some(DocumentKind::Docx) {
            return Err(DocumentError::Encrypted {
                name: document.name.to_owned(),
            });
        }
        return unsupported("an Office file from before 2007");
    }
    if let Some((_, what)) = OTHERS.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return unsupported(what);
    }
    if let Some(kind) = declared {
        return Ok(kind);
    }
    let window = &bytes[..bytes.len().min(PDF_WINDOW)];
    match plain::text(document) {
        Some(text) if looks_like_html(&text) => Ok(DocumentKind::Html),
        Some(_) => Ok(DocumentKind::Text),
        None if memchr::memmem::find(window, b"%PDF-").is_some() => Ok(DocumentKind::Pdf),
        None => unsupported("binary data"),
    }
}

/// Returns the kind that the client declared, by MIME type or name.
pub(crate) fn declared(document: &Document<'_>) -> Option<DocumentKind> {
    document
        .mime
        .and_then(by_mime)
        .or_else(|| by_extension(document.name))
}

fn by_mime(mime: &str) -> Option<DocumentKind> {
    let essence = mime.split(';').next()?.trim().to_ascii_lowercase();
    match essence.as_str() {
        "application/pdf" | "application/x-pdf" => Some(DocumentKind::Pdf),
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
        | "application/vnd.ms-word.document.macroenabled.12" => Some(DocumentKind::Docx),
        "text/html" | "application/xhtml+xml" => Some(DocumentKind::Html),
        "application/json"
        | "application/xml"
        | "application/javascript"
        | "application/toml"
        | "application/x-sh"
        | "application/x-yaml"
        | "application/yaml"
        | "application/sql"
        | "application/x-ndjson"
        | "application/typescript" => Some(DocumentKind::Text),
        other if other.starts_with("text/") => Some(DocumentKind::Text),
        other if other.ends_with("+json") || other.ends_with("+xml") => Some(DocumentKind::Text),
        _ => None,
    }
}

/// Returns the kind of an extension. It matters only if the bytes are ambiguous: UTF-8 text is
/// recognised without it, so the list holds kinds that may come in an older encoding.
fn by_extension(name: &str) -> Option<DocumentKind> {
    let (_, extension) = name.rsplit_once('.')?;
    match extension.to_ascii_lowercase().as_str() {
        "pdf" => Some(DocumentKind::Pdf),
        "docx" | "docm" => Some(DocumentKind::Docx),
        "html" | "htm" | "xhtml" => Some(DocumentKind::Html),
        "txt" | "text" | "md" | "markdown" | "rst" | "adoc" | "tex" | "log" | "csv" | "tsv"
        | "json" | "jsonl" | "ndjson" | "xml" | "svg" | "yaml" | "yml" | "toml" | "ini" | "cfg"
        | "conf" | "properties" | "env" | "srt" | "vtt" | "c" | "h" | "cc" | "cpp" | "hpp"
        | "cs" | "css" | "scss" | "dart" | "diff" | "patch" | "erl" | "ex" | "go" | "gradle"
        | "hs" | "java" | "js" | "jsx" | "mjs" | "kt" | "lua" | "m" | "php" | "pl" | "proto"
        | "ps1" | "py" | "r" | "rb" | "rs" | "scala" | "sh" | "bash" | "bat" | "sql" | "swift"
        | "ts" | "tsx" | "vb" | "vue" => Some(DocumentKind::Text),
        _ => None,
    }
}

fn looks_like_html(text: &str) -> bool {
    let start = text.trim_start();
    ["<!doctype html", "<html"].iter().any(|opening| {
        start
            .get(..opening.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(opening))
    })
}
