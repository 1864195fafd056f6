//! The visible entries in display order, and the lines of their branches.
//!
//! A conversation is a line however long it gets, so an only child stands under its parent without
//! indentation. Where the conversation branches, each branch is indented once, with a line that
//! leads to it.

use std::collections::HashSet;

use super::read::{Node, NodeKind};

/// The entries to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TreeMode {
    Conversation,
    User,
    Labelled,
    All,
}

impl TreeMode {
    pub fn next(self) -> Self {
        match self {
            Self::Conversation => Self::User,
            Self::User => Self::Labelled,
            Self::Labelled => Self::All,
            Self::All => Self::Conversation,
        }
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::Conversation => "conversation",
            Self::User => "your messages",
            Self::Labelled => "named entries",
            Self::All => "everything",
        }
    }

    pub fn shows(self, node: &Node) -> bool {
        match self {
            Self::Conversation => {
                matches!(node.kind, NodeKind::User | NodeKind::Conversation) || node.label.is_some()
            }
            Self::User => node.kind == NodeKind::User,
            Self::Labelled => node.label.is_some(),
            Self::All => true,
        }
    }
}

/// The row of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TreeRow {
    /// Its index in the list of entries.
    pub node: usize,
    /// The first row of its branch; `None` on the trunk.
    pub branch: Option<usize>,
    /// Set if a branch begins here: its position among its siblings.
    pub start: Option<Sibling>,
}

/// The position of a branch among those that begin at one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sibling {
    Inner,
    Last,
}

/// The rows of all visible entries: those that the mode shows and, during a search, those in
/// `found`.
pub(super) fn rows(nodes: &[Node], mode: TreeMode, found: Option<&HashSet<usize>>) -> Vec<TreeRow> {
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    let mut roots: Vec<usize> = Vec::new();
    // The nearest visible ancestor of each entry; parents precede their children.
    let mut nearest: Vec<Option<usize>> = Vec::with_capacity(nodes.len());
    for (at, node) in nodes.iter().enumerate() {
        let above = node.parent.and_then(|parent| nearest[parent]);
        let is_seen = mode.shows(node) && found.is_none_or(|found| found.contains(&at));
        nearest.push(if is_seen { Some(at) } else { above });
        match (is_seen, above) {
            (false, _) => {}
            (true, None) => roots.push(at),
            (true, Some(above)) => children[above].push(at),
        }
    }
    let mut rows: Vec<TreeRow> = Vec::new();
    // Entries still to be added, with the first row of their branch; the next is at the end.
    let mut waiting: Vec<TreeRow> = Vec::new();
    grow(&mut waiting, &roots, None);
    while let Some(row) = waiting.pop() {
        let at = rows.len();
        let branch = if row.start.is_some() {
            Some(at)
        } else {
            row.branch
        };
        rows.push(row);
        grow(&mut waiting, &children[row.node], branch);
    }
    rows
}

/// Queues `children` of the branch that begins with row `branch`.
fn grow(waiting: &mut Vec<TreeRow>, children: &[usize], branch: Option<usize>) {
    let last = children.len().saturating_sub(1);
    let rows = children
        .iter()
        .enumerate()
        .rev()
        .map(|(at, &node)| TreeRow {
            node,
            branch,
            start: match at {
                _ if children.len() == 1 => None,
                _ if at == last => Some(Sibling::Last),
                _ => Some(Sibling::Inner),
            },
        });
    waiting.extend(rows);
}

/// The branch lines before a row, at most `levels` of them; `…` replaces omitted ones.
pub(super) fn rules(rows: &[TreeRow], at: usize, levels: usize) -> String {
    let mut pieces: Vec<&str> = Vec::new();
    let row = &rows[at];
    pieces.extend(row.start.map(|sibling| match sibling {
        Sibling::Inner => "├─ ",
        Sibling::Last => "└─ ",
    }));
    let mut branch = row.branch;
    while let Some(above) = branch {
        if pieces.len() >= levels {
            pieces.pop();
            pieces.push("…  ");
            break;
        }
        pieces.push(match rows[above].start {
            Some(Sibling::Inner) => "│  ",
            _ => "   ",
        });
        branch = rows[above].branch;
    }
    pieces.iter().rev().copied().collect()
}
