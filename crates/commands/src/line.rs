//! The words of a command line, and what an alias adds to them.

use std::collections::BTreeMap;

use crate::alias::Alias;

/// A command line, without the program and the words that chose the command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    /// The words.
    pub words: Vec<String>,
    /// Options that count when the words do not have them.
    pub flags: BTreeMap<String, String>,
    /// Arguments that count when the words have none.
    pub arguments: Vec<String>,
}

impl Line {
    /// A line of words.
    pub fn new<W: Into<String>>(words: impl IntoIterator<Item = W>) -> Self {
        Self {
            words: words.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }

    /// The same line behind an alias.
    #[must_use]
    pub fn through(mut self, alias: &Alias) -> Self {
        for (name, value) in &alias.flags {
            self.flags
                .entry(name.clone())
                .or_insert_with(|| value.clone());
        }
        if self.arguments.is_empty() {
            self.arguments.clone_from(&alias.arguments);
        }
        self
    }
}
