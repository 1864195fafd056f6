//! Sessions on disk.
//!
//! A session is a header line and a tree of entries in one append-only file of JSON lines, in pi's format: pi opens
//! sessions of pinion and pinion opens sessions of pi. [`Store`] is one session; [`find`], [`most_recent`] and [`list`]
//! search many; [`export`] makes an HTML page.
//!
//! # What survives what
//!
//! | event | survives |
//! |---|---|
//! | end of the process, `kill -9` included | every entry for which [`Store::append`] returned `Ok`, or [`Store::save_in_background`] `Saved` |
//! | power loss | every entry older than [`SYNC_INTERVAL`], and everything before the last [`Store::flush_and_sync`] |
//! | a full disk | every entry before it; later ones wait in memory and are written once there is room |
//! | a disk or mount that does not answer | every entry before it; later ones wait in memory and are written when it answers |
//! | a torn or damaged file | every line that can be read; nothing is deleted, everything is reported |
//!
//! The file is created with the first new message, command or entry of an extension, or with the session's name: the
//! header and all entries so far, in one write. A session without any of these leaves no file. pi creates the file with
//! the first answer; pinion does it earlier because an entry must be on disk before its event is sent.
//!
//! # What is read when
//!
//! Opening reads links, not messages. A file below 256 KiB stays in memory as a whole. Of a larger file only the heads
//! of its lines stay in memory, and [`Store::context`] reads the messages of its path from the file. A large file with
//! visible damage is read as a whole, like a small one; a background thread looks for damage inside the messages, and
//! [`Store::take_notices`] reports it.
//!
//! Reads that need the messages block while the file is read. [`Store::snapshot`] returns the session as it is for a
//! thread that may block; [`Store::is_partly_in_file`] reports whether that is needed.
//!
//! # One writer
//!
//! One process at a time writes a session: opening takes an advisory lock on the file, and a second `pinion` gets
//! [`SessionError::Locked`] and may fork or read. Programs that do not lock can still append; their entries are
//! preserved and appear at the next opening. On a file system without locks, opening returns a notice.

mod answer_totals;
mod clock;
mod context;
mod decode;
mod durability;
mod edits;
mod entry;
mod error;
pub mod export;
mod fast_read;
mod fork;
mod header;
mod json;
mod list;
mod locate;
mod lock;
mod migrate;
mod new_entry;
mod open;
mod report;
mod save;
mod scan;
mod session_file;
mod snapshot;
mod stats;
mod store;
mod stored_line;
mod tree;

pub use context::{Context, SessionChoices};
pub use durability::SYNC_INTERVAL;
pub use edits::Edits;
pub use entry::{CompactionEntry, Entry, EntryId, EntryKind, Role};
pub use error::{Notice, SessionError};
pub use fork::UnsavedSession;
pub use header::{Header, VERSION};
pub use list::{SessionInfo, all_text, list, list_all};
pub use locate::{FoundSession, find, find_id, find_id_below, most_recent, project_directory};
pub use new_entry::NewEntry;
pub use open::Reload;
pub use report::plain_text;
pub use save::{SaveListener, SaveNumber, SaveProgress, SaveWait};
pub use snapshot::Snapshot;
pub use stats::{ContextUsage, Stats, TokenTotals, stats};
pub use store::{NewSession, Opened, Store};
pub use tree::Label;
