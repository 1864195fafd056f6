//! Blocks as rows: what Markdown's parser tells of a piece, laid out for a width.

use std::borrow::Cow;

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Tag, TagEnd};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::inline::Inline;
use super::marks::{self, Marker};
use super::table::Table;
use super::{Screen, parser};
use crate::highlight::{Code, Keep};
use crate::text;

/// Lays out one piece.
pub(super) struct Layout<'a> {
    screen: &'a Screen<'a>,
    /// Codes found when the piece was laid out before, to go on with.
    codes: &'a mut Vec<Code>,
    next_code: usize,
    rows: Vec<Line<'static>>,
    /// What the text is inside of, the outermost first.
    containers: Vec<Container>,
    inline: Inline<'a>,
    /// Nothing has been laid out since a container began.
    is_fresh: bool,
    table: Option<Table>,
    /// The code that is being gathered, and its language.
    code: Option<(String, String)>,
    ordinal: Option<u64>,
}

enum Container {
    Quote,
    /// A list and the number of its next item.
    List(Option<u64>),
    /// An item: its mark, until that is shown, and the columns it takes.
    Item {
        mark: Option<String>,
        columns: usize,
    },
}

impl<'a> Layout<'a> {
    pub fn new(screen: &'a Screen<'a>, codes: &'a mut Vec<Code>, ordinal: Option<u64>) -> Self {
        Self {
            screen,
            codes,
            next_code: 0,
            rows: Vec::new(),
            containers: Vec::new(),
            inline: Inline::new(screen.theme),
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
            self.begin_block(definition.span.start, &shown, Apart::AsWritten);
            let line = format!("[{label}]: {}", definition.dest);
            self.inline.plain(&line, self.screen.theme.dim);
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
            Event::InlineHtml(html) => self.inline.plain(&html, self.screen.theme.dim),
            Event::SoftBreak | Event::HardBreak => self.line_break(),
            Event::Rule => {
                self.begin_block(at, source, Apart::Always);
                let cells = self.room();
                self.inline
                    .plain(&"─".repeat(cells), self.screen.theme.border);
                self.flush();
            }
            Event::TaskListMarker(is_done) => {
                let (mark, style) = match is_done {
                    true => ("[x] ", self.screen.theme.success),
                    false => ("[ ] ", self.screen.theme.dim),
                };
                self.inline.plain(mark, style);
            }
            Event::FootnoteReference(_) | Event::InlineMath(_) | Event::DisplayMath(_) => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>, at: usize, source: &str) {
        let theme = self.screen.theme;
        match tag {
            Tag::Paragraph => self.begin_block(at, source, Apart::AsWritten),
            Tag::HtmlBlock => self.begin_block(at, source, Apart::AsWritten),
            Tag::Heading { level, .. } => {
                self.begin_block(at, source, Apart::Always);
                self.inline
                    .begin(heading(level, theme.heading, theme.strong));
            }
            Tag::BlockQuote(_) => {
                self.begin_block(at, source, Apart::AsWritten);
                self.containers.push(Container::Quote);
                self.inline.begin(theme.quote);
                self.is_fresh = true;
            }
            Tag::CodeBlock(kind) => {
                self.begin_block(at, source, Apart::Always);
                let language = match &kind {
                    CodeBlockKind::Fenced(info) => marks::language(info).to_owned(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
            }
            Tag::List(first) => {
                self.begin_block(at, source, Apart::AsWritten);
                let ordinal = self.ordinal.take();
                self.containers
                    .push(Container::List(first.map(|first| ordinal.unwrap_or(first))));
                self.is_fresh = true;
            }
            Tag::Item => self.begin_item(at, source),
            Tag::Table(alignments) => {
                self.begin_block(at, source, Apart::Always);
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
                self.containers.pop();
                self.is_fresh = false;
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => {
                self.flush();
                self.containers.pop();
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

    fn begin_block(&mut self, at: usize, source: &str, apart: Apart) {
        self.flush();
        let is_top = self.containers.is_empty();
        let is_apart = match apart {
            Apart::Always if is_top => true,
            _ => is_after_blank_line(source, at),
        };
        if !self.is_fresh && is_apart {
            let (first, _) = self.prefixes();
            self.rows.extend(text::wrap_hanging(
                Line::default(),
                self.screen.width,
                &first,
                &[],
            ));
        }
        self.is_fresh = false;
    }

    fn begin_item(&mut self, at: usize, source: &str) {
        self.begin_block(at, source, Apart::AsWritten);
        let mark = match self.containers.last_mut() {
            Some(Container::List(Some(number))) => {
                let mark = format!("{number}. ");
                *number = number.saturating_add(1);
                mark
            }
            _ => "- ".to_owned(),
        };
        self.containers.push(Container::Item {
            columns: mark.len(),
            mark: Some(mark),
        });
        self.is_fresh = true;
    }

    fn end_item(&mut self) {
        self.flush();
        if let Some(Container::Item { mark: Some(_), .. }) = self.containers.last() {
            let (first, _) = self.prefixes();
            self.rows.extend(text::wrap_hanging(
                Line::default(),
                self.screen.width,
                &first,
                &[],
            ));
        }
        self.containers.pop();
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
        let room = self.room();
        for line in table.lines(room, self.screen.theme) {
            let (first, rest) = self.prefixes();
            self.rows
                .extend(text::fold(line, self.screen.width, &first, &rest));
        }
    }

    fn end_code(&mut self) {
        let Some((language, code)) = self.code.take() else {
            return;
        };
        if !language.is_empty() {
            self.inline.plain(&language, self.screen.theme.dim);
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
                .push(Code::new(self.screen.highlighter, &language, Keep::Text));
        }
        self.codes[index].update(&code);
        for (number, line) in code.lines().enumerate() {
            let (first, rest) = self.prefixes();
            let line = self.codes[index].line(number, line, self.screen.theme);
            self.rows
                .extend(text::fold(line, self.screen.width, &first, &rest));
        }
    }

    fn html(&mut self, html: &str) {
        self.inline.plain(html.trim_end(), self.screen.theme.dim);
        self.line_break();
    }

    fn line_break(&mut self) {
        match self.table {
            Some(_) => self.inline.text(" "),
            None => self.flush(),
        }
    }

    /// Lays out the text gathered so far, if there is any.
    fn flush(&mut self) {
        if self.inline.is_empty() || self.table.is_some() {
            return;
        }
        let line = Line::from(self.inline.take());
        let (first, rest) = self.prefixes();
        self.rows
            .extend(text::wrap_hanging(line, self.screen.width, &first, &rest));
        self.is_fresh = false;
    }

    /// What goes before the next row, and before those it is continued in. Marks of items are shown once.
    fn prefixes(&mut self) -> (Vec<Span<'static>>, Vec<Span<'static>>) {
        let theme = self.screen.theme;
        let limit = self.prefix_limit();
        let mut used = 0;
        let (mut first, mut rest) = (Vec::new(), Vec::new());
        for container in &mut self.containers {
            let columns = container.columns();
            if used + columns > limit {
                break;
            }
            used += columns;
            match container {
                Container::List(_) => {}
                Container::Quote => {
                    first.push(Span::styled("> ", theme.dim));
                    rest.push(Span::styled("> ", theme.dim));
                }
                Container::Item { mark, columns } => {
                    rest.push(Span::raw(" ".repeat(*columns)));
                    first.push(match mark.take() {
                        Some(mark) => Span::styled(mark, theme.accent),
                        None => Span::raw(" ".repeat(*columns)),
                    });
                }
            }
        }
        // Marks that no room is left for count as shown.
        for container in &mut self.containers {
            if let Container::Item { mark, .. } = container {
                *mark = None;
            }
        }
        (first, rest)
    }

    /// Cells left of a row behind what goes before it.
    fn room(&self) -> usize {
        let limit = self.prefix_limit();
        let mut used = 0;
        for container in &self.containers {
            if used + container.columns() > limit {
                break;
            }
            used += container.columns();
        }
        usize::from(self.screen.width).saturating_sub(used).max(1)
    }

    /// Cells that may go before a text; two are always left, for a wide character.
    fn prefix_limit(&self) -> usize {
        let width = usize::from(self.screen.width);
        (width * 2 / 3).min(width.saturating_sub(2))
    }
}

impl Container {
    fn columns(&self) -> usize {
        match self {
            Self::Quote => 2,
            Self::List(_) => 0,
            Self::Item { columns, .. } => *columns,
        }
    }
}

/// When a blank row goes before a block.
#[derive(Clone, Copy)]
enum Apart {
    /// If it is written so.
    AsWritten,
    /// Unless it is inside of something.
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

/// Whether the line before the one at this place is blank, but for marks of quotes.
pub(super) fn is_after_blank_line(source: &str, at: usize) -> bool {
    let line_start = source[..at].rfind('\n').map(|end| end + 1);
    let before =
        line_start.map(|start| source[..start - 1].rsplit('\n').next().unwrap_or_default());
    before.is_some_and(|line| line.trim_matches([' ', '>']).is_empty())
}

/// The source, with a last line that is not whole kept from turning the one before into a heading for a moment: a
/// dash is the beginning of an item more often.
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
