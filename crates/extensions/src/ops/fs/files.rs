//! Open files and their content.
//!
//! A script's descriptor is only a number in the table here, so no script can read, write or close a descriptor of
//! pinion. 1 and 2 are pinion's standard error.

use std::collections::HashMap;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use pinion_files::FileKind;

use crate::ops::bytes::{Bytes, MAX_BYTES};
use crate::ops::syscall_error::{Outcome, SyscallError};

static FILES: LazyLock<Mutex<HashMap<i32, Arc<File>>>> = LazyLock::new(Mutex::default);

fn files() -> MutexGuard<'static, HashMap<i32, Arc<File>>> {
    FILES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn bad(syscall: &str) -> SyscallError {
    SyscallError::new(io::Error::from_raw_os_error(libc::EBADF), syscall)
}

pub(super) fn file(fd: i32, syscall: &str) -> Outcome<Arc<File>> {
    if fd == 1 || fd == 2 {
        let copy = io::stderr().as_fd().try_clone_to_owned();
        return copy
            .map(|copy| Arc::new(File::from(copy)))
            .map_err(|error| SyscallError::new(error, syscall));
    }
    files().get(&fd).cloned().ok_or_else(|| bad(syscall))
}

/// Returns a file to read from. 1 and 2 are rejected: standard error may be a terminal, which would wait for keys.
fn readable(fd: i32) -> Outcome<Arc<File>> {
    if fd == 1 || fd == 2 {
        return Err(bad("read"));
    }
    file(fd, "read")
}

/// Returns a second descriptor for the script's `fd`, to pass to a child.
pub(crate) fn duplicate(fd: i32) -> Outcome<OwnedFd> {
    let file = file(fd, "dup")?;
    file.as_fd()
        .try_clone_to_owned()
        .map_err(|error| SyscallError::new(error, "dup"))
}

/// Opens a regular file, a directory or `/dev/null`, and nothing else: a FIFO or a terminal would block the script, an
/// endless device would fill the memory, and a descriptor below `/proc` may be the client's.
pub(crate) fn open_file(path: &str, flags: i32, mode: u32) -> io::Result<File> {
    let at = Path::new(path);
    match pinion_files::locate(at) {
        Ok(target) => require_harmless(&target.metadata)?,
        // The open below creates the file, or fails.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            pinion_files::reject_process_files(at)?
        }
        Err(error) => return Err(error),
    }
    let access = flags & libc::O_ACCMODE;
    let special = flags & !(libc::O_ACCMODE | libc::O_TRUNC);
    let file = OpenOptions::new()
        .read(access != libc::O_WRONLY)
        .write(access != libc::O_RDONLY)
        .custom_flags(special | libc::O_NONBLOCK | libc::O_NOCTTY)
        .mode(mode)
        .open(path)?;
    let metadata = file.metadata()?;
    require_harmless(&metadata)?;
    // The content is dropped only after the type is known.
    if flags & libc::O_TRUNC != 0 && access != libc::O_RDONLY && metadata.is_file() {
        file.set_len(0)?;
    }
    Ok(file)
}

fn require_harmless(metadata: &Metadata) -> io::Result<()> {
    let kind = match FileKind::of(metadata) {
        FileKind::Regular | FileKind::Directory => return Ok(()),
        FileKind::Device if is_null(metadata) => return Ok(()),
        FileKind::Fifo => "a FIFO",
        FileKind::Socket => "a socket",
        FileKind::Device => "a device",
    };
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        format!("{kind} cannot be opened by an extension"),
    ))
}

/// Reports whether the file is `/dev/null`, which neither blocks nor yields anything.
fn is_null(metadata: &Metadata) -> bool {
    metadata.file_type().is_char_device() && metadata.rdev() == libc::makedev(1, 3)
}

/// Reads to the end, up to [`MAX_BYTES`] bytes.
fn read_to_end(file: &File) -> io::Result<Vec<u8>> {
    let size = file.metadata()?.len();
    let too_large = || {
        io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("file is larger than {} MiB", MAX_BYTES >> 20),
        )
    };
    if size > MAX_BYTES as u64 {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(size as usize + 1);
    file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > MAX_BYTES {
        return Err(too_large());
    }
    Ok(bytes)
}

pub(super) fn open(path: String, flags: i32, mode: u32) -> Outcome<i32> {
    let file =
        open_file(&path, flags, mode).map_err(|error| SyscallError::new(error, "open").at(path))?;
    let fd = file.as_raw_fd();
    files().insert(fd, Arc::new(file));
    Ok(fd)
}

pub(super) fn close(fd: i32) -> Outcome<()> {
    let closed = files().remove(&fd);
    closed.map(drop).ok_or_else(|| bad("close"))
}

/// Reads once; at the file's own position if `position` is negative.
pub(super) fn read(fd: i32, length: usize, position: f64) -> Outcome<Bytes> {
    let file = readable(fd)?;
    let mut bytes = vec![0; length.min(MAX_BYTES)];
    let count = if position < 0.0 {
        (&*file).read(&mut bytes)
    } else {
        file.read_at(&mut bytes, position as u64)
    };
    bytes.truncate(count.map_err(|error| SyscallError::new(error, "read"))?);
    Ok(Bytes(bytes))
}

/// Writes everything; at the file's own position if `position` is negative.
pub(super) fn write(fd: i32, bytes: Bytes, position: f64) -> Outcome<usize> {
    let file = file(fd, "write")?;
    let written = if position < 0.0 {
        (&*file).write_all(&bytes.0)
    } else {
        file.write_all_at(&bytes.0, position as u64)
    };
    written.map_err(|error| SyscallError::new(error, "write"))?;
    Ok(bytes.0.len())
}

pub(super) fn fsync(fd: i32) -> Outcome<()> {
    let synced = file(fd, "fsync")?.sync_all();
    synced.map_err(|error| SyscallError::new(error, "fsync"))
}

pub(super) fn fdatasync(fd: i32) -> Outcome<()> {
    let synced = file(fd, "fdatasync")?.sync_data();
    synced.map_err(|error| SyscallError::new(error, "fdatasync"))
}

pub(super) fn ftruncate(fd: i32, length: f64) -> Outcome<()> {
    let cut = file(fd, "ftruncate")?.set_len(length.max(0.0) as u64);
    cut.map_err(|error| SyscallError::new(error, "ftruncate"))
}

pub(super) fn truncate(path: String, length: f64) -> Outcome<()> {
    let file = open_file(&path, libc::O_RDWR, 0)
        .map_err(|error| SyscallError::new(error, "open").at(path.as_str()))?;
    let cut = file.set_len(length.max(0.0) as u64);
    cut.map_err(|error| SyscallError::new(error, "ftruncate"))
}

pub(super) fn read_file(path: String, flags: i32) -> Outcome<Bytes> {
    let file = open_file(&path, flags, 0o666)
        .map_err(|error| SyscallError::new(error, "open").at(path))?;
    read_to_end(&file)
        .map(Bytes)
        .map_err(|error| SyscallError::new(error, "read"))
}

pub(super) fn read_all(fd: i32) -> Outcome<Bytes> {
    read_to_end(&*readable(fd)?)
        .map(Bytes)
        .map_err(|error| SyscallError::new(error, "read"))
}

pub(super) fn write_file(path: String, bytes: Bytes, flags: i32, mode: u32) -> Outcome<()> {
    let mut file =
        open_file(&path, flags, mode).map_err(|error| SyscallError::new(error, "open").at(path))?;
    file.write_all(&bytes.0)
        .map_err(|error| SyscallError::new(error, "write"))
}
