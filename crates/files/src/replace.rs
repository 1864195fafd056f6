//! Replaces the content of a file: all of it or none of it.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use nix::errno::Errno;
use nix::fcntl::OFlag;

use crate::lock;
use crate::target::{self, Target};

/// Options of [`replace`].
#[derive(Debug, Clone, Copy)]
pub struct Replace {
    /// The mode of a new file, subject to the umask. An existing file retains its mode unless `force_mode` is set.
    pub mode: u32,
    /// Gives an existing file `mode` as well: for files with secrets.
    pub force_mode: bool,
    pub durability: Durability,
    /// Writes into the old file where a rename would lose its other hard links, its owner or its directory's rules.
    /// Without it such a file is replaced by a new one.
    pub in_place: bool,
}

/// The failures that a replaced file survives with its old content or its new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The end of the process, at any moment. After a power failure the file may be empty or old.
    Process,
    /// A power failure too: content and directory entry are on the disk when the call returns.
    Power,
}

impl Durability {
    fn syncs(self) -> bool {
        self == Self::Power
    }
}

impl Replace {
    /// For files of the program itself that only their owner may read: mode 0600, safe from power failures.
    pub const PRIVATE: Self = Self {
        mode: 0o600,
        force_mode: true,
        durability: Durability::Power,
        in_place: false,
    };
    /// For files that belong to the user: new ones get the usual mode, existing ones retain everything but their
    /// content.
    pub const USER: Self = Self {
        mode: 0o666,
        force_mode: false,
        durability: Durability::Process,
        in_place: true,
    };
}

/// Makes `content` the whole content of the regular file at `path`, which need not exist. Its directory must.
///
/// A symbolic link stays and its target is replaced. Anything that exists and is not a regular file is left alone and is
/// an error. After a crash the file holds the old content or the new one, and perhaps a copy named `.NAME.unfinished`
/// stays beside it until the next call.
pub fn replace(path: &Path, content: &[u8], options: Replace) -> io::Result<()> {
    let (target, existing) = target::destination(path)?;
    let Some(existing) = existing else {
        return replace_by_rename(&target, content, options.mode, None, options.durability);
    };
    if options.in_place && !renames_losslessly(&existing) {
        return write_in_place(path, content, options.durability);
    }
    let mode = if options.force_mode {
        options.mode
    } else {
        existing.metadata.mode() & 0o7777
    };
    let replaced = replace_by_rename(&target, content, mode, Some(mode), options.durability);
    match replaced {
        // The directory is one in which this user cannot create files.
        Err(error) if options.in_place && error.kind() == ErrorKind::PermissionDenied => {
            write_in_place(path, content, options.durability)
        }
        replaced => replaced,
    }
}

/// The file has one name, belongs to this user and may be written.
fn renames_losslessly(existing: &Target) -> bool {
    let metadata = &existing.metadata;
    metadata.nlink() == 1
        && metadata.uid() == nix::unistd::geteuid().as_raw()
        && metadata.gid() == nix::unistd::getegid().as_raw()
        && metadata.mode() & 0o200 != 0
}

fn replace_by_rename(
    target: &Path,
    content: &[u8],
    mode: u32,
    exact_mode: Option<u32>,
    durability: Durability,
) -> io::Result<()> {
    let (copy, mut file) = create_copy(target, mode & 0o777)?;
    let written = (|| {
        if let Some(mode) = exact_mode {
            file.set_permissions(Permissions::from_mode(mode))?;
        }
        file.write_all(content)?;
        if durability.syncs() {
            file.sync_all()?;
        }
        fs::rename(&copy, target)
    })();
    if let Err(error) = written {
        // The first error is the one to report.
        let _ = fs::remove_file(&copy);
        return Err(error);
    }
    // Closing it ends the lock on what is now the target.
    drop(file);
    if durability.syncs() {
        File::open(target::parent(target))?.sync_all()?;
    }
    Ok(())
}

fn write_in_place(path: &Path, content: &[u8], durability: Durability) -> io::Result<()> {
    let mut file = crate::open_with(OpenOptions::new().write(true).create(true), path)?;
    let (before, after) = (file.metadata()?.len(), content.len() as u64);
    if after > before {
        // A full disk and a size limit are found before the old content is overwritten.
        if let Err(error) = allocate(&file, before, after - before) {
            let _ = file.set_len(before);
            return Err(error);
        }
    }
    file.write_all(content)?;
    file.set_len(after)?;
    if durability.syncs() {
        file.sync_all()?;
    }
    Ok(())
}

fn allocate(file: &File, offset: u64, length: u64) -> io::Result<()> {
    let signed = |number: u64| i64::try_from(number).map_err(|_| ErrorKind::FileTooLarge);
    match nix::fcntl::posix_fallocate(file, signed(offset)?, signed(length)?) {
        // The file system cannot reserve space; writing reports what is wrong.
        Err(Errno::EOPNOTSUPP | Errno::EINVAL | Errno::ENOSYS) => Ok(()),
        result => Ok(result?),
    }
}

/// Creates the copy that replaces `target`, and locks it as the sign that its process lives.
///
/// The copy is named `.NAME.unfinished`, so that the next call finds and removes one that a killed process left. While
/// another call replaces the same file, the copy gets a name of its own.
fn create_copy(target: &Path, mode: u32) -> io::Result<(PathBuf, File)> {
    static COPIES: AtomicU32 = AtomicU32::new(0);
    let name = target.file_name().ok_or(ErrorKind::InvalidInput)?;
    let named = |ending: &str| {
        let mut copy = OsString::from(".");
        // File names have at most 255 bytes.
        copy.push(OsStr::from_bytes(&name.as_bytes()[..name.len().min(200)]));
        copy.push(ending);
        target.with_file_name(copy)
    };
    let copy = named(".unfinished");
    remove_abandoned(&copy);
    match create_locked(&copy, mode) {
        Ok(Some(file)) => return Ok((copy, file)),
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let number = COPIES.fetch_add(1, Ordering::Relaxed);
    let copy = named(&format!(".{}-{number}.unfinished", std::process::id()));
    remove_abandoned(&copy);
    let file = crate::create_new(&copy, mode)?;
    Ok((copy, file))
}

/// Creates and locks a file. `None` if another call considered it abandoned before it was locked, and removes it.
fn create_locked(copy: &Path, mode: u32) -> io::Result<Option<File>> {
    let file = crate::create_new(copy, mode)?;
    match file.try_lock() {
        Ok(()) => Ok(is_copy_at(&file, copy).then_some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(_)) => {
            // A file system without locks.
            fs::remove_file(copy)?;
            Ok(None)
        }
    }
}

/// Removes a copy whose process was killed. Living processes hold a lock on theirs until it is renamed.
fn remove_abandoned(copy: &Path) {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .custom_flags((OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits());
    let Ok(file) = options.open(copy) else {
        return;
    };
    if file.try_lock().is_ok() && is_copy_at(&file, copy) {
        let _ = fs::remove_file(copy);
    }
}

/// Reports whether `path` names the open regular `file` and not one that replaced it.
fn is_copy_at(file: &File, path: &Path) -> bool {
    file.metadata().is_ok_and(|open| open.is_file()) && lock::is_at(file, path).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn mode_links_and_neighbours_survive() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("script");
        let link = dir.path().join("link");
        let twin = dir.path().join("twin");
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o754)).unwrap();
        symlink("script", &link).unwrap();
        replace(&link, b"new", Replace::USER).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o754);

        fs::hard_link(&file, &twin).unwrap();
        replace(&file, b"shared", Replace::USER).unwrap();
        assert_eq!(fs::read(&twin).unwrap(), b"shared");
        replace(&file, b"secret", Replace::PRIVATE).unwrap();
        assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::read(&twin).unwrap(), b"shared");
        assert_eq!(names(dir.path()), ["link", "script", "twin"]);
    }

    #[test]
    fn a_dangling_link_creates_its_target() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("link");
        symlink("target", &link).unwrap();
        replace(&link, b"x", Replace::PRIVATE).unwrap();
        assert_eq!(fs::read(dir.path().join("target")).unwrap(), b"x");
        assert!(link.symlink_metadata().unwrap().is_symlink());
    }

    #[test]
    fn only_regular_files_are_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let device = dir.path().join("null");
        symlink("/dev/null", &device).unwrap();
        for options in [Replace::USER, Replace::PRIVATE] {
            for path in [&fifo, &device, &dir.path().to_owned()] {
                replace(path, b"x", options).unwrap_err();
            }
            replace(Path::new("/dev/stdin"), b"x", options).unwrap_err();
        }
        assert_eq!(names(dir.path()), ["fifo", "null"]);
        assert_eq!(
            crate::FileKind::of(&fs::metadata("/dev/null").unwrap()),
            crate::FileKind::Device
        );
    }

    #[test]
    fn a_copy_that_a_killed_process_left_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("settings.json");
        let copy = dir.path().join(".settings.json.unfinished");
        fs::write(&copy, "half").unwrap();
        replace(&path, b"whole", Replace::PRIVATE).unwrap();
        assert_eq!(names(dir.path()), ["settings.json"]);

        // The copy of a living process stays, and does not stop others.
        let held = create_locked(&copy, 0o600).unwrap().unwrap();
        replace(&path, b"again", Replace::PRIVATE).unwrap();
        assert!(is_copy_at(&held, &copy));
        drop(held);
        replace(&path, b"third", Replace::PRIVATE).unwrap();
        assert_eq!(names(dir.path()), ["settings.json"]);
        assert_eq!(fs::read(&path).unwrap(), b"third");

        // What is not a regular file is not a copy.
        nix::unistd::mkfifo(&copy, nix::sys::stat::Mode::S_IRWXU).unwrap();
        replace(&path, b"last", Replace::PRIVATE).unwrap();
        assert_eq!(
            names(dir.path()),
            [".settings.json.unfinished", "settings.json"]
        );
    }

    #[test]
    fn many_writers_leave_one_whole_content() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("n".repeat(255));
        std::thread::scope(|scope| {
            for writer in 0..4_u8 {
                let path = &path;
                scope.spawn(move || {
                    for _ in 0..50 {
                        replace(path, &[b'a' + writer; 4096], Replace::USER).unwrap();
                    }
                });
            }
        });
        let content = fs::read(&path).unwrap();
        assert!(content.len() == 4096 && content.iter().all(|byte| *byte == content[0]));
        assert_eq!(names(dir.path()).len(), 1);
    }

    #[test]
    fn a_failed_write_keeps_the_old_content() {
        let dir = tempfile::tempdir().unwrap();
        let error = replace(&dir.path().join("none/file"), b"x", Replace::PRIVATE).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert_eq!(names(dir.path()), [""; 0]);
    }
}
