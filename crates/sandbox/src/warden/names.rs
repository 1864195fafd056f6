//! Makes, removes and renames files on behalf of a caller.

use std::os::fd::AsRawFd;

use super::caller::Caller;
use super::open::{is_anonymous, without_mark};
use super::walk::{Entry, Found, Last, own_path, start, walk};
use super::{Answered, Refusal, Warden};
use crate::Denial;
use crate::judge::Change;
use crate::mutation::is_disabled;
use crate::system::{self, Errno};
use crate::text::c_text;

/// Bits of the mode of a new directory or node.
const NODE_MODE: u32 = 0o1777;
const RENAME_FLAGS: u32 = libc::RENAME_NOREPLACE | libc::RENAME_EXCHANGE;

/// A path of a caller: the descriptor that it starts from, and its address.
type Path = (i32, u64);

impl Warden {
    /// Finds the directory and the last component of a path. The last component is not followed.
    fn entry(&self, caller: &Caller<'_>, path: Path, none: Errno) -> Result<Entry, Refusal> {
        let text = caller.text(path.1)?;
        let base = start(caller, path.0, &text)?;
        caller.check()?;
        // A slash at the end would make the walk follow a link.
        let trimmed = match text.iter().rposition(|&byte| byte != b'/') {
            Some(end) => &text[..=end],
            None => return Err(none.into()),
        };
        match caller.act(|| walk(caller, base, trimmed, Last::Keep))? {
            Found::Entry(entry) => Ok(Entry {
                must_be_directory: trimmed.len() < text.len(),
                ..entry
            }),
            Found::Node(_) => Err(none.into()),
        }
    }

    pub(super) fn mkdir(
        &self,
        caller: &Caller<'_>,
        directory: i32,
        path: u64,
        mode: u32,
    ) -> Answered {
        let entry = self.entry(caller, (directory, path), libc::EEXIST)?;
        if entry.present.is_some() {
            return Err(libc::EEXIST.into());
        }
        caller.apply_mask()?;
        caller.act(|| {
            self.permit(Change::CreateDirectory, &entry.full, &entry.parent)?;
            let name = c_text(&entry.name).ok_or(libc::EINVAL)?;
            let parent = entry.parent.as_raw_fd();
            Ok(system::make_directory(parent, &name, mode & NODE_MODE)?.into())
        })
    }

    pub(super) fn mknod(
        &self,
        caller: &Caller<'_>,
        directory: i32,
        path: u64,
        mode: u32,
    ) -> Answered {
        let entry = self.entry(caller, (directory, path), libc::EEXIST)?;
        if entry.present.is_some() {
            return Err(libc::EEXIST.into());
        }
        let kind = match mode & libc::S_IFMT {
            0 => libc::S_IFREG,
            kind @ (libc::S_IFREG | libc::S_IFIFO | libc::S_IFSOCK) => kind,
            _ => return Err(libc::EPERM.into()),
        };
        caller.apply_mask()?;
        caller.act(|| {
            self.permit(Change::Create, &entry.full, &entry.parent)?;
            let name = c_text(&entry.name).ok_or(libc::EINVAL)?;
            let mode = kind | mode & NODE_MODE;
            Ok(system::make_node(entry.parent.as_raw_fd(), &name, mode)?.into())
        })
    }

    pub(super) fn symlink(
        &self,
        caller: &Caller<'_>,
        target: u64,
        directory: i32,
        path: u64,
    ) -> Answered {
        let target = caller.text(target)?;
        let target = c_text(&target).ok_or(libc::EINVAL)?;
        let entry = self.entry(caller, (directory, path), libc::EEXIST)?;
        if entry.present.is_some() {
            return Err(libc::EEXIST.into());
        }
        caller.act(|| {
            self.permit(Change::Create, &entry.full, &entry.parent)?;
            let name = c_text(&entry.name).ok_or(libc::EINVAL)?;
            Ok(system::make_link(&target, entry.parent.as_raw_fd(), &name)?.into())
        })
    }

    pub(super) fn unlink(
        &self,
        caller: &Caller<'_>,
        directory: i32,
        path: u64,
        flags: i32,
    ) -> Answered {
        if flags & !libc::AT_REMOVEDIR != 0 {
            return Err(libc::EINVAL.into());
        }
        let none = if flags == 0 {
            libc::EISDIR
        } else {
            libc::EBUSY
        };
        let entry = self.entry(caller, (directory, path), none)?;
        let Some(node) = &entry.present else {
            return Err(libc::ENOENT.into());
        };
        if entry.must_be_directory && node.facts.kind() != libc::S_IFDIR {
            return Err(libc::ENOTDIR.into());
        }
        caller.act(|| {
            self.permit(Change::Remove, &entry.full, &entry.parent)?;
            let name = c_text(&entry.name).ok_or(libc::EINVAL)?;
            Ok(system::unlink(entry.parent.as_raw_fd(), &name, flags)?.into())
        })
    }

    pub(super) fn rename(&self, caller: &Caller<'_>, from: Path, to: Path, flags: u32) -> Answered {
        if flags & !RENAME_FLAGS != 0 {
            return Err(libc::EINVAL.into());
        }
        let from = self.entry(caller, from, libc::EBUSY)?;
        let to = self.entry(caller, to, libc::EBUSY)?;
        let Some(node) = &from.present else {
            return Err(libc::ENOENT.into());
        };
        if (from.must_be_directory || to.must_be_directory) && node.facts.kind() != libc::S_IFDIR {
            return Err(libc::ENOTDIR.into());
        }
        caller.act(|| {
            for (entry, change) in [(&from, Change::Remove), (&to, Change::Create)] {
                self.permit(change, &entry.full, &entry.parent)
                    .map_err(|refusal| self.as_rename(refusal, &from, &to))?;
            }
            let old = c_text(&from.name).ok_or(libc::EINVAL)?;
            let new = c_text(&to.name).ok_or(libc::EINVAL)?;
            let old = (from.parent.as_raw_fd(), old.as_c_str());
            let new = (to.parent.as_raw_fd(), new.as_c_str());
            Ok(system::rename(old, new, flags)?.into())
        })
    }

    pub(super) fn link(&self, caller: &Caller<'_>, from: Path, to: Path, flags: i32) -> Answered {
        if flags & !(libc::AT_SYMLINK_FOLLOW | libc::AT_EMPTY_PATH) != 0 {
            return Err(libc::EINVAL.into());
        }
        let text = caller.text(from.1)?;
        let source = if text.is_empty() && flags & libc::AT_EMPTY_PATH != 0 {
            // The descriptor itself; its copy only names the file.
            Found::Node(super::attributes::node(caller.descriptor(from.0)?)?)
        } else {
            let last = if flags & libc::AT_SYMLINK_FOLLOW != 0 {
                Last::Follow
            } else {
                Last::Keep
            };
            let base = start(caller, from.0, &text)?;
            caller.check()?;
            caller.act(|| walk(caller, base, &text, last))?
        };
        let to = self.entry(caller, to, libc::EEXIST)?;
        if to.present.is_some() {
            return Err(libc::EEXIST.into());
        }
        caller.act(|| {
            let (node, full) = match source {
                Found::Entry(Entry {
                    present: Some(node),
                    full,
                    ..
                }) => (node, full),
                Found::Entry(_) => return Err(libc::ENOENT.into()),
                Found::Node(node) => {
                    let full = node.name()?;
                    (node, full)
                }
            };
            if node.facts.kind() == libc::S_IFDIR || is_anonymous(&node, &full) {
                return Err(libc::EPERM.into());
            }
            // A second name of a file makes it writable there, so the first one must be, too.
            let source = without_mark(&node, &full);
            if let Err(denial) = self.rules.judge.change(Change::Write, source)
                && !is_disabled("link-source")
            {
                let denial = match denial {
                    Denial::Protected { .. } => denial,
                    _ => self.rename_denial(source, &to.full),
                };
                return Err(Refusal::Policy(denial, libc::EXDEV));
            }
            self.permit(Change::Create, &to.full, &to.parent)?;
            let name = c_text(&to.name).ok_or(libc::EINVAL)?;
            let path = own_path(&node.file)?;
            let (old, new) = (
                (libc::AT_FDCWD, path.as_c_str()),
                (to.parent.as_raw_fd(), name.as_c_str()),
            );
            Ok(system::hard_link(old, new, libc::AT_SYMLINK_FOLLOW)?.into())
        })
    }

    fn as_rename(&self, refusal: Refusal, from: &Entry, to: &Entry) -> Refusal {
        match refusal {
            Refusal::Policy(Denial::Protected { .. }, _) | Refusal::System(_) => refusal,
            Refusal::Policy(_, error) => {
                Refusal::Policy(self.rename_denial(&from.full, &to.full), error)
            }
        }
    }

    fn rename_denial(&self, from: &[u8], to: &[u8]) -> Denial {
        Denial::Rename {
            path: self.rules.judge.shown(from),
            to: self.rules.judge.shown(to),
        }
    }
}
