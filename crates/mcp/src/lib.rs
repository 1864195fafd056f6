//! Clips over MCP, and MCP servers as clips.
//!
//! [`Gateway`] makes tools of the clips of a hub, all of them or one, and serves them over standard input and output
//! ([`stdio`]) or HTTP ([`HttpServer`]). It knows a hub only through [`Clips`]. [`Mount`] is the other way round: it runs an
//! MCP server, or talks to one, and gives its tools as the commands of a clip. Both speak the revisions of the protocol that
//! begin with `initialize` and the one in which each request stands for itself.
//!
//! The protocol is written out here because a library for it made the program 3.4 MB larger and took longer to build than
//! all other crates of the hub.

mod calls;
mod gateway;
mod http;
mod mount;
mod param_headers;
mod rpc;
mod stdio;
mod version;

pub use gateway::clips::{ClipSummary, Clips, Outputs};
pub use gateway::{Exposes, Gateway};
pub use http::{Admission, HttpServer};
pub use mount::{Answers, Mount, MountConfig, MountLimits, Target, read_mounts};
pub use stdio::stdio;
