//! The text of a Word document, in the order in which it is read.

use std::collections::HashMap;

use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesStart, Event};

use super::formatting::{
    Formatting, ListPosition, MAX_LEVEL, Mark, attribute, number, outline_heading,
};
use crate::blocks::{Blocks, Gap};

/// Writes a part; returns whether it was well-formed to its end.
pub(super) fn write(xml: &str, formatting: &Formatting, blocks: &mut Blocks<'_>) -> bool {
    let mut body = Body::new(formatting, blocks);
    let mut reader = Reader::from_str(xml);
    while !body.blocks.is_full() {
        match reader.read_event() {
            Ok(Event::Start(element)) => body.start(&element, true),
            Ok(Event::Empty(element)) => body.start(&element, false),
            Ok(Event::End(element)) => body.end(element.local_name().as_ref()),
            Ok(Event::Text(text)) => body.text(&text.xml10_content()),
            Ok(Event::CData(text)) => body.text(&text.xml10_content()),
            Ok(Event::GeneralRef(reference)) => {
                if let Ok(Some(character)) = reference.resolve_char_ref() {
                    body.text(character.encode_utf8(&mut [0; 4]));
                } else if let Some(text) = resolve_predefined_entity(&reference.xml10_content()) {
                    body.text(text);
                }
            }
            Ok(Event::Eof) => return body.seen_root,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
    true
}

/// The properties of a paragraph.
#[derive(Debug, Default)]
struct Paragraph {
    style: String,
    heading: Option<usize>,
    position: Option<ListPosition>,
    /// Some of its text was written.
    begun: bool,
}

struct Body<'b, 'o, 'm> {
    blocks: &'b mut Blocks<'o>,
    formatting: &'m Formatting,
    paragraph: Paragraph,
    /// The number of open elements inside the outermost skipped one, including it.
    left_out: usize,
    in_text: bool,
    in_properties: bool,
    /// The last numbers, per list and level.
    numbers: HashMap<String, [Option<u32>; MAX_LEVEL + 1]>,
    after_item: bool,
    /// One entry per open table: the current row has a cell.
    tables: Vec<bool>,
    link: Option<String>,
    note: Option<String>,
    seen_root: bool,
}

impl<'b, 'o, 'm> Body<'b, 'o, 'm> {
    fn new(formatting: &'m Formatting, blocks: &'b mut Blocks<'o>) -> Self {
        Self {
            blocks,
            formatting,
            paragraph: Paragraph::default(),
            left_out: 0,
            in_text: false,
            in_properties: false,
            numbers: HashMap::new(),
            after_item: false,
            tables: Vec::new(),
            link: None,
            note: None,
            seen_root: false,
        }
    }

    fn text(&mut self, text: &str) {
        if self.in_text && self.left_out == 0 {
            self.put(text);
        }
    }

    fn put(&mut self, text: &str) {
        self.begin();
        self.blocks.put(text);
    }

    fn start(&mut self, element: &BytesStart<'_>, has_content: bool) {
        self.seen_root = true;
        let name = element.local_name();
        let name: &str = name.as_ref();
        if self.left_out > 0 || is_left_out(element, name) {
            self.left_out += usize::from(has_content);
            return;
        }
        match name {
            "pPr" => self.in_properties = has_content,
            "pStyle" => self.paragraph.style = attribute(element, "val").unwrap_or_default(),
            "outlineLvl" => self.paragraph.heading = outline_heading(element),
            "numId" => {
                let list = attribute(element, "val").unwrap_or_default();
                self.paragraph.position.get_or_insert_default().list = list;
            }
            "ilvl" => {
                let level = number(element).unwrap_or(0).min(MAX_LEVEL);
                self.paragraph.position.get_or_insert_default().level = level;
            }
            _ if self.in_properties => {}
            "p" => self.paragraph = Paragraph::default(),
            "t" => self.in_text = has_content,
            "tab" | "ptab" => self.put("\t"),
            "br" if attribute(element, "type").as_deref() == Some("page") => {
                self.blocks.gap(Gap::Paragraph);
            }
            "br" | "cr" => self.put("\n"),
            "noBreakHyphen" => self.put("-"),
            "hyperlink" => {
                self.link = attribute(element, "id")
                    .and_then(|id| self.formatting.link(&id))
                    .map(ToOwned::to_owned);
            }
            "footnoteReference" => self.reference(element, ""),
            "endnoteReference" => self.reference(element, "e"),
            "footnote" => self.note = attribute(element, "id"),
            "endnote" => self.note = attribute(element, "id").map(|id| format!("e{id}")),
            "tbl" => {
                self.blocks.gap(Gap::Paragraph);
                self.tables.push(false);
            }
            "tr" => {
                self.blocks.row();
                if let Some(seen) = self.tables.last_mut() {
                    *seen = false;
                }
            }
            "tc" => {
                let seen = self
                    .tables
                    .last_mut()
                    .map(|seen| std::mem::replace(seen, true));
                self.blocks.cell(!seen.unwrap_or(false));
            }
            _ => {}
        }
    }

    fn end(&mut self, name: &str) {
        if self.left_out > 0 {
            self.left_out -= 1;
            return;
        }
        match name {
            "pPr" => self.in_properties = false,
            "t" => self.in_text = false,
            "p" if self.paragraph.begun => self.after_item = self.paragraph.position.is_some(),
            "hyperlink" => {
                if let Some(target) = self.link.take() {
                    self.put(&format!(" ({target})"));
                }
            }
            "tr" => self.blocks.end_row(),
            "tbl" => {
                self.blocks.end_row();
                self.tables.pop();
                self.blocks.gap(Gap::Paragraph);
            }
            _ => {}
        }
    }

    fn reference(&mut self, element: &BytesStart<'_>, prefix: &str) {
        let id = attribute(element, "id").unwrap_or_default();
        self.put(&format!("[^{prefix}{id}]"));
    }

    /// Writes the prefix of a paragraph before its first text.
    fn begin(&mut self) {
        if std::mem::replace(&mut self.paragraph.begun, true) {
            return;
        }
        let style = &self.paragraph.style;
        let position = self
            .paragraph
            .position
            .take()
            .or_else(|| self.formatting.position(style).cloned());
        let heading = self
            .paragraph
            .heading
            .or_else(|| self.formatting.heading(style));
        let note = self.note.take();
        if let Some(level) = heading {
            self.blocks.gap(Gap::Paragraph);
            self.blocks.open(&format!("{} ", "#".repeat(level.min(6))));
        } else if let Some((position, mark)) = position
            .and_then(|position| self.formatting.mark(&position).map(|mark| (position, mark)))
        {
            self.blocks.gap(if self.after_item {
                Gap::Line
            } else {
                Gap::Paragraph
            });
            let indent = "  ".repeat(position.level);
            let mark = self.next_mark(&position, mark);
            self.blocks.open(&format!("{indent}{mark}"));
            self.paragraph.position = Some(position);
        } else {
            let in_cell = !self.tables.is_empty();
            self.blocks
                .gap(if in_cell { Gap::Line } else { Gap::Paragraph });
        }
        if let Some(note) = note {
            self.blocks.open(&format!("[^{note}]: "));
        }
    }

    /// Returns the mark of the next item and restarts the levels below it.
    fn next_mark(&mut self, position: &ListPosition, mark: Mark) -> String {
        let numbers = self.numbers.entry(position.list.clone()).or_default();
        numbers[position.level + 1..].fill(None);
        match mark {
            Mark::Bullet => "- ".to_owned(),
            Mark::Number(start) => {
                let last = &mut numbers[position.level];
                let number = last.map_or(start, |last| last.saturating_add(1));
                *last = Some(number);
                format!("{number}. ")
            }
        }
    }
}

/// Reports whether an element is skipped: deleted and moved text, field codes, alternative copies,
/// and Word's own notes, which draw the line above the others.
fn is_left_out(element: &BytesStart<'_>, name: &str) -> bool {
    match name {
        "del" | "moveFrom" | "delText" | "instrText" | "Fallback" => true,
        "footnote" | "endnote" => attribute(element, "type").is_some_and(|kind| kind != "normal"),
        _ => false,
    }
}
