//! Which entries are seen, in which order, and how branches are drawn.
//!
//! A conversation is a line however long it gets, so an only child stands under its parent without indent. Where
//! the conversation branches, each branch is indented once, with a rule that leads to it.

use std::collections::HashSet;

use super::read::{Kind, Node};

/// Which entries are seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Conversation,
    User,
    Labelled,
    All,
}

impl Mode {
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
                matches!(node.kind, Kind::User | Kind::Said) || node.label.is_some()
            }
            Self::User => node.kind == Kind::User,
            Self::Labelled => node.label.is_some(),
            Self::All => true,
        }
    }
}

/// An entry on its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    /// Its place in the list of entries.
    pub node: usize,
    /// The row its branch begins with; none on the trunk.
    pub branch: Option<usize>,
    /// Whether a branch begins here, and if, which one of its siblings it is.
    pub start: Option<Sibling>,
}

/// Which of the branches that begin in one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sibling {
    Inner,
    Last,
}

/// The rows of all entries that are seen: by the mode, and where something is searched for, among `found`.
pub(super) fn rows(nodes: &[Node], mode: Mode, found: Option<&HashSet<usize>>) -> Vec<Row> {
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    let mut roots: Vec<usize> = Vec::new();
    // The nearest ancestor that is seen, by entry; parents come before children.
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
    let mut rows: Vec<Row> = Vec::new();
    // Entries still to be put down, with the row their branch begins with; the next is at the end.
    let mut waiting: Vec<Row> = Vec::new();
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

/// Puts down `children` that hang on the branch which begins with row `branch`.
fn grow(waiting: &mut Vec<Row>, children: &[usize], branch: Option<usize>) {
    let last = children.len().saturating_sub(1);
    let rows = children.iter().enumerate().rev().map(|(at, &node)| Row {
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

/// The rules before a row, at most `levels` of them; a sign stands for those that are left out.
pub(super) fn rules(rows: &[Row], at: usize, levels: usize) -> String {
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
