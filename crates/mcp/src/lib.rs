//! Clips over MCP, and MCP servers as clips.
//!
//! [`Gateway`] exposes the clips of a hub, all of them or one, as tools and serves them over standard input and output
//! ([`stdio`]) or HTTP ([`HttpServer`]). It reaches a hub only through [`Clips`], which [`RemoteClips`] implements for a
//! hub on the network. [`Mount`] works in the other direction: it starts an MCP server, or connects to one, and offers
//! its tools as the commands of a clip; [`Mounts`] adds those of a hub's `mcp.json`. Both directions support the revisions
//! of the protocol that begin with `initialize` and the one in which each request is independent.
//!
//! The protocol is implemented here because a library for it made the program 3.4 MB larger and took longer to build
//! than all other crates of the hub.

mod gateway;
mod http;
mod in_flight;
mod mount;
mod param_headers;
mod rpc;
mod stdio;
mod version;

pub use gateway::clips::{ClipSummary, Clips, Outputs};
pub use gateway::remote_hub::RemoteClips;
pub use gateway::{Gateway, GatewayScope};
pub use http::{Admission, HttpServer};
pub use mount::{Answers, Mount, MountConfig, MountLimits, Mounts, Target, read_mounts};
pub use stdio::stdio;
pub use version::REVISIONS;
