//! Opens files for writing, and truncates them, on behalf of a caller.

use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use super::caller::Caller;
use super::walk::{Entry, Found, Last, Node, own_path, start, walk};
use super::{Answer, Answered, Refusal, Warden};
use crate::judge::Change;
use crate::system::{self, Errno};
use crate::text::{c_text, is_within};
use crate::{Denial, ruleset};

/// Flags that a caller may choose for a file that the warden opens.
const PASSED_ON: i32 = libc::O_ACCMODE
    | libc::O_TRUNC
    | libc::O_APPEND
    | libc::O_NONBLOCK
    | libc::O_SYNC
    | libc::O_DIRECT
    | libc::O_NOATIME
    | libc::O_ASYNC;
/// Bits of a mode that a new file may have: no program becomes another user by it.
const FILE_MODE: u32 = 0o1777;
/// `O_TMPFILE` without the bit that it shares with `O_DIRECTORY`.
const TEMPORARY_BIT: i32 = libc::O_TMPFILE & !libc::O_DIRECTORY;
/// Attempts to create or open a name that another process creates and removes meanwhile.
const MAX_ATTEMPTS: usize = 8;
/// The pauses between two attempts to open a pipe that has no reader.
const PIPE_PAUSE: Duration = Duration::from_millis(2);

const TERMINAL: (u32, u32) = (5, 0);
const TERMINAL_MAKER: (u32, u32) = (5, 2);
/// Device numbers of terminals that are made by [`TERMINAL_MAKER`].
const TERMINALS: std::ops::RangeInclusive<u32> = 136..=143;

impl Warden {
    pub(super) fn open(
        &self,
        caller: &Caller<'_>,
        directory: i32,
        path: u64,
        flags: i32,
        mode: u32,
    ) -> Answered {
        let path = caller.text(path)?;
        let close_on_exec = flags & libc::O_CLOEXEC != 0;
        for _ in 0..MAX_ATTEMPTS {
            let base = start(caller, directory, &path)?;
            caller.check()?;
            let creates_new = flags & libc::O_CREAT != 0 && flags & libc::O_EXCL != 0;
            let keeps = flags & libc::O_NOFOLLOW != 0 || creates_new;
            let last = if keeps { Last::Keep } else { Last::Follow };
            if flags & (libc::O_CREAT | TEMPORARY_BIT) != 0 {
                caller.apply_mask()?;
            }
            let opened = caller.act(|| {
                let found = walk(caller, base, &path, last)?;
                self.open_found(found, flags, mode)
            });
            return match opened {
                Ok(file) => Ok(Answer::Descriptor {
                    file,
                    close_on_exec,
                }),
                // The name appeared or went away after it was looked up.
                Err(Opening::Again) => continue,
                Err(Opening::Pipe(node)) => self.open_pipe(caller, &node, flags),
                Err(Opening::Refused(refusal)) => Err(refusal),
            };
        }
        Err(libc::EAGAIN.into())
    }

    fn open_found(&self, found: Found, flags: i32, mode: u32) -> Result<OwnedFd, Opening> {
        if flags & TEMPORARY_BIT != 0 {
            return self.open_temporary(found, flags, mode);
        }
        let creates = flags & libc::O_CREAT != 0;
        match found {
            Found::Entry(entry) => match &entry.present {
                Some(_) if creates && flags & libc::O_EXCL != 0 => Err(libc::EEXIST.into()),
                Some(node) => {
                    if creates && entry.must_be_directory {
                        return Err(libc::EISDIR.into());
                    }
                    self.open_present(node, Some(&entry.full), flags)
                }
                None if creates => self.create(&entry, flags, mode),
                None => Err(libc::ENOENT.into()),
            },
            Found::Node(_) if creates && flags & libc::O_EXCL != 0 => Err(libc::EEXIST.into()),
            Found::Node(node) => self.open_present(&node, None, flags),
        }
    }

    fn create(&self, entry: &Entry, flags: i32, mode: u32) -> Result<OwnedFd, Opening> {
        if entry.must_be_directory {
            return Err(libc::EISDIR.into());
        }
        self.permit(Change::Create, &entry.full, &entry.parent)?;
        let name = c_text(&entry.name).ok_or(libc::EINVAL)?;
        let flags = flags & PASSED_ON | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW;
        match system::open_at(entry.parent.as_raw_fd(), &name, flags, mode & FILE_MODE) {
            Err(libc::EEXIST) => Err(Opening::Again),
            opened => Ok(opened?),
        }
    }

    fn open_temporary(&self, found: Found, flags: i32, mode: u32) -> Result<OwnedFd, Opening> {
        let node = match found {
            Found::Entry(Entry {
                present: Some(node),
                ..
            })
            | Found::Node(node) => node,
            Found::Entry(_) => return Err(libc::ENOENT.into()),
        };
        if node.facts.kind() != libc::S_IFDIR {
            return Err(libc::ENOTDIR.into());
        }
        let name = crate::text::join(&node.name()?, b"#");
        self.permit(Change::Create, &name, &node.file)?;
        let flags = flags & (PASSED_ON | libc::O_EXCL) | libc::O_TMPFILE;
        let path = own_path(&node.file)?;
        Ok(system::open_at(
            libc::AT_FDCWD,
            &path,
            flags,
            mode & FILE_MODE,
        )?)
    }

    /// Opens a file that exists, through the very descriptor that was judged.
    fn open_present(
        &self,
        node: &Node,
        name: Option<&[u8]>,
        flags: i32,
    ) -> Result<OwnedFd, Opening> {
        let writes = flags & (libc::O_ACCMODE | libc::O_TRUNC) != 0;
        let found;
        let name = match name {
            Some(name) => name,
            None => {
                found = node.name()?;
                &found
            }
        };
        match node.facts.kind() {
            libc::S_IFLNK => return Err(libc::ELOOP.into()),
            libc::S_IFSOCK => return Err(libc::ENXIO.into()),
            libc::S_IFDIR if writes || flags & libc::O_CREAT != 0 => {
                return Err(libc::EISDIR.into());
            }
            _ if flags & libc::O_DIRECTORY != 0 && node.facts.kind() != libc::S_IFDIR => {
                return Err(libc::ENOTDIR.into());
            }
            libc::S_IFCHR => return self.open_device(node, name, flags),
            libc::S_IFBLK => return Err(self.denied_write(name).into()),
            // A pipe without a name is one of the caller's own descriptors.
            libc::S_IFIFO if !name.starts_with(b"/") => {}
            _ if is_anonymous(node, name) => {}
            _ if writes => self.permit(Change::Write, without_mark(node, name), &node.file)?,
            _ => {
                let name = without_mark(node, name);
                let denied = |denial| Refusal::Policy(denial, libc::EACCES);
                self.rules.judge.read(name).map_err(denied)?;
            }
        }
        let flags = flags & PASSED_ON;
        if node.facts.kind() == libc::S_IFIFO {
            let file = reopen(node, flags | libc::O_NONBLOCK);
            return match file {
                Err(libc::ENXIO) if flags & libc::O_NONBLOCK == 0 => {
                    let file = node.file.try_clone().map_err(|_| libc::EMFILE)?;
                    Err(Opening::Pipe(Node {
                        file,
                        facts: node.facts,
                    }))
                }
                Ok(file) if flags & libc::O_NONBLOCK == 0 => Ok(without_nonblock(file)?),
                file => Ok(file?),
            };
        }
        Ok(reopen(node, flags)?)
    }

    fn open_device(&self, node: &Node, name: &[u8], flags: i32) -> Result<OwnedFd, Opening> {
        if node.facts.node == TERMINAL {
            // There is none: the process leads a session of its own.
            return Err(libc::ENXIO.into());
        }
        let listed = ruleset::DEVICES
            .iter()
            .any(|device| device.as_bytes() == name);
        let is_own_terminal =
            TERMINALS.contains(&node.facts.node.0) && self.rules.own.has_terminal(&node.facts);
        let is_maker = node.facts.node == TERMINAL_MAKER && is_within(b"/dev", name);
        if !listed && !is_own_terminal && !is_maker {
            return Err(self.denied_write(name).into());
        }
        let flags = flags & PASSED_ON & !libc::O_TRUNC;
        let file = if is_maker {
            // The path of a descriptor would find no directory of terminals beside it.
            system::open_at(libc::AT_FDCWD, c"/dev/ptmx", flags, 0)?
        } else {
            reopen(node, flags)?
        };
        if is_maker {
            let name = format!("/dev/pts/{}", system::terminal_number(&file)?);
            let name = c_text(name.as_bytes()).ok_or(libc::EINVAL)?;
            let terminal = system::open_at(libc::AT_FDCWD, &name, libc::O_PATH, 0)?;
            self.rules.own.add_terminal(terminal);
        }
        Ok(file)
    }

    /// Waits on a thread of its own until a pipe has a reader.
    fn open_pipe(&self, caller: &Caller<'_>, node: &Node, flags: i32) -> Answered {
        let (id, flags) = (caller.id, flags);
        let close_on_exec = flags & libc::O_CLOEXEC != 0;
        let file = node.file.try_clone().map_err(|_| libc::EMFILE)?;
        let node = Node {
            file,
            facts: node.facts,
        };
        self.later(id, move |listener| {
            while system::still_waits(listener, id) {
                match reopen(&node, flags & PASSED_ON | libc::O_NONBLOCK) {
                    // No system call waits for a reader and can be given up.
                    Err(libc::ENXIO) => std::thread::sleep(PIPE_PAUSE),
                    opened => {
                        return Ok(Answer::Descriptor {
                            file: without_nonblock(opened?)?,
                            close_on_exec,
                        });
                    }
                }
            }
            Err(libc::EINTR)
        })
    }

    pub(super) fn truncate(&self, caller: &Caller<'_>, path: u64, length: i64) -> Answered {
        let path = caller.text(path)?;
        let base = start(caller, libc::AT_FDCWD, &path)?;
        caller.check()?;
        caller.act(|| {
            let (node, name) = match walk(caller, base, &path, Last::Follow)? {
                Found::Entry(Entry {
                    present: Some(node),
                    full,
                    ..
                }) => (node, full),
                Found::Entry(_) => return Err(libc::ENOENT.into()),
                Found::Node(node) => {
                    let name = node.name()?;
                    (node, name)
                }
            };
            match node.facts.kind() {
                libc::S_IFREG => {}
                libc::S_IFDIR => return Err(libc::EISDIR.into()),
                _ => return Err(libc::EINVAL.into()),
            }
            self.permit(Change::Write, without_mark(&node, &name), &node.file)?;
            Ok(system::truncate(&own_path(&node.file)?, length)?.into())
        })
    }

    /// Permits a change or explains why not. What ordinary permissions refuse is their refusal, and not recorded.
    pub(super) fn permit(
        &self,
        change: Change,
        name: &[u8],
        checked: &OwnedFd,
    ) -> Result<(), Refusal> {
        let Err(denial) = self.rules.judge.change(change, name) else {
            return Ok(());
        };
        let needed = match change {
            Change::Write => libc::W_OK,
            Change::Create | Change::CreateDirectory | Change::Remove => libc::W_OK | libc::X_OK,
            // Ownership decides, which the next answer checks no better.
            Change::Attributes => libc::F_OK,
        };
        system::check_access(checked, needed)?;
        if is_habit(name) {
            return Err(libc::EACCES.into());
        }
        Err(Refusal::Policy(denial, libc::EACCES))
    }

    fn denied_write(&self, name: &[u8]) -> Refusal {
        let path = self.rules.judge.shown(name);
        Refusal::Policy(Denial::Write { path }, libc::EACCES)
    }
}

/// The reason why a file is not open yet.
#[derive(Debug)]
enum Opening {
    Refused(Refusal),
    /// The name has changed: look it up again.
    Again,
    /// The pipe has no reader.
    Pipe(Node),
}

impl From<Errno> for Opening {
    fn from(error: Errno) -> Self {
        Self::Refused(error.into())
    }
}

impl From<Refusal> for Opening {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

fn reopen(node: &Node, flags: i32) -> Result<OwnedFd, Errno> {
    system::open_at(libc::AT_FDCWD, &own_path(&node.file)?, flags, 0)
}

fn without_nonblock(file: OwnedFd) -> Result<OwnedFd, Errno> {
    let flags = system::status_flags(&file)?;
    system::set_status_flags(&file, flags & !libc::O_NONBLOCK)?;
    Ok(file)
}

/// Reports whether a file exists in memory only and belongs to the process that holds it.
pub(super) fn is_anonymous(node: &Node, name: &[u8]) -> bool {
    node.facts.links == 0 && name.starts_with(b"/memfd:")
}

/// Returns the name that a removed file had.
pub(super) fn without_mark<'a>(node: &Node, name: &'a [u8]) -> &'a [u8] {
    match name.strip_suffix(b" (deleted)") {
        Some(name) if node.facts.links == 0 => name,
        _ => name,
    }
}

/// Reports whether programs try this as a matter of habit, so that a record would say nothing.
fn is_habit(name: &[u8]) -> bool {
    let in_proc = is_within(b"/proc", name)
        && (name.ends_with(b"/oom_score_adj")
            || name.ends_with(b"/mem")
            || name.ends_with(b"/comm")
            || name.ends_with(b"/loginuid"));
    in_proc || name.ends_with(b".pyc") || name.ends_with(b"/__pycache__")
}
