//! One entry of the transcript, with its lines while it is near the screen.

use std::sync::Arc;

use pinion_message::{Block, Content, Message};
use pinion_text::amount;
use ratatui::text::Line;

use super::card::Card;
use super::ending::AnswerEnding;
use super::picture::{Images, Picture};
use super::preview::muted;
use super::prose::Prose;
use super::shell::Shell;
use super::waiting::Waiting;
use super::{Fold, Look, NoticeKind, messages, preview, summary};
use crate::text::{sanitise, wrap};

/// The content of an entry.
pub(super) enum EntryKind {
    /// Removed.
    Gone,
    /// A message of the user.
    User(Arc<Message>),
    /// A block of an answer.
    Answer(Prose),
    /// A block of reasoning.
    Thinking(Thinking),
    /// A tool call and its result.
    Card(Box<Card>),
    /// The abnormal end of an answer.
    Ending(AnswerEnding),
    /// A shell command of the user.
    Shell(Box<Shell>),
    /// A message of an extension.
    Custom(Arc<Message>),
    /// A summary that replaces a part of the conversation.
    Summary(Arc<Message>),
    /// A wait in progress.
    Waiting(Waiting),
    /// A notice of the chat itself.
    Notice(NoticeKind, Box<str>),
}

/// Reasoning.
pub(super) struct Thinking {
    pub prose: Prose,
    pub is_growing: bool,
    /// The provider does not disclose the text.
    pub is_withheld: bool,
}

/// One entry.
pub(super) struct Entry {
    pub kind: EntryKind,
    /// Number of the message it belongs to, counted from the first.
    pub message: u32,
    height: Option<(Shape, usize)>,
    lines: Option<(Shape, u64, Vec<Line<'static>>)>,
    /// The pictures among the lines, each with its index in [`Entry::blocks`].
    pictures: Vec<(usize, Picture)>,
}

/// Everything besides its content that the height of an entry depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub width: u16,
    pub fold: Fold,
}

impl Entry {
    pub fn new(kind: EntryKind, message: u32) -> Self {
        Self {
            kind,
            message,
            height: None,
            lines: None,
            pictures: Vec::new(),
        }
    }

    pub fn replace(&mut self, kind: EntryKind) {
        self.kind = kind;
        self.touch();
    }

    /// Invalidates the layout after a change of the content.
    pub fn touch(&mut self) {
        self.height = None;
        self.lines = None;
    }

    /// Drops the lines of an entry off the screen; its height stays known.
    pub fn drop_lines(&mut self) {
        self.lines = None;
        match &mut self.kind {
            EntryKind::Answer(prose) => prose.drop_lines(),
            EntryKind::Thinking(thinking) => thinking.prose.drop_lines(),
            _ => {}
        }
    }

    /// Reports whether nothing of it is visible at any width.
    pub fn is_hidden(&self) -> bool {
        match &self.kind {
            EntryKind::Gone => true,
            EntryKind::Answer(prose) => prose.is_blank(),
            EntryKind::Thinking(thinking) => !thinking.is_withheld && thinking.prose.is_blank(),
            EntryKind::Custom(message) => !messages::is_displayed(message),
            _ => false,
        }
    }

    /// The text, if this is a block of an answer.
    pub fn answer_text(&self) -> Option<&str> {
        match &self.kind {
            EntryKind::Answer(prose) => Some(prose.text()),
            _ => None,
        }
    }

    /// Reports whether it is a card that takes a single line while folded.
    pub fn is_slim(&self, look: &Look<'_>) -> bool {
        match &self.kind {
            EntryKind::Card(card) => card.is_slim(look),
            _ => false,
        }
    }

    pub fn is_card(&self) -> bool {
        matches!(self.kind, EntryKind::Card(_))
    }

    /// The current shape.
    pub fn shape(&self, width: u16, look: &Look<'_>) -> Shape {
        let fold = match &self.kind {
            EntryKind::Thinking(_) => look.thinking,
            _ => look.tools,
        };
        Shape { width, fold }
    }

    /// The shape and height of the last layout.
    pub fn measured(&self) -> Option<(Shape, usize)> {
        self.height
    }

    /// The number of rows, if it is known without a layout.
    pub fn known_height(&self, width: u16, look: &Look<'_>) -> Option<usize> {
        if self.is_hidden() {
            return Some(0);
        }
        if self.changes_by_itself() {
            return None;
        }
        let (shape, height) = self.height?;
        (shape == self.shape(width, look)).then_some(height)
    }

    /// Reports whether it is laid out again for every frame: growing entries and those that count
    /// seconds. All of them are short, or lay out only the new part.
    fn changes_by_itself(&self) -> bool {
        match &self.kind {
            EntryKind::Answer(prose) => prose.is_growing(),
            EntryKind::Thinking(thinking) => thinking.is_growing,
            EntryKind::Card(card) => card.is_running(),
            EntryKind::Shell(shell) => shell.is_running(),
            EntryKind::Waiting(_) => true,
            _ => false,
        }
    }

    /// Reports whether it may still change, or is being waited for.
    pub fn is_unfinished(&self) -> bool {
        match &self.kind {
            EntryKind::Card(card) => card.is_unfinished(),
            _ => self.changes_by_itself(),
        }
    }

    /// Reports whether it counts seconds.
    pub fn counts_time(&self) -> bool {
        match &self.kind {
            EntryKind::Card(card) => card.is_running(),
            EntryKind::Shell(shell) => shell.is_running(),
            EntryKind::Waiting(_) => true,
            _ => false,
        }
    }

    /// Reports whether it holds lines that can be recreated.
    #[cfg(test)]
    pub fn has_lines(&self) -> bool {
        match &self.kind {
            EntryKind::Answer(prose) => prose.is_laid_out(),
            EntryKind::Thinking(thinking) => self.lines.is_some() || thinking.prose.is_laid_out(),
            _ => self.lines.is_some(),
        }
    }

    /// Reports whether its lines are valid for this look.
    pub fn is_laid_out(&self, width: u16, look: &Look<'_>, epoch: u64) -> bool {
        let shape = self.shape(width, look);
        match &self.kind {
            EntryKind::Answer(prose) | EntryKind::Thinking(Thinking { prose, .. })
                if self.is_only_markdown(look) =>
            {
                prose.is_laid_out() && self.height.is_some_and(|(last, _)| last == shape)
            }
            _ if self.changes_by_itself() => false,
            _ => matches!(&self.lines, Some((last, at, _)) if *last == shape && *at == epoch),
        }
    }

    /// Returns the lines. `epoch` changes with everything else that the lines depend on.
    pub fn lines(
        &mut self,
        width: u16,
        look: &Look<'_>,
        images: Images,
        epoch: u64,
    ) -> &[Line<'static>] {
        if self.is_hidden() {
            return &[];
        }
        let shape = self.shape(width, look);
        if !self.is_only_markdown(look) {
            if !self.is_laid_out(width, look, epoch) {
                let mut lines = self.lay_out(width, look);
                self.pictures = match images {
                    Images::Named => Vec::new(),
                    Images::Drawn => self.find_pictures(width),
                };
                lines.extend(
                    self.pictures
                        .iter()
                        .flat_map(|(_, picture)| picture.lines()),
                );
                self.height = Some((shape, lines.len()));
                self.lines = Some((shape, epoch, lines));
            }
            return self.lines.as_ref().map_or(&[], |(_, _, lines)| lines);
        }
        let lines = match &mut self.kind {
            EntryKind::Answer(prose) => prose.lines(width, look.theme, look.highlighter),
            EntryKind::Thinking(thinking) => {
                let theme = muted(look.theme);
                thinking.prose.lines(width, &theme, look.highlighter)
            }
            _ => &[],
        };
        self.height = Some((shape, lines.len()));
        lines
    }

    /// Reports whether it is only Markdown, which caches its lines itself.
    fn is_only_markdown(&self, look: &Look<'_>) -> bool {
        match &self.kind {
            EntryKind::Answer(_) => true,
            EntryKind::Thinking(thinking) => {
                look.thinking == Fold::Unfolded && !thinking.is_withheld
            }
            _ => false,
        }
    }

    /// The blocks that may contain images.
    fn blocks(&self) -> &[Block] {
        let content = match &self.kind {
            EntryKind::Card(card) => return card.images(),
            EntryKind::User(message) | EntryKind::Custom(message) => match &**message {
                Message::User(user) => &user.content,
                Message::Custom(custom) => &custom.content,
                _ => return &[],
            },
            _ => return &[],
        };
        match content {
            Content::Text(_) => &[],
            Content::Blocks(blocks) => blocks,
        }
    }

    fn find_pictures(&self, width: u16) -> Vec<(usize, Picture)> {
        let blocks = self.blocks().iter().enumerate();
        blocks
            .filter_map(|(at, block)| Some((at, Picture::of(block, width)?)))
            .collect()
    }

    /// The pictures of the last layout, with the blocks that contain their data.
    pub fn pictures(&self) -> impl Iterator<Item = (Picture, &Block)> {
        let blocks = self.blocks();
        let pictures = self.pictures.iter();
        pictures.filter_map(|(at, picture)| Some((*picture, blocks.get(*at)?)))
    }

    fn lay_out(&self, width: u16, look: &Look<'_>) -> Vec<Line<'static>> {
        match &self.kind {
            EntryKind::Gone | EntryKind::Answer(_) => Vec::new(),
            EntryKind::User(message) => messages::user(message, width, look),
            EntryKind::Thinking(thinking) => thinking.folded(width, look),
            EntryKind::Card(card) => card.lines(width, look),
            EntryKind::Ending(ending) => ending.lines(width, look),
            EntryKind::Shell(shell) => shell.lines(width, look),
            EntryKind::Custom(message) => messages::custom(message, width, look),
            EntryKind::Summary(message) => summary::lines(message, width, look),
            EntryKind::Waiting(waiting) => waiting.lines(width, look),
            EntryKind::Notice(kind, text) => notice(*kind, text, width, look),
        }
    }
}

/// Rows shown of growing reasoning while it is folded.
const LIVE_THINKING: usize = 3;

impl Thinking {
    fn folded(&self, width: u16, look: &Look<'_>) -> Vec<Line<'static>> {
        let style = look.theme.thinking;
        if self.is_withheld {
            let words = "thinking (the provider does not show it)";
            return vec![preview::row(words, width, style)];
        }
        let text = self.prose.text().trim();
        let count = amount::count(text.lines().count(), "line");
        let hint = if self.is_growing { "" } else { " (Ctrl-T)" };
        let headline = format!("thinking … {count}{hint}");
        let mut lines = vec![preview::row(&headline, width, style)];
        if self.is_growing {
            let tail = preview::end_of(text, usize::from(width) * (LIVE_THINKING + 1));
            let rows: Vec<_> = sanitise(tail)
                .lines()
                .filter(|line| !line.trim().is_empty())
                .flat_map(|line| wrap(Line::styled(line, style), width))
                .collect();
            let skipped = rows.len().saturating_sub(LIVE_THINKING);
            lines.extend(rows.into_iter().skip(skipped));
        }
        lines
    }
}

fn notice(kind: NoticeKind, text: &str, width: u16, look: &Look<'_>) -> Vec<Line<'static>> {
    let style = match kind {
        NoticeKind::Information => look.theme.dim,
        NoticeKind::Warning => look.theme.warning,
        NoticeKind::Error => look.theme.error,
    };
    preview::wrapped(text.trim_end(), width, style)
}
