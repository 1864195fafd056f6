//! The visible text of a web page, with Markdown's marks for headings and lists.

mod entities;
mod tokens;

use crate::blocks::{Blocks, Gap};
use crate::output::Output;
use tokens::{Tag, Token, Tokens};

/// The deepest list level that is indented further.
const MAX_INDENT: usize = 12;

/// Writes the visible text of a page.
pub(crate) fn write(text: &str, output: &mut Output) {
    let mut page = Page::new(output);
    for token in Tokens::new(text) {
        match token {
            Token::Text(text) => page.text(&text),
            Token::Start(tag) => page.start(&tag),
            Token::End(name) => page.end(&name),
        }
        if page.blocks.is_full() {
            break;
        }
    }
    page.blocks.finish();
}

/// An element whose content is hidden until as many elements of its name are closed as opened.
struct Hidden {
    name: String,
    depth: usize,
}

/// A link whose text is being written.
struct Link {
    target: String,
    text: String,
}

struct Page<'o> {
    blocks: Blocks<'o>,
    hidden: Option<Hidden>,
    /// One entry per open list: the next number if it is numbered.
    lists: Vec<Option<u32>>,
    /// One entry per open table: the current row has a cell.
    tables: Vec<bool>,
    preformatted: usize,
    link: Option<Link>,
    space: bool,
}

impl<'o> Page<'o> {
    fn new(output: &'o mut Output) -> Self {
        Self {
            blocks: Blocks::new(output),
            hidden: None,
            lists: Vec::new(),
            tables: Vec::new(),
            preformatted: 0,
            link: None,
            space: false,
        }
    }

    fn text(&mut self, text: &str) {
        if self.hidden.is_some() {
            return;
        }
        if self.preformatted > 0 {
            self.blocks.put(text);
            return;
        }
        for (at, word) in text.split([' ', '\t', '\n', '\r', '\x0c']).enumerate() {
            self.space |= at > 0;
            if !word.is_empty() {
                self.word(word);
            }
        }
    }

    fn word(&mut self, word: &str) {
        if std::mem::take(&mut self.space) && !self.blocks.at_line_start() {
            self.blocks.put(" ");
        }
        self.blocks.put(word);
        if let Some(link) = &mut self.link
            && link.text.len() <= link.target.len()
        {
            link.text.push_str(word);
        }
    }

    fn gap(&mut self, gap: Gap) {
        self.space = false;
        self.blocks.gap(gap);
    }

    /// Starts a block: paragraphs are separated, except in lists.
    fn block(&mut self) {
        self.gap(if self.lists.is_empty() {
            Gap::Paragraph
        } else {
            Gap::Line
        });
    }

    fn start(&mut self, tag: &Tag) {
        let name = tag.name.as_str();
        if let Some(hidden) = &mut self.hidden {
            if hidden.name == name && !tag.self_closing {
                hidden.depth += 1;
            }
        } else if is_hidden(tag) {
            self.hidden = Some(Hidden {
                name: name.to_owned(),
                depth: 1,
            });
        } else {
            self.open(name, tag);
        }
    }

    fn open(&mut self, name: &str, tag: &Tag) {
        match name {
            "br" => {
                self.space = false;
                self.blocks.put("\n");
            }
            "hr" => {
                self.gap(Gap::Paragraph);
                self.blocks.put("---");
                self.gap(Gap::Paragraph);
            }
            "img" => {
                if let Some(alternative) = tag.attribute("alt") {
                    self.text(alternative);
                }
            }
            "a" => {
                self.close_link();
                self.link = tag
                    .attribute("href")
                    .map(str::trim)
                    .filter(|target| leads_somewhere(target))
                    .map(|target| Link {
                        target: target.to_owned(),
                        text: String::new(),
                    });
            }
            "ul" | "ol" | "menu" | "dl" => {
                let nested = !self.lists.is_empty();
                self.gap(if nested { Gap::Line } else { Gap::Paragraph });
                let start = tag.attribute("start").and_then(|start| start.parse().ok());
                self.lists.push((name == "ol").then(|| start.unwrap_or(1)));
            }
            "li" => self.item(),
            "dt" | "dd" | "option" | "summary" | "figcaption" | "caption" | "legend" => {
                self.gap(Gap::Line);
            }
            "table" => {
                self.gap(Gap::Paragraph);
                self.tables.push(false);
            }
            "tr" => {
                self.space = false;
                self.blocks.row();
                self.set_cell(false);
            }
            "td" | "th" => {
                self.space = false;
                let first = !self.tables.last().copied().unwrap_or(false);
                self.blocks.cell(first);
                self.set_cell(true);
            }
            "pre" | "textarea" | "xmp" => {
                self.gap(Gap::Paragraph);
                self.preformatted += 1;
            }
            _ => {
                if let Some(level) = heading_level(name) {
                    self.gap(Gap::Paragraph);
                    self.blocks.open(&format!("{} ", "#".repeat(level)));
                } else if is_block(name) {
                    self.block();
                }
            }
        }
    }

    fn end(&mut self, name: &str) {
        if let Some(hidden) = &mut self.hidden {
            if hidden.name == name {
                hidden.depth -= 1;
                if hidden.depth == 0 {
                    self.hidden = None;
                }
            }
            return;
        }
        match name {
            "a" => self.close_link(),
            "ul" | "ol" | "menu" | "dl" => {
                self.blocks.close();
                self.lists.pop();
                self.gap(if self.lists.is_empty() {
                    Gap::Paragraph
                } else {
                    Gap::Line
                });
            }
            "li" => {
                self.blocks.close();
                self.gap(Gap::Line);
            }
            "tr" => {
                self.space = false;
                self.blocks.end_row();
            }
            "table" => {
                self.space = false;
                self.blocks.end_row();
                self.tables.pop();
                self.gap(Gap::Paragraph);
            }
            "pre" | "textarea" | "xmp" => {
                self.preformatted = self.preformatted.saturating_sub(1);
                self.gap(Gap::Paragraph);
            }
            _ if heading_level(name).is_some() => {
                self.blocks.close();
                self.gap(Gap::Paragraph);
            }
            _ if is_block(name) => self.block(),
            _ => {}
        }
    }

    fn item(&mut self) {
        self.blocks.close();
        self.gap(Gap::Line);
        let depth = self.lists.len().saturating_sub(1).min(MAX_INDENT);
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                let mark = format!("{number}. ");
                *number = number.saturating_add(1);
                mark
            }
            _ => "- ".to_owned(),
        };
        self.blocks.open(&format!("{}{mark}", "  ".repeat(depth)));
    }

    fn set_cell(&mut self, seen: bool) {
        match self.tables.last_mut() {
            Some(cell) => *cell = seen,
            None => self.tables.push(seen),
        }
    }

    /// Ends a link: its target follows its text unless they are equal.
    fn close_link(&mut self) {
        if let Some(link) = self.link.take()
            && !link.text.is_empty()
            && link.text != link.target
        {
            self.blocks.put(&format!(" ({})", link.target));
        }
    }
}

fn leads_somewhere(target: &str) -> bool {
    let scheme = |name: &str| {
        target
            .get(..name.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(name))
    };
    !target.is_empty() && !target.starts_with('#') && !scheme("javascript:") && !scheme("data:")
}

/// Reports whether an element and its content are hidden. Elements that often lack their end tag
/// are shown even if they are marked as hidden, because hiding them could hide the rest of the
/// page.
fn is_hidden(tag: &Tag) -> bool {
    match tag.name.as_str() {
        "script" | "style" | "title" | "template" | "iframe" | "noembed" | "noframes"
        | "object" | "svg" | "math" | "audio" | "video" | "canvas" | "datalist" => {
            !tag.self_closing
        }
        "div" | "span" | "section" | "nav" | "aside" | "article" | "ul" | "ol" | "table"
        | "form" | "dialog" | "main" | "header" | "footer" | "a" | "button" | "label" => {
            tag.attribute("hidden").is_some()
                || tag.attribute("style").is_some_and(|style| {
                    let style: String = style.split_whitespace().collect();
                    style.to_ascii_lowercase().contains("display:none")
                })
        }
        _ => false,
    }
}

fn heading_level(name: &str) -> Option<usize> {
    match name.as_bytes() {
        [b'h', level @ b'1'..=b'6'] => Some(usize::from(level - b'0')),
        _ => None,
    }
}

fn is_block(name: &str) -> bool {
    matches!(
        name,
        "p" | "div"
            | "section"
            | "article"
            | "header"
            | "footer"
            | "main"
            | "nav"
            | "aside"
            | "address"
            | "blockquote"
            | "body"
            | "center"
            | "details"
            | "dialog"
            | "fieldset"
            | "figure"
            | "form"
    )
}
