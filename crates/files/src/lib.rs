//! Opens, reads and replaces files whose paths come from outside: from a model, a client, a repository or a setting.
//!
//! Every other crate uses these functions instead of `std::fs`, because a path may lead to something that is not a
//! file. Opening a FIFO blocks, reading `/dev/zero` never ends, renaming over `/dev/null` breaks the machine, and
//! `/proc/self/fd/0` is the program's own input. The rules here apply to all of them:
//!
//! - Only regular files are opened. The type is read before the real open (`O_PATH`, which neither blocks nor touches a
//!   device) and again from the descriptor that is returned, so a path that changes in between is caught.
//! - Paths that pass through `/proc/<pid>/fd` and the other magic links of procfs, and files below the `/proc`
//!   directory of this process, are refused. `/dev/stdin`, `/dev/stdout`, `/dev/stderr` and `/dev/fd/N` are such paths.
//! - Reading takes a limit in bytes. The limit counts bytes read, not the size the file system reports.
//! - Only [`open_named`], for a path that the user typed, also opens a FIFO: `<(command)` of a shell is one.
//! - Replacing writes a complete copy and renames it over the old file; a symbolic link stays, its target is replaced.
//! - Renaming replaces a regular file ([`rename`]) or nothing at all ([`rename_new`]).
//!
//! The functions block, so asynchronous code calls them on a blocking thread. Nothing here starts a thread.

mod directory;
mod lock;
mod open;
mod read;
mod rename;
mod replace;
mod target;

pub use directory::{beside, create_private_directory};
pub use lock::{LockDirectory, is_at, is_locked, lock, lock_file};
pub use open::{create_new, create_or_empty, open, open_named, open_with};
pub use read::{read, read_if_present, read_named, read_text};
pub use rename::{rename, rename_new, set_aside, set_damaged_aside};
pub use replace::{Durability, Replace, replace};
pub use target::{FileKind, Target, is_regular, locate, reject_process_files};
