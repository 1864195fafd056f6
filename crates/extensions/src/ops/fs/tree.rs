//! Creating, listing, moving and removing names in directories.

use std::fs::{self, DirBuilder, FileType};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::files::open_file;
use crate::ops::syscall_error::{Outcome, SyscallError};

/// `COPYFILE_EXCL` of `fs.constants`.
const COPY_EXCLUSIVE: i32 = 1;

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Creates a directory. If `recursive`, returns the first directory that was created.
pub(super) fn mkdir(path: String, recursive: bool, mode: u32) -> Outcome<Option<String>> {
    let mut builder = DirBuilder::new();
    builder.mode(mode);
    if !recursive {
        let made = builder.create(&path);
        return made
            .map(|()| None)
            .map_err(|error| SyscallError::new(error, "mkdir").at(path));
    }
    let whole = std::path::absolute(&path).unwrap_or_else(|_| PathBuf::from(&path));
    let mut missing: Vec<&Path> = Vec::new();
    for ancestor in whole.ancestors() {
        match fs::metadata(ancestor) {
            Ok(meta) if meta.is_dir() => break,
            Ok(_) => {
                let number = if missing.is_empty() {
                    libc::EEXIST
                } else {
                    libc::ENOTDIR
                };
                return Err(
                    SyscallError::new(io::Error::from_raw_os_error(number), "mkdir").at(path),
                );
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => missing.push(ancestor),
            Err(error) => return Err(SyscallError::new(error, "mkdir").at(path)),
        }
    }
    let first = missing.last().map(|first| text(first));
    for directory in missing.iter().rev() {
        match builder.create(directory) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && directory.is_dir() => {}
            Err(error) => return Err(SyscallError::new(error, "mkdir").at(path)),
        }
    }
    Ok(first)
}

pub(super) fn mkdtemp(prefix: String) -> Outcome<String> {
    let template = format!("{prefix}XXXXXX");
    match nix::unistd::mkdtemp(template.as_str()) {
        Ok(path) => Ok(text(&path)),
        Err(error) => Err(SyscallError::new(error, "mkdtemp").at(template)),
    }
}

/// Returns the `UV_DIRENT_*` constant of `fs.constants`.
fn kind(kind: io::Result<FileType>) -> i32 {
    match kind {
        Err(_) => 0,
        Ok(kind) if kind.is_file() => 1,
        Ok(kind) if kind.is_dir() => 2,
        Ok(kind) if kind.is_symlink() => 3,
        Ok(kind) if kind.is_fifo() => 4,
        Ok(kind) if kind.is_socket() => 5,
        Ok(kind) if kind.is_char_device() => 6,
        Ok(kind) if kind.is_block_device() => 7,
        Ok(_) => 0,
    }
}

/// Returns the names in a directory, sorted, each with its kind as a digit in front.
pub(super) fn readdir(path: String) -> Outcome<Vec<String>> {
    let fail = |error| SyscallError::new(error, "scandir").at(path.as_str());
    let mut names = Vec::new();
    for entry in fs::read_dir(&path).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let name = entry.file_name();
        names.push((name, kind(entry.file_type())));
    }
    names.sort();
    let shown =
        |(name, kind): (std::ffi::OsString, i32)| format!("{kind}{}", name.to_string_lossy());
    Ok(names.into_iter().map(shown).collect())
}

pub(super) fn rmdir(path: String) -> Outcome<()> {
    fs::remove_dir(&path).map_err(|error| SyscallError::new(error, "rmdir").at(path))
}

pub(super) fn unlink(path: String) -> Outcome<()> {
    fs::remove_file(&path).map_err(|error| SyscallError::new(error, "unlink").at(path))
}

pub(super) fn rm(path: String, recursive: bool, force: bool) -> Outcome<()> {
    let fail = |error, syscall: &str| SyscallError::new(error, syscall).at(path.as_str());
    let removed = match fs::symlink_metadata(&path) {
        Ok(meta) if meta.is_dir() && recursive => {
            fs::remove_dir_all(&path).map_err(|error| fail(error, "rm"))
        }
        Ok(meta) if meta.is_dir() => Err(fail(io::Error::from_raw_os_error(libc::EISDIR), "rm")),
        Ok(_) => fs::remove_file(&path).map_err(|error| fail(error, "rm")),
        Err(error) if error.kind() == io::ErrorKind::NotFound && force => Ok(()),
        Err(error) => Err(fail(error, "lstat")),
    };
    match removed {
        // Another process removed the path in the meantime.
        Err(_)
            if force
                && fs::symlink_metadata(&path)
                    .is_err_and(|error| error.kind() == io::ErrorKind::NotFound) =>
        {
            Ok(())
        }
        other => other,
    }
}

pub(super) fn rename(from: String, to: String) -> Outcome<()> {
    require_replaceable(&to)
        .and_then(|()| fs::rename(&from, &to))
        .map_err(|error| SyscallError::new(error, "rename").at(from).to(to))
}

/// Fails if a device, a FIFO or a socket is at `path`. A symbolic link is replaced itself, whatever it leads to.
fn require_replaceable(path: &str) -> io::Result<()> {
    let Ok(metadata) = fs::symlink_metadata(path) else {
        return Ok(());
    };
    if metadata.is_file() || metadata.is_dir() || metadata.is_symlink() {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        "a device, a FIFO or a socket cannot be replaced by an extension",
    ))
}

pub(super) fn copy_file(from: String, to: String, mode: i32) -> Outcome<()> {
    let copied = if mode & COPY_EXCLUSIVE != 0 && fs::symlink_metadata(&to).is_ok() {
        Err(io::Error::from_raw_os_error(libc::EEXIST))
    } else if Path::new(&from).is_dir() {
        Err(io::Error::from_raw_os_error(libc::ENOTSUP))
    } else {
        copy(&from, &to)
    };
    copied.map_err(|error| SyscallError::new(error, "copyfile").at(from).to(to))
}

fn copy(from: &str, to: &str) -> io::Result<()> {
    let mut source = open_file(from, libc::O_RDONLY, 0)?;
    let found = source.metadata()?;
    let mut copy = open_file(to, libc::O_WRONLY | libc::O_CREAT, found.mode() & 0o7777)?;
    let target = copy.metadata()?;
    if (found.dev(), found.ino()) == (target.dev(), target.ino()) {
        return Ok(());
    }
    if target.is_file() {
        copy.set_len(0)?;
        copy.set_permissions(found.permissions())?;
    }
    io::copy(&mut source, &mut copy).map(drop)
}

pub(super) fn link(from: String, to: String) -> Outcome<()> {
    fs::hard_link(&from, &to).map_err(|error| SyscallError::new(error, "link").at(from).to(to))
}

pub(super) fn symlink(target: String, path: String) -> Outcome<()> {
    std::os::unix::fs::symlink(&target, &path)
        .map_err(|error| SyscallError::new(error, "symlink").at(target).to(path))
}

pub(super) fn readlink(path: String) -> Outcome<String> {
    match fs::read_link(&path) {
        Ok(target) => Ok(text(&target)),
        Err(error) => Err(SyscallError::new(error, "readlink").at(path)),
    }
}

pub(super) fn realpath(path: String) -> Outcome<String> {
    match fs::canonicalize(&path) {
        Ok(whole) => Ok(text(&whole)),
        Err(error) => Err(SyscallError::new(error, "realpath").at(path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifo_is_not_renamed_over() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| text(&directory.path().join(name));
        fs::write(at("file"), "").unwrap();
        nix::unistd::mkfifo(at("fifo").as_str(), nix::sys::stat::Mode::S_IRWXU).unwrap();
        rename(at("file"), at("fifo")).unwrap_err();
        assert!(
            fs::symlink_metadata(at("fifo"))
                .unwrap()
                .file_type()
                .is_fifo()
        );
        symlink("/dev/null".to_owned(), at("link")).unwrap();
        rename(at("file"), at("link")).unwrap();
        assert!(fs::symlink_metadata(at("link")).unwrap().is_file());
        rename(at("fifo"), at("other")).unwrap();
    }
}
