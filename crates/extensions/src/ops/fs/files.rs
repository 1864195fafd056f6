//! Open files and their content.
//!
//! A script's descriptor is the number of a file in the table here and nothing else, so no script
//! can read, write or close a descriptor of ours. 1 and 2 are our error output.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use crate::ops::bytes::Bytes;
use crate::ops::fault::{Fault, Outcome};

static FILES: LazyLock<Mutex<HashMap<i32, Arc<File>>>> = LazyLock::new(Mutex::default);

fn files() -> MutexGuard<'static, HashMap<i32, Arc<File>>> {
    FILES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn bad(syscall: &str) -> Fault {
    Fault::new(io::Error::from_raw_os_error(libc::EBADF), syscall)
}

pub(super) fn file(fd: i32, syscall: &str) -> Outcome<Arc<File>> {
    if fd == 1 || fd == 2 {
        let copy = io::stderr().as_fd().try_clone_to_owned();
        return copy
            .map(|copy| Arc::new(File::from(copy)))
            .map_err(|error| Fault::new(error, syscall));
    }
    files().get(&fd).cloned().ok_or_else(|| bad(syscall))
}

/// A second descriptor for what a script calls `fd`, to hand to a child.
pub(crate) fn duplicate(fd: i32) -> Outcome<OwnedFd> {
    let file = file(fd, "dup")?;
    file.as_fd()
        .try_clone_to_owned()
        .map_err(|error| Fault::new(error, "dup"))
}

fn open_file(path: &str, flags: i32, mode: u32) -> io::Result<File> {
    let access = flags & libc::O_ACCMODE;
    OpenOptions::new()
        .read(access != libc::O_WRONLY)
        .write(access != libc::O_RDONLY)
        .custom_flags(flags & !libc::O_ACCMODE)
        .mode(mode)
        .open(path)
}

pub(super) fn open(path: String, flags: i32, mode: u32) -> Outcome<i32> {
    let file = open_file(&path, flags, mode).map_err(|error| Fault::new(error, "open").at(path))?;
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
    let file = file(fd, "read")?;
    let mut bytes = vec![0; length];
    let count = if position < 0.0 {
        (&*file).read(&mut bytes)
    } else {
        file.read_at(&mut bytes, position as u64)
    };
    bytes.truncate(count.map_err(|error| Fault::new(error, "read"))?);
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
    written.map_err(|error| Fault::new(error, "write"))?;
    Ok(bytes.0.len())
}

pub(super) fn fsync(fd: i32) -> Outcome<()> {
    let synced = file(fd, "fsync")?.sync_all();
    synced.map_err(|error| Fault::new(error, "fsync"))
}

pub(super) fn fdatasync(fd: i32) -> Outcome<()> {
    let synced = file(fd, "fdatasync")?.sync_data();
    synced.map_err(|error| Fault::new(error, "fdatasync"))
}

pub(super) fn ftruncate(fd: i32, length: f64) -> Outcome<()> {
    let cut = file(fd, "ftruncate")?.set_len(length.max(0.0) as u64);
    cut.map_err(|error| Fault::new(error, "ftruncate"))
}

pub(super) fn truncate(path: String, length: f64) -> Outcome<()> {
    let file = open_file(&path, libc::O_RDWR, 0)
        .map_err(|error| Fault::new(error, "open").at(path.as_str()))?;
    let cut = file.set_len(length.max(0.0) as u64);
    cut.map_err(|error| Fault::new(error, "ftruncate"))
}

pub(super) fn read_file(path: String, flags: i32) -> Outcome<Bytes> {
    let mut file =
        open_file(&path, flags, 0o666).map_err(|error| Fault::new(error, "open").at(path))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)
        .map_err(|error| Fault::new(error, "read"))?;
    Ok(Bytes(bytes))
}

pub(super) fn read_all(fd: i32) -> Outcome<Bytes> {
    let file = file(fd, "read")?;
    let mut bytes = Vec::new();
    (&*file)
        .read_to_end(&mut bytes)
        .map_err(|error| Fault::new(error, "read"))?;
    Ok(Bytes(bytes))
}

pub(super) fn write_file(path: String, bytes: Bytes, flags: i32, mode: u32) -> Outcome<()> {
    let mut file =
        open_file(&path, flags, mode).map_err(|error| Fault::new(error, "open").at(path))?;
    file.write_all(&bytes.0)
        .map_err(|error| Fault::new(error, "write"))
}
