//! Lays out Markdown, also while it is still arriving.
//!
//! The text is cut into pieces that are laid out once (`scanner`). Only the last one is laid out
//! again when it grows, and of fenced code only its last line. Line breaks and blank lines of the
//! source stay, so that text copied from the screen is close to the source.

mod blocks;
mod fence;
mod inline;
mod marks;
mod nest;
mod scanner;
mod table;

#[cfg(test)]
mod tests;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use ratatui::text::Line;

use crate::Theme;
use crate::highlight::{Code, Highlighter};
use crate::text::{Sanitiser, is_sanitised};
use blocks::BlockLayout;
use fence::Fenced;
use scanner::{Piece, PieceKind, Scanner};

/// A Markdown text that may grow, and its lines for one width.
#[derive(Debug)]
pub(crate) struct Markdown {
    text: String,
    /// The sanitised text, if it differs from the text.
    clean: Option<(String, Sanitiser)>,
    scanner: Scanner,
    /// Finished pieces. Those already laid out are in `laid_out` as well.
    pieces: Vec<Piece>,
    laid_out: Vec<LaidOut>,
    /// The piece that still grows.
    tail: Option<LaidOut>,
    rows: Vec<Line<'static>>,
    /// Number of rows of finished pieces.
    finished_rows: usize,
    /// Finished pieces whose code does not have all its colours.
    waiting: Vec<usize>,
    look: Option<(u16, Theme)>,
    generation: u64,
    /// Bytes of the text that the rows show.
    shown: usize,
    /// Bytes laid out so far, counted every time they are laid out again.
    work: u64,
}

/// A piece and its rows.
#[derive(Debug)]
struct LaidOut {
    piece: Piece,
    first_row: usize,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Fence(Box<Fenced>),
    /// Blocks, and the code among them.
    Blocks(Vec<Code>),
}

impl Default for Markdown {
    fn default() -> Self {
        Self::new()
    }
}

impl Markdown {
    pub fn new() -> Self {
        Self {
            text: String::new(),
            clean: None,
            scanner: Scanner::new(),
            pieces: Vec::new(),
            laid_out: Vec::new(),
            tail: None,
            rows: Vec::new(),
            finished_rows: 0,
            waiting: Vec::new(),
            look: None,
            generation: 0,
            shown: 0,
            work: 0,
        }
    }

    /// Creates a complete text.
    pub fn from_text(text: &str) -> Self {
        let mut markdown = Self::new();
        markdown.push(text);
        markdown
    }

    /// Appends to the text.
    pub fn push(&mut self, delta: &str) {
        if self.clean.is_none() && !is_sanitised(delta) {
            self.clean = Some((self.text.clone(), Sanitiser::after(&self.text)));
        }
        self.text.push_str(delta);
        if let Some((clean, sanitiser)) = &mut self.clean {
            sanitiser.push(delta, clean);
        }
    }

    /// The text as it was received.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the rows for a width; they are cached until the text, the width, the theme or the
    /// colours of code change.
    pub fn lines(
        &mut self,
        width: u16,
        theme: &Theme,
        highlighter: &Highlighter,
    ) -> &[Line<'static>] {
        let look = Some((width, *theme));
        let generation = highlighter.generation();
        let is_switched = (generation == 0) != (self.generation == 0);
        if self.look != look || is_switched {
            self.forget_rows();
            self.look = look;
            self.generation = generation;
        }
        let source = match &mut self.clean {
            Some((clean, _)) => std::mem::take(clean),
            None => std::mem::take(&mut self.text),
        };
        let context = LayoutContext {
            source: &source,
            width: width.max(1),
            theme,
            highlighter,
        };
        if source.len() != self.shown {
            self.grow(&context);
            self.shown = source.len();
        }
        if generation != self.generation {
            self.colour(&context);
            self.generation = generation;
        }
        match &mut self.clean {
            Some((clean, _)) => *clean = source,
            None => self.text = source,
        }
        &self.rows
    }

    fn forget_rows(&mut self) {
        self.rows.clear();
        self.laid_out.clear();
        self.tail = None;
        self.waiting.clear();
        self.finished_rows = 0;
        self.shown = 0;
    }

    fn grow(&mut self, context: &LayoutContext<'_>) {
        self.scanner.read(context.source, &mut self.pieces);
        for index in self.laid_out.len()..self.pieces.len() {
            let laid_out = self.lay_out(self.pieces[index], context);
            if laid_out.content.is_waiting() {
                self.waiting.push(index);
            }
            self.laid_out.push(laid_out);
            self.finished_rows = self.rows.len();
        }
        self.tail = match self.scanner.open(context.source) {
            Some(piece) => Some(self.lay_out(piece, context)),
            None => {
                self.rows.truncate(self.finished_rows);
                None
            }
        };
    }

    /// Lays out a piece behind the finished ones, reusing the layout of the last piece before it
    /// grew.
    fn lay_out(&mut self, piece: Piece, context: &LayoutContext<'_>) -> LaidOut {
        let tail = self
            .tail
            .take()
            .filter(|tail| tail.piece.start == piece.start);
        let (content, first_row) = match (piece.kind, tail) {
            (
                PieceKind::Fence(_),
                Some(LaidOut {
                    content: Content::Fence(fenced),
                    first_row,
                    ..
                }),
            ) => (Content::Fence(fenced), first_row),
            (kind, tail) => {
                self.rows.truncate(self.finished_rows);
                if !self.rows.is_empty() && self.is_apart(&piece, context.source) {
                    self.rows.push(Line::default());
                }
                let first_row = self.rows.len();
                let content = match (kind, tail.map(|tail| tail.content)) {
                    (PieceKind::Fence(fence), _) => {
                        let fenced = Fenced::begin(&piece, fence, &mut self.rows, context);
                        Content::Fence(Box::new(fenced))
                    }
                    (PieceKind::Blocks, Some(Content::Blocks(codes))) => Content::Blocks(codes),
                    (PieceKind::Blocks, _) => Content::Blocks(Vec::new()),
                };
                (content, first_row)
            }
        };
        let mut laid_out = LaidOut {
            piece,
            first_row,
            content,
        };
        match &mut laid_out.content {
            Content::Fence(fenced) => {
                self.work += fenced.grow(piece.end, &mut self.rows, context) as u64;
            }
            Content::Blocks(codes) => {
                self.work += (piece.end - piece.start) as u64;
                let rows = blocks(&piece, codes, context);
                self.rows.extend(rows);
            }
        }
        let is_empty = self.rows.len() == laid_out.first_row;
        if is_empty && matches!(laid_out.content, Content::Blocks(_)) {
            self.rows.truncate(self.finished_rows);
            laid_out.first_row = self.rows.len();
        }
        laid_out
    }

    /// Reports whether a blank row precedes a piece that is not the first.
    fn is_apart(&self, piece: &Piece, source: &str) -> bool {
        let is_fence = |kind: PieceKind| matches!(kind, PieceKind::Fence(_));
        let before = self.laid_out.last();
        is_fence(piece.kind)
            || before.is_some_and(|before| is_fence(before.piece.kind))
            || blocks::is_after_blank_line(source, piece.start)
    }

    fn colour(&mut self, context: &LayoutContext<'_>) {
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.retain(|&index| {
            let laid_out = &mut self.laid_out[index];
            colour(laid_out, &mut self.rows, context, &mut self.work)
        });
        self.waiting = waiting;
        if let Some(tail) = &mut self.tail {
            colour(tail, &mut self.rows, context, &mut self.work);
        }
    }
}

/// The source of the pieces and the screen they are laid out for.
struct LayoutContext<'a> {
    source: &'a str,
    width: u16,
    theme: &'a Theme,
    highlighter: &'a Highlighter,
}

impl Content {
    fn is_waiting(&self) -> bool {
        match self {
            Self::Fence(fenced) => fenced.is_waiting(),
            Self::Blocks(codes) => codes.iter().any(|code| !code.is_settled()),
        }
    }
}

fn blocks(piece: &Piece, codes: &mut Vec<Code>, context: &LayoutContext<'_>) -> Vec<Line<'static>> {
    let source = &context.source[piece.start..piece.end];
    BlockLayout::new(context, codes, piece.ordinal).of(source)
}

/// Applies the colours that have arrived to the code of a piece. Returns whether more may follow.
fn colour(
    laid_out: &mut LaidOut,
    rows: &mut [Line<'static>],
    context: &LayoutContext<'_>,
    work: &mut u64,
) -> bool {
    match &mut laid_out.content {
        Content::Fence(fenced) => fenced.colour(rows, context),
        Content::Blocks(codes) if codes.is_empty() => return false,
        Content::Blocks(codes) => {
            *work += (laid_out.piece.end - laid_out.piece.start) as u64;
            let coloured = blocks(&laid_out.piece, codes, context);
            for (old, new) in rows[laid_out.first_row..].iter_mut().zip(coloured) {
                *old = new;
            }
        }
    }
    laid_out.content.is_waiting()
}

fn parser(source: &str) -> Parser<'_> {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    Parser::new_ext(source, options)
}

/// Returns the code blocks of a Markdown text, fenced or indented, as they were written.
pub(crate) fn code_blocks(text: &str) -> Vec<String> {
    let mut codes = Vec::new();
    let mut open: Option<String> = None;
    for event in parser(text) {
        match event {
            Event::Start(Tag::CodeBlock(_)) => open = Some(String::new()),
            Event::End(TagEnd::CodeBlock) => codes.extend(open.take()),
            Event::Text(text) => {
                if let Some(code) = &mut open {
                    code.push_str(&text);
                }
            }
            _ => {}
        }
    }
    codes
}
