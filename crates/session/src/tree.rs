//! The entries of a session, found by id and walked from leaf to root.

use std::collections::HashMap;

use pinion_message::Millis;
use serde::Deserialize;

use crate::entry::{Body, Entry, EntryId, EntryKind};
use crate::json;

/// A name somebody gave to an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// The name.
    pub text: String,
    /// When it was given.
    pub at: Option<Millis>,
    /// Labels keep the order in which their targets were first named.
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
    /// Entries beyond the choices every session begins with.
    used: usize,
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

    /// Adds an entry at the end. Of two entries with one id the later is found.
    pub(crate) fn push(&mut self, entry: Entry) {
        if !matches!(
            entry.kind,
            EntryKind::ModelChange | EntryKind::ThinkingLevelChange
        ) {
            self.used += 1;
        }
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

    /// A fresh id for an entry of this tree.
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

    /// Entries from the root to `leaf`. A missing parent ends the walk, and so does a circle.
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

    /// The first entry whose parent is named but missing.
    pub(crate) fn broken_links(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| {
            entry
                .parent
                .as_ref()
                .is_some_and(|parent| !self.index.contains_key(parent))
        })
    }

    /// Labels by target, in the order the targets were first named.
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

    /// Whether the session holds more than the model and the level it began with. Only then it is worth a file.
    pub(crate) fn is_used(&self) -> bool {
        self.used > 0
    }
}
