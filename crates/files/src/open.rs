//! Opens regular files.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use nix::fcntl::OFlag;

use crate::target::{self, FileKind};

/// Opens a regular file for reading.
pub fn open(path: &Path) -> io::Result<File> {
    open_with(OpenOptions::new().read(true), path)
}

/// Opens a regular file with `options`. `O_NONBLOCK` and `O_NOCTTY` are added, which regular files ignore.
///
/// Do not pass `truncate(true)`: the content would be lost before the type is known. Use [`crate::replace`], or open
/// without it and call `set_len(0)`.
pub fn open_with(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    match target::locate(path) {
        Ok(target) => drop(target.require_regular()?),
        // With `create(true)` the file is created; without it the open below reports the error.
        Err(error) if error.kind() == ErrorKind::NotFound => target::reject_process_files(path)?,
        Err(error) => return Err(error),
    }
    let file = options
        .custom_flags((OFlag::O_NONBLOCK | OFlag::O_NOCTTY).bits())
        .open(path)?;
    match FileKind::of(&file.metadata()?).refusal() {
        Some(error) => Err(error),
        None => Ok(file),
    }
}

/// Opens a file that the user named on the command line for reading: a regular file, or a FIFO such as `<(command)`.
///
/// A FIFO blocks until its writer opens it, as the user requested. The program's own standard input and output are
/// refused.
pub fn open_named(path: &Path) -> io::Result<File> {
    if FileKind::of(&std::fs::metadata(path)?) != FileKind::Fifo {
        return open(path);
    }
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlag::O_NOCTTY.bits())
        .open(path)?;
    let metadata = file.metadata()?;
    let is_own = |standard: std::os::fd::BorrowedFd<'_>| {
        nix::sys::stat::fstat(standard).is_ok_and(|own| {
            (own.st_dev, own.st_ino) == (MetadataExt::dev(&metadata), MetadataExt::ino(&metadata))
        })
    };
    if is_own(io::stdin().as_fd()) || is_own(io::stdout().as_fd()) {
        return Err(io::Error::new(
            ErrorKind::PermissionDenied,
            "is the standard input or output of this program",
        ));
    }
    match FileKind::of(&metadata) {
        FileKind::Fifo => Ok(file),
        kind => kind.refusal().map_or(Ok(file), Err),
    }
}

/// Creates a file that must not exist yet and opens it for writing. `mode` is subject to the umask.
pub fn create_new(path: &Path, mode: u32) -> io::Result<File> {
    target::reject_process_files(path)?;
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)
}

/// Opens a regular file for writing and empties it, or creates it. `mode` is subject to the umask.
pub fn create_or_empty(path: &Path, mode: u32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let file = open_with(options.write(true).create(true).mode(mode), path)?;
    file.set_len(0)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifo_does_not_block_and_a_device_is_not_opened() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let error = open(&fifo).unwrap_err();
        assert_eq!(error.to_string(), "is a FIFO, not a regular file");
        let error = open_with(OpenOptions::new().write(true), &fifo).unwrap_err();
        assert_eq!(error.to_string(), "is a FIFO, not a regular file");
        let error = open(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(error.to_string(), "is a device, not a regular file");
        assert_eq!(
            open(dir.path()).unwrap_err().kind(),
            ErrorKind::IsADirectory
        );
    }

    #[test]
    fn a_named_fifo_is_read_and_a_device_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let writer = fifo.clone();
        let writer = std::thread::spawn(move || std::fs::write(writer, "text"));
        assert_eq!(crate::read_named(&fifo, 4).unwrap(), b"text");
        writer.join().unwrap().unwrap();
        let error = open_named(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(error.to_string(), "is a device, not a regular file");
    }

    #[test]
    fn only_a_regular_file_is_emptied() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        for _ in 0..2 {
            create_or_empty(&path, 0o600).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), b"");
            std::fs::write(&path, "text").unwrap();
        }
        let fifo = dir.path().join("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let error = create_or_empty(&fifo, 0o600).unwrap_err();
        assert_eq!(error.to_string(), "is a FIFO, not a regular file");
    }

    #[test]
    fn a_missing_file_is_created_on_request() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new");
        assert_eq!(open(&path).unwrap_err().kind(), ErrorKind::NotFound);
        open_with(OpenOptions::new().append(true).create(true), &path).unwrap();
        assert!(path.is_file());
        assert_eq!(
            create_new(&path, 0o600).unwrap_err().kind(),
            ErrorKind::AlreadyExists
        );
    }
}
