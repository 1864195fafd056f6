//! Lines in, lines out.
//!
//! Framing on LF alone with a bounded reader, JSON printed the way JavaScript prints it, a queue
//! that merges progress instead of growing, a writer thread that owns the protocol's descriptor,
//! repair of files whose last line was torn, and plain words for JSON that cannot be read. Knows no protocol and no message.

mod delta;
mod explain;
pub mod json;
mod number;
mod queue;
mod reader;
mod records;
mod splitter;
pub mod stdio;
pub mod tail;
mod writer;

pub use delta::DeltaText;
pub use explain::{explain, explain_with_place};
pub use queue::{Coalesce, Outgoing, Queue};
pub use reader::{Input, read_lines, read_lines_until_too_long};
pub use records::Records;
pub use splitter::{DEFAULT_LINE_LIMIT, Line, Splitter};
pub use writer::{Project, Writer, WriterEnd};
