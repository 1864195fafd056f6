//! Aliases: other names for commands, with some of their values set.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// An alias of a command in a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alias {
    /// The last word of its name.
    pub name: String,
    /// The command: one word for a sibling of the alias, several from the root.
    pub target: Vec<String>,
    /// One line of help; empty to use the command's own.
    pub short: String,
    /// The long help text.
    pub long: String,
    /// Values of options that the user does not set.
    pub flags: BTreeMap<String, String>,
    /// Positional arguments if the user gives none.
    pub arguments: Vec<String>,
    pub path: Option<PathBuf>,
}
