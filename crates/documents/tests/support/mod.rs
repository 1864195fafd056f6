//! Documents built for tests.
#![allow(dead_code, reason = "each test file uses its part")]

use std::io::{Cursor, Write};

use flate2::Compression;
use flate2::write::ZlibEncoder;
use pinion_documents::{Document, DocumentError, Extracted, Limits, extract};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// Reads bytes by name alone, with the default limits.
pub fn read(name: &str, bytes: &[u8]) -> Result<Extracted, DocumentError> {
    read_as(name, None, bytes)
}

/// Reads bytes with a MIME type.
pub fn read_as(name: &str, mime: Option<&str>, bytes: &[u8]) -> Result<Extracted, DocumentError> {
    extract(&Document { name, mime, bytes }, &Limits::default())
}

/// Compresses bytes with zlib.
pub fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A PDF, object by object; object 1 is the catalogue.
#[derive(Default)]
pub struct Pdf {
    objects: Vec<(u32, Vec<u8>)>,
    trailer: String,
}

impl Pdf {
    pub fn new() -> Self {
        Self::default().object(1, "<</Type/Catalog/Pages 2 0 R>>")
    }

    /// Creates a PDF with one page, drawn by object 4 with these resources.
    pub fn with_page(resources: &str) -> Self {
        Self::new()
            .object(2, "<</Type/Pages/Kids[3 0 R]/Count 1>>")
            .object(
                3,
                &format!("<</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources {resources}>>"),
            )
    }

    /// Creates a PDF with one page in Helvetica, drawn by these instructions.
    pub fn drawn(instructions: &str) -> Self {
        Self::with_page("<</Font<</F1 5 0 R>>>>")
            .packed(4, "", instructions.as_bytes())
            .object(
                5,
                "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
            )
    }

    pub fn object(mut self, number: u32, body: &str) -> Self {
        self.objects.push((number, body.as_bytes().to_vec()));
        self
    }

    pub fn trailer(mut self, entries: &str) -> Self {
        self.trailer = entries.to_owned();
        self
    }

    /// Adds a stream unchanged.
    pub fn stream(mut self, number: u32, entries: &str, data: &[u8]) -> Self {
        let mut body = format!("<<{entries}/Length {}>>\nstream\n", data.len()).into_bytes();
        body.extend_from_slice(data);
        body.extend_from_slice(b"\nendstream");
        self.objects.push((number, body));
        self
    }

    /// Adds a compressed stream.
    pub fn packed(self, number: u32, entries: &str, data: &[u8]) -> Self {
        self.stream(
            number,
            &format!("{entries}/Filter/FlateDecode"),
            &deflated(data),
        )
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n".to_vec();
        let mut offsets = Vec::new();
        for (number, body) in &self.objects {
            offsets.push((*number, bytes.len()));
            bytes.extend_from_slice(format!("{number} 0 obj\n").as_bytes());
            bytes.extend_from_slice(body);
            bytes.extend_from_slice(b"\nendobj\n");
        }
        let table = bytes.len();
        bytes.extend_from_slice(b"xref\n");
        for (number, offset) in offsets {
            bytes.extend_from_slice(format!("{number} 1\n{offset:010} 00000 n \n").as_bytes());
        }
        let end = format!(
            "trailer\n<</Root 1 0 R {}>>\nstartxref\n{table}\n%%EOF\n",
            self.trailer
        );
        bytes.extend_from_slice(end.as_bytes());
        bytes
    }
}

/// Creates an archive of parts.
pub fn archive(parts: &[(&str, &str)]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, text) in parts {
        writer
            .start_file(*name, SimpleFileOptions::default())
            .unwrap();
        writer.write_all(text.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// Returns the main part of a Word document with this body.
pub fn word(body: &str) -> String {
    format!(
        r#"<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"
 xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"
 xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"><w:body>{body}</w:body></w:document>"#
    )
}

/// Creates a Word document with only its main part.
pub fn docx(body: &str) -> Vec<u8> {
    archive(&[("word/document.xml", &word(body))])
}
