//! Text that is Markdown: still growing, or a part of a finished message.

use std::sync::Arc;

use pinion_message::{Block, Message};
use ratatui::text::Line;

use crate::highlight::Highlighter;
use crate::markdown::Markdown;
use crate::theme::Theme;

/// Text that is Markdown.
pub(super) struct Prose {
    source: Source,
    /// Made when somebody looks; while the text grows it holds the text.
    markdown: Option<Box<Markdown>>,
}

enum Source {
    Growing,
    /// A block of a message.
    Block(Arc<Message>, usize),
}

impl Prose {
    /// A text that begins.
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

    /// Adds to a growing text.
    pub fn push(&mut self, delta: &str) {
        if let (Source::Growing, Some(markdown)) = (&self.source, &mut self.markdown) {
            markdown.push(delta);
        }
    }

    /// Makes sure that a growing text is this.
    pub fn correct(&mut self, text: &str) {
        if matches!(self.source, Source::Growing) && self.text() != text {
            self.markdown = Some(Box::new(Markdown::from_text(text)));
        }
    }

    /// The text is complete: a block of a message. What was laid out stays if it is the same text.
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

    /// Lets go of everything that can be made again.
    pub fn cool(&mut self) {
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
