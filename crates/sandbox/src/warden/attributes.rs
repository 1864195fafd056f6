//! Changes mode, owner, times and extended attributes on behalf of a caller.

use std::os::fd::OwnedFd;

use super::caller::Caller;
use super::open::{is_anonymous, without_mark};
use super::walk::{Entry, Found, Last, Node, own_path, start, walk};
use super::{Answer, Answered, Refusal, Warden};
use crate::judge::Change;
use crate::system::{self, Errno};
use crate::text::c_text;

/// The longest value of an extended attribute, as in the kernel.
const MAX_VALUE: u64 = 65_536;
/// Bits that let a program run as another user.
const SET_ID: u32 = libc::S_ISUID | libc::S_ISGID;

/// Returns the file behind a descriptor.
pub(super) fn node(file: OwnedFd) -> Result<Node, Errno> {
    let facts = system::facts(&file)?;
    Ok(Node { file, facts })
}

impl Warden {
    /// Finds the file of a path, or that of the descriptor if the path is empty and `flags` permit it.
    fn target(
        &self,
        caller: &Caller<'_>,
        directory: i32,
        path: u64,
        flags: i32,
    ) -> Result<Node, Refusal> {
        let text = caller.text(path)?;
        if text.is_empty() && flags & libc::AT_EMPTY_PATH != 0 && directory != libc::AT_FDCWD {
            return Ok(node(caller.descriptor(directory)?)?);
        }
        let last = if flags & libc::AT_SYMLINK_NOFOLLOW != 0 {
            Last::Keep
        } else {
            Last::Follow
        };
        let base = start(caller, directory, &text)?;
        caller.check()?;
        match caller.act(|| walk(caller, base, &text, last))? {
            Found::Entry(Entry {
                present: Some(node),
                ..
            })
            | Found::Node(node) => Ok(node),
            Found::Entry(_) => Err(libc::ENOENT.into()),
        }
    }

    /// Changes a file as the caller's user, if the policy permits it.
    fn change(
        &self,
        caller: &Caller<'_>,
        node: &Node,
        work: impl FnOnce(&Node) -> Result<(), Errno>,
    ) -> Answered {
        caller.act(|| {
            let name = node.name()?;
            // Pipes, sockets and memory belong to the process that holds them.
            if name.starts_with(b"/") && !is_anonymous(node, &name) {
                let name = without_mark(node, &name);
                if let Err(denial) = self.rules.judge.change(Change::Attributes, name) {
                    return Err(self.refused_attributes(node, denial));
                }
            }
            work(node)?;
            Ok(Answer::Value(0))
        })
    }

    /// Only an owner may change attributes; the refusal for others is the system's.
    fn refused_attributes(&self, node: &Node, denial: crate::Denial) -> Refusal {
        let writable = system::check_access(&node.file, libc::W_OK).is_ok();
        if writable {
            Refusal::Policy(denial, libc::EACCES)
        } else {
            Refusal::System(libc::EPERM)
        }
    }

    pub(super) fn chmod(
        &self,
        caller: &Caller<'_>,
        directory: i32,
        path: u64,
        mode: u32,
        flags: i32,
    ) -> Answered {
        let node = self.target(caller, directory, path, flags)?;
        self.change(caller, &node, |node| set_mode(node, mode))
    }

    pub(super) fn fchmod(&self, caller: &Caller<'_>, number: i32, mode: u32) -> Answered {
        let node = node(caller.descriptor(number)?)?;
        self.change(caller, &node, |node| set_mode(node, mode))
    }

    pub(super) fn chown(
        &self,
        caller: &Caller<'_>,
        directory: i32,
        path: u64,
        (user, group): (u32, u32),
        flags: i32,
    ) -> Answered {
        let node = self.target(caller, directory, path, flags)?;
        self.change(caller, &node, |node| {
            system::change_owner(&node.file, user, group)
        })
    }

    pub(super) fn fchown(
        &self,
        caller: &Caller<'_>,
        number: i32,
        user: u32,
        group: u32,
    ) -> Answered {
        let node = node(caller.descriptor(number)?)?;
        self.change(caller, &node, |node| {
            system::change_owner(&node.file, user, group)
        })
    }

    pub(super) fn utimensat(
        &self,
        caller: &Caller<'_>,
        directory: i32,
        path: u64,
        times: u64,
        flags: i32,
    ) -> Answered {
        let times = times_at(caller, times, Unit::Nanoseconds)?;
        let node = if path == 0 && directory != libc::AT_FDCWD {
            node(caller.descriptor(directory)?)?
        } else {
            self.target(caller, directory, path, flags)?
        };
        self.change(caller, &node, |node| {
            system::change_times(&node.file, times.as_ref())
        })
    }

    #[cfg(target_arch = "x86_64")]
    pub(super) fn futimesat(
        &self,
        caller: &Caller<'_>,
        directory: i32,
        path: u64,
        times: u64,
    ) -> Answered {
        let times = times_at(caller, times, Unit::Microseconds)?;
        let node = if path == 0 && directory != libc::AT_FDCWD {
            node(caller.descriptor(directory)?)?
        } else {
            self.target(caller, directory, path, 0)?
        };
        self.change(caller, &node, |node| {
            system::change_times(&node.file, times.as_ref())
        })
    }

    #[cfg(target_arch = "x86_64")]
    pub(super) fn utime(&self, caller: &Caller<'_>, path: u64, times: u64) -> Answered {
        let times = times_at(caller, times, Unit::Seconds)?;
        let node = self.target(caller, libc::AT_FDCWD, path, 0)?;
        self.change(caller, &node, |node| {
            system::change_times(&node.file, times.as_ref())
        })
    }

    pub(super) fn setxattr(&self, caller: &Caller<'_>, a: &[u64; 6], follows: bool) -> Answered {
        let node = self.target(caller, libc::AT_FDCWD, a[0], link_flags(follows))?;
        self.set_attribute(caller, &node, a)
    }

    pub(super) fn fsetxattr(&self, caller: &Caller<'_>, a: &[u64; 6]) -> Answered {
        let node = node(caller.descriptor(a[0] as i32)?)?;
        self.set_attribute(caller, &node, a)
    }

    fn set_attribute(&self, caller: &Caller<'_>, node: &Node, a: &[u64; 6]) -> Answered {
        let name = attribute_name(caller, a[1])?;
        if a[3] > MAX_VALUE {
            return Err(libc::E2BIG.into());
        }
        let value = caller.bytes(a[2], a[3] as usize)?;
        caller.check()?;
        self.change(caller, node, |node| {
            not_a_link(node)?;
            system::set_attribute(&own_path(&node.file)?, &name, &value, a[4] as i32)
        })
    }

    pub(super) fn removexattr(
        &self,
        caller: &Caller<'_>,
        path: u64,
        name: u64,
        follows: bool,
    ) -> Answered {
        let node = self.target(caller, libc::AT_FDCWD, path, link_flags(follows))?;
        self.remove_attribute(caller, &node, name)
    }

    pub(super) fn fremovexattr(&self, caller: &Caller<'_>, number: i32, name: u64) -> Answered {
        let node = node(caller.descriptor(number)?)?;
        self.remove_attribute(caller, &node, name)
    }

    fn remove_attribute(&self, caller: &Caller<'_>, node: &Node, name: u64) -> Answered {
        let name = attribute_name(caller, name)?;
        caller.check()?;
        self.change(caller, node, |node| {
            not_a_link(node)?;
            system::remove_attribute(&own_path(&node.file)?, &name)
        })
    }
}

fn link_flags(follows: bool) -> i32 {
    if follows {
        0
    } else {
        libc::AT_SYMLINK_NOFOLLOW
    }
}

/// Links have no attributes that users may set, and the path of a descriptor of one would be followed.
fn not_a_link(node: &Node) -> Result<(), Errno> {
    if node.facts.kind() == libc::S_IFLNK {
        Err(libc::EPERM)
    } else {
        Ok(())
    }
}

fn set_mode(node: &Node, mode: u32) -> Result<(), Errno> {
    match node.facts.kind() {
        // The path of its descriptor would lead to the file behind the link.
        libc::S_IFLNK => return Err(libc::EOPNOTSUPP),
        // A program that runs as another user would be planted for those outside.
        libc::S_IFREG if mode & SET_ID != 0 => return Err(libc::EPERM),
        _ => {}
    }
    system::change_mode(&own_path(&node.file)?, mode & 0o7777)
}

/// Copies the name of an attribute. Only those of users and access lists are changed: others give programs rights or
/// belong to the system.
fn attribute_name(caller: &Caller<'_>, address: u64) -> Result<std::ffi::CString, Refusal> {
    let name = caller.text(address)?;
    let is_list = matches!(
        name.as_slice(),
        b"system.posix_acl_access" | b"system.posix_acl_default"
    );
    if !is_list && !name.starts_with(b"user.") {
        return Err(libc::EPERM.into());
    }
    Ok(c_text(&name).ok_or(libc::EINVAL)?)
}

/// The form of a time in the caller's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    /// Two structures of seconds and nanoseconds.
    Nanoseconds,
    /// Two structures of seconds and microseconds.
    #[cfg(target_arch = "x86_64")]
    Microseconds,
    /// Two numbers of seconds.
    #[cfg(target_arch = "x86_64")]
    Seconds,
}

/// Copies the times of access and modification; `None` means now.
fn times_at(
    caller: &Caller<'_>,
    address: u64,
    unit: Unit,
) -> Result<Option<[libc::timespec; 2]>, Errno> {
    if address == 0 {
        return Ok(None);
    }
    let words = match unit {
        Unit::Nanoseconds => 4,
        #[cfg(target_arch = "x86_64")]
        Unit::Microseconds => 4,
        #[cfg(target_arch = "x86_64")]
        Unit::Seconds => 2,
    };
    let bytes = caller.bytes(address, words * 8)?;
    let word = |index: usize| {
        let mut word = [0; 8];
        word.copy_from_slice(&bytes[index * 8..index * 8 + 8]);
        i64::from_ne_bytes(word)
    };
    let time = |seconds: i64, nanoseconds: i64| libc::timespec {
        tv_sec: seconds,
        tv_nsec: nanoseconds,
    };
    Ok(Some(match unit {
        Unit::Nanoseconds => [time(word(0), word(1)), time(word(2), word(3))],
        #[cfg(target_arch = "x86_64")]
        Unit::Microseconds => {
            let micro = |index: usize| {
                let value = word(index);
                if (0..1_000_000).contains(&value) {
                    Ok(value * 1000)
                } else {
                    Err(libc::EINVAL)
                }
            };
            [time(word(0), micro(1)?), time(word(2), micro(3)?)]
        }
        #[cfg(target_arch = "x86_64")]
        Unit::Seconds => [time(word(0), 0), time(word(1), 0)],
    }))
}
