//! The metadata of files.

use std::fs::{self, Metadata, Permissions};
use std::os::unix::fs::{
    MetadataExt, PermissionsExt, chown as change_owner, lchown as change_link_owner,
};

use nix::fcntl::AT_FDCWD;
use nix::sys::stat::{UtimensatFlags, futimens, utimensat};
use nix::sys::time::TimeSpec;
use nix::unistd::AccessFlags;

use super::files::file;
use crate::ops::syscall_error::{Outcome, SyscallError};

/// Returns the members of a `Stats`, in the order of its constructor. Times are pairs of seconds and nanoseconds.
fn numbers(meta: &Metadata) -> Vec<f64> {
    let born = meta.created().ok().and_then(|created| {
        created
            .duration_since(std::time::UNIX_EPOCH)
            .ok()
            .map(|age| (age.as_secs() as f64, f64::from(age.subsec_nanos())))
    });
    let changed = (meta.ctime() as f64, meta.ctime_nsec() as f64);
    let born = born.unwrap_or(changed);
    vec![
        meta.dev() as f64,
        f64::from(meta.mode()),
        meta.nlink() as f64,
        f64::from(meta.uid()),
        f64::from(meta.gid()),
        meta.rdev() as f64,
        meta.blksize() as f64,
        meta.ino() as f64,
        meta.size() as f64,
        meta.blocks() as f64,
        meta.atime() as f64,
        meta.atime_nsec() as f64,
        meta.mtime() as f64,
        meta.mtime_nsec() as f64,
        changed.0,
        changed.1,
        born.0,
        born.1,
    ]
}

pub(super) fn stat(path: String) -> Outcome<Vec<f64>> {
    let meta = fs::metadata(&path).map_err(|error| SyscallError::new(error, "stat").at(path))?;
    Ok(numbers(&meta))
}

pub(super) fn lstat(path: String) -> Outcome<Vec<f64>> {
    let meta =
        fs::symlink_metadata(&path).map_err(|error| SyscallError::new(error, "lstat").at(path))?;
    Ok(numbers(&meta))
}

pub(super) fn fstat(fd: i32) -> Outcome<Vec<f64>> {
    let meta = file(fd, "fstat")?.metadata();
    Ok(numbers(
        &meta.map_err(|error| SyscallError::new(error, "fstat"))?,
    ))
}

/// Returns type, bsize, blocks, bfree, bavail, files and ffree.
pub(super) fn statfs(path: String) -> Outcome<Vec<f64>> {
    let found = nix::sys::statfs::statfs(path.as_str())
        .map_err(|error| SyscallError::new(error, "statfs").at(path))?;
    Ok(vec![
        found.filesystem_type().0 as f64,
        found.block_size() as f64,
        found.blocks() as f64,
        found.blocks_free() as f64,
        found.blocks_available() as f64,
        found.files() as f64,
        found.files_free() as f64,
    ])
}

pub(super) fn access(path: String, mode: i32) -> Outcome<()> {
    let flags = AccessFlags::from_bits_truncate(mode);
    nix::unistd::access(path.as_str(), flags)
        .map_err(|error| SyscallError::new(error, "access").at(path))
}

pub(super) fn chmod(path: String, mode: u32) -> Outcome<()> {
    let changed = fs::set_permissions(&path, Permissions::from_mode(mode));
    changed.map_err(|error| SyscallError::new(error, "chmod").at(path))
}

pub(super) fn fchmod(fd: i32, mode: u32) -> Outcome<()> {
    let changed = file(fd, "fchmod")?.set_permissions(Permissions::from_mode(mode));
    changed.map_err(|error| SyscallError::new(error, "fchmod"))
}

/// Converts a user or group id; -1 leaves the owner unchanged.
fn owner(id: f64) -> Option<u32> {
    (id >= 0.0).then_some(id as u32)
}

pub(super) fn chown(path: String, uid: f64, gid: f64) -> Outcome<()> {
    let changed = change_owner(&path, owner(uid), owner(gid));
    changed.map_err(|error| SyscallError::new(error, "chown").at(path))
}

pub(super) fn lchown(path: String, uid: f64, gid: f64) -> Outcome<()> {
    let changed = change_link_owner(&path, owner(uid), owner(gid));
    changed.map_err(|error| SyscallError::new(error, "lchown").at(path))
}

pub(super) fn fchown(fd: i32, uid: f64, gid: f64) -> Outcome<()> {
    let changed = std::os::unix::fs::fchown(&*file(fd, "fchown")?, owner(uid), owner(gid));
    changed.map_err(|error| SyscallError::new(error, "fchown"))
}

fn moment(seconds: f64) -> TimeSpec {
    let whole = seconds.floor();
    TimeSpec::new(whole as i64, ((seconds - whole) * 1e9).round() as i64)
}

fn set_times(
    syscall: &str,
    path: String,
    times: (f64, f64),
    follow: UtimensatFlags,
) -> Outcome<()> {
    let (atime, mtime) = (moment(times.0), moment(times.1));
    utimensat(AT_FDCWD, path.as_str(), &atime, &mtime, follow)
        .map_err(|error| SyscallError::new(error, syscall).at(path))
}

pub(super) fn utimes(path: String, atime: f64, mtime: f64) -> Outcome<()> {
    set_times("utime", path, (atime, mtime), UtimensatFlags::FollowSymlink)
}

pub(super) fn lutimes(path: String, atime: f64, mtime: f64) -> Outcome<()> {
    set_times(
        "lutime",
        path,
        (atime, mtime),
        UtimensatFlags::NoFollowSymlink,
    )
}

pub(super) fn futimes(fd: i32, atime: f64, mtime: f64) -> Outcome<()> {
    let file = file(fd, "futime")?;
    futimens(&*file, &moment(atime), &moment(mtime))
        .map_err(|error| SyscallError::new(error, "futime"))
}
