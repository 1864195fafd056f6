//! Resolves a path of a caller, one component at a time, on descriptors.
//!
//! The result names what was found and not what was asked for, so links, `..` and detours through `/proc` make no
//! difference to the decision.

use std::os::fd::{AsRawFd, OwnedFd};

use super::caller::Caller;
use crate::system::{self, Errno, FileFacts};
use crate::text::{c_text, join};

/// The most links of one path, as in the kernel.
const MAX_LINKS: usize = 40;
const PROC_FILE_SYSTEM: i64 = 0x9fa0;
/// The inode of the top directory of every `/proc`.
const PROC_TOP: u64 = 1;

/// The treatment of a link in the last component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Last {
    Follow,
    Keep,
}

/// The place that a path leads to.
#[derive(Debug)]
pub(super) enum Found {
    /// A name in a directory.
    Entry(Entry),
    /// A file without a name that could be used: `.`, `..`, `/`, or a descriptor in `/proc`.
    Node(Node),
}

/// A name in a directory.
#[derive(Debug)]
pub(super) struct Entry {
    pub parent: OwnedFd,
    /// The last component.
    pub name: Vec<u8>,
    /// The whole name.
    pub full: Vec<u8>,
    /// The file of that name; not a link, unless links are kept.
    pub present: Option<Node>,
    /// The path ended in a slash.
    pub must_be_directory: bool,
}

/// A file, open only to be named.
#[derive(Debug)]
pub(super) struct Node {
    pub file: OwnedFd,
    pub facts: FileFacts,
}

impl Node {
    fn new(file: OwnedFd) -> Result<Self, Errno> {
        let facts = system::facts(&file)?;
        Ok(Self { file, facts })
    }

    /// Returns the name of the file, as the kernel knows it.
    pub fn name(&self) -> Result<Vec<u8>, Errno> {
        name_of(&self.file)
    }
}

/// Returns the name of an open file. A removed file has `" (deleted)"` after its name.
pub(super) fn name_of(file: &OwnedFd) -> Result<Vec<u8>, Errno> {
    system::read_link(libc::AT_FDCWD, &own_path(file)?)
}

/// Returns the path of a descriptor of this process.
pub(super) fn own_path(file: &OwnedFd) -> Result<std::ffi::CString, Errno> {
    c_text(format!("/proc/self/fd/{}", file.as_raw_fd()).as_bytes()).ok_or(libc::EINVAL)
}

/// The part of a path that is still to be resolved, last component first.
struct Rest(Vec<Vec<u8>>);

impl Rest {
    fn push(&mut self, path: &[u8]) {
        let components = path.split(|&byte| byte == b'/');
        let components: Vec<_> = components.filter(|part| !part.is_empty()).collect();
        self.0
            .extend(components.iter().rev().map(|part| part.to_vec()));
    }
}

/// Opens the directory that a path starts from; absolute paths start at the top.
pub(super) fn start(caller: &Caller<'_>, directory: i32, path: &[u8]) -> Result<OwnedFd, Errno> {
    match path.first() {
        None => Err(libc::ENOENT),
        Some(b'/') => top(),
        Some(_) => caller.directory(directory),
    }
}

fn top() -> Result<OwnedFd, Errno> {
    system::open_at(libc::AT_FDCWD, c"/", libc::O_PATH | libc::O_DIRECTORY, 0)
}

/// Resolves a path from `start`.
pub(super) fn walk(
    caller: &Caller<'_>,
    start: OwnedFd,
    path: &[u8],
    last: Last,
) -> Result<Found, Errno> {
    let mut current = Node::new(start)?;
    let mut rest = Rest(Vec::new());
    let mut must_be_directory = path.ends_with(b"/");
    let mut links = 0;
    rest.push(path);
    while let Some(component) = rest.0.pop() {
        let is_last = rest.0.is_empty();
        if current.facts.kind() != libc::S_IFDIR {
            return Err(libc::ENOTDIR);
        }
        if component == b"." {
            continue;
        }
        if component == b".." {
            let flags = libc::O_PATH | libc::O_DIRECTORY;
            let above = system::open_at(current.file.as_raw_fd(), c"..", flags, 0)?;
            current = Node::new(above)?;
            continue;
        }
        let in_proc = system::file_system(&current.file)? == PROC_FILE_SYSTEM;
        if in_proc && current.facts.inode == PROC_TOP && is_self(&component) {
            // The warden's own entry must not be meant.
            if component == b"thread-self" {
                rest.push(format!("task/{}", caller.thread).as_bytes());
            }
            let leader = caller.status()?.leader;
            rest.0.push(leader.to_string().into_bytes());
            continue;
        }
        let name = c_text(&component).ok_or(libc::EINVAL)?;
        let flags = libc::O_PATH | libc::O_NOFOLLOW;
        let next = match system::open_at(current.file.as_raw_fd(), &name, flags, 0) {
            Ok(next) => Node::new(next)?,
            Err(libc::ENOENT) if is_last => {
                return Ok(Found::Entry(Entry {
                    full: full_name(&current, &component)?,
                    parent: current.file,
                    name: component,
                    present: None,
                    must_be_directory,
                }));
            }
            Err(error) => return Err(error),
        };
        let is_link = next.facts.kind() == libc::S_IFLNK;
        let follows = !is_last || last == Last::Follow || must_be_directory;
        if is_link && follows {
            links += 1;
            if links > MAX_LINKS {
                return Err(libc::ELOOP);
            }
            if in_proc && current.facts.inode != PROC_TOP {
                current = through_proc(caller, &current, &name)?;
                continue;
            }
            let text = system::read_link(next.file.as_raw_fd(), c"")?;
            match text.first() {
                None => return Err(libc::ENOENT),
                Some(b'/') => current = Node::new(top()?)?,
                Some(_) => {}
            }
            must_be_directory |= is_last && text.ends_with(b"/");
            rest.push(&text);
            continue;
        }
        if is_last {
            return Ok(Found::Entry(Entry {
                full: full_name(&current, &component)?,
                parent: current.file,
                name: component,
                present: Some(next),
                must_be_directory,
            }));
        }
        current = next;
    }
    if must_be_directory && current.facts.kind() != libc::S_IFDIR {
        return Err(libc::ENOTDIR);
    }
    Ok(Found::Node(current))
}

fn is_self(component: &[u8]) -> bool {
    matches!(component, b"self" | b"thread-self")
}

/// Follows a link in `/proc` that stands for an open file or a directory of a process. Only the caller's own.
fn through_proc(
    caller: &Caller<'_>,
    directory: &Node,
    name: &std::ffi::CStr,
) -> Result<Node, Errno> {
    let place = directory.name()?;
    let leader = caller.status()?.leader;
    let own = join(b"/proc", leader.to_string().as_bytes());
    if !crate::text::is_within(&own, &place) {
        return Err(libc::EACCES);
    }
    let target = system::open_at(directory.file.as_raw_fd(), name, libc::O_PATH, 0)?;
    caller.check()?;
    Node::new(target)
}

fn full_name(parent: &Node, name: &[u8]) -> Result<Vec<u8>, Errno> {
    if parent.facts.links == 0 {
        // A removed directory has no place any more.
        return Err(libc::ENOENT);
    }
    Ok(join(&name_of(&parent.file)?, name))
}
