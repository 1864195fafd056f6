//! Renames files and directories without removing anything but a regular file.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};

use crate::target::{self, FileKind};

/// Renames the regular file `from` to `to`, which is a regular file or does not exist.
///
/// A symbolic link at `to` stays and its target is replaced. Anything else that exists there is left alone and is an
/// error. Both paths must be on one file system.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    drop(target::locate(from)?.require_regular()?);
    let (to, _) = target::destination(to)?;
    fs::rename(from, to)
}

/// Renames a file or a directory to a path that does not exist yet.
///
/// Anything at `to` is an error of kind `AlreadyExists`, even an empty directory or a dangling symbolic link.
pub fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    target::reject_process_files(from)?;
    target::reject_process_files(to)?;
    let renamed = renameat2(AT_FDCWD, from, AT_FDCWD, to, RenameFlags::RENAME_NOREPLACE);
    match renamed {
        // The kernel or the file system cannot check in the same step.
        Err(Errno::ENOSYS | Errno::EINVAL) => match fs::symlink_metadata(to) {
            Ok(_) => Err(ErrorKind::AlreadyExists.into()),
            Err(_) => fs::rename(from, to),
        },
        renamed => Ok(renamed?),
    }
}

/// Renames the file or directory at `from` to a path that does not exist yet, to make room for its successor.
///
/// Returns false if `from` does not exist. A symbolic link to a regular file or a directory is renamed itself. Anything
/// else is left alone and is an error.
pub fn set_aside(from: &Path, to: &Path) -> io::Result<bool> {
    match fs::symlink_metadata(from) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    }
    let target = target::locate(from).map_err(|error| match error.kind() {
        ErrorKind::NotFound => io::Error::new(error.kind(), "is a symbolic link to a missing file"),
        _ => error,
    })?;
    match FileKind::of(&target.metadata) {
        FileKind::Regular | FileKind::Directory => {}
        kind => return kind.refusal().map_or(Ok(false), Err),
    }
    rename_new(from, to).map(|()| true)
}

/// Renames a damaged file to `FILE.damaged`, to make room for a new one, and returns that path. An earlier damaged file
/// of that name is replaced.
pub fn set_damaged_aside(path: &Path) -> io::Result<PathBuf> {
    let aside = crate::beside(path, ".damaged");
    rename(path, &aside)?;
    Ok(aside)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_a_regular_file_is_renamed_over_a_regular_file() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("old"), "old").unwrap();
        nix::unistd::mkfifo(&at("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        fs::create_dir(at("directory")).unwrap();
        symlink("/dev/null", at("device")).unwrap();
        for name in ["fifo", "directory", "device"] {
            fs::write(at("new"), "new").unwrap();
            rename(&at("new"), &at(name)).unwrap_err();
            rename(&at(name), &at("old")).unwrap_err();
        }
        rename(&at("new"), Path::new("/dev/stdin")).unwrap_err();
        assert_eq!(fs::read(at("old")).unwrap(), b"old");
        assert!(at("device").is_symlink());

        symlink("old", at("link")).unwrap();
        rename(&at("new"), &at("link")).unwrap();
        assert_eq!(fs::read(at("old")).unwrap(), b"new");
        assert!(at("link").is_symlink());
        symlink("created", at("dangling")).unwrap();
        rename(&at("old"), &at("dangling")).unwrap();
        assert_eq!(fs::read(at("created")).unwrap(), b"new");
    }

    #[test]
    fn the_last_damaged_file_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.json");
        for content in ["first", "second"] {
            fs::write(&path, content).unwrap();
            let aside = set_damaged_aside(&path).unwrap();
            assert_eq!(aside, dir.path().join("a.json.damaged"));
            assert_eq!(fs::read_to_string(aside).unwrap(), content);
        }
        set_damaged_aside(&path).unwrap_err();
    }

    #[test]
    fn nothing_is_renamed_over() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("from")).unwrap();
        fs::create_dir(at("empty")).unwrap();
        fs::write(at("file"), "").unwrap();
        symlink("nowhere", at("dangling")).unwrap();
        for name in ["empty", "file", "dangling"] {
            let error = rename_new(&at("from"), &at(name)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{name}");
        }
        rename_new(&at("from"), &at("to")).unwrap();
        assert!(at("to").is_dir() && !at("from").exists());
    }

    #[test]
    fn only_files_and_directories_are_set_aside() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        nix::unistd::mkfifo(&at("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        symlink("/dev/null", at("device")).unwrap();
        symlink("nowhere", at("dangling")).unwrap();
        for name in ["fifo", "device", "dangling"] {
            set_aside(&at(name), &at("aside")).unwrap_err();
            assert!(fs::symlink_metadata(at(name)).is_ok(), "{name}");
        }
        assert!(!set_aside(&at("none"), &at("aside")).unwrap());
        fs::create_dir(at("directory")).unwrap();
        symlink("directory", at("link")).unwrap();
        assert!(set_aside(&at("link"), &at("aside")).unwrap());
        assert!(at("aside").is_symlink() && at("directory").is_dir());
        set_aside(&at("directory"), &at("aside")).unwrap_err();
        assert!(set_aside(&at("directory"), &at("other")).unwrap());
    }
}
