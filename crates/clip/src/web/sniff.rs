//! Detects the media type of a file from its first bytes, for names without a known extension.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The number of bytes that are examined.
const SNIFFED_BYTES: usize = 512;
const TEXT: &str = "text/plain; charset=utf-8";
const HTML: &str = "text/html; charset=utf-8";

/// First bytes that identify a type.
const SIGNATURES: &[(&[u8], &str)] = &[
    (b"%PDF-", "application/pdf"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"\x1f\x8b\x08", "application/gzip"),
    (b"PK\x03\x04", "application/zip"),
    (b"\0asm", "application/wasm"),
    (b"OggS", "audio/ogg"),
    (b"wOFF", "font/woff"),
    (b"wOF2", "font/woff2"),
    (b"\xef\xbb\xbf", TEXT),
    (b"\xfe\xff", "text/plain; charset=utf-16be"),
    (b"\xff\xfe", "text/plain; charset=utf-16le"),
];

pub(super) fn file(file: &File) -> io::Result<&'static str> {
    let mut start = [0; SNIFFED_BYTES];
    let mut filled = 0;
    while filled < SNIFFED_BYTES {
        match file.read_at(&mut start[filled..], filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(bytes(&start[..filled]))
}

fn bytes(start: &[u8]) -> &'static str {
    if let Some((_, kind)) = SIGNATURES.iter().find(|(mark, _)| start.starts_with(mark)) {
        return kind;
    }
    if start.starts_with(b"RIFF") && start.get(8..12) == Some(b"WEBP") {
        return "image/webp";
    }
    let words = start.trim_ascii_start();
    for mark in [
        &b"<!doctype html"[..],
        b"<html",
        b"<head",
        b"<body",
        b"<!--",
    ] {
        let begins = words.get(..mark.len());
        if begins.is_some_and(|begins| begins.eq_ignore_ascii_case(mark)) {
            return HTML;
        }
    }
    if words.starts_with(b"<?xml") {
        return "text/xml; charset=utf-8";
    }
    // The last character may be cut at the end of the examined bytes.
    let is_text = match std::str::from_utf8(start) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none() && start.len() == SNIFFED_BYTES,
    };
    let is_binary = |byte: &u8| matches!(byte, 0..=8 | 11 | 14..=26 | 28..=31);
    if is_text && !start.iter().any(is_binary) {
        TEXT
    } else {
        "application/octet-stream"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_tell_the_type() {
        for (start, kind) in [
            (&b""[..], TEXT),
            (b"hello\n", TEXT),
            ("h\u{e9}llo".as_bytes(), TEXT),
            (b"\n <!DOCTYPE HTML><p>", HTML),
            (b"<html lang=en>", HTML),
            (b"<?xml version='1.0'?>", "text/xml; charset=utf-8"),
            (b"\x89PNG\r\n\x1a\n....", "image/png"),
            (b"RIFF\0\0\0\0WEBPVP8", "image/webp"),
            (b"\0asm\x01\0\0\0", "application/wasm"),
            (b"a\0b", "application/octet-stream"),
            (b"\xff\xd8\xff\xe0", "image/jpeg"),
            (b"caf\xe9", "application/octet-stream"),
        ] {
            assert_eq!(bytes(start), kind, "{start:?}");
        }
        let mut cut = vec![b'a'; SNIFFED_BYTES - 1];
        cut.push(0xc3);
        assert_eq!(bytes(&cut), TEXT);
    }
}
