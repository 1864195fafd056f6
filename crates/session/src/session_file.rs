//! The session file: created late, locked, and extended by one `write` per append.
//!
//! After a failed write the file ends with its last complete line again, and the next append writes all missing
//! entries. Another program may append to the same file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use crate::durability::DurableFile;
use crate::entry::Entry;
use crate::lock::{self, LockOutcome};
use crate::tree::Tree;
use crate::{Notice, SessionError, clock};

/// The largest file that is read into memory as a whole, in bytes.
///
/// An intact session may be larger: only the heads of its lines are held in memory.
pub(crate) const SIZE_LIMIT: u64 = 512 << 20;

/// The file of a store, open for appending. Copies share the open file and its lock.
#[derive(Debug, Clone)]
pub(crate) struct SessionFile {
    path: PathBuf,
    file: Arc<DurableFile>,
    _lock: Arc<LockGuard>,
    /// The expected length in bytes; another length shows that another program wrote to the file.
    length: u64,
    /// The file has a header.
    begun: bool,
    /// The number of entries of the tree that are in the file.
    written: usize,
    /// The repair to make before the next append.
    repair: Repair,
    foreign_writer_seen: bool,
}

/// A repair of the end of a file, made before the next append.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Repair {
    #[default]
    None,
    AddNewline,
    /// Move everything from this offset to a second file in the same directory.
    CutTail {
        from: u64,
        torn: Bytes,
    },
}

impl SessionFile {
    /// Opens and locks an existing file.
    pub(crate) fn open(path: &Path, notices: &mut Vec<Notice>) -> Result<Self, SessionError> {
        // A migration replaces the file under its name; it happens once, so three attempts are enough.
        let mut attempts = 0;
        let file = loop {
            let file = pinion_files::open_with(OpenOptions::new().read(true).append(true), path)
                .map_err(SessionError::io("open", path))?;
            attempts += 1;
            match lock::acquire(&file, path)? {
                LockOutcome::Held => break file,
                LockOutcome::Moved if attempts < 3 => {}
                LockOutcome::Moved | LockOutcome::Unsupported => {
                    notices.push(Notice::new(
                        "session_not_locked",
                        format!(
                            "{} could not be locked; do not open it in two programs",
                            path.display()
                        ),
                    ));
                    break file;
                }
            }
        };
        Ok(Self::from_parts(file, path, 0, None))
    }

    /// Reads the whole file.
    pub(crate) fn read(&mut self) -> Result<Bytes, SessionError> {
        let content = read_all(&self.file.file, &self.path)?;
        self.length = content.len() as u64;
        Ok(content)
    }

    /// Sets the expected length of the file.
    pub(crate) fn of_length(mut self, length: u64) -> Self {
        self.length = length;
        self
    }

    /// Creates the file, or takes over an empty one.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let directory = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        if let Some(directory) = directory {
            fs::create_dir_all(directory)?;
        }
        let mut options = OpenOptions::new();
        options.read(true).append(true);
        let file = match pinion_files::open_with(options.clone().create_new(true), path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                pinion_files::open_with(&mut options, path)?
            }
            file => file?,
        };
        if let Err(error @ SessionError::Locked { .. }) = lock::acquire(&file, path) {
            return Err(io::Error::new(ErrorKind::WouldBlock, error));
        }
        if file.metadata()?.len() > 0 {
            return Err(io::Error::new(
                ErrorKind::AlreadyExists,
                "another program has created a file at this path",
            ));
        }
        Ok(Self::from_parts(
            file,
            path,
            0,
            Some(directory.unwrap_or(Path::new("."))),
        ))
    }

    fn from_parts(file: File, path: &Path, length: u64, new_in: Option<&Path>) -> Self {
        let file = DurableFile::new(file, new_in.map(Path::to_owned));
        Self {
            path: path.to_owned(),
            _lock: Arc::new(LockGuard(Arc::clone(&file))),
            file,
            length,
            begun: false,
            written: 0,
            repair: Repair::None,
            foreign_writer_seen: false,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn file(&self) -> &Arc<DurableFile> {
        &self.file
    }

    /// Records that the file has a header and the first `written` entries of the tree.
    pub(crate) fn holds(mut self, written: usize) -> Self {
        self.begun = true;
        self.written = written;
        self
    }

    /// Sets the repair to make before the next append.
    pub(crate) fn needs(mut self, repair: Repair) -> Self {
        self.repair = repair;
        self
    }

    /// Reports whether the file has a header.
    pub(crate) fn is_begun(&self) -> bool {
        self.begun
    }

    /// Counts the entries of the tree that are not in the file.
    pub(crate) fn pending(&self, tree: &Tree) -> usize {
        tree.entries().len() - self.written
    }

    /// Replaces the whole content by writing a second file and renaming it, so that the file is never incomplete.
    ///
    /// If the path is a symbolic link, its target is replaced and the link stays. Fails if the path no longer leads to
    /// the regular file that is open.
    pub(crate) fn replace(self, content: &[u8]) -> Result<Self, SessionError> {
        let fail = || SessionError::io("rewrite", &self.path);
        let target = pinion_files::locate(&self.path).map_err(fail())?.path;
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let fresh = target.with_file_name(format!(".{name}.{}.new", std::process::id()));
        let written = (|| {
            let mut options = OpenOptions::new();
            options.read(true).append(true).create_new(true);
            let mut file = pinion_files::open_with(&mut options, &fresh)?;
            file.set_permissions(self.file.file.metadata()?.permissions())?;
            // Locked before the rename makes it visible to other processes.
            drop(lock::acquire(&file, &fresh));
            file.write_all(content)?;
            file.sync_all()?;
            if !pinion_files::is_at(&self.file.file, &target)? {
                return Err(io::Error::other(
                    "another program has created a file at this path",
                ));
            }
            fs::rename(&fresh, &target)?;
            Ok(file)
        })();
        match written {
            Ok(file) => {
                let parent = target.parent();
                Ok(Self::from_parts(
                    file,
                    &self.path,
                    content.len() as u64,
                    parent,
                ))
            }
            Err(error) => {
                drop(fs::remove_file(&fresh));
                Err(fail()(error))
            }
        }
    }

    /// Appends `entries`, which are all that are not in the file, in one write.
    ///
    /// If the file was removed or emptied, nothing is written, [`SessionFile::pending`] counts every entry, and the next
    /// call writes them all.
    pub(crate) fn append(
        &mut self,
        header: &[u8],
        entries: &[Entry],
        notices: &mut Vec<Notice>,
    ) -> io::Result<()> {
        if entries.is_empty() {
            return Ok(());
        }
        self.repair_tail(notices)?;
        let mut metadata = self.file.file.metadata()?;
        let were_written = self.written > 0;
        if metadata.nlink() == 0 {
            notices.push(Notice::new(
                "session_file_removed",
                format!("{} was removed and is written anew", self.path.display()),
            ));
            (self.begun, self.written) = (false, 0);
            *self = Self::create(&self.path)?;
            metadata = self.file.file.metadata()?;
        }
        let mut out = Vec::new();
        if metadata.len() != self.length {
            self.report_foreign_writer(metadata.len(), notices);
            if metadata.len() > 0 && !self.ends_with_newline(metadata.len())? {
                out.push(b'\n');
            }
        } else if self.repair == Repair::AddNewline {
            out.push(b'\n');
        }
        if metadata.len() == 0 || !self.begun {
            (self.begun, self.written) = (false, 0);
            if were_written {
                return Ok(());
            }
            out.clear();
            out.extend_from_slice(header);
            out.push(b'\n');
        }
        for entry in entries {
            out.extend_from_slice(&entry.line()?);
            out.push(b'\n');
        }
        write_or_undo(&self.file.file, &out)?;
        self.length = metadata.len() + out.len() as u64;
        self.begun = true;
        self.written += entries.len();
        self.repair = Repair::None;
        self.file.written();
        Ok(())
    }

    fn report_foreign_writer(&mut self, length: u64, notices: &mut Vec<Notice>) {
        if !std::mem::replace(&mut self.foreign_writer_seen, true) {
            let what = if length > self.length {
                "appended to"
            } else {
                "shortened"
            };
            notices.push(Notice::new(
                "session_foreign_writer",
                format!(
                    "another program has {what} {}; its entries are seen when the session is opened again",
                    self.path.display()
                ),
            ));
        }
    }

    fn ends_with_newline(&self, length: u64) -> io::Result<bool> {
        let mut last = [0];
        self.file.file.read_exact_at(&mut last, length - 1)?;
        Ok(last == *b"\n")
    }

    /// Moves a torn tail to its own file. The bytes are synced there before they are cut here.
    fn repair_tail(&mut self, notices: &mut Vec<Notice>) -> io::Result<()> {
        let Repair::CutTail { from, torn } = &self.repair else {
            return Ok(());
        };
        if self.file.file.metadata()?.len() == self.length {
            let stamp = clock::for_file_name(&clock::iso(pinion_message::now_millis()));
            let mut name = self.path.clone().into_os_string();
            name.push(format!(".torn-{stamp}"));
            let mut aside = pinion_files::create_new(Path::new(&name), 0o666)?;
            let saved = aside.write_all(torn).and_then(|()| aside.sync_all());
            if let Err(error) = saved {
                drop(fs::remove_file(&name));
                return Err(error);
            }
            self.file.file.set_len(*from)?;
            self.length = *from;
            notices.push(Notice::new(
                "session_tail_repaired",
                format!(
                    "{} unreadable bytes at the end of {} were moved to {}",
                    torn.len(),
                    self.path.display(),
                    Path::new(&name).display()
                ),
            ));
        }
        self.repair = Repair::None;
        Ok(())
    }
}

/// Releases the lock when it is dropped: the background thread may hold the file open for a moment longer.
#[derive(Debug)]
struct LockGuard(Arc<DurableFile>);

impl Drop for LockGuard {
    fn drop(&mut self) {
        drop(self.0.file.unlock());
        self.0.sync_soon();
    }
}

/// Reads the whole file from its beginning, whatever the position of its cursor. `path` is for the error.
pub(crate) fn read_all(file: &File, path: &Path) -> Result<Bytes, SessionError> {
    let fail = || SessionError::io("read", path);
    let size = file.metadata().map_err(fail())?.len();
    if size > SIZE_LIMIT {
        return Err(SessionError::TooLarge {
            path: path.to_owned(),
            size,
        });
    }
    read_first(file, size as usize).map_err(fail())
}

/// Reads at most `length` bytes.
fn read_first(file: &File, length: usize) -> io::Result<Bytes> {
    let mut content = vec![0; length];
    let mut filled = 0;
    while filled < length {
        match file.read_at(&mut content[filled..], filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    content.truncate(filled);
    Ok(Bytes::from(content))
}

/// Writes all of `bytes` at the end of the file, or restores its length and fails.
fn write_or_undo(mut file: &File, bytes: &[u8]) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        let error = match file.write(&bytes[done..]) {
            Ok(0) => ErrorKind::WriteZero.into(),
            Ok(count) => {
                done += count;
                continue;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => error,
        };
        if done > 0 {
            let length = file.metadata()?.len();
            file.set_len(length.saturating_sub(done as u64))?;
        }
        return Err(error);
    }
    Ok(())
}
