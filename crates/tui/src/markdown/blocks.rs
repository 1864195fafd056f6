//! Lays out the blocks of a piece, as Markdown's parser reports them, for a width.

use std::borrow::Cow;

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Tag, TagEnd};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;

use super::inline::Inline;
use super::marks::{self, Marker};
use super::nest::Nest;
use super::table::Table;
use super::{LayoutContext, parser};
use crate::highlight::{Code, Keep};
use crate::text;

/// Lays out one piece.
pub(super) struct BlockLayout<'a> {
    context: &'a LayoutContext<'a>,
    /// Code found when the piece was last laid out, whose colours are reused.
    codes: &'a mut Vec<Code>,
    next_code: usize,
    rows: Vec<Line<'static>>,
    nest: Nest<'a>,
    inline: Inline<'a>,
    /// Nothing has been laid out since the container began.
    is_fresh: bool,
    table: Option<Table>,
    /// The code that is being collected, and its language.
    code: Option<(String, String)>,
    ordinal: Option<u64>,
}

impl<'a> BlockLayout<'a> {
    pub fn new(
        context: &'a LayoutContext<'a>,
        codes: &'a mut Vec<Code>,
        ordinal: Option<u64>,
    ) -> Self {
        Self {
            context,
            codes,
            next_code: 0,
            rows: Vec::new(),
            nest: Nest::new(context.width, context.theme),
            inline: Inline::new(context.theme),
            is_fresh: true,
            table: None,
            code: None,
            ordinal,
        }
    }

    pub fn of(mut self, source: &str) -> Vec<Line<'static>> {
        let shown = settled(source);
        let mut events = parser(&shown).into_offset_iter();
        for (event, range) in events.by_ref() {
            self.event(event, range.start, &shown);
        }
        self.flush();
        let mut definitions: Vec<_> = events.reference_definitions().iter().collect();
        definitions.sort_by_key(|(_, definition)| definition.span.start);
        for (label, definition) in definitions {
            self.begin_block(definition.span.start, &shown, BlankRow::AsWritten);
            let line = format!("[{label}]: {}", definition.dest);
            self.inline.plain(&line, self.context.theme.dim);
            self.flush();
        }
        self.codes.truncate(self.next_code);
        self.rows
    }

    fn event(&mut self, event: Event<'_>, at: usize, source: &str) {
        match event {
            Event::Start(tag) => self.start(tag, at, source),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                None => self.inline.text(&text),
            },
            Event::Code(code) => self.inline.code(&code),
            Event::Html(html) => self.html(&html),
            Event::InlineHtml(html) if is_break(&html) => self.line_break(),
            Event::InlineHtml(html) => self.inline.plain(&html, self.context.theme.dim),
            Event::SoftBreak | Event::HardBreak => self.line_break(),
            Event::Rule => {
                self.begin_block(at, source, BlankRow::Always);
                let cells = self.nest.room();
                self.inline
                    .plain(&"─".repeat(cells), self.context.theme.border);
                self.flush();
            }
            Event::TaskListMarker(is_done) => {
                let (mark, style) = if is_done {
                    ("[x] ", self.context.theme.success)
                } else {
                    ("[ ] ", self.context.theme.dim)
                };
                self.inline.plain(mark, style);
            }
            Event::FootnoteReference(_) | Event::InlineMath(_) | Event::DisplayMath(_) => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>, at: usize, source: &str) {
        let theme = self.context.theme;
        match tag {
            Tag::Paragraph => self.begin_block(at, source, BlankRow::AsWritten),
            Tag::HtmlBlock => self.begin_block(at, source, BlankRow::AsWritten),
            Tag::Heading { level, .. } => {
                self.begin_block(at, source, BlankRow::Always);
                self.inline
                    .begin(heading(level, theme.heading, theme.strong));
            }
            Tag::BlockQuote(_) => {
                self.begin_block(at, source, BlankRow::AsWritten);
                self.nest.begin_quote();
                self.inline.begin(theme.quote);
                self.is_fresh = true;
            }
            Tag::CodeBlock(kind) => {
                self.begin_block(at, source, BlankRow::Always);
                let language = match &kind {
                    CodeBlockKind::Fenced(info) => marks::language(info).to_owned(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
            }
            Tag::List(first) => {
                self.begin_block(at, source, BlankRow::AsWritten);
                let ordinal = self.ordinal.take();
                self.nest
                    .begin_list(first.map(|first| ordinal.unwrap_or(first)));
                self.is_fresh = true;
            }
            Tag::Item => self.begin_item(at, source),
            Tag::Table(alignments) => {
                self.begin_block(at, source, BlankRow::Always);
                self.table = Some(Table::new(alignments));
            }
            Tag::TableHead => self.inline.begin(theme.strong),
            Tag::Emphasis => self.inline.begin(theme.emphasis),
            Tag::Strong => self.inline.begin(theme.strong),
            Tag::Strikethrough => {
                self.inline
                    .begin(Style::new().add_modifier(Modifier::CROSSED_OUT));
            }
            Tag::Link {
                link_type,
                dest_url,
                id,
                ..
            } => self.inline.begin_link(link_type, &dest_url, &id),
            Tag::Image {
                link_type,
                dest_url,
                id,
                ..
            } => self.inline.begin_image(link_type, &dest_url, &id),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) => {
                self.flush();
                self.inline.end();
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.inline.end();
                self.nest.end();
                self.is_fresh = false;
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => {
                self.flush();
                self.nest.end();
                self.is_fresh = false;
            }
            TagEnd::Item => self.end_item(),
            TagEnd::TableCell => {
                let cell = self.inline.take();
                if let Some(table) = &mut self.table {
                    table.cell(cell);
                }
            }
            TagEnd::TableRow => self.end_row(),
            TagEnd::TableHead => {
                self.inline.end();
                self.end_row();
            }
            TagEnd::Table => self.end_table(),
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => self.inline.end(),
            TagEnd::Link => self.inline.end_link(),
            TagEnd::Image => self.inline.end_image(),
            _ => self.flush(),
        }
    }

    fn begin_block(&mut self, at: usize, source: &str, blank_row: BlankRow) {
        self.flush();
        let is_top = self.nest.is_empty();
        let is_apart = match blank_row {
            BlankRow::Always if is_top => true,
            _ => is_after_blank_line(source, at),
        };
        if !self.is_fresh && is_apart {
            self.row(Line::default());
        }
        self.is_fresh = false;
    }

    fn begin_item(&mut self, at: usize, source: &str) {
        self.begin_block(at, source, BlankRow::AsWritten);
        self.nest.begin_item();
        self.is_fresh = true;
    }

    fn end_item(&mut self) {
        self.flush();
        if self.nest.has_mark() {
            self.row(Line::default());
        }
        self.nest.end();
        self.is_fresh = false;
    }

    fn end_row(&mut self) {
        if let Some(table) = &mut self.table {
            table.end_row();
        }
    }

    fn end_table(&mut self) {
        let Some(table) = self.table.take() else {
            return;
        };
        let room = self.nest.room();
        for line in table.lines(room, self.context.theme) {
            self.row(line);
        }
    }

    fn end_code(&mut self) {
        let Some((language, code)) = self.code.take() else {
            return;
        };
        if !language.is_empty() {
            self.inline.plain(&language, self.context.theme.dim);
            self.flush();
        }
        let code = text::sanitise(&code).into_owned();
        let index = self.next_code;
        self.next_code += 1;
        let is_known = self
            .codes
            .get(index)
            .is_some_and(|known| known.begins(&language, &code));
        if !is_known {
            self.codes.truncate(index);
            self.codes
                .push(Code::new(self.context.highlighter, &language, Keep::Text));
        }
        self.codes[index].update(&code);
        for (number, line) in code.lines().enumerate() {
            let (first, rest) = self.nest.prefixes();
            let line = self.codes[index].line(number, line, self.context.theme);
            self.rows
                .extend(text::fold(line, self.context.width, &first, &rest));
        }
    }

    fn html(&mut self, html: &str) {
        self.inline.plain(html.trim_end(), self.context.theme.dim);
        self.line_break();
    }

    fn line_break(&mut self) {
        match self.table {
            Some(_) => self.inline.text(" "),
            None => self.flush(),
        }
    }

    /// Lays out the text collected so far, if any.
    fn flush(&mut self) {
        if self.inline.is_empty() || self.table.is_some() {
            return;
        }
        let line = Line::from(self.inline.take());
        self.row(line);
        self.is_fresh = false;
    }

    /// Appends a line, on as many rows as it takes.
    fn row(&mut self, line: Line<'static>) {
        let (first, rest) = self.nest.prefixes();
        self.rows
            .extend(text::wrap_hanging(line, self.context.width, &first, &rest));
    }
}

/// Decides whether a blank row precedes a block.
#[derive(Clone, Copy)]
enum BlankRow {
    /// If the source has one.
    AsWritten,
    /// Always, except inside a container.
    Always,
}

fn heading(level: HeadingLevel, heading: Style, strong: Style) -> Style {
    match level {
        HeadingLevel::H1 => heading.add_modifier(Modifier::UNDERLINED),
        HeadingLevel::H2 => heading,
        _ => strong,
    }
}

fn is_break(html: &str) -> bool {
    let name = html
        .trim_start_matches('<')
        .trim_end_matches(['>', '/', ' ']);
    name.eq_ignore_ascii_case("br")
}

/// Reports whether the line before this position is blank except for quote marks.
pub(super) fn is_after_blank_line(source: &str, at: usize) -> bool {
    let line_start = source[..at].rfind('\n').map(|end| end + 1);
    let before =
        line_start.map(|start| source[..start - 1].rsplit('\n').next().unwrap_or_default());
    before.is_some_and(|line| line.trim_matches([' ', '>']).is_empty())
}

/// Prevents an incomplete last line from briefly turning the line before it into a heading: a dash
/// more often begins an item.
fn settled(source: &str) -> Cow<'_, str> {
    let Some((before, last)) = source.rsplit_once('\n') else {
        return source.into();
    };
    let above = before.rsplit('\n').next().unwrap_or_default();
    let is_next_item = Marker::of(above).is_some_and(|item| marks::indent(last) < item.text_column);
    if is_next_item || !matches!(last.trim(), "-" | "--" | "=" | "==") {
        return source.into();
    }
    format!(
        "{before}\n{}\\{}",
        " ".repeat(marks::indent(last)),
        last.trim()
    )
    .into()
}
