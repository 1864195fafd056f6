//! The thread that made a call: its memory, its directories and descriptors, and its rights.

use std::cell::OnceCell;
use std::fs;
use std::os::fd::OwnedFd;

use crate::system::{self, Errno, Notification, held_capabilities as held};
use crate::text::{c_text, shown};

/// A page of memory: a text may end at its end, and the next one may not exist.
const PAGE: u64 = 4096;
/// Capabilities of root that matter for files; the warden acts with those that the caller has.
const ALL_CAPABILITIES: u64 = (1 << 41) - 1;

/// A thread that waits for an answer.
pub(super) struct Caller<'a> {
    listener: &'a OwnedFd,
    pub id: u64,
    pub thread: u32,
    status: OnceCell<Result<Status, Errno>>,
}

/// The rights of a thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Status {
    /// The process.
    pub leader: u32,
    mask: u32,
    user: u32,
    group: u32,
    groups: Vec<u32>,
    capabilities: u64,
}

impl<'a> Caller<'a> {
    pub fn new(listener: &'a OwnedFd, call: &Notification) -> Self {
        Self {
            listener,
            id: call.id,
            thread: call.thread,
            status: OnceCell::new(),
        }
    }

    /// Checks that the call still waits: then everything read before belongs to its thread and not to a later one of the
    /// same number.
    pub fn check(&self) -> Result<(), Errno> {
        if system::still_waits(self.listener, self.id) {
            Ok(())
        } else {
            Err(libc::ESRCH)
        }
    }

    /// Copies a text that ends in NUL.
    pub fn text(&self, address: u64) -> Result<Vec<u8>, Errno> {
        if address == 0 {
            return Err(libc::EFAULT);
        }
        let mut text = Vec::new();
        let mut at = address;
        while text.len() < libc::PATH_MAX as usize {
            let mut piece = [0_u8; PAGE as usize];
            let until_page = (PAGE - at % PAGE) as usize;
            let count = self.read(at, &mut piece[..until_page])?;
            let piece = &piece[..count];
            if let Some(end) = piece.iter().position(|&byte| byte == 0) {
                text.extend_from_slice(&piece[..end]);
                return if text.len() < libc::PATH_MAX as usize {
                    Ok(text)
                } else {
                    Err(libc::ENAMETOOLONG)
                };
            }
            text.extend_from_slice(piece);
            at += count as u64;
        }
        Err(libc::ENAMETOOLONG)
    }

    /// Copies `length` bytes.
    pub fn bytes(&self, address: u64, length: usize) -> Result<Vec<u8>, Errno> {
        let mut bytes = vec![0; length];
        if length > 0 && self.read(address, &mut bytes)? != length {
            return Err(libc::EFAULT);
        }
        Ok(bytes)
    }

    fn read(&self, address: u64, into: &mut [u8]) -> Result<usize, Errno> {
        match system::read_memory(self.thread, address, into) {
            Ok(0) => Err(libc::EFAULT),
            // The process made itself unreadable.
            Err(libc::EPERM) => Err(libc::EACCES),
            result => result,
        }
    }

    /// Opens the directory that a relative path starts from.
    pub fn directory(&self, descriptor: i32) -> Result<OwnedFd, Errno> {
        let path = if descriptor == libc::AT_FDCWD {
            format!("/proc/{}/cwd", self.thread)
        } else if descriptor < 0 {
            return Err(libc::EBADF);
        } else {
            format!("/proc/{}/fd/{descriptor}", self.thread)
        };
        let path = c_text(path.as_bytes()).ok_or(libc::EINVAL)?;
        match system::open_at(libc::AT_FDCWD, &path, libc::O_PATH, 0) {
            Err(libc::ENOENT) if descriptor >= 0 => Err(libc::EBADF),
            opened => opened,
        }
    }

    /// Copies a descriptor.
    pub fn descriptor(&self, number: i32) -> Result<OwnedFd, Errno> {
        let leader = self.status()?.leader;
        let copy = system::copy_descriptor(self.thread, leader, number)?;
        self.check()?;
        Ok(copy)
    }

    /// The name of the program, for records.
    pub fn program(&self) -> Option<String> {
        let name = fs::read(format!("/proc/{}/comm", self.thread)).ok()?;
        Some(shown(name.strip_suffix(b"\n").unwrap_or(&name)))
    }

    pub fn status(&self) -> Result<&Status, Errno> {
        let read = || {
            let text = fs::read_to_string(format!("/proc/{}/status", self.thread));
            let status = Status::parse(&text.map_err(|_| libc::ESRCH)?).ok_or(libc::EIO)?;
            self.check()?;
            Ok(status)
        };
        self.status
            .get_or_init(read)
            .as_ref()
            .map_err(|&error| error)
    }

    /// Runs `work` with the caller's file mode mask and, where the warden is root, with the caller's user, groups and
    /// capabilities: the warden must not lend rights that the caller does not have.
    pub fn act<T, E: From<Errno>>(&self, work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        if system::user() != 0 {
            // A confined process of an ordinary user cannot become another one.
            return work();
        }
        let status = self.status()?;
        let restored = Rights::assume(status)?;
        let result = work();
        drop(restored);
        result
    }

    /// Sets the mask of new files to the caller's.
    pub fn apply_mask(&self) -> Result<(), Errno> {
        system::set_mask(self.status()?.mask);
        Ok(())
    }
}

/// The caller's rights, until it is dropped.
struct Rights {
    changed_user: bool,
}

impl Rights {
    fn assume(status: &Status) -> Result<Self, Errno> {
        let changed_user = status.user != 0 || status.group != 0;
        let rights = Self { changed_user };
        if changed_user {
            system::act_as(status.user, status.group, &status.groups)?;
        }
        system::set_capabilities(status.capabilities & ALL_CAPABILITIES, held())?;
        Ok(rights)
    }
}

impl Drop for Rights {
    fn drop(&mut self) {
        let restored = system::set_capabilities(held(), held());
        let user = if self.changed_user {
            system::act_as(0, 0, &[0])
        } else {
            Ok(())
        };
        if restored.or(user).is_err() {
            // A warden with the rights of another user must answer nothing more; its listener closes with the thread.
            std::process::abort();
        }
    }
}

impl Status {
    fn parse(text: &str) -> Option<Self> {
        let mut status = Self::default();
        let mut found = 0;
        for line in text.lines() {
            let Some((name, value)) = line.split_once(':') else {
                continue;
            };
            let value = value.trim();
            // The fourth id is the one for files.
            let file_id = || value.split_whitespace().nth(3)?.parse().ok();
            match name {
                "Umask" => status.mask = u32::from_str_radix(value, 8).ok()?,
                "Tgid" => status.leader = value.parse().ok()?,
                "Uid" => status.user = file_id()?,
                "Gid" => status.group = file_id()?,
                "Groups" => {
                    let ids = value.split_whitespace().map(str::parse);
                    status.groups = ids.collect::<Result<_, _>>().ok()?;
                }
                "CapEff" => status.capabilities = u64::from_str_radix(value, 16).ok()?,
                _ => continue,
            }
            found += 1;
        }
        (found == 6).then_some(status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_of_this_process_is_read() {
        let text = fs::read_to_string("/proc/self/status").unwrap();
        let status = Status::parse(&text).unwrap();
        assert_eq!(status.leader, std::process::id());
        assert_eq!(status.user, system::user());
        assert_eq!(Status::parse("Tgid: 1\n"), None);
    }
}
