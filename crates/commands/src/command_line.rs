//! The words of a command line, and the values that an alias adds.

use std::collections::BTreeMap;

use crate::alias::Alias;

/// A command line, without the program and the words that chose the command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandLine {
    pub words: Vec<String>,
    /// Options that apply if the words do not contain them.
    pub flags: BTreeMap<String, String>,
    /// Arguments that apply if the words contain none.
    pub arguments: Vec<String>,
}

impl CommandLine {
    pub fn new<W: Into<String>>(words: impl IntoIterator<Item = W>) -> Self {
        Self {
            words: words.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }

    /// Adds the values of an alias.
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
