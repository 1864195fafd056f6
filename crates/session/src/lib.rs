//! The session tree on disk.
//!
//! A session is a header line and a tree of entries in one append-only file of JSON lines, in pi's format:
//! either program opens what the other wrote. [`Store`] is one session; [`find`], [`most_recent`] and
//! [`list`] look among many; [`export`] makes a page to read.
//!
//! # What survives what
//!
//! | event | survives |
//! |---|---|
//! | end of the process, `kill -9` included | every entry for which [`Store::append`] returned `Ok` |
//! | power loss | every entry older than [`INTERVAL`], and everything before the last [`Store::flush_and_sync`] |
//! | a full disk | every entry before it; later ones wait in memory and are written once there is room |
//! | a torn or damaged file | every line that can be read; nothing is deleted, everything is reported |
//!
//! A session is written for the first time when something is said in it, by a user, a command or an extension, or when it
//! is named: header and all entries so far in one write. A session that nobody used leaves nothing behind. pi waits for the
//! first answer; here an entry is on disk before it is reported.
//!
//! # What is read when
//!
//! Opening reads links, not messages: a file below 256 KiB is kept in memory as it is, of a larger one
//! only the heads of its lines, and the messages stay in the file until [`Store::context`] wants those
//! on its path. A large file with any visible trouble is read as thoroughly as a small one; trouble inside
//! its messages is found in the background and told by [`Store::take_notices`].
//!
//! # Who may write
//!
//! One process at a time: opening takes an advisory lock on the file, and a second `pinion` gets
//! [`SessionError::Locked`] and may fork or read. Programs that do not lock are not kept out; entries
//! they append are preserved and seen at the next opening. File systems without locks cost a notice.

mod clock;
mod context;
mod counted;
mod decode;
mod disk;
mod durability;
mod edits;
mod entry;
mod error;
pub mod export;
mod fork;
mod header;
mod json;
mod list;
mod locate;
mod lock;
mod migrate;
mod open;
mod quick;
mod record;
mod scan;
mod stats;
mod store;
mod stored;
mod tree;

pub use context::{Choices, Context};
pub use durability::INTERVAL;
pub use edits::Edits;
pub use entry::{CompactionEntry, Entry, EntryId, EntryKind, Role};
pub use error::{Notice, SessionError};
pub use fork::Unsaved;
pub use header::{Header, VERSION};
pub use list::{SessionInfo, all_text, list};
pub use locate::{Found, find, find_id, most_recent, project_directory};
pub use record::NewEntry;
pub use stats::{ContextUsage, Stats, TokenTotals, stats};
pub use store::{NewSession, Opened, Store};
pub use tree::Label;
