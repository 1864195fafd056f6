//! What a document is: by its first bytes, then by its MIME type, then by its name.

use crate::{Document, DocumentError, docx, plain};

/// What a document is read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// Plain text: also Markdown, source, CSV, JSON, XML.
    Text,
    /// A web page.
    Html,
    /// A PDF.
    Pdf,
    /// A Word document, as Word writes it since 2007.
    Docx,
}

impl Kind {
    pub(crate) fn with_article(self) -> &'static str {
        match self {
            Self::Text => "a text",
            Self::Html => "an HTML page",
            Self::Pdf => "a PDF",
            Self::Docx => "a Word document",
        }
    }
}

/// First bytes of files that are no documents we read, and what to call them.
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

/// What Office wrote before 2007, and what it wraps encrypted documents in.
const OLE: &[u8] = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1";

/// How far from its beginning a file that calls itself a PDF may start to be one.
const PDF_WINDOW: usize = 1024;

/// Decides what to read a document as.
pub(crate) fn of(document: &Document<'_>) -> Result<Kind, DocumentError> {
    let unsupported = |what| {
        Err(DocumentError::Unsupported {
            name: document.name.to_owned(),
            what,
        })
    };
    let bytes = document.bytes;
    let declared = declared(document);
    if bytes.starts_with(b"%PDF-") {
        return Ok(Kind::Pdf);
    }
    if bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06") {
        return match docx::archive_kind(bytes) {
            docx::ArchiveKind::Word => Ok(Kind::Docx),
            docx::ArchiveKind::Other(what) => unsupported(what),
            docx::ArchiveKind::Unreadable if declared == Some(Kind::Docx) => Ok(Kind::Docx),
            docx::ArchiveKind::Unreadable => unsupported("a ZIP archive that cannot be opened"),
        };
    }
    if bytes.starts_with(OLE) {
        if declared == Some(Kind::Docx) {
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
        Some(text) if looks_like_html(&text) => Ok(Kind::Html),
        Some(_) => Ok(Kind::Text),
        None if memchr::memmem::find(window, b"%PDF-").is_some() => Ok(Kind::Pdf),
        None => unsupported("binary data"),
    }
}

/// What the client says the document is, by MIME type or name.
pub(crate) fn declared(document: &Document<'_>) -> Option<Kind> {
    document
        .mime
        .and_then(by_mime)
        .or_else(|| by_extension(document.name))
}

fn by_mime(mime: &str) -> Option<Kind> {
    let essence = mime.split(';').next()?.trim().to_ascii_lowercase();
    match essence.as_str() {
        "application/pdf" | "application/x-pdf" => Some(Kind::Pdf),
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
        | "application/vnd.ms-word.document.macroenabled.12" => Some(Kind::Docx),
        "text/html" | "application/xhtml+xml" => Some(Kind::Html),
        "application/json"
        | "application/xml"
        | "application/javascript"
        | "application/toml"
        | "application/x-sh"
        | "application/x-yaml"
        | "application/yaml"
        | "application/sql"
        | "application/x-ndjson"
        | "application/typescript" => Some(Kind::Text),
        other if other.starts_with("text/") => Some(Kind::Text),
        other if other.ends_with("+json") || other.ends_with("+xml") => Some(Kind::Text),
        _ => None,
    }
}

/// Extensions matter only where the bytes do not speak for themselves: other text is recognised
/// by being UTF-8, so this lists what may come in an older encoding.
fn by_extension(name: &str) -> Option<Kind> {
    let (_, extension) = name.rsplit_once('.')?;
    match extension.to_ascii_lowercase().as_str() {
        "pdf" => Some(Kind::Pdf),
        "docx" | "docm" => Some(Kind::Docx),
        "html" | "htm" | "xhtml" => Some(Kind::Html),
        "txt" | "text" | "md" | "markdown" | "rst" | "adoc" | "tex" | "log" | "csv" | "tsv"
        | "json" | "jsonl" | "ndjson" | "xml" | "svg" | "yaml" | "yml" | "toml" | "ini" | "cfg"
        | "conf" | "properties" | "env" | "srt" | "vtt" | "c" | "h" | "cc" | "cpp" | "hpp"
        | "cs" | "css" | "scss" | "dart" | "diff" | "patch" | "erl" | "ex" | "go" | "gradle"
        | "hs" | "java" | "js" | "jsx" | "mjs" | "kt" | "lua" | "m" | "php" | "pl" | "proto"
        | "ps1" | "py" | "r" | "rb" | "rs" | "scala" | "sh" | "bash" | "bat" | "sql" | "swift"
        | "ts" | "tsx" | "vb" | "vue" => Some(Kind::Text),
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
