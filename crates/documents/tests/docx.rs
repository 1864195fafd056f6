//! Text of Word documents.
#![allow(clippy::unwrap_used)]

mod support;

use pinion_documents::{Document, Limits, extract};
use support::{archive, docx, read, word};

fn paragraph(text: &str) -> String {
    format!("<w:p><w:r><w:t>{text}</w:t></w:r></w:p>")
}

#[test]
fn paragraphs_tabs_breaks_and_entities() {
    let body = "<w:p><w:pPr><w:tabs><w:tab w:val=\"left\"/></w:tabs></w:pPr><w:r><w:t xml:space=\"preserve\">a &amp; </w:t></w:r>\
                <w:r><w:t>b</w:t><w:tab/><w:t>c</w:t><w:br/><w:t>&#228;&lt;</w:t></w:r></w:p>\
                <w:p/><w:p><w:r><w:t>next</w:t></w:r></w:p>";
    assert_eq!(
        read("a.docx", &docx(body)).unwrap().text,
        "a & b\tc\nä<\n\nnext\n"
    );
}

#[test]
fn headings_lists_links_tables_and_notes() {
    let item = |level: u8, text: &str| {
        format!(
            "<w:p><w:pPr><w:numPr><w:ilvl w:val=\"{level}\"/><w:numId w:val=\"7\"/></w:numPr></w:pPr>\
             <w:r><w:t>{text}</w:t></w:r></w:p>"
        )
    };
    let body = [
        "<w:p><w:pPr><w:pStyle w:val=\"berschrift1\"/></w:pPr><w:r><w:t>Gears</w:t></w:r></w:p>",
        "<w:p><w:r><w:t>Of </w:t></w:r><w:hyperlink r:id=\"rId9\"><w:r><w:t>pinions</w:t></w:r></w:hyperlink>\
         <w:r><w:footnoteReference w:id=\"2\"/></w:r></w:p>",
        &item(0, "first"),
        &item(1, "inner"),
        &item(0, "second"),
        "<w:p><w:pPr><w:pStyle w:val=\"Punkt\"/></w:pPr><w:r><w:t>styled</w:t></w:r></w:p>",
        "<w:tbl><w:tr><w:tc><w:p><w:r><w:t>Name</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>Teeth</w:t></w:r></w:p></w:tc></w:tr>\
         <w:tr><w:tc><w:p/></w:tc><w:tc><w:p><w:r><w:t>12</w:t></w:r></w:p><w:p><w:r><w:t>or 13</w:t></w:r></w:p></w:tc></w:tr></w:tbl>",
        &paragraph("After."),
    ]
    .concat();
    let bytes = archive(&[
        (
            "_rels/.rels",
            "<Relationships><Relationship Id=\"a\" Type=\"http://x/officeDocument\" Target=\"/word/main2.xml\"/></Relationships>",
        ),
        ("word/main2.xml", &word(&body)),
        (
            "word/_rels/main2.xml.rels",
            "<Relationships><Relationship Id=\"rId9\" Type=\"http://x/hyperlink\" Target=\"https://example.org/?a=1&amp;b=2\"/></Relationships>",
        ),
        (
            "word/styles.xml",
            "<w:styles xmlns:w=\"w\"><w:style w:styleId=\"berschrift1\"><w:name w:val=\"heading 1\"/></w:style>\
             <w:style w:styleId=\"Punkt\"><w:name w:val=\"List Bullet\"/><w:pPr><w:numPr><w:numId w:val=\"8\"/></w:numPr></w:pPr></w:style></w:styles>",
        ),
        (
            "word/numbering.xml",
            "<w:numbering xmlns:w=\"w\"><w:abstractNum w:abstractNumId=\"0\">\
             <w:lvl w:ilvl=\"0\"><w:start w:val=\"4\"/><w:numFmt w:val=\"decimal\"/></w:lvl>\
             <w:lvl w:ilvl=\"1\"><w:numFmt w:val=\"bullet\"/></w:lvl></w:abstractNum>\
             <w:num w:numId=\"7\"><w:abstractNumId w:val=\"0\"/></w:num></w:numbering>",
        ),
        (
            "word/footnotes.xml",
            "<w:footnotes xmlns:w=\"w\"><w:footnote w:id=\"0\" w:type=\"separator\"><w:p><w:r><w:t>line</w:t></w:r></w:p></w:footnote>\
             <w:footnote w:id=\"2\"><w:p><w:r><w:t>Small ones.</w:t></w:r></w:p></w:footnote></w:footnotes>",
        ),
    ]);
    let expected = "\
# Gears

Of pinions (https://example.org/?a=1&b=2)[^2]

4. first
  - inner
5. second
- styled

Name\tTeeth
\t12
or 13

After.

[^2]: Small ones.
";
    assert_eq!(read("a.docx", &bytes).unwrap().text, expected);
}

#[test]
fn deleted_text_field_codes_and_second_copies_are_left_out() {
    let body = "<w:p><w:del><w:r><w:delText>old</w:delText><w:t>old</w:t></w:r></w:del>\
                <w:ins><w:r><w:t>new</w:t></w:r></w:ins>\
                <w:r><w:instrText>PAGE</w:instrText></w:r>\
                <mc:AlternateContent><mc:Choice><w:r><w:t> once</w:t></w:r></mc:Choice>\
                <mc:Fallback><w:r><w:t> twice</w:t></w:r></mc:Fallback></mc:AlternateContent></w:p>";
    assert_eq!(read("a.docx", &docx(body)).unwrap().text, "new once\n");
}

#[test]
fn macros_are_not_looked_at() {
    let text = word(&paragraph("visible"));
    let bytes = archive(&[
        ("word/document.xml", &text),
        ("word/vbaProject.bin", "Sub AutoOpen()"),
    ]);
    assert_eq!(read("a.docm", &bytes).unwrap().text, "visible\n");
}

#[test]
fn entities_a_document_defines_are_not_expanded() {
    let text = word("<w:p><w:r><w:t>a&boom;b</w:t></w:r></w:p>");
    let text = text.replacen(
        "<w:document",
        "<!DOCTYPE x [<!ENTITY boom \"BOOM\">]><w:document",
        1,
    );
    let bytes = archive(&[("word/document.xml", &text)]);
    assert_eq!(read("a.docx", &bytes).unwrap().text, "ab\n");
}

#[test]
fn a_bomb_is_refused() {
    let bytes = docx(&paragraph(&" ".repeat(3 << 20)));
    assert!(bytes.len() < 20_000);
    let limits = Limits {
        unpacked: 1 << 20,
        ..Limits::default()
    };
    let document = Document {
        name: "bomb.docx",
        mime: None,
        bytes: &bytes,
    };
    let error = extract(&document, &limits).unwrap_err();
    assert_eq!(error.code(), "document_too_complex");
    assert!(
        error.to_string().contains("bomb.docx was not read"),
        "{error}"
    );
}

#[test]
fn damage_is_said() {
    let mut torn = docx(&paragraph("text"));
    torn.truncate(torn.len() / 2);
    let error = read("torn.docx", &torn).unwrap_err();
    assert_eq!(error.code(), "document_broken");
    let message = "torn.docx cannot be read as a Word document: it is not a ZIP archive; \
                   save it again, or send its text";
    assert_eq!(error.to_string(), message);

    let bytes = archive(&[("word/document.xml", "<w:document><w:p></w:document>")]);
    assert_eq!(
        read("a.docx", &bytes).unwrap_err().code(),
        "document_broken"
    );
    let bytes = archive(&[("word/other.xml", "<x/>")]);
    let error = read("a.docx", &bytes).unwrap_err();
    assert!(
        error.to_string().contains("its main part is missing"),
        "{error}"
    );
    assert_eq!(
        read("a.docx", &docx("<w:p/>")).unwrap_err().code(),
        "document_no_text"
    );
}

#[test]
fn a_password_is_said() {
    let wrapped = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1EncryptedPackage";
    let error = read("secret.docx", wrapped).unwrap_err();
    assert_eq!(error.code(), "document_encrypted");
    let message = "secret.docx is encrypted; save a copy without a password and send that";
    assert_eq!(error.to_string(), message);
}

#[test]
fn a_part_with_a_password_is_said() {
    let mut bytes = docx(&paragraph("text"));
    for (header, flags) in [(b"PK\x03\x04", 6), (b"PK\x01\x02", 8)] {
        let at = bytes
            .windows(4)
            .position(|window| window == header)
            .unwrap();
        bytes[at + flags] |= 1;
    }
    assert_eq!(
        read("secret.docx", &bytes).unwrap_err().code(),
        "document_encrypted"
    );
}
