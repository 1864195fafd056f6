//! Finds the type and the real path of a file without opening it.

use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2};

/// The number of symbolic links Linux follows in one path.
const MAX_LINKS: usize = 40;

/// The type of a file, with the words for error messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    Regular,
    Directory,
    Fifo,
    Socket,
    Device,
}

impl FileKind {
    /// Reads the type from `metadata`.
    pub fn of(metadata: &Metadata) -> Self {
        let kind = metadata.file_type();
        if kind.is_file() {
            Self::Regular
        } else if kind.is_dir() {
            Self::Directory
        } else if kind.is_fifo() {
            Self::Fifo
        } else if kind.is_socket() {
            Self::Socket
        } else {
            Self::Device
        }
    }

    /// The error for a file of this type where a regular file is required; `None` for a regular file.
    pub(crate) fn refusal(self) -> Option<io::Error> {
        let name = match self {
            Self::Regular => return None,
            Self::Directory => return Some(Errno::EISDIR.into()),
            Self::Fifo => "a FIFO",
            Self::Socket => "a socket",
            Self::Device => "a device",
        };
        Some(io::Error::new(
            ErrorKind::InvalidInput,
            format!("is {name}, not a regular file"),
        ))
    }
}

/// An existing file that a path leads to.
#[derive(Debug)]
pub struct Target {
    /// The path without symbolic links.
    pub path: PathBuf,
    pub metadata: Metadata,
}

impl Target {
    /// Fails unless the file is a regular one.
    pub(crate) fn require_regular(self) -> io::Result<Self> {
        match FileKind::of(&self.metadata).refusal() {
            Some(error) => Err(error),
            None => Ok(self),
        }
    }
}

/// Follows `path` to an existing file of any type, without opening it.
///
/// Fails with `NotFound` if it does not exist and with `PermissionDenied` if it is a descriptor or a file of this process.
pub fn locate(path: &Path) -> io::Result<Target> {
    let (path, metadata) = match open_path(path) {
        Ok(descriptor) => resolved(&descriptor, path)?,
        // Kernels before 5.6 and some container filters do not have openat2.
        Err(Errno::ENOSYS | Errno::EPERM | Errno::EINVAL | Errno::E2BIG) => {
            walk(path)?;
            (path.canonicalize()?, fs::metadata(path)?)
        }
        // The path has a magic link, or too many links; the walk finds out which.
        Err(Errno::ELOOP) => {
            walk(path)?;
            return Err(own_descriptor());
        }
        Err(error) => return Err(error.into()),
    };
    refuse_own_process(&path)?;
    Ok(Target { path, metadata })
}

/// Returns whether a regular file exists at `path`, without opening it. Anything else that exists is an error.
///
/// For paths that a library such as SQLite opens by itself.
pub fn is_regular(path: &Path) -> io::Result<bool> {
    match locate(path) {
        Ok(target) => target.require_regular().map(|_| true),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            reject_process_files(path).map(|()| false)
        }
        Err(error) => Err(error),
    }
}

/// Returns the path without symbolic links at which a regular file replaces `path`, and the file that exists there.
///
/// A dangling symbolic link leads to the path that it names. Anything that exists and is not a regular file is an error.
pub(crate) fn destination(path: &Path) -> io::Result<(PathBuf, Option<Target>)> {
    match locate(path) {
        Ok(target) => {
            let target = target.require_regular()?;
            Ok((target.path.clone(), Some(target)))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            reject_process_files(path)?;
            match fs::read_link(path) {
                // A loop of links failed above.
                Ok(link) => destination(&parent(path).join(link)),
                Err(_) => Ok((path.to_owned(), None)),
            }
        }
        Err(error) => Err(error),
    }
}

/// The directory of a file; `.` for a plain name.
pub(crate) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Fails if `path` leads to a descriptor of a process, or to a file of this process below `/proc`.
///
/// Does not check the type of the file, and accepts a path that does not exist or cannot be reached.
pub fn reject_process_files(path: &Path) -> io::Result<()> {
    match locate(path) {
        Err(error) if is_refusal(&error) => Err(error),
        _ => walk(path),
    }
}

fn open_path(path: &Path) -> Result<OwnedFd, Errno> {
    let how = OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_NO_MAGICLINKS);
    loop {
        match openat2(AT_FDCWD, path, how) {
            // The kernel asks for another try when a directory was renamed during the look-up.
            Err(Errno::EAGAIN | Errno::EINTR) => {}
            result => return result,
        }
    }
}

fn resolved(descriptor: &OwnedFd, path: &Path) -> io::Result<(PathBuf, Metadata)> {
    let link = PathBuf::from(format!("/proc/self/fd/{}", descriptor.as_raw_fd()));
    match (fs::read_link(&link), fs::metadata(&link)) {
        (Ok(real), Ok(metadata)) if real.is_absolute() => Ok((real, metadata)),
        // Without /proc there are no magic links, and the path can be followed as it is.
        _ => Ok((path.canonicalize()?, fs::metadata(path)?)),
    }
}

/// Follows `path` link by link as far as it exists, and fails at the first magic link.
fn walk(path: &Path) -> io::Result<()> {
    let mut rest = parts_reversed(&std::path::absolute(path)?);
    let mut here = PathBuf::from("/");
    let mut links = 0;
    while let Some(part) = rest.pop() {
        if part == "/" || part == "." {
            continue;
        }
        if part == ".." {
            here.pop();
            continue;
        }
        let next = here.join(part);
        let Ok(target) = fs::read_link(&next) else {
            here = next;
            continue;
        };
        if is_process_directory(&here) {
            return Err(own_descriptor());
        }
        links += 1;
        if links > MAX_LINKS {
            return Err(Errno::ELOOP.into());
        }
        if target.is_absolute() {
            here = PathBuf::from("/");
        }
        rest.extend(parts_reversed(&target));
    }
    refuse_own_process(&here)
}

fn parts_reversed(path: &Path) -> Vec<OsString> {
    let mut parts: Vec<_> = path
        .components()
        .map(|part| part.as_os_str().to_owned())
        .collect();
    parts.reverse();
    parts
}

/// Reports whether links in the directory lead to open files and not to paths.
fn is_process_directory(directory: &Path) -> bool {
    let mut parts = directory.iter().skip(1).map(|part| part.to_string_lossy());
    parts.next().as_deref() == Some("proc")
        && parts
            .next()
            .is_some_and(|pid| pid.bytes().all(|byte| byte.is_ascii_digit()))
}

fn refuse_own_process(real: &Path) -> io::Result<()> {
    let Ok(below) = real.strip_prefix("/proc") else {
        return Ok(());
    };
    let own = std::process::id().to_string();
    let first = below.iter().next().unwrap_or_default();
    if first == own.as_str() || first == "self" || first == "thread-self" {
        return Err(io::Error::new(
            ErrorKind::PermissionDenied,
            "belongs to the running pinion process",
        ));
    }
    Ok(())
}

fn own_descriptor() -> io::Error {
    io::Error::new(
        ErrorKind::PermissionDenied,
        "leads to an open descriptor of a process, not to a file",
    )
}

fn is_refusal(error: &io::Error) -> bool {
    error.kind() == ErrorKind::PermissionDenied && error.raw_os_error().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_refused_under_every_name() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("input");
        std::os::unix::fs::symlink("/dev/stdin", &link).unwrap();
        let own = format!("/proc/{}/fd/0", std::process::id());
        for path in [
            "/dev/stdin",
            "/dev/stdout",
            "/dev/fd/2",
            "/proc/self/fd/0",
            "/proc/thread-self/fd/1",
            "/proc/self/root/etc/passwd",
            "/proc/self/cwd/Cargo.toml",
            "/dev/../proc/self/task/../fd/0",
            &own,
            link.to_str().unwrap(),
        ] {
            let path = Path::new(path);
            for error in [
                locate(path).unwrap_err(),
                reject_process_files(path).unwrap_err(),
                walk(path).unwrap_err(),
            ] {
                assert!(is_refusal(&error), "{}: {error}", path.display());
            }
        }
    }

    #[test]
    fn files_of_this_process_are_refused_and_other_procfs_files_are_not() {
        for path in ["/proc/self/environ", "/proc/self/mem"] {
            assert!(is_refusal(&locate(Path::new(path)).unwrap_err()), "{path}");
        }
        locate(Path::new("/proc/cpuinfo")).unwrap();
        reject_process_files(Path::new("/proc/meminfo")).unwrap();
    }

    #[test]
    fn links_loops_and_missing_files_are_distinguished() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "x").unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink("file", &link).unwrap();
        let found = locate(&link).unwrap();
        assert_eq!(found.path, file.canonicalize().unwrap());
        walk(&link).unwrap();

        let ring = dir.path().join("ring");
        std::os::unix::fs::symlink("ring", &ring).unwrap();
        assert_eq!(
            locate(&ring).unwrap_err().raw_os_error(),
            Some(Errno::ELOOP as i32)
        );
        let none = dir.path().join("none");
        assert_eq!(locate(&none).unwrap_err().kind(), ErrorKind::NotFound);
        assert!(!is_regular(&none).unwrap());
        assert!(is_regular(&link).unwrap());
        is_regular(dir.path()).unwrap_err();
        is_regular(Path::new("/dev/null")).unwrap_err();
    }
}
