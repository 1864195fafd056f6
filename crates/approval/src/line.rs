//! Simple commands and their words, as the shell will see them.

/// One simple command.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Simple {
    /// Its name and its arguments.
    pub words: Vec<Word>,
    /// It sets variables, which may change what any program does.
    pub assigns: bool,
    /// Where its input and output go.
    pub redirection: Redirection,
}

/// Where input and output go.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Redirection {
    /// Where they go anyway.
    #[default]
    None,
    /// To each other, or to `/dev/null`.
    Harmless,
    /// To or from a file.
    ToFile,
}

/// A word after quotes are gone.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    /// Its text; if it is open, what it certainly begins with.
    pub text: String,
    /// The rest is only known when it runs; it may also become several words, or none.
    pub open: bool,
}

impl Simple {
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

    /// The word if it was written without quotes: only such a word is a keyword.
    pub fn plain_since(&self, raw: &[char]) -> &str {
        let plain = !self.open && self.text.chars().eq(raw.iter().copied());
        if plain { &self.text } else { "" }
    }
}
