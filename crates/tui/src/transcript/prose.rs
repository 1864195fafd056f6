//! Markdown text of the transcript: growing, or a block of a finished message.

use std::sync::Arc;

use pinion_message::{Block, Message};
use ratatui::text::Line;

use crate::highlight::Highlighter;
use crate::markdown::Markdown;
use crate::theme::Theme;

/// Markdown text.
pub(super) struct Prose {
    source: Source,
    /// Created when the text is drawn; while the text grows it holds the text.
    markdown: Option<Box<Markdown>>,
}

enum Source {
    Growing,
    /// A block of a message.
    Block(Arc<Message>, usize),
}

impl Prose {
    /// Creates a growing text.
    pub fn growing(beginning: &str) -> Self {
        Self {
            source: Source::Growing,
            markdown: Some(Box::new(Markdown::from_text(beginning))),
        }
    }

    /// The text of a block of a message.
    pub fn block(message: Arc<Message>, block: usize) -> Self {
        Self {
            source: Source::Block(message, block),
            markdown: None,
        }
    }

    /// Appends to a growing text.
    pub fn push(&mut self, delta: &str) {
        if let (Source::Growing, Some(markdown)) = (&self.source, &mut self.markdown) {
            markdown.push(delta);
        }
    }

    /// Replaces a growing text if it differs from `text`.
    pub fn correct(&mut self, text: &str) {
        if matches!(self.source, Source::Growing) && self.text() != text {
            self.markdown = Some(Box::new(Markdown::from_text(text)));
        }
    }

    /// Turns a growing text into a block of a message. Its layout stays if the text is the same.
    pub fn finish(&mut self, message: Arc<Message>, block: usize) {
        let same = text_of(&message, block) == self.text();
        self.source = Source::Block(message, block);
        if !same {
            self.markdown = None;
        }
    }

    pub fn text(&self) -> &str {
        match &self.source {
            Source::Growing => self.markdown.as_deref().map_or("", Markdown::text),
            Source::Block(message, block) => text_of(message, *block),
        }
    }

    pub fn is_blank(&self) -> bool {
        self.text().trim_start().is_empty()
    }

    pub fn is_growing(&self) -> bool {
        matches!(self.source, Source::Growing)
    }

    pub fn is_laid_out(&self) -> bool {
        self.markdown.is_some()
    }

    /// Drops everything that can be recreated.
    pub fn drop_lines(&mut self) {
        if !self.is_growing() {
            self.markdown = None;
        }
    }

    pub fn lines(
        &mut self,
        width: u16,
        theme: &Theme,
        highlighter: &Highlighter,
    ) -> &[Line<'static>] {
        if self.markdown.is_none() {
            self.markdown = Some(Box::new(Markdown::from_text(self.text())));
        }
        match &mut self.markdown {
            Some(markdown) => markdown.lines(width, theme, highlighter),
            None => &[],
        }
    }
}

fn text_of(message: &Message, block: usize) -> &str {
    let Message::Assistant(answer) = message else {
        return "";
    };
    match answer.content.get(block) {
        Some(Block::Text(text)) => &text.text,
        Some(Block::Thinking(thinking)) => &thinking.thinking,
        _ => "",
    }
}
