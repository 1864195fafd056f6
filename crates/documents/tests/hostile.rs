//! Hostile files: reading them ends, in a result or an error, within the limits.
#![allow(clippy::unwrap_used)]

mod support;

use std::fmt::Write as _;

use pinion_documents::{Document, DocumentError, Extracted, Limits, extract};
use proptest::prelude::*;
use support::{Pdf, archive, deflated, docx, word};

/// Small enough to reach every limit quickly.
const LIMITS: Limits = Limits {
    bytes: 1 << 20,
    text: 10_000,
    unpacked: 1 << 20,
    pages: 50,
};

/// Reads bytes and checks the invariants of every result.
fn read(name: &str, bytes: &[u8]) -> Result<Extracted, DocumentError> {
    let read = extract(
        &Document {
            name,
            mime: None,
            bytes,
        },
        &LIMITS,
    );
    match &read {
        Ok(read) => {
            assert!(read.text.len() <= LIMITS.text);
            assert!(!read.text.trim().is_empty());
        }
        Err(error) => {
            assert!(error.to_string().contains(name));
            // A caught panic is reported with this message; it must not have happened here.
            assert!(!error.to_string().contains("makes no sense"), "{error}");
        }
    }
    read
}

fn too_complex(pdf: &Pdf) {
    assert_eq!(
        read("bomb.pdf", &pdf.bytes()).unwrap_err().code(),
        "document_too_complex"
    );
}

const FONT: &str = "<</Type/Font/Subtype/Type1>>";

#[test]
fn a_content_stream_that_unpacks_to_too_much() {
    too_complex(&Pdf::drawn(&" ".repeat(2 << 20)));
}

#[test]
fn filters_upon_filters() {
    let twice = deflated(&deflated(&vec![b' '; 20 << 20]));
    assert!(twice.len() < 10_000);
    too_complex(&Pdf::with_page("<<>>").stream(4, "/Filter[/FlateDecode/FlateDecode]", &twice));
    let many =
        Pdf::with_page("<<>>").stream(4, &format!("/Filter[{}]", "/A85".repeat(10_000)), b"z");
    assert_eq!(
        read("many.pdf", &many.bytes()).unwrap_err().code(),
        "document_no_text"
    );
}

#[test]
fn many_object_streams_that_each_stay_below_the_limit() {
    let mut pdf = Pdf::with_page("<<>>");
    let packed = vec![b' '; 900 << 10];
    for number in 10..20 {
        pdf = pdf.packed(number, "/Type/ObjStm/N 0/First 0", &packed);
    }
    too_complex(&pdf);
}

#[test]
fn one_large_object_named_by_many_numbers() {
    let mut index = String::new();
    for number in 10..5_000 {
        let _ = write!(index, "{number} 0 ");
    }
    let array = format!("[{}]", "1 ".repeat(100_000));
    let kids: String = (10..5_000).fold(String::new(), |kids, number| {
        kids + &format!("{number} 0 R ")
    });
    let pdf = Pdf::new()
        .object(2, &format!("<</Type/Pages/Kids[{kids}]>>"))
        .packed(
            6,
            &format!("/Type/ObjStm/N 4990/First {}", index.len()),
            format!("{index}{array}").as_bytes(),
        );
    too_complex(&pdf);
}

#[test]
fn headers_before_one_long_string() {
    let mut bytes = b"%PDF-1.4\n".to_vec();
    bytes.extend_from_slice(&b"1 0 obj[(".repeat(100_000));
    assert_eq!(
        read("a.pdf", &bytes).unwrap_err().code(),
        "document_too_complex"
    );
    let mut bytes = b"%PDF-1.4\n".to_vec();
    bytes.extend_from_slice(&b"trailer(".repeat(100_000));
    assert_eq!(
        read("a.pdf", &bytes).unwrap_err().code(),
        "document_too_complex"
    );
    let mut bytes = b"%PDF-1.4\n".to_vec();
    bytes.extend_from_slice(&b"1 0 obj<<>>stream\n".repeat(50_000));
    assert_eq!(read("a.pdf", &bytes).unwrap_err().code(), "document_broken");
}

#[test]
fn forms_that_draw_each_other() {
    let eight = "/X Do ".repeat(8);
    let pdf = Pdf::with_page("<</XObject<</X 6 0 R>>>>")
        .packed(4, "", eight.as_bytes())
        .packed(6, "/Subtype/Form", eight.repeat(8).as_bytes());
    too_complex(&pdf);
}

#[test]
fn what_was_found_before_the_work_ran_out_is_kept() {
    let eight = "/X Do ".repeat(8);
    let pdf = Pdf::with_page("<</Font<</F 5 0 R>>/XObject<</X 6 0 R>>>>")
        .packed(4, "", format!("BT /F 9 Tf (kept) Tj ET {eight}").as_bytes())
        .object(5, FONT)
        .packed(6, "/Subtype/Form", eight.repeat(8).as_bytes());
    let read = read("a.pdf", &pdf.bytes()).unwrap();
    assert!(
        read.truncated && read.text.starts_with("kept\n"),
        "{}",
        read.text
    );
}

#[test]
fn nesting_without_end() {
    for open in ["[", "<<", "<</A", "<</A[", "("] {
        let deep = open.repeat(100_000);
        let pdf = Pdf::new().object(2, &deep);
        assert!(read("deep.pdf", &pdf.bytes()).is_err());
        let _ = read("deep.pdf", &Pdf::drawn(&deep).bytes());
    }
    let deep = docx(&"<w:tbl><w:tr><w:tc><w:p>".repeat(20_000));
    assert!(read("deep.docx", &deep).is_err());
}

#[test]
fn references_in_a_circle() {
    let pdf = Pdf::new().object(2, "3 0 R").object(3, "2 0 R");
    assert_eq!(
        read("a.pdf", &pdf.bytes()).unwrap_err().code(),
        "document_broken"
    );
    let pdf = Pdf::with_page("4 0 R")
        .stream(4, "/Filter 7 0 R/DecodeParms 7 0 R", b"x")
        .object(7, "7 0 R");
    assert_eq!(
        read("a.pdf", &pdf.bytes()).unwrap_err().code(),
        "document_no_text"
    );
}

#[test]
fn lengths_and_numbers_out_of_this_world() {
    for length in [
        "99999999999999999999",
        "-5",
        "1e9",
        "18446744073709551615",
        "4 0 R",
    ] {
        let pdf = Pdf::with_page("<</Font<</F1 5 0 R>>>>")
            .object(
                4,
                &format!("<</Length {length}>>stream\nBT /F1 9 Tf (here) Tj ET\nendstream"),
            )
            .object(
                5,
                "<</Type/Font/FirstChar 4294967295/Widths[1 2 3]/Subtype/Type1>>",
            );
        assert_eq!(
            read("a.pdf", &pdf.bytes()).unwrap().text,
            "here\n",
            "{length}"
        );
    }
    let numbers =
        "BT /F1 99999999999999999999999999999999999999 Tf 1e5 -.-. --5 99999999999 0 Td (x) Tj ET";
    assert_eq!(
        read("a.pdf", &Pdf::drawn(numbers).bytes()).unwrap().text,
        "x\n"
    );
}

#[test]
fn a_table_that_makes_much_text_of_little() {
    let table = format!(
        "1 beginbfrange <00> <ff> <{}> endbfrange",
        "4e2d".repeat(16)
    );
    let pdf = Pdf::with_page("<</Font<</F1 5 0 R>>>>")
        .packed(
            4,
            "",
            format!("BT /F1 9 Tf [({})] TJ ET", "a".repeat(200_000)).as_bytes(),
        )
        .object(5, "<</Type/Font/Subtype/Type1/ToUnicode 6 0 R>>")
        .packed(6, "", table.as_bytes());
    let read = read("a.pdf", &pdf.bytes()).unwrap();
    assert!(read.truncated && read.text.starts_with("中中"));
}

/// One valid file of each kind.
fn good() -> Vec<(&'static str, Vec<u8>)> {
    let table = b"1 begincodespacerange <00><ff> endcodespacerange 1 beginbfrange <41><5a><0391> endbfrange";
    let pdf = Pdf::with_page("<</Font<</F1 5 0 R>>/XObject<</X 8 0 R>>>>")
        .stream(
            4,
            "",
            b"q BT /F1 12 Tf 72 720 Td [(AB) -250 (C)] TJ T* <4142> ' ET Q /X Do BI ID x EI",
        )
        .object(
            5,
            "<</Type/Font/Subtype/Type1/ToUnicode 6 0 R/Encoding<</Differences[65/ff]>>>>",
        )
        .stream(6, "", table)
        .packed(7, "/Type/ObjStm/N 1/First 4", b"9 0 <</Type/Font>>")
        .stream(
            8,
            "/Subtype/Form/Matrix[1 0 0 1 0 0]",
            b"BT /F1 9 Tf (AZ) Tj ET",
        );
    let word = word(
        "<w:p><w:pPr><w:numPr><w:numId w:val=\"1\"/></w:numPr></w:pPr><w:r><w:t>a &amp; b</w:t></w:r></w:p>\
                     <w:tbl><w:tr><w:tc><w:p><w:r><w:t>c</w:t></w:r></w:p></w:tc></w:tr></w:tbl>",
    );
    vec![
        ("good.pdf", pdf.bytes()),
        ("good.docx", archive(&[("word/document.xml", &word), ("word/styles.xml", "<s/>")])),
        ("good.html", b"<h1>a</h1><ul><li>b<ol><li>c</ol></ul><table><tr><td>d<td>&amp;<pre>e</pre><a href=x>f</a>".to_vec()),
        ("good.txt", "text äöü".as_bytes().to_vec()),
    ]
}

#[test]
fn the_good_files_are_good() {
    for (name, bytes) in good() {
        assert!(read(name, &bytes).is_ok(), "{name}");
    }
}

#[test]
fn every_beginning_of_a_good_file_ends() {
    for (name, bytes) in good() {
        for end in 0..bytes.len() {
            let _ = read(name, &bytes[..end]);
        }
    }
}

const WORDS: &[&str] = &[
    "obj",
    "endobj",
    "stream\n",
    "endstream",
    "<<",
    ">>",
    "[",
    "]",
    "(",
    ")",
    "<",
    ">",
    "/",
    "1 0 R",
    "0",
    "-1",
    "99999999999",
    "/Kids",
    "/Filter",
    "/LZWDecode",
    "/A85",
    "/Type/ObjStm",
    "/Length",
    "trailer",
    "%",
    "\\",
    "BT",
    "Tj",
    "TJ",
    "Do",
    "BI",
    "ID",
    "EI",
    "q",
    "Q",
    "Tf",
    "beginbfrange",
    "</w:p>",
    "<w:p>",
    "&#",
    "]]>",
    "\0",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn any_bytes_under_any_name(bytes in prop::collection::vec(any::<u8>(), 0..2_000), kind in 0..5_usize) {
        let name = ["a.pdf", "a.docx", "a.html", "a.txt", "a"][kind];
        let _ = read(name, &bytes);
        let mut magic = [b"%PDF-1.7\n1 0 obj".as_slice(), b"PK\x03\x04", b"<html>", b"\xff\xfe", b""][kind].to_vec();
        magic.extend_from_slice(&bytes);
        let _ = read(name, &magic);
    }

    #[test]
    fn good_files_with_bytes_changed(
        which in 0..4_usize,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
    ) {
        let (name, mut bytes) = good().swap_remove(which);
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let _ = read(name, &bytes);
    }

    #[test]
    fn good_files_with_words_put_in_and_pieces_taken_out(
        which in 0..4_usize,
        changes in prop::collection::vec(
            (any::<prop::sample::Index>(), 0..40_usize, prop::sample::select(WORDS)), 1..8),
    ) {
        let (name, mut bytes) = good().swap_remove(which);
        for (at, removed, word) in changes {
            let at = at.index(bytes.len());
            let end = (at + removed).min(bytes.len());
            bytes.splice(at..end, word.bytes());
            if bytes.is_empty() {
                bytes.push(b' ');
            }
        }
        let _ = read(name, &bytes);
    }

    #[test]
    fn instructions_of_random_words(words in prop::collection::vec(prop::sample::select(WORDS), 0..200)) {
        let _ = read("a.pdf", &Pdf::drawn(&words.join(" ")).bytes());
    }
}
