//! One session: its header, its tree of entries, the current leaf, and its file.

use std::path::{Path, PathBuf};

use pinion_message::now_millis;

use crate::context::{Choices, Context};
use crate::disk::Disk;
use crate::entry::{Entry, EntryId, Role};
use crate::quick::Verification;
use crate::record::NewEntry;
use crate::stats::Tally;
use crate::tree::{Label, Tree};
use crate::{Header, Notice, SessionError};

/// One session: a tree of entries with a current leaf, in memory and, once something was said in it, in
/// a file this process alone writes.
///
/// A store is not shared: whoever owns it is the writer. Dropping it releases the file.
#[derive(Debug)]
pub struct Store {
    pub(crate) header: Header,
    pub(crate) cwd: PathBuf,
    pub(crate) tree: Tree,
    pub(crate) leaf: Option<EntryId>,
    pub(crate) place: Place,
    /// Where sessions made from this one go; `None` keeps them in memory.
    pub(crate) directory: Option<PathBuf>,
    pub(crate) notices: Vec<Notice>,
    /// The file is large and is being looked through.
    pub(crate) verification: Option<Verification>,
    /// What was counted so far.
    pub(crate) tally: Tally,
}

/// Where a session is kept.
#[derive(Debug)]
pub(crate) enum Place {
    Memory,
    /// In a file that will be made when there is something to keep.
    Later(PathBuf),
    File(Disk),
    /// In a file somebody else may be writing.
    ReadOnly(PathBuf),
}

/// How a new session begins.
#[derive(Debug, Clone, Default)]
pub struct NewSession {
    /// The working directory it records.
    pub cwd: PathBuf,
    /// The directory its file goes to; `None` for a session that is never written.
    pub directory: Option<PathBuf>,
    /// Its id; a random UUID if not given.
    pub id: Option<String>,
    /// The session it comes from.
    pub parent_session: Option<String>,
}

/// A session and what happened while it was opened.
#[derive(Debug)]
pub struct Opened {
    /// The session.
    pub store: Store,
    /// Repairs, damage, and locks that could not be had.
    pub notices: Vec<Notice>,
}

impl Store {
    /// Begins a session. Its path is known at once; the file comes with the first entry that is not a choice of model or level.
    pub fn create(options: NewSession) -> Result<Self, SessionError> {
        let NewSession {
            cwd,
            directory,
            id,
            parent_session,
        } = options;
        let header = Header::now(id, &cwd, parent_session);
        let place = match &directory {
            Some(directory) => {
                // Like pi, the directory is there from the start; if it cannot be made, the
                // first write says so.
                drop(std::fs::create_dir_all(directory));
                Place::Later(directory.join(header.file_name()))
            }
            None => Place::Memory,
        };
        Ok(Self::around(header, cwd, Tree::default(), place, directory))
    }

    /// Begins a session that will be stored at `path`, where there is nothing yet.
    pub fn at_path(path: &Path, cwd: &Path) -> Self {
        let header = Header::now(None, cwd, None);
        let place = Place::Later(path.to_owned());
        Self::around(
            header,
            cwd.to_owned(),
            Tree::default(),
            place,
            parent_of(path),
        )
    }

    pub(crate) fn around(
        header: Header,
        cwd: PathBuf,
        tree: Tree,
        place: Place,
        directory: Option<PathBuf>,
    ) -> Self {
        let leaf = tree.last_id().cloned();
        Self {
            header,
            cwd,
            tree,
            leaf,
            place,
            directory,
            notices: Vec::new(),
            verification: None,
            tally: Tally::default(),
        }
    }

    /// The session id.
    pub fn id(&self) -> &str {
        &self.header.id
    }

    /// The path of the session file, also before it exists; `None` in memory.
    pub fn file(&self) -> Option<&Path> {
        match &self.place {
            Place::Memory => None,
            Place::Later(path) | Place::ReadOnly(path) => Some(path),
            Place::File(disk) => Some(disk.path()),
        }
    }

    /// Whether the session file exists with at least a header in it.
    pub fn is_on_disk(&self) -> bool {
        match &self.place {
            Place::Memory | Place::Later(_) => false,
            Place::ReadOnly(_) => true,
            Place::File(disk) => disk.is_begun(),
        }
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The working directory of the session.
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// Where sessions made from this one are stored.
    pub fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// Stores sessions made from this one in `directory`.
    pub fn set_directory(&mut self, directory: PathBuf) {
        self.directory = Some(directory);
    }

    /// Appends an entry after the leaf and makes it the leaf.
    ///
    /// Once the session has a file, the entry is in it when this returns. If it cannot be written,
    /// the error is [`SessionError::NotSaved`]: the entry is part of the session all the same, the file
    /// ends with its last complete entry, and the next append tries again.
    pub fn append(&mut self, entry: NewEntry) -> Result<EntryId, SessionError> {
        if let Place::ReadOnly(path) = &self.place {
            return Err(SessionError::ReadOnly { path: path.clone() });
        }
        if let NewEntry::Label { target_id, .. } = &entry
            && self.tree.get(target_id).is_none()
        {
            return Err(SessionError::EntryNotFound(target_id.clone()));
        }
        let id = self.tree.free_id();
        let entry = entry.into_entry(id.clone(), self.leaf.clone(), now_millis())?;
        self.tree.push(entry);
        self.leaf = Some(id.clone());
        self.save().map_err(|source| SessionError::NotSaved {
            id: id.clone(),
            path: self.file().unwrap_or(Path::new("")).to_owned(),
            pending: self.pending(),
            source,
        })?;
        Ok(id)
    }

    /// Writes what is not in the file yet, if the session is one that has a file.
    pub(crate) fn save(&mut self) -> std::io::Result<()> {
        if let Place::Later(path) = &self.place {
            if !self.tree.is_used() {
                return Ok(());
            }
            self.place = Place::File(Disk::create(path)?);
        }
        if let Place::File(disk) = &mut self.place
            && (disk.is_begun() || self.tree.is_used())
        {
            disk.append(&self.header, &self.tree, &mut self.notices)?;
            if let Some(error) = disk.file().take_failure() {
                self.notices.push(Notice::new(
                    "session_not_durable",
                    format!(
                        "{} could not be flushed to disk: {error}",
                        disk.path().display()
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Entries that should be in the file and are not.
    pub fn pending(&self) -> usize {
        match &self.place {
            Place::File(disk) => disk.pending(&self.tree),
            Place::Later(_) if self.tree.is_used() => self.tree.entries().len(),
            _ => 0,
        }
    }

    /// What happened since the session was opened that somebody should know; each is told once.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        let mut notices = std::mem::take(&mut self.notices);
        notices.extend(self.verification.iter().flat_map(Verification::take));
        notices
    }

    /// The current entry; `None` if the next one will be a root.
    pub fn leaf(&self) -> Option<&str> {
        self.leaf.as_deref()
    }

    /// Continues from another entry, or from nothing. The file does not change.
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

    /// All entries in file order.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.tree.entries().iter()
    }

    /// The entry with this id.
    pub fn entry(&self, id: &str) -> Option<&Entry> {
        self.tree.get(id)
    }

    /// The entries strictly after `id` in file order, all of them without one.
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

    /// The entries from the root to `leaf`; empty if there is no such entry.
    pub fn path_to(&self, leaf: &str) -> Vec<&Entry> {
        self.tree.path_to(leaf)
    }

    /// The entries from the root to the current leaf.
    pub fn path(&self) -> Vec<&Entry> {
        self.leaf
            .as_deref()
            .map(|leaf| self.tree.path_to(leaf))
            .unwrap_or_default()
    }

    /// The conversation at the current leaf. Messages read from the file are parsed here.
    pub fn context(&self) -> Context {
        Context::of(&self.path())
    }

    /// Model and thinking level at the current leaf, without reading the conversation.
    pub fn choices(&self) -> Choices {
        Choices::of(&self.path())
    }

    /// The conversation at another entry.
    pub fn context_at(&self, leaf: &str) -> Context {
        Context::of(&self.tree.path_to(leaf))
    }

    /// The session's name.
    pub fn name(&self) -> Option<&str> {
        self.tree.name()
    }

    /// Labels by the entry they name, in the order those were first named.
    pub fn labels(&self) -> Vec<(&EntryId, &Label)> {
        self.tree.labels()
    }

    /// The label of an entry.
    pub fn label(&self, id: &str) -> Option<&str> {
        self.tree.label(id).map(|label| label.text.as_str())
    }

    /// Every user message that has text, on all branches, in file order.
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

    /// Asks for durability now, without waiting: for the end of a run.
    pub fn sync(&self) {
        if let Place::File(disk) = &self.place {
            disk.file().sync_soon();
        }
    }

    /// Writes what is pending and waits until the disk has it: for shutdown.
    pub fn flush_and_sync(&mut self) -> Result<(), SessionError> {
        let saved = self.save().and_then(|()| match &self.place {
            Place::File(disk) => disk.file().sync_and_wait(),
            _ => Ok(()),
        });
        saved.map_err(|source| SessionError::Io {
            action: "flush",
            path: self.file().unwrap_or(Path::new("")).to_owned(),
            source,
        })
    }
}

/// The text of a user message, blocks joined with nothing between them.
pub(crate) fn user_text(entry: &Entry) -> Option<String> {
    match &*entry.message()? {
        pinion_message::Message::User(message) => Some(message.content.joined_text("")),
        _ => None,
    }
}

/// The directory of a file, in a form that can be joined to.
pub(crate) fn parent_of(path: &Path) -> Option<PathBuf> {
    path.parent().map(Path::to_owned)
}
