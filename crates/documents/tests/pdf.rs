//! Text of PDF pages.
#![allow(clippy::unwrap_used)]

mod support;

use pinion_documents::{Document, Limits, extract};
use support::{Pdf, deflated, read};

fn text(pdf: &Pdf) -> String {
    read("a.pdf", &pdf.bytes()).unwrap().text
}

#[test]
fn lines_words_and_paragraphs() {
    let pdf = Pdf::drawn(
        "BT /F1 12 Tf 72 720 Td (Hello) Tj 36 0 Td (wor) Tj [(l) 20 (d) -300 (again)] TJ
         0 -14 Td (next \\(line\\) \\344) Tj 0 -40 Td <4E6577> Tj ET
         q 1 0 0 1 72 500 cm BT /F1 1 Tf 10 0 0 10 0 0 Tm (placed) Tj T* ET Q",
    );
    let expected = "Hello world again\nnext (line) ä\n\nNew\n\nplaced\n";
    assert_eq!(text(&pdf), expected);
}

#[test]
fn operators_that_move_and_show() {
    let pdf = Pdf::drawn(
        "BT /F1 10 Tf 12 TL 50 700 Td (one) Tj T* (two) Tj (three) ' 1 0 (four) \" 0 -12 TD (five) Tj ET",
    );
    assert_eq!(text(&pdf), "one\ntwo\nthree\nfour\nfive\n");
}

#[test]
fn codes_go_through_the_fonts_own_table() {
    let table = "/CIDInit/ProcSet findresource begin begincmap
        1 begincodespacerange <0000><FFFF> endcodespacerange
        2 beginbfchar <0001><0048> <0002><FB01> endbfchar
        1 beginbfrange <0003><0005><4E2D> endbfrange endcmap";
    let pdf = Pdf::with_page("<</Font<</F1 5 0 R>>>>")
        .packed(4, "", b"BT /F1 12 Tf 72 720 Td <0001000200030004> Tj ET")
        .object(5, "<</Type/Font/Subtype/Type0/Encoding/Identity-H/DescendantFonts[6 0 R]/ToUnicode 7 0 R>>")
        .object(6, "<</Type/Font/Subtype/CIDFontType2/DW 1000/W[1[600 500] 3 5 1000]>>")
        .packed(7, "", table.as_bytes());
    assert_eq!(text(&pdf), "Hfi中丮\n");
}

#[test]
fn simple_fonts_follow_their_encoding_and_its_differences() {
    let pdf = Pdf::with_page("<</Font<</F1 5 0 R/F2 6 0 R/F3 8 0 R>>>>")
        .packed(4, "", b"BT /F1 12 Tf 72 720 Td (\x01\x02A) Tj /F2 12 Tf (\x8a\xae) Tj /F3 12 Tf <93FA967B> Tj ET")
        .object(5, "<</Type/Font/Subtype/Type1/Encoding 7 0 R/FirstChar 0/Widths[0 500 500]>>")
        .object(6, "<</Type/Font/Subtype/TrueType/Encoding/MacRomanEncoding>>")
        .object(7, "<</Type/Encoding/Differences[1/ffi/eacute]>>")
        .object(8, "<</Type/Font/Subtype/Type0/Encoding/90ms-RKSJ-H/DescendantFonts[]>>");
    assert_eq!(text(&pdf), "ffiéAäÆ日本\n");
}

#[test]
fn objects_in_object_streams_are_found() {
    let members = [
        "<</Type/Catalog/Pages 2 0 R>>",
        "<</Type/Pages/Kids[3 0 R]/Resources<</Font<</F1 5 0 R>>>>>>",
        "<</Type/Page/Parent 2 0 R/Contents[4 0 R]>>",
        "<</Type/Font/Subtype/Type1>>",
    ];
    let (mut index, mut body) = (String::new(), String::new());
    for (number, member) in [1, 2, 3, 5].iter().zip(members) {
        index.push_str(&format!("{number} {} ", body.len()));
        body.push_str(member);
        body.push(' ');
    }
    let packed = format!("{index}{body}");
    let pdf = Pdf::default()
        .packed(
            9,
            &format!("/Type/ObjStm/N 4/First {}", index.len()),
            packed.as_bytes(),
        )
        .packed(4, "", b"BT /F1 9 Tf (inside) Tj ET");
    assert_eq!(text(&pdf), "inside\n");
}

#[test]
fn packed_in_other_ways() {
    let hex: String = deflated(b"BT /F1 9 Tf (twice) Tj ET")
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let pdf = Pdf::with_page("<</Font<</F1 5 0 R>>>>")
        .stream(
            4,
            "/Filter[/ASCIIHexDecode/Fl#61teDecode]",
            format!("{hex}>").as_bytes(),
        )
        .object(5, "<</Type/Font/Subtype/Type1>>");
    assert_eq!(text(&pdf), "twice\n");
}

#[test]
fn forms_images_and_replacement_text() {
    let pdf = Pdf::with_page("<</Font<</F1 5 0 R>>/XObject<</X 6 0 R/I 7 0 R>>>>")
        .packed(
            4,
            "",
            b"BI /W 1 /H 1 ID \x00(no) Tj EI /I Do BT /F1 9 Tf 10 90 Td /Span<</ActualText(\xfe\xff\x00\xe4)>>BDC (xy) Tj EMC ET /X Do",
        )
        .object(5, "<</Type/Font/Subtype/Type1>>")
        .packed(6, "/Subtype/Form/Matrix[1 0 0 1 10 50]", b"BT /F1 9 Tf (in a form) Tj ET /X Do")
        .stream(7, "/Subtype/Image/Filter/DCTDecode", b"\xff\xd8BT (no) Tj");
    assert_eq!(
        text(&pdf),
        "ä\n\nin a form\n\nin a form\n\nin a form\n\nin a form\n\nin a form\n\nin a form\n\nin a form\n\nin a form\n"
    );
}

fn three_pages() -> Pdf {
    let mut pdf = Pdf::new()
        .object(
            2,
            "<</Type/Pages/Kids[10 0 R 3 0 R]/Resources<</Font<</F1 5 0 R>>>>>>",
        )
        .object(3, "<</Type/Pages/Kids[11 0 R 2 0 R 12 0 R]>>")
        .object(5, "<</Type/Font/Subtype/Type1>>");
    for page in 0..3 {
        let instructions = format!("BT /F1 9 Tf (page {page}) Tj ET");
        pdf = pdf
            .object(
                10 + page,
                &format!("<</Type/Page/Contents {} 0 R>>", 20 + page),
            )
            .packed(20 + page, "", instructions.as_bytes());
    }
    pdf
}

#[test]
fn pages_come_in_order_and_a_loop_in_their_tree_ends() {
    let read = read("a.pdf", &three_pages().bytes()).unwrap();
    assert_eq!(
        read.text,
        "[Page 1]\npage 0\n\n[Page 2]\npage 1\n\n[Page 3]\npage 2\n"
    );
    assert_eq!((read.pages, read.truncated), (Some(3), false));
}

#[test]
fn more_pages_than_allowed_are_left_out_with_a_note() {
    let limits = Limits {
        pages: 2,
        ..Limits::default()
    };
    let bytes = three_pages().bytes();
    let document = Document {
        name: "a.pdf",
        mime: None,
        bytes: &bytes,
    };
    let read = extract(&document, &limits).unwrap();
    assert!(read.truncated && read.text.contains("page 1") && !read.text.contains("page 2"));
    assert!(
        read.text.ends_with("left out because of its length.]\n"),
        "{}",
        read.text
    );
    assert_eq!(read.pages, Some(3));
}

#[test]
fn a_file_saved_again_shows_its_last_state() {
    let mut bytes = Pdf::drawn("BT /F1 9 Tf (old) Tj ET").bytes();
    bytes.extend_from_slice(
        b"4 0 obj<</Length 99 0 R>>stream\r\nBT /F1 9 Tf (new) Tj ET\r\nendstream endobj",
    );
    assert_eq!(read("a.pdf", &bytes).unwrap().text, "new\n");
}

#[test]
fn a_wrong_table_of_contents_and_a_torn_end_do_no_harm() {
    let whole = Pdf::drawn("BT /F1 9 Tf (still here) Tj ET").bytes();
    let table = whole
        .windows(4)
        .position(|window| window == b"xref")
        .unwrap();
    let mut lying = whole.clone();
    lying[table..]
        .iter_mut()
        .filter(|byte| byte.is_ascii_digit())
        .for_each(|byte| *byte = b'9');
    let end = lying.len() - 1;
    lying.splice(end.., b"trailer<</Root 1 0 R>>".iter().copied());
    assert_eq!(read("a.pdf", &lying).unwrap().text, "still here\n");
    assert_eq!(read("a.pdf", &whole[..table]).unwrap().text, "still here\n");
}

#[test]
fn a_scan_is_said() {
    let pdf = Pdf::with_page("<</XObject<</I 5 0 R>>>>")
        .packed(4, "", b"q 600 0 0 800 0 0 cm /I Do Q")
        .stream(5, "/Subtype/Image/Filter/DCTDecode", b"\xff\xd8\xff");
    let error = read("scan.pdf", &pdf.bytes()).unwrap_err();
    assert_eq!(error.code(), "document_no_text");
    let message = "scan.pdf holds no text that can be read, perhaps only pictures of pages; \
                   run text recognition on it, or send the pages as images";
    assert_eq!(error.to_string(), message);
}

#[test]
fn a_password_is_said() {
    let pdf = Pdf::drawn("BT /F1 9 Tf (x) Tj ET").trailer("/Encrypt 9 0 R");
    let error = read("secret.pdf", &pdf.bytes()).unwrap_err();
    assert_eq!(error.code(), "document_encrypted");
}

#[test]
fn what_is_no_pdf_is_said() {
    let error = read("no.pdf", b"%PDF-1.7\nnothing").unwrap_err();
    assert_eq!(error.code(), "document_broken");
    assert!(
        error.to_string().contains("as a PDF: it has no pages"),
        "{error}"
    );
    assert_eq!(
        read("no.pdf", b"just text").unwrap_err().code(),
        "document_broken"
    );
}
