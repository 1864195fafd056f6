//! Opens files beneath a directory and nothing outside of it.
//!
//! The kernel resolves each path with the directory as its root (`openat2`): `..`, absolute links and links that lead
//! out fail, even if the directory changes meanwhile. On a kernel without `openat2`, no links are followed at all.

use std::ffi::OsString;
use std::fs::{File, ReadDir};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, open, openat, openat2};
use nix::sys::stat::{Mode, mkdirat};
use nix::unistd::{UnlinkatFlags, unlinkat};

/// The kernel returns `EAGAIN` when the tree changes while it resolves a path.
const ATTEMPTS: usize = 32;

/// The purpose for which a path is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenMode {
    /// Read a file. Opening never blocks, even if the path is a pipe.
    File,
    /// List a directory.
    Directory,
    /// Only read metadata.
    Reference,
}

impl OpenMode {
    fn flags(self) -> OFlag {
        let flags = match self {
            Self::File => OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY,
            Self::Directory => OFlag::O_RDONLY | OFlag::O_DIRECTORY,
            Self::Reference => OFlag::O_PATH,
        };
        flags | OFlag::O_CLOEXEC
    }
}

/// An open directory that paths are resolved beneath.
#[derive(Debug)]
pub(crate) struct Beneath {
    root: OwnedFd,
}

impl Beneath {
    /// Opens the directory `name` in `parent`; `name` must not be a link.
    pub(crate) fn at(parent: &Path, name: &str) -> nix::Result<Self> {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let parent = open(parent, flags, Mode::empty())?;
        let root = openat(&parent, name, flags | OFlag::O_NOFOLLOW, Mode::empty())?;
        Ok(Self { root })
    }

    /// Opens `directory`, which may be a link.
    pub(crate) fn root(directory: &Path) -> nix::Result<Self> {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let root = open(directory, flags, Mode::empty())?;
        Ok(Self { root })
    }

    /// Opens a directory beneath this one.
    pub(crate) fn beneath(&self, path: &str) -> nix::Result<Self> {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let root = self.resolve(path, flags)?;
        Ok(Self { root })
    }

    /// Opens a path; the empty path is the root itself.
    pub(crate) fn open(&self, path: &str, mode: OpenMode) -> nix::Result<File> {
        self.resolve(path, mode.flags()).map(File::from)
    }

    fn resolve(&self, path: &str, flags: OFlag) -> nix::Result<OwnedFd> {
        let path = if path.is_empty() { "." } else { path };
        for _ in 0..ATTEMPTS {
            let how = OpenHow::new()
                .flags(flags)
                .resolve(ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_MAGICLINKS);
            match openat2(&self.root, path, how) {
                Err(Errno::EAGAIN) => {}
                Err(Errno::ENOSYS) => return self.walk(path, flags),
                result => return result,
            }
        }
        Err(Errno::EAGAIN)
    }

    /// Opens one name after the other and follows no link.
    fn walk(&self, path: &str, flags: OFlag) -> nix::Result<OwnedFd> {
        let through = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let mut names: Vec<&str> = path.split('/').collect();
        let last = names.pop().ok_or(Errno::ENOENT)?;
        let mut directory: Option<OwnedFd> = None;
        for name in names {
            let from = directory.as_ref().unwrap_or(&self.root);
            let next = openat(from, name, through, Mode::empty())?;
            directory = Some(next);
        }
        let from = directory.as_ref().unwrap_or(&self.root);
        let opened = openat(from, last, flags | OFlag::O_NOFOLLOW, Mode::empty())?;
        // With `O_PATH`, a link is opened instead of refused.
        let metadata = File::from(opened.try_clone().map_err(|_| Errno::EMFILE)?).metadata();
        if metadata.is_ok_and(|metadata| metadata.is_symlink()) {
            return Err(Errno::ELOOP);
        }
        Ok(opened)
    }

    /// Returns the parent directory of a path, created with all directories above it, and the last name of the path.
    pub(crate) fn make_parents<'a>(&self, path: &'a str) -> nix::Result<(OwnedFd, &'a str)> {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let mut directory = self.resolve("", flags)?;
        let mut end = 0;
        while let Some(length) = path[end..].find('/') {
            let (prefix, name) = (&path[..end + length], &path[end..end + length]);
            directory = match self.resolve(prefix, flags) {
                Err(Errno::ENOENT) => {
                    match mkdirat(&directory, name, Mode::from_bits_truncate(0o755)) {
                        Ok(()) | Err(Errno::EEXIST) => self.resolve(prefix, flags)?,
                        Err(errno) => return Err(errno),
                    }
                }
                result => result?,
            };
            end += length + 1;
        }
        Ok((directory, &path[end..]))
    }

    /// Removes a file, a link or an empty directory. A link itself is removed and not followed.
    pub(crate) fn remove(&self, path: &str) -> nix::Result<()> {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let parent = self.resolve(parent, flags)?;
        match unlinkat(&parent, name, UnlinkatFlags::NoRemoveDir) {
            Err(Errno::EISDIR | Errno::EPERM) => unlinkat(&parent, name, UnlinkatFlags::RemoveDir),
            result => result,
        }
    }
}

/// Lists the names in an open directory.
pub(crate) fn names(
    directory: &File,
) -> io::Result<impl Iterator<Item = io::Result<OsString>> + use<>> {
    // The path of the descriptor, not the path it was opened with, which may lead elsewhere by now.
    let entries: ReadDir = std::fs::read_dir(format!("/proc/self/fd/{}", directory.as_raw_fd()))?;
    Ok(entries.map(|entry| entry.map(|entry| entry.file_name())))
}
