//! One session: its header, its tree of entries, the current leaf, and its file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pinion_message::now_millis;

use crate::context::{Context, SessionChoices};
use crate::entry::{Entry, EntryId, Role};
use crate::fast_read::Verification;
use crate::new_entry::NewEntry;
use crate::save::Saves;
use crate::session_file::SessionFile;
use crate::stats::RunningTotals;
use crate::tree::{Label, Tree};
use crate::{Header, Notice, SessionError};

/// One session: a tree of entries with a current leaf, in memory and, from the first message on, in a locked file.
///
/// The owner of a store is its only writer. Dropping the store releases the file.
#[derive(Debug)]
pub struct Store {
    pub(crate) header: Header,
    pub(crate) cwd: PathBuf,
    /// Shared with snapshots; a change copies it while a snapshot exists.
    pub(crate) tree: Arc<Tree>,
    pub(crate) leaf: Option<EntryId>,
    pub(crate) location: SessionLocation,
    /// The directory for sessions made from this one; `None` holds them in memory.
    pub(crate) directory: Option<PathBuf>,
    pub(crate) notices: Vec<Notice>,
    /// The background check of a large file.
    pub(crate) verification: Option<Verification>,
    /// The totals so far.
    pub(crate) running_totals: RunningTotals,
    pub(crate) saves: Saves,
    /// The file did not exist before.
    pub(crate) is_new: bool,
}

/// The location of a session.
#[derive(Debug)]
pub(crate) enum SessionLocation {
    Memory,
    /// A file that the first message or name creates.
    Later(PathBuf),
    File(SessionFile),
    /// A file that another process may write.
    ReadOnly(PathBuf),
}

/// The options of a new session.
#[derive(Debug, Clone, Default)]
pub struct NewSession {
    /// The working directory in the header.
    pub cwd: PathBuf,
    /// The directory for its file; `None` for a session in memory only.
    pub directory: Option<PathBuf>,
    /// The session id; `None` for a random UUID.
    pub id: Option<String>,
    /// The session that it comes from.
    pub parent_session: Option<String>,
}

/// An opened session with the notices of opening it.
#[derive(Debug)]
pub struct Opened {
    pub store: Store,
    /// Repairs, damage, and missing locks.
    pub notices: Vec<Notice>,
}

impl Store {
    /// Creates a session. Its path is fixed at once; the file is created with the first entry that does not select a
    /// model or a thinking level.
    pub fn create(options: NewSession) -> Result<Self, SessionError> {
        let NewSession {
            cwd,
            directory,
            id,
            parent_session,
        } = options;
        let header = Header::now(id, &cwd, parent_session);
        let location = match &directory {
            Some(directory) => {
                // As in pi, the directory exists from the start. If it cannot be created, the first write fails.
                drop(std::fs::create_dir_all(directory));
                SessionLocation::Later(directory.join(header.file_name()))
            }
            None => SessionLocation::Memory,
        };
        Ok(Self::from_parts(
            header,
            cwd,
            Tree::default(),
            location,
            directory,
        ))
    }

    /// Creates a session that will be stored at `path`, where no file exists yet.
    pub fn at_path(path: &Path, cwd: &Path) -> Self {
        let header = Header::now(None, cwd, None);
        let location = SessionLocation::Later(path.to_owned());
        Self::from_parts(
            header,
            cwd.to_owned(),
            Tree::default(),
            location,
            parent_of(path),
        )
    }

    /// Creates a session that has no file.
    pub fn in_memory(cwd: &Path) -> Self {
        Self::from_parts(
            Header::now(None, cwd, None),
            cwd.to_owned(),
            Tree::default(),
            SessionLocation::Memory,
            None,
        )
    }

    pub(crate) fn from_parts(
        header: Header,
        cwd: PathBuf,
        tree: Tree,
        location: SessionLocation,
        directory: Option<PathBuf>,
    ) -> Self {
        let leaf = tree.last_id().cloned();
        let is_new = matches!(location, SessionLocation::Later(_));
        Self {
            header,
            cwd,
            tree: Arc::new(tree),
            leaf,
            location,
            directory,
            notices: Vec::new(),
            verification: None,
            running_totals: RunningTotals::default(),
            saves: Saves::default(),
            is_new,
        }
    }

    pub fn id(&self) -> &str {
        &self.header.id
    }

    /// Returns the path of the session file, also before it exists; `None` in memory.
    pub fn file(&self) -> Option<&Path> {
        match &self.location {
            SessionLocation::Memory => None,
            SessionLocation::Later(path) | SessionLocation::ReadOnly(path) => Some(path),
            SessionLocation::File(session_file) => Some(session_file.path()),
        }
    }

    /// Reports whether the session file exists and has a header.
    pub fn is_on_disk(&self) -> bool {
        match &self.location {
            SessionLocation::Memory | SessionLocation::Later(_) => false,
            SessionLocation::ReadOnly(_) => true,
            SessionLocation::File(session_file) => session_file.is_begun(),
        }
    }

    pub fn header(&self) -> &Header {
        &self.header
    }

    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// Returns the directory for sessions made from this one.
    pub fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// Sets the directory for sessions made from this one.
    pub fn set_directory(&mut self, directory: PathBuf) {
        self.directory = Some(directory);
    }

    /// Appends an entry after the leaf, makes it the leaf, and saves it. Blocks.
    ///
    /// Once the session has a file, the entry is in it when this returns. If it cannot be written, the error is
    /// [`SessionError::NotSaved`]: the entry is nevertheless part of the session, the file ends with its last complete
    /// entry, and the next append tries again.
    pub fn append(&mut self, entry: NewEntry) -> Result<EntryId, SessionError> {
        let id = self.push(entry)?;
        match self.save() {
            Ok(()) => Ok(id),
            Err(source) => Err(self.not_saved(id, source)),
        }
    }

    /// Appends an entry after the leaf and makes it the leaf, in memory only; see [`Store::save_in_background`].
    pub fn push(&mut self, entry: NewEntry) -> Result<EntryId, SessionError> {
        if let SessionLocation::ReadOnly(path) = &self.location {
            return Err(SessionError::ReadOnly { path: path.clone() });
        }
        if let NewEntry::Label { target_id, .. } = &entry
            && self.tree.get(target_id).is_none()
        {
            return Err(SessionError::EntryNotFound(target_id.clone()));
        }
        let is_message = matches!(entry, NewEntry::Message(_));
        let id = self.tree.free_id();
        let entry = entry.into_entry(id.clone(), self.leaf.clone(), now_millis())?;
        let tree = Arc::make_mut(&mut self.tree);
        tree.push(entry);
        if is_message {
            // Its event follows, so it must be on disk, even if it is the system prompt.
            tree.mark_used();
        }
        self.leaf = Some(id.clone());
        Ok(id)
    }

    /// Counts the entries that should be in the file and are not.
    pub fn pending(&self) -> usize {
        match &self.location {
            SessionLocation::File(session_file)
                if session_file.is_begun() || self.tree.is_used() =>
            {
                session_file.pending(&self.tree)
            }
            SessionLocation::Later(_) if self.tree.is_used() => self.tree.entries().len(),
            _ => 0,
        }
    }

    /// Returns the notices since the last call. Each notice is returned once.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        let mut notices = std::mem::take(&mut self.notices);
        notices.extend(self.verification.iter().flat_map(Verification::take));
        notices
    }

    /// Returns the id of the last entry in file order.
    pub fn newest(&self) -> Option<EntryId> {
        self.tree.last_id().cloned()
    }

    /// Returns the id of the current entry; `None` if the next one will be a root.
    pub fn leaf(&self) -> Option<&str> {
        self.leaf.as_deref()
    }

    /// Makes another entry the current one; `None` makes the next entry a root. The file does not change.
    pub fn set_leaf(&mut self, leaf: Option<&str>) -> Result<(), SessionError> {
        self.leaf = match leaf {
            None => None,
            Some(id) => Some(
                self.tree
                    .get(id)
                    .map(|entry| entry.id.clone())
                    .ok_or_else(|| SessionError::EntryNotFound(id.to_owned()))?,
            ),
        };
        Ok(())
    }

    /// Returns all entries in file order.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.tree.entries().iter()
    }

    pub fn entry(&self, id: &str) -> Option<&Entry> {
        self.tree.get(id)
    }

    /// Returns the entries after `id` in file order; all entries for `None`.
    pub fn entries_since(&self, id: Option<&str>) -> Result<&[Entry], SessionError> {
        let from = match id {
            None => 0,
            Some(id) => {
                let at = self.tree.position(id);
                at.ok_or_else(|| SessionError::EntryNotFound(id.to_owned()))? + 1
            }
        };
        Ok(&self.tree.entries()[from..])
    }

    /// Returns the entries from the root to `leaf`; empty if `leaf` does not exist.
    pub fn path_to(&self, leaf: &str) -> Vec<&Entry> {
        self.tree.path_to(leaf)
    }

    /// Returns the entries from the root to the current leaf.
    pub fn path(&self) -> Vec<&Entry> {
        self.leaf
            .as_deref()
            .map(|leaf| self.tree.path_to(leaf))
            .unwrap_or_default()
    }

    /// Returns the conversation at the current leaf. Parses the messages, which takes time for a long session.
    pub fn context(&self) -> Context {
        Context::of(&self.path())
    }

    /// Returns model and thinking level at the current leaf, without parsing the conversation.
    pub fn choices(&self) -> SessionChoices {
        SessionChoices::of(&self.path())
    }

    /// Returns the conversation at another entry.
    pub fn context_at(&self, leaf: &str) -> Context {
        Context::of(&self.tree.path_to(leaf))
    }

    pub fn name(&self) -> Option<&str> {
        self.tree.name()
    }

    /// Returns the labels by their entry, in the order in which the entries were first labelled.
    pub fn labels(&self) -> Vec<(&EntryId, &Label)> {
        self.tree.labels()
    }

    /// Returns the time at which the label of an entry was set, ISO 8601.
    pub fn label_time(&self, id: &str) -> Option<String> {
        self.tree.label(id)?.at.map(crate::clock::iso)
    }

    pub fn label(&self, id: &str) -> Option<&str> {
        self.tree.label(id).map(|label| label.text.as_str())
    }

    /// Returns every user message with text, on all branches, in file order.
    pub fn user_messages(&self) -> Vec<(EntryId, String)> {
        self.tree
            .entries()
            .iter()
            .enumerate()
            .filter(|(at, entry)| {
                entry.is_message_of(Role::User) && self.tree.position(&entry.id) == Some(*at)
            })
            .filter_map(|(_, entry)| Some((entry.id.clone(), user_text(entry)?)))
            .filter(|(_, text)| !text.is_empty())
            .collect()
    }

    /// Requests a sync of the file and does not wait for it. Called at the end of a run.
    pub fn sync(&self) {
        if let SessionLocation::File(session_file) = &self.location {
            session_file.file().sync_soon();
        }
    }

    /// Writes pending entries and releases the file. Blocks.
    pub fn close(mut self) -> Result<(), SessionError> {
        self.save().map_err(|source| SessionError::Io {
            action: "write",
            path: self.file().unwrap_or(Path::new("")).to_owned(),
            source,
        })
    }

    /// Removes the file of a session that was made by this store and has no message of a conversation. Returns false
    /// if the file stays. Blocks.
    pub fn remove_without_messages(&mut self) -> bool {
        if !self.is_new || self.tree.has_conversation() {
            return false;
        }
        // A save on the store's thread must not create the file again.
        drop(self.save());
        let removed = match &self.location {
            SessionLocation::File(session_file) => {
                std::fs::remove_file(session_file.path()).is_ok()
            }
            SessionLocation::Later(_) => true,
            SessionLocation::Memory | SessionLocation::ReadOnly(_) => false,
        };
        if removed {
            self.location = SessionLocation::Memory;
        }
        removed
    }

    /// Writes pending entries and waits until they are on the disk. Called at shutdown.
    pub fn flush_and_sync(&mut self) -> Result<(), SessionError> {
        let saved = self.save().and_then(|()| match &self.location {
            SessionLocation::File(session_file) => session_file.file().sync_and_wait(),
            _ => Ok(()),
        });
        saved.map_err(|source| SessionError::Io {
            action: "flush",
            path: self.file().unwrap_or(Path::new("")).to_owned(),
            source,
        })
    }
}

/// Returns the text of a user message, with its blocks joined without a separator.
pub(crate) fn user_text(entry: &Entry) -> Option<String> {
    match &*entry.message()? {
        pinion_message::Message::User(message) => Some(message.content.joined_text("")),
        _ => None,
    }
}

/// Returns the directory of a file.
pub(crate) fn parent_of(path: &Path) -> Option<PathBuf> {
    path.parent().map(Path::to_owned)
}
