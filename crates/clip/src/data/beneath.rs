//! Opening what is beneath a directory, and nothing else.
//!
//! The kernel resolves each path with the directory as its root of no return: `..`, absolute links and links that
//! lead out fail there, whatever happens to the directory meanwhile. A kernel that cannot do that is asked to follow
//! no links at all.

use std::ffi::OsString;
use std::fs::{File, ReadDir};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, open, openat, openat2};
use nix::sys::stat::{Mode, mkdirat};
use nix::unistd::{UnlinkatFlags, unlinkat};

/// The kernel may ask to try again when the tree changes under its hands.
const ATTEMPTS: usize = 32;

/// What is wanted of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenMode {
    /// To read a file. It never waits, also where a pipe lies.
    File,
    /// To list a directory.
    Directory,
    /// Only to look at it.
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

/// A directory as root.
#[derive(Debug)]
pub(crate) struct Beneath {
    root: OwnedFd,
}

impl Beneath {
    /// The directory `name` in `parent`, which must not be a link.
    pub(crate) fn at(parent: &Path, name: &str) -> nix::Result<Self> {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let parent = open(parent, flags, Mode::empty())?;
        let root = openat(&parent, name, flags | OFlag::O_NOFOLLOW, Mode::empty())?;
        Ok(Self { root })
    }

    /// This very directory, wherever it is.
    pub(crate) fn root(directory: &Path) -> nix::Result<Self> {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let root = open(directory, flags, Mode::empty())?;
        Ok(Self { root })
    }

    /// A directory in this one as root.
    pub(crate) fn beneath(&self, path: &str) -> nix::Result<Self> {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let root = self.resolve(path, flags)?;
        Ok(Self { root })
    }

    /// Opens a path; the empty one is the root itself.
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

    /// One name after the other, following no link.
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
        // With O_PATH a link is opened instead of refused.
        let metadata = File::from(opened.try_clone().map_err(|_| Errno::EMFILE)?).metadata();
        if metadata.is_ok_and(|metadata| metadata.is_symlink()) {
            return Err(Errno::ELOOP);
        }
        Ok(opened)
    }

    /// The directory a path is in, made with all above it where missing, and the last name of the path.
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

    /// Removes a file, a link or an empty directory. A link is never followed for that.
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

/// The names in an open directory.
pub(crate) fn names(
    directory: &File,
) -> io::Result<impl Iterator<Item = io::Result<OsString>> + use<>> {
    // The descriptor, not the path it once had: that may lead elsewhere by now.
    let entries: ReadDir = std::fs::read_dir(format!("/proc/self/fd/{}", directory.as_raw_fd()))?;
    Ok(entries.map(|entry| entry.map(|entry| entry.file_name())))
}
