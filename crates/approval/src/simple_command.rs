//! SimpleCommand commands and their words, as the shell interprets them.

/// One simple command.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct SimpleCommand {
    /// The command's name and arguments.
    pub words: Vec<Word>,
    /// The command sets variables, which may change what any program does.
    pub assigns: bool,
    pub redirection: Redirection,
}

/// The redirections of a command's input and output.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Redirection {
    #[default]
    None,
    /// Only to each other, or to `/dev/null`.
    Harmless,
    /// To or from a file.
    ToFile,
}

/// A word without its quotes.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    /// The text of the word; if it is open, the part that it certainly starts with.
    pub text: String,
    /// The rest is known only when the command runs; the word may also expand to several words, or to none.
    pub open: bool,
}

impl SimpleCommand {
    pub fn is_empty(&self) -> bool {
        self.words.is_empty() && !self.assigns && self.redirection == Redirection::None
    }
}

impl Word {
    pub fn literal(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            open: false,
        }
    }

    pub fn push(&mut self, c: char) {
        if !self.open {
            self.text.push(c);
        }
    }

    pub fn open(&mut self) {
        self.open = true;
    }

    /// Returns the word if it was written without quotes, else an empty string: only unquoted words are keywords.
    pub fn unquoted(&self, raw: &[char]) -> &str {
        let plain = !self.open && self.text.chars().eq(raw.iter().copied());
        if plain { &self.text } else { "" }
    }
}
