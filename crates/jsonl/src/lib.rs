//! Reading and writing of JSON lines.
//!
//! The crate holds framing on LF alone with a bounded reader, JSON printed as JavaScript prints it,
//! a queue that merges progress instead of growing, a writer that owns the protocol's descriptor, a
//! bounded pipe in memory, repair of files with a torn last line, and explanations of JSON errors.
//! It depends on no protocol and no message type.

mod delta;
mod explain;
mod feed;
mod javascript;
pub mod json;
mod nowait;
mod number;
mod output;
mod queue;
mod reader;
mod records;
mod runtime_writer;
mod splitter;
mod stdin;
pub mod stdio;
pub mod tail;
mod writer;

pub use delta::DeltaText;
pub use explain::{explain, explain_with_position};
pub use feed::Feed;
pub use javascript::{ErrorPosition, javascript_error};
pub use queue::{Coalesce, Outgoing, Queue};
pub use reader::{Input, read_lines, read_lines_until_too_long};
pub use records::Records;
pub use splitter::{DEFAULT_LINE_LIMIT, InputLine, Splitter};
pub use stdin::read_stdin_lines;
pub use writer::{Project, Writer, WriterEnd};
