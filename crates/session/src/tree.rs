//! The tree of a session's entries, with an index by id.

use std::collections::HashMap;

use pinion_message::Millis;
use serde::Deserialize;

use crate::entry::{Body, Entry, EntryId, EntryKind, Role};
use crate::json;

/// The label of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    pub text: String,
    /// The time at which it was set.
    pub at: Option<Millis>,
    /// Position among all labels, by the time at which the entry was first labelled.
    order: usize,
}

/// Entries in file order with an index by id.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tree {
    entries: Vec<Entry>,
    index: HashMap<EntryId, usize>,
    labels: HashMap<EntryId, Label>,
    labelled: usize,
    name: Option<String>,
    /// The number of entries that do not select a model or a thinking level and are not the system prompt.
    used: usize,
    /// The number of entries whose line is only in the file.
    stored: usize,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LabelLine {
    target_id: String,
    #[serde(default)]
    label: Option<String>,
}

#[derive(Deserialize)]
struct NameLine {
    #[serde(default)]
    name: Option<String>,
}

impl Tree {
    pub(crate) fn with_capacity(entries: usize) -> Self {
        Self {
            entries: Vec::with_capacity(entries),
            index: HashMap::with_capacity(entries),
            ..Self::default()
        }
    }

    /// Adds an entry at the end. Of two entries with the same id, the later one is in the index.
    pub(crate) fn push(&mut self, entry: Entry) {
        if !matches!(
            entry.kind,
            EntryKind::ModelChange
                | EntryKind::ThinkingLevelChange
                | EntryKind::Message(Role::System)
        ) {
            self.used += 1;
        }
        self.stored += usize::from(matches!(entry.body, Body::Stored(_)));
        match (entry.kind, &entry.body) {
            (EntryKind::Label, Body::Line(line)) => {
                if let Some(line) = json::from_slice::<LabelLine>(line) {
                    self.set_label(line, entry.timestamp());
                }
            }
            (EntryKind::SessionInfo, Body::Line(line)) => {
                let line = json::from_slice::<NameLine>(line);
                let name = line.and_then(|line| line.name).unwrap_or_default();
                let name = name.trim();
                self.name = (!name.is_empty()).then(|| name.to_owned());
            }
            _ => {}
        }
        self.index.insert(entry.id.clone(), self.entries.len());
        self.entries.push(entry);
    }

    fn set_label(&mut self, line: LabelLine, at: Option<Millis>) {
        let target = EntryId::from(line.target_id.as_str());
        match line.label.filter(|label| !label.is_empty()) {
            None => {
                self.labels.remove(&target);
            }
            Some(text) => {
                let order = self
                    .labels
                    .get(&target)
                    .map_or(self.labelled, |label| label.order);
                self.labelled += 1;
                self.labels.insert(target, Label { text, at, order });
            }
        }
    }

    /// Returns an id that no entry of this tree has.
    pub(crate) fn free_id(&self) -> EntryId {
        (0..100)
            .map(|_| EntryId::random())
            .find(|id| !self.index.contains_key(id))
            .unwrap_or_else(EntryId::random_long)
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Entry> {
        self.index.get(id).map(|&at| &self.entries[at])
    }

    pub(crate) fn position(&self, id: &str) -> Option<usize> {
        self.index.get(id).copied()
    }

    pub(crate) fn last_id(&self) -> Option<&EntryId> {
        self.entries.last().map(|entry| &entry.id)
    }

    /// Returns the entries from the root to `leaf`. The path starts later if a parent is missing or the links form a
    /// circle.
    pub(crate) fn path_to(&self, leaf: &str) -> Vec<&Entry> {
        let mut path = Vec::new();
        let mut next = self.get(leaf);
        while let Some(entry) = next {
            if path.len() == self.entries.len() {
                break;
            }
            path.push(entry);
            next = entry.parent.as_deref().and_then(|parent| self.get(parent));
        }
        path.reverse();
        path
    }

    /// Returns the entries whose parent does not exist.
    pub(crate) fn broken_links(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| {
            entry
                .parent
                .as_ref()
                .is_some_and(|parent| !self.index.contains_key(parent))
        })
    }

    /// Returns the labels by their entry, in the order in which the entries were first labelled.
    pub(crate) fn labels(&self) -> Vec<(&EntryId, &Label)> {
        let mut labels: Vec<_> = self.labels.iter().collect();
        labels.sort_by_key(|(_, label)| label.order);
        labels
    }

    pub(crate) fn label(&self, id: &str) -> Option<&Label> {
        self.labels.get(id)
    }

    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Requires a file for the session; see [`Tree::is_used`].
    pub(crate) fn mark_used(&mut self) {
        self.used += 1;
    }

    /// Reports whether an entry exists that neither selects a model or a thinking level nor is a system prompt copied
    /// from another session. Only then the session gets a file.
    pub(crate) fn is_used(&self) -> bool {
        self.used > 0
    }

    /// Reports whether an entry exists that a model would see, other than a shell command of the user.
    pub(crate) fn has_conversation(&self) -> bool {
        self.entries.iter().any(|entry| match entry.kind {
            EntryKind::Message(role) => !matches!(role, Role::System | Role::BashExecution),
            EntryKind::CustomMessage | EntryKind::Compaction | EntryKind::BranchSummary => true,
            _ => false,
        })
    }

    /// Reports whether the line of an entry is only in the file.
    pub(crate) fn has_stored_lines(&self) -> bool {
        self.stored > 0
    }
}
