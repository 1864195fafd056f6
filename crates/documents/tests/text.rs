//! Plain text and its encodings, and files that are not documents.
#![allow(clippy::unwrap_used)]

mod support;

use pinion_documents::{Document, DocumentError, DocumentKind, Limits, extract};
use support::{archive, docx, read, read_as};

#[test]
fn text_comes_out_as_it_went_in() {
    for name in [
        "a.md",
        "main.rs",
        "table.csv",
        "data.json",
        "Makefile",
        "strange.xyz",
    ] {
        let read = read(name, "first\r\n\tzweite Zeile äöü €\n".as_bytes()).unwrap();
        assert_eq!(read.text, "first\r\n\tzweite Zeile äöü €\n");
        assert_eq!(
            (read.kind, read.truncated, read.pages),
            (DocumentKind::Text, false, None)
        );
    }
}

#[test]
fn a_byte_order_mark_decides_the_encoding_and_goes() {
    let little: Vec<u8> = "\u{feff}Größe €"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let big: Vec<u8> = "\u{feff}Größe €"
        .encode_utf16()
        .flat_map(u16::to_be_bytes)
        .collect();
    assert_eq!(read("unknown", &little).unwrap().text, "Größe €");
    assert_eq!(read("unknown", &big).unwrap().text, "Größe €");
    assert_eq!(
        read("unknown", "\u{feff}Größe".as_bytes()).unwrap().text,
        "Größe"
    );
}

#[test]
fn older_encodings_are_read_where_text_was_declared() {
    let latin = b"Gr\xf6\xdfe \x80";
    assert_eq!(read("notes.txt", latin).unwrap().text, "Größe €");
    assert_eq!(
        read_as("notes", Some("text/plain"), latin).unwrap().text,
        "Größe €"
    );
    let japanese = b"\x93\xfa\x96\x7b";
    let mime = Some("text/plain; charset=\"Shift_JIS\"");
    assert_eq!(read_as("notes", mime, japanese).unwrap().text, "日本");
    assert_eq!(
        read("notes", latin).unwrap_err().code(),
        "document_unsupported"
    );
}

#[test]
fn the_first_bytes_go_before_the_type_and_the_type_before_the_name() {
    let word = docx("<w:p><w:r><w:t>in Word</w:t></w:r></w:p>");
    let by_bytes = read_as("page.html", Some("text/plain"), &word).unwrap();
    assert_eq!(
        (by_bytes.kind, by_bytes.text.as_str()),
        (DocumentKind::Docx, "in Word\n")
    );
    let page = b"<p>one</p>";
    assert_eq!(
        read_as("page.html", Some("text/plain"), page).unwrap().text,
        "<p>one</p>"
    );
    assert_eq!(
        read_as("page.txt", Some("Text/HTML; charset=utf-8"), page)
            .unwrap()
            .text,
        "one\n"
    );
    let vague = read_as("page.htm", Some("application/octet-stream"), page).unwrap();
    assert_eq!(vague.kind, DocumentKind::Html);
    assert_eq!(
        read("page", b"\n<!DOCTYPE html><p>one").unwrap().text,
        "one\n"
    );
}

#[test]
fn what_cannot_be_read_is_named() {
    let cases: &[(&str, &[u8], &str)] = &[
        ("a.png", b"\x89PNG\r\n\x1a\n\0\0", "an image"),
        (
            "a.doc",
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0\0",
            "an Office file from before 2007",
        ),
        ("a.rtf", b"{\\rtf1 text}", "an RTF file"),
        ("a.gz", b"\x1f\x8b\x08\0", "a compressed archive"),
        ("a.bin", b"\x00\x01\x02\xff\xfe\xfd", "binary data"),
        ("a.txt", b"text with \0 in it", "binary data"),
        (
            "a.xlsx",
            &archive(&[("xl/workbook.xml", "<x/>")]),
            "an Excel workbook",
        ),
        (
            "a.pptx",
            &archive(&[("ppt/presentation.xml", "<x/>")]),
            "a PowerPoint presentation",
        ),
        (
            "a.odt",
            &archive(&[("content.xml", "<x/>")]),
            "an OpenDocument file",
        ),
        (
            "a.zip",
            &archive(&[("readme.txt", "hello")]),
            "a ZIP archive",
        ),
    ];
    for (name, bytes, what) in cases {
        let error = read(name, bytes).unwrap_err();
        assert_eq!(error.code(), "document_unsupported", "{name}");
        let start = format!("{name} is {what}, not a kind of document");
        assert!(error.to_string().starts_with(&start), "{error}");
    }
}

#[test]
fn too_many_bytes_are_refused_before_anything_is_read() {
    let limits = Limits {
        bytes: 10,
        ..Limits::default()
    };
    let document = Document {
        name: "long.txt",
        mime: None,
        bytes: b"eleven byte",
    };
    let error = extract(&document, &limits).unwrap_err();
    let expected = DocumentError::TooLarge {
        name: "long.txt".into(),
        size: 11,
        limit: 10,
    };
    assert_eq!(error, expected);
    assert_eq!(error.code(), "document_too_large");
    assert_eq!(
        error.to_string(),
        "long.txt is too large: 11 bytes, at most 10 are read; send a part of it or its text"
    );
}

#[test]
fn long_text_is_cut_and_says_so() {
    let limits = Limits {
        text: 200,
        ..Limits::default()
    };
    let long = "ä".repeat(1000);
    let document = Document {
        name: "long.txt",
        mime: None,
        bytes: long.as_bytes(),
    };
    let read = extract(&document, &limits).unwrap();
    assert!(read.truncated);
    assert!(read.text.len() <= 200);
    assert!(read.text.starts_with("ääää"));
    assert!(
        read.text
            .ends_with("the rest was left out because of its length.]\n"),
        "{}",
        read.text
    );
}

#[test]
fn nothing_is_an_error() {
    for bytes in [b"".as_slice(), b" \n\t"] {
        let error = read("empty.txt", bytes).unwrap_err();
        assert_eq!(error.code(), "document_no_text");
        assert_eq!(
            error.to_string(),
            "empty.txt holds no text; there is nothing to send"
        );
    }
}
