//! Another name for a command, with some of its values already given.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// An alias of a command in a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alias {
    /// The verb.
    pub name: String,
    /// The command it stands for: one word beside the alias, several from the root.
    pub target: Vec<String>,
    /// One line of help; empty for the command's own.
    pub short: String,
    /// More help.
    pub long: String,
    /// Options that are given unless the user gives them.
    pub flags: BTreeMap<String, String>,
    /// Arguments that are given when the user gives none.
    pub arguments: Vec<String>,
    /// The file.
    pub path: Option<PathBuf>,
}
