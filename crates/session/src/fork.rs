//! Forks, clones and copies of sessions.
//!
//! Lines are copied unchanged, so unknown members survive. Label entries are not copied but written again at the end,
//! one per labelled entry.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use pinion_message::now_millis;
use serde_json::value::RawValue;

use crate::entry::{Body, Entry, EntryId, EntryKind, Role};
use crate::new_entry::NewEntry;
use crate::store::{SessionLocation, user_text};
use crate::tree::Tree;
use crate::{Header, NewSession, Opened, SessionError, Store, json};

/// A session made from another one, complete in memory. [`UnsavedSession::save`] writes its file.
///
/// Saving does not need the other session, so a caller can save on another thread.
#[derive(Debug)]
pub struct UnsavedSession(Store);

impl UnsavedSession {
    /// Writes the file, unless the other session is in memory only. Blocks.
    pub fn save(self) -> Result<Store, SessionError> {
        let mut store = self.0;
        store.write_now()?;
        Ok(store)
    }
}

impl Store {
    /// Makes a session with everything before a user message. Also returns the text of that message.
    pub fn fork_before(&self, entry_id: &str) -> Result<(UnsavedSession, String), SessionError> {
        let entry = self
            .tree
            .get(entry_id)
            .filter(|entry| entry.is_message_of(Role::User));
        let entry = entry.ok_or(SessionError::InvalidFork)?;
        let text = user_text(entry).ok_or(SessionError::InvalidFork)?;
        let path = entry
            .parent
            .as_deref()
            .map(|parent| self.tree.path_to(parent));
        Ok((self.branch(&path.unwrap_or_default())?, text))
    }

    /// Makes a session with everything up to and including the current leaf.
    pub fn clone_to_leaf(&self) -> Result<UnsavedSession, SessionError> {
        let leaf = self.leaf.as_deref().ok_or(SessionError::NothingToClone)?;
        self.branch(&self.tree.path_to(leaf))
    }

    /// Makes a session with everything up to and including an entry.
    pub fn fork_at(&self, entry_id: &str) -> Result<UnsavedSession, SessionError> {
        self.tree.get(entry_id).ok_or(SessionError::InvalidFork)?;
        self.branch(&self.tree.path_to(entry_id))
    }

    /// Makes a session with all entries of the one at `source`, including all branches.
    pub fn copy_of(source: &Path, options: NewSession) -> Result<Opened, SessionError> {
        let Opened { store, notices } = Self::open_read_only(source, &options.cwd)?;
        let parent_session = Some(source.to_string_lossy().into_owned());
        let mut copy = Self::create(NewSession {
            parent_session,
            ..options
        })?;
        for entry in store
            .entries()
            .filter(|entry| entry.kind != EntryKind::Damaged)
        {
            Arc::make_mut(&mut copy.tree).push(entry.clone());
        }
        copy.leaf = copy.tree.last_id().cloned();
        copy.write_now()?;
        Ok(Opened {
            store: copy,
            notices,
        })
    }

    fn branch(&self, path: &[&Entry]) -> Result<UnsavedSession, SessionError> {
        let parent_session = self.file().map(|file| file.to_string_lossy().into_owned());
        let header = Header::now(None, &self.cwd, parent_session);
        let location = match (&self.location, &self.directory) {
            (SessionLocation::Memory, _) | (_, None) => SessionLocation::Memory,
            (_, Some(directory)) => SessionLocation::Later(directory.join(header.file_name())),
        };
        let mut tree = without_labels(path).map_err(|source| self.unreadable(source))?;
        self.copy_labels(&mut tree)?;
        let directory = self.directory.clone();
        let store = Self::from_parts(header, self.cwd.clone(), tree, location, directory);
        Ok(UnsavedSession(store))
    }

    fn copy_labels(&self, tree: &mut Tree) -> Result<(), SessionError> {
        for (target, label) in self.tree.labels() {
            if tree.get(target).is_none() {
                continue;
            }
            let new = NewEntry::Label {
                target_id: target.to_string(),
                label: Some(label.text.clone()),
            };
            let id = tree.free_id();
            tree.push(new.into_entry(id, tree.last_id().cloned(), now_millis())?);
        }
        Ok(())
    }

    fn unreadable(&self, source: io::Error) -> SessionError {
        SessionError::io("read", self.file().unwrap_or(Path::new("")))(source)
    }

    fn write_now(&mut self) -> Result<(), SessionError> {
        let path = self.file().unwrap_or(Path::new("")).to_owned();
        self.save().map_err(SessionError::io("write", path))
    }
}

/// Copies a path without labels and damaged entries. Links to omitted entries lead to their neighbours instead.
fn without_labels(path: &[&Entry]) -> io::Result<Tree> {
    let mut tree = Tree::with_capacity(path.len());
    let mut left_out: Vec<&EntryId> = Vec::new();
    let mut next_kept: HashMap<&EntryId, &EntryId> = HashMap::new();
    for entry in path {
        if matches!(entry.kind, EntryKind::Label | EntryKind::Damaged) {
            left_out.push(&entry.id);
            continue;
        }
        next_kept.extend(left_out.drain(..).map(|omitted| (omitted, &entry.id)));
        let mut copy = with_parent(entry, tree.last_id().cloned())?;
        if entry.kind == EntryKind::Compaction
            && let Some(first_kept) = entry.compaction().and_then(|c| c.first_kept_entry_id)
            && let Some(&kept) = next_kept.get(&EntryId::from(first_kept.as_str()))
            && let Body::Line(line) = &copy.body
        {
            copy.body = Body::Line(with_member(line, "firstKeptEntryId", Some(kept)));
        }
        tree.push(copy);
    }
    Ok(tree)
}

/// Returns the entry with another parent. Its line changes only if the parent does.
fn with_parent(entry: &Entry, parent: Option<EntryId>) -> io::Result<Entry> {
    if entry.parent == parent {
        return Ok(entry.clone());
    }
    let body = match &entry.body {
        Body::Message(..) => entry.body.clone(),
        _ => Body::Line(with_member(&entry.line()?, "parentId", parent.as_deref())),
    };
    Ok(Entry {
        id: entry.id.clone(),
        parent,
        kind: entry.kind,
        body,
    })
}

/// Replaces the value of one member of a line and no other byte.
fn with_member(line: &Bytes, name: &str, value: Option<&str>) -> Bytes {
    let members: Result<HashMap<Cow<'_, str>, &RawValue>, _> = serde_json::from_slice(line);
    let Some(old) = members.as_ref().ok().and_then(|members| members.get(name)) else {
        return line.clone();
    };
    let start = old.get().as_ptr() as usize - line.as_ptr() as usize;
    let end = start + old.get().len();
    let mut out = Vec::with_capacity(line.len() + 16);
    out.extend_from_slice(&line[..start]);
    out.extend_from_slice(&json::line(&value));
    out.extend_from_slice(&line[end..]);
    Bytes::from(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_member_changes() {
        let line = Bytes::from_static(
            br#"{"type":"x","id":"b", "parentId" : "a","n":1.50,"z":{"parentId":1}}"#,
        );
        assert_eq!(
            with_member(&line, "parentId", Some("0")),
            &br#"{"type":"x","id":"b", "parentId" : "0","n":1.50,"z":{"parentId":1}}"#[..]
        );
        assert_eq!(
            with_member(&line, "parentId", None),
            &br#"{"type":"x","id":"b", "parentId" : null,"n":1.50,"z":{"parentId":1}}"#[..]
        );
    }
}
