//! Decoding of text in any encoding.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

use crate::{Document, DocumentError, DocumentKind, kind};

/// The range at the start of a page, in bytes, in which `<meta charset>` is searched for.
const META_WINDOW: usize = 1024;

/// Decodes a text document.
pub(crate) fn decode<'a>(document: &Document<'a>) -> Result<Cow<'a, str>, DocumentError> {
    text(document).ok_or_else(|| DocumentError::Unsupported {
        name: document.name.to_owned(),
        what: "binary data",
    })
}

/// Decodes the bytes; `None` if they are not text.
///
/// A byte order mark decides; then UTF-8, if the bytes are valid; then, only for documents that
/// were declared as text, the declared encoding, or Windows-1252, which contains Latin-1.
pub(crate) fn text<'a>(document: &Document<'a>) -> Option<Cow<'a, str>> {
    let bytes = document.bytes;
    if let Some((encoding, mark)) = Encoding::for_bom(bytes) {
        let (text, _) = encoding.decode_without_bom_handling(&bytes[mark..]);
        return is_text(&text).then_some(text);
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        return is_text(text).then_some(Cow::Borrowed(text));
    }
    let declared = kind::declared(document)?;
    let encoding = declared_encoding(document, declared).filter(|encoding| *encoding != UTF_8);
    let (text, _) = encoding
        .unwrap_or(WINDOWS_1252)
        .decode_without_bom_handling(bytes);
    is_text(&text).then_some(text)
}

/// Reports whether a text has no NUL and few other control characters.
fn is_text(text: &str) -> bool {
    let mut controls = 0;
    for byte in text.bytes() {
        match byte {
            0 => return false,
            b'\t' | b'\n' | b'\r' | 0x0c | 0x1b => {}
            0x01..=0x1f | 0x7f => controls += 1,
            _ => {}
        }
    }
    controls * 20 <= text.len()
}

fn declared_encoding(document: &Document<'_>, declared: DocumentKind) -> Option<&'static Encoding> {
    let from_mime = document.mime.and_then(|mime| charset(mime.as_bytes()));
    let from_page = || {
        let window = &document.bytes[..document.bytes.len().min(META_WINDOW)];
        (declared == DocumentKind::Html)
            .then(|| charset(window))
            .flatten()
    };
    from_mime.or_else(from_page)
}

/// Returns the encoding named after the first `charset=`.
fn charset(text: &[u8]) -> Option<&'static Encoding> {
    const KEY: &[u8] = b"charset=";
    let at = text
        .windows(KEY.len())
        .position(|window| window.eq_ignore_ascii_case(KEY))?;
    let value = &text[at + KEY.len()..];
    let value = value
        .strip_prefix(b"\"")
        .or(value.strip_prefix(b"'"))
        .unwrap_or(value);
    let end = value
        .iter()
        .position(|byte| b"\"'; >/\t\r\n".contains(byte));
    Encoding::for_label(&value[..end.unwrap_or(value.len())])
}
