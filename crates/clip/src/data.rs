//! The stored files of clips: one private directory per clip, addressed `pinix://ALIAS/PATH`.
//!
//! Everything here works without the clip's process. Paths are untrusted: they are cleaned as text, and the kernel
//! resolves the rest beneath the clip's directory (`beneath.rs`). The functions block, except [`DataStore::serve`].

pub(crate) mod beneath;
mod mime;
pub(crate) mod path;

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use nix::errno::Errno;
use pinion_files::FileKind;
use serde::{Serialize, Serializer};

use crate::{ClipError, Code, alias};
use beneath::{Beneath, OpenMode};

pub use mime::mime_of;
pub(crate) use mime::type_of;
pub use path::{parse_uri, uri};

/// The longest file that is read or written, in bytes.
pub const MAX_FILE: usize = 32 * 1024 * 1024;
/// The most entries of a listing.
pub const MAX_ENTRIES: usize = 10_000;
/// The directory in which files are written before they are moved to their path. No alias starts with a dot.
const UNFINISHED: &str = ".unfinished";

/// A request for an operation on a clip's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataRequest {
    pub operation: DataOperation,
    /// The file or directory; empty for the root, which can only be listed.
    pub path: String,
    /// The alias of the clip whose files are meant; the requesting clip if `None`.
    pub clip: Option<String>,
}

/// An operation on a clip's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DataOperation {
    /// Read a whole file.
    Read,
    /// Write a whole file, and create its parent directories.
    Write {
        content: Bytes,
        /// The media type that the writer sent. This store derives types from file names and ignores it; other stores
        /// may use it.
        mime: String,
    },
    /// List a directory, without its subdirectories.
    List,
    /// Delete a file or an empty directory.
    Delete,
    /// Return a file's size, type and time of modification.
    Stat,
}

/// The result of an operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DataAnswer {
    /// The address of the written or deleted file.
    Uri(String),
    Content(#[serde(serialize_with = "as_base64")] Bytes),
    /// The contents of a directory, sorted by name.
    Entries(Vec<Entry>),
    Stat(Stat),
}

/// A file or directory in a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    pub name: String,
    /// The address, such as `pinix://todo/notes.txt`.
    pub path: String,
    pub r#type: EntryKind,
    /// The size in bytes.
    pub size: u64,
    /// The media type of a file, derived from its name; `None` for directories.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime: Option<Cow<'static, str>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EntryKind {
    File,
    Directory,
}

/// The metadata of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stat {
    /// The size in bytes.
    pub size: u64,
    /// The media type, derived from the name.
    pub mime: Cow<'static, str>,
    /// The time of the last modification: RFC 3339, UTC.
    pub modified: String,
}

/// The files of all clips, under one directory.
#[derive(Debug)]
pub struct DataStore {
    root: PathBuf,
}

impl DataStore {
    /// Opens the store in `root`, creates the directory if it is missing, and removes unfinished files of an earlier
    /// process.
    pub fn open(root: impl Into<PathBuf>) -> Result<Self, ClipError> {
        let store = Self { root: root.into() };
        let unfinished = store.root.join(UNFINISHED);
        let opened = remove_if_there(&unfinished).and_then(|()| fs::create_dir_all(&unfinished));
        opened.map_err(|error| ClipError::io(unfinished.display(), &error))?;
        Ok(store)
    }

    /// Returns the directory of a clip, and creates it if it is missing. The clip's process receives it as
    /// `PINIX_DATA_DIR`.
    pub fn directory(&self, alias: &str) -> Result<PathBuf, ClipError> {
        let directory = self.root.join(checked(alias)?);
        fs::create_dir_all(&directory)
            .map_err(|error| ClipError::io(directory.display(), &error))?;
        Ok(directory)
    }

    /// Deletes all files of a clip. If its directory is a link, the link is removed and not followed.
    pub fn purge(&self, alias: &str) -> Result<(), ClipError> {
        let directory = self.root.join(checked(alias)?);
        remove_if_there(&directory).map_err(|error| ClipError::io(directory.display(), &error))
    }

    /// Performs a request of the clip `from` on a thread that may block. A clip writes only its own files; it may read
    /// those of others.
    pub async fn serve(
        self: &Arc<Self>,
        from: &str,
        request: DataRequest,
    ) -> Result<DataAnswer, ClipError> {
        let target = request.clip.as_deref().unwrap_or(from);
        let target = alias::normalise(target).ok_or_else(|| ClipError::no_clip(target))?;
        let writes = matches!(
            request.operation,
            DataOperation::Write { .. } | DataOperation::Delete
        );
        if writes && target != from {
            return Err(ClipError::new(
                Code::PermissionDenied,
                format!("clip \"{from}\" may not change the files of clip \"{target}\""),
            ));
        }
        let store = self.clone();
        let work = move || store.perform(&target, request.operation, &request.path);
        match tokio::task::spawn_blocking(work).await {
            Ok(answer) => answer,
            Err(error) => Err(ClipError::new(Code::Internal, error.to_string())),
        }
    }

    /// Performs one operation. Blocks.
    pub fn perform(
        &self,
        alias: &str,
        operation: DataOperation,
        path: &str,
    ) -> Result<DataAnswer, ClipError> {
        match operation {
            DataOperation::Read => {
                let read = self.read(alias, path);
                read.map(|bytes| DataAnswer::Content(bytes.into()))
            }
            DataOperation::Write { content, .. } => {
                self.write(alias, path, &content).map(DataAnswer::Uri)
            }
            DataOperation::List => self.list(alias, path).map(DataAnswer::Entries),
            DataOperation::Delete => self.delete(alias, path).map(DataAnswer::Uri),
            DataOperation::Stat => self.stat(alias, path).map(DataAnswer::Stat),
        }
    }

    /// Reads a file. Fails if it is longer than [`MAX_FILE`].
    pub fn read(&self, alias: &str, path: &str) -> Result<Vec<u8>, ClipError> {
        let place = self.data_path(alias, path)?;
        let file = place.open(OpenMode::File)?;
        let metadata = file.metadata().map_err(|error| place.io(&error))?;
        if !metadata.is_file() {
            return Err(place.not_a_file());
        }
        if metadata.len() > MAX_FILE as u64 {
            return Err(place.too_large());
        }
        let mut bytes = Vec::with_capacity(metadata.len() as usize);
        let mut limited = file.take(MAX_FILE as u64 + 1);
        limited
            .read_to_end(&mut bytes)
            .map_err(|error| place.io(&error))?;
        // The file may have grown since its length was read.
        if bytes.len() > MAX_FILE {
            return Err(place.too_large());
        }
        Ok(bytes)
    }

    /// Writes a file, whole or not at all, and returns its address.
    pub fn write(&self, alias: &str, path: &str, bytes: &[u8]) -> Result<String, ClipError> {
        self.directory(alias)?;
        let place = self.data_path(alias, path)?;
        if bytes.len() > MAX_FILE {
            return Err(place.too_large());
        }
        // Writing would only replace a link that leads out of the directory, but every other operation refuses such a
        // link.
        match place.open(OpenMode::Reference) {
            Err(error) if error.code == Code::PermissionDenied => return Err(error),
            Ok(there) => {
                let metadata = there.metadata().map_err(|error| place.io(&error))?;
                if !matches!(
                    FileKind::of(&metadata),
                    FileKind::Regular | FileKind::Directory
                ) {
                    let message = format!("\"{path}\" cannot be written: it is not a regular file");
                    return Err(ClipError::new(Code::FailedPrecondition, message));
                }
            }
            Err(_) => {}
        }
        let parents = place.beneath()?.make_parents(&place.path);
        let (parent, name) = parents.map_err(|errno| match errno {
            Errno::ENOTDIR | Errno::ENOENT => {
                let message = format!("\"{path}\" cannot be written: a file is in the way");
                ClipError::new(Code::FailedPrecondition, message)
            }
            errno => place.errno(errno),
        })?;
        let unfinished = self
            .root
            .join(UNFINISHED)
            .join(uuid::Uuid::new_v4().to_string());
        let written = pinion_files::create_new(&unfinished, 0o666)
            .and_then(|mut file| file.write_all(bytes))
            .map_err(|error| place.io(&error))
            .and_then(|()| {
                let here = nix::fcntl::AT_FDCWD;
                nix::fcntl::renameat(here, &unfinished, &parent, name)
                    .map_err(|errno| place.errno(errno))
            });
        if written.is_err() {
            let _ = fs::remove_file(&unfinished);
        }
        written.map(|()| place.uri())
    }

    /// Lists a directory. A directory that does not exist is empty.
    pub fn list(&self, alias: &str, path: &str) -> Result<Vec<Entry>, ClipError> {
        let path = path::clean(path)?;
        let place = DataPath {
            store: self,
            alias: checked(alias)?,
            path,
        };
        let opened = place.beneath().and_then(|root| {
            let directory = root.open(&place.path, OpenMode::Directory);
            let directory = directory.map_err(|errno| place.errno(errno))?;
            Ok((root, directory))
        });
        let (root, directory) = match opened {
            Ok(opened) => opened,
            Err(error) if error.code == Code::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut entries = Vec::new();
        for entry in beneath::names(&directory).map_err(|error| place.io(&error))? {
            let Ok(name) = entry.map_err(|error| place.io(&error))?.into_string() else {
                continue;
            };
            let path = path::joined(&place.path, &name);
            // Links that are broken or lead out of the directory are not listed.
            let Ok(metadata) = root
                .open(&path, OpenMode::Reference)
                .map_err(io::Error::from)
                .and_then(|file| file.metadata())
            else {
                continue;
            };
            if entries.len() == MAX_ENTRIES {
                let message = format!("\"{}\" has more than {MAX_ENTRIES} entries", place.path);
                return Err(ClipError::new(Code::ResourceExhausted, message));
            }
            let is_directory = metadata.is_dir();
            entries.push(Entry {
                path: uri(place.alias, &path),
                r#type: if is_directory {
                    EntryKind::Directory
                } else {
                    EntryKind::File
                },
                size: metadata.len(),
                mime: (!is_directory).then(|| mime_of(&name).into()),
                name,
            });
        }
        entries.sort_by(|left, right| left.name.cmp(&right.name));
        Ok(entries)
    }

    /// Deletes a file or an empty directory and returns the address it had.
    pub fn delete(&self, alias: &str, path: &str) -> Result<String, ClipError> {
        let place = self.data_path(alias, path)?;
        place
            .beneath()?
            .remove(&place.path)
            .map_err(|errno| match errno {
                Errno::ENOTEMPTY | Errno::EEXIST => ClipError::new(
                    Code::FailedPrecondition,
                    format!(
                        "\"{}\" is not empty; delete what is in it first",
                        place.path
                    ),
                ),
                errno => place.errno(errno),
            })?;
        Ok(place.uri())
    }

    /// Returns the size, type and time of modification of a file.
    pub fn stat(&self, alias: &str, path: &str) -> Result<Stat, ClipError> {
        let place = self.data_path(alias, path)?;
        let metadata = place
            .open(OpenMode::Reference)?
            .metadata()
            .map_err(|error| place.io(&error))?;
        let modified = metadata.modified().map_err(|error| place.io(&error))?;
        let seconds = modified
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |age| age.as_secs());
        let modified = jiff::Timestamp::from_second(seconds as i64).unwrap_or_default();
        Ok(Stat {
            size: metadata.len(),
            mime: mime_of(&place.path).into(),
            modified: modified.to_string(),
        })
    }

    fn data_path<'a>(&'a self, alias: &'a str, path: &str) -> Result<DataPath<'a>, ClipError> {
        let path = path::clean(path)?;
        if path.is_empty() {
            return Err(ClipError::invalid("path is required"));
        }
        Ok(DataPath {
            store: self,
            alias: checked(alias)?,
            path,
        })
    }
}

/// One path of one clip, with the errors about it.
struct DataPath<'a> {
    store: &'a DataStore,
    alias: &'a str,
    /// The result of [`path::clean`].
    path: String,
}

impl DataPath<'_> {
    fn beneath(&self) -> Result<Beneath, ClipError> {
        Beneath::at(&self.store.root, self.alias).map_err(|errno| self.errno(errno))
    }

    fn open(&self, mode: OpenMode) -> Result<File, ClipError> {
        self.beneath()?
            .open(&self.path, mode)
            .map_err(|errno| self.errno(errno))
    }

    fn uri(&self) -> String {
        uri(self.alias, &self.path)
    }

    fn io(&self, error: &io::Error) -> ClipError {
        match error.raw_os_error() {
            Some(number) => self.errno(Errno::from_raw(number)),
            None => ClipError::io(self.uri(), error),
        }
    }

    fn errno(&self, errno: Errno) -> ClipError {
        let (path, alias) = (&self.path, self.alias);
        match errno {
            Errno::ENOENT | Errno::ENOTDIR => ClipError::new(
                Code::NotFound,
                format!("file \"{path}\" not found in clip \"{alias}\""),
            ),
            Errno::EXDEV | Errno::ELOOP => ClipError::new(
                Code::PermissionDenied,
                format!("\"{path}\" leads out of the files of clip \"{alias}\""),
            ),
            Errno::EACCES | Errno::EPERM => ClipError::new(
                Code::PermissionDenied,
                format!("\"{path}\" of clip \"{alias}\" may not be used: {errno}"),
            ),
            Errno::EISDIR | Errno::ENXIO | Errno::ENAMETOOLONG => self.not_a_file(),
            Errno::ENOSPC | Errno::EDQUOT => {
                ClipError::new(Code::ResourceExhausted, format!("{}: {errno}", self.uri()))
            }
            errno => ClipError::new(Code::Internal, format!("{}: {errno}", self.uri())),
        }
    }

    fn not_a_file(&self) -> ClipError {
        ClipError::invalid(format!(
            "\"{}\" of clip \"{}\" is not a file",
            self.path, self.alias
        ))
    }

    fn too_large(&self) -> ClipError {
        ClipError::new(
            Code::ResourceExhausted,
            format!(
                "\"{}\" of clip \"{}\" is larger than 32 MiB, the most that is read or written at once",
                self.path, self.alias
            ),
        )
    }
}

/// Returns `alias` if it is valid. Aliases are directory names here, so nothing else may be accepted.
fn checked(alias: &str) -> Result<&str, ClipError> {
    if alias::is_alias(alias) {
        Ok(alias)
    } else {
        Err(ClipError::no_clip(alias))
    }
}

/// Removes a file, a link or a whole directory. A missing one is not an error.
pub(crate) fn remove_if_there(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Decodes base64 with or without padding, because clips write both.
pub(crate) fn from_base64(text: &str) -> Result<Vec<u8>, ClipError> {
    use base64::alphabet::STANDARD as ALPHABET;
    use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
    const LENIENT: GeneralPurpose = GeneralPurpose::new(
        &ALPHABET,
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
    );
    LENIENT
        .decode(text.trim())
        .map_err(|error| ClipError::invalid(format!("content is not base64: {error}")))
}

fn as_base64<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&STANDARD.encode(bytes))
}
