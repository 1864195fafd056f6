//! The web pages of a clip: files under one directory of its package.
//!
//! Paths are untrusted: they are cleaned as text, and the kernel resolves the rest beneath the directory of the pages.
//! The caller speaks HTTP; [`parse_range`] and [`content_range`] convert header fields for it, [`decode_path`] the path
//! of an address. Nothing here starts the clip.

mod etag;
mod range;
mod sniff;

use std::borrow::Cow;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use nix::errno::Errno;

use crate::data::beneath::{Beneath, OpenMode};
use crate::data::path;
use crate::package::Package;
use crate::{ClipError, Code};
use etag::{Etags, Identity};

pub use range::{ByteRange, content_range, decode_path, parse_range};

/// The most bytes of one answer. Longer files are requested in pieces.
pub const MAX_PIECE: u64 = 32 * 1024 * 1024;
/// The number of attempts to read a file that changes while it is read.
const ATTEMPTS: usize = 4;
const INDEX: &str = "index.html";
/// The file of bindings, which holds secrets. It may lie beside the program, even among the pages, and is never served.
const BINDINGS: &str = "bindings.json";

/// A request for a file of a clip's pages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WebRequest {
    /// The path; a leading `/` makes no difference.
    pub path: String,
    /// The value of `If-None-Match` as it was sent; empty if it is missing.
    pub if_none_match: String,
    /// The first byte.
    pub offset: u64,
    /// The number of bytes; 0 for all to the end.
    pub length: u64,
}

/// A file of a clip's pages, or a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebAnswer {
    /// The requested bytes; empty if `not_modified` is set.
    pub content: Bytes,
    /// The media type.
    pub content_type: Cow<'static, str>,
    /// The SHA-256 of the whole file, in quotes.
    pub etag: String,
    /// The length of the whole file, in bytes.
    pub total_size: u64,
    /// The client has this version of the file already.
    pub not_modified: bool,
    /// The requested file does not exist; this is the whole start page, whatever part was requested.
    pub is_fallback: bool,
}

/// The web pages of one clip.
#[derive(Debug)]
pub struct WebFiles {
    alias: String,
    /// The directory of the clip.
    directory: PathBuf,
    /// The directory of the pages, relative to `directory`.
    web: String,
    etags: Etags,
}

impl WebFiles {
    /// Creates the pages of a package that is installed as `alias`.
    pub fn new(alias: impl Into<String>, package: &Package) -> Self {
        Self {
            alias: alias.into(),
            directory: package.directory.clone(),
            web: package.web.clone(),
            etags: Etags::default(),
        }
    }

    /// Answers a request on a thread that may block.
    pub async fn serve(self: &Arc<Self>, request: WebRequest) -> Result<WebAnswer, ClipError> {
        let files = self.clone();
        match tokio::task::spawn_blocking(move || files.answer(&request)).await {
            Ok(answer) => answer,
            Err(error) => Err(ClipError::new(Code::Internal, error.to_string())),
        }
    }

    /// Answers a request. Blocks.
    ///
    /// A start beyond the end is [`Code::OutOfRange`], more than [`MAX_PIECE`] at once [`Code::ResourceExhausted`].
    pub fn answer(&self, request: &WebRequest) -> Result<WebAnswer, ClipError> {
        let path = path::clean(request.path.trim_start_matches('/'))
            .map_err(|_| self.not_found(&request.path))?;
        let root = self.root()?;
        let whole = WebRequest {
            offset: 0,
            length: 0,
            ..request.clone()
        };
        match self.find(&root, &path) {
            Ok((file, name)) => self.read(&file, &name, request),
            Err(errno) if is_missing(errno) && !has_dot(&path) => {
                let (file, name) = self
                    .find(&root, INDEX)
                    .map_err(|errno| self.errno(&path, errno))?;
                let answer = self.read(&file, &name, &whole)?;
                Ok(WebAnswer {
                    is_fallback: true,
                    ..answer
                })
            }
            Err(errno) => Err(self.errno(&path, errno)),
        }
    }

    /// Opens the directory of the pages: its subdirectory `dist` if that has a start page.
    fn root(&self) -> Result<Beneath, ClipError> {
        let unavailable = |_| {
            let message = format!("clip \"{}\" web unavailable", self.alias);
            ClipError::new(Code::NotFound, message)
        };
        let clip = Beneath::root(&self.directory).map_err(unavailable)?;
        let web = clip.beneath(&self.web).map_err(unavailable)?;
        let built = web.beneath("dist");
        Ok(match built {
            Ok(built) if is_file(&built, INDEX) => built,
            _ => web,
        })
    }

    /// Opens a file, or the start page of a directory, and returns its name.
    fn find(&self, root: &Beneath, path: &str) -> nix::Result<(File, String)> {
        let mut name = path.to_owned();
        // At most one step down: a directory may be named like a start page.
        for _ in 0..2 {
            if name.rsplit('/').next() == Some(BINDINGS) {
                return Err(Errno::ENOENT);
            }
            let found = root.open(&name, OpenMode::Reference)?;
            let metadata = found.metadata().map_err(errno_of)?;
            if metadata.is_file() {
                return Ok((root.open(&name, OpenMode::File)?, name));
            }
            if !metadata.is_dir() {
                return Err(Errno::ENOENT);
            }
            name = path::joined(&name, INDEX);
        }
        Err(Errno::ENOENT)
    }

    fn read(&self, file: &File, name: &str, request: &WebRequest) -> Result<WebAnswer, ClipError> {
        let io_error = |error: io::Error| self.errno(name, errno_of(error));
        for _ in 0..ATTEMPTS {
            let before = file.metadata().map_err(io_error)?;
            if !before.is_file() {
                return Err(self.not_found(name));
            }
            let etag = self.etags.of(file, &before).map_err(io_error)?;
            let not_modified = etag::matches(&request.if_none_match, &etag);
            let content = if not_modified {
                Bytes::new()
            } else {
                self.piece(file, &before, name, request)?
            };
            let content_type = match crate::data::type_of(name) {
                Some(known) => known,
                None => sniff::file(file).map_err(io_error)?,
            };
            let after = file.metadata().map_err(io_error)?;
            if Identity::of(&before) == Identity::of(&after) {
                return Ok(WebAnswer {
                    content,
                    content_type: content_type.into(),
                    etag,
                    total_size: before.len(),
                    not_modified,
                    is_fallback: false,
                });
            }
        }
        let message = format!(
            "web file \"{name}\" of clip \"{}\" changed while it was read; try again later",
            self.alias
        );
        Err(ClipError::new(Code::Unavailable, message))
    }

    fn piece(
        &self,
        file: &File,
        metadata: &Metadata,
        name: &str,
        request: &WebRequest,
    ) -> Result<Bytes, ClipError> {
        let total = metadata.len();
        if request.offset > 0 && request.offset >= total {
            let message = format!(
                "byte {} is beyond the end of web file \"{name}\", which has {total}",
                request.offset
            );
            return Err(ClipError::new(Code::OutOfRange, message));
        }
        let rest = total - request.offset;
        let length = if request.length == 0 {
            rest
        } else {
            request.length.min(rest)
        };
        if length > MAX_PIECE {
            let message = format!(
                "web file \"{name}\" of clip \"{}\" is given in pieces of up to {MAX_PIECE} bytes; {length} were asked for",
                self.alias
            );
            return Err(ClipError::new(Code::ResourceExhausted, message));
        }
        let mut content = vec![0; length as usize];
        let mut filled = 0;
        while filled < content.len() {
            match file.read_at(&mut content[filled..], request.offset + filled as u64) {
                // The file became shorter; the caller detects the change and reads again.
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.errno(name, errno_of(error))),
            }
        }
        content.truncate(filled);
        Ok(content.into())
    }

    fn not_found(&self, path: &str) -> ClipError {
        let message = format!("clip \"{}\" has no web file \"{path}\"", self.alias);
        ClipError::new(Code::NotFound, message)
    }

    /// A path that leads out of the pages is reported as missing.
    fn errno(&self, path: &str, errno: Errno) -> ClipError {
        match errno {
            Errno::EACCES | Errno::EPERM => {
                let message = format!(
                    "web file \"{path}\" of clip \"{}\" may not be read: {errno}",
                    self.alias
                );
                ClipError::new(Code::PermissionDenied, message)
            }
            errno if is_missing(errno) || matches!(errno, Errno::EXDEV | Errno::ELOOP) => {
                self.not_found(path)
            }
            errno => {
                let message = format!("web file \"{path}\" of clip \"{}\": {errno}", self.alias);
                ClipError::new(Code::Internal, message)
            }
        }
    }
}

fn is_missing(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::ENOENT | Errno::ENOTDIR | Errno::ENAMETOOLONG | Errno::ENXIO
    )
}

/// Reports whether the last name of a path contains a dot. Such a path means a file and not a location within a
/// single-page application.
fn has_dot(path: &str) -> bool {
    path.rsplit('/')
        .next()
        .is_some_and(|name| name.contains('.'))
}

fn is_file(root: &Beneath, path: &str) -> bool {
    let found = root.open(path, OpenMode::Reference).ok();
    found.is_some_and(|file| file.metadata().is_ok_and(|metadata| metadata.is_file()))
}

fn errno_of(error: io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
}
