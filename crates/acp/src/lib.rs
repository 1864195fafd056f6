//! The Agent Client Protocol: pinion as an agent of editors, over lines of JSON-RPC.
//!
//! [`Connection`] serves one client with many sessions. It decodes requests to commands of the engine, and a projection
//! per version of the protocol turns the engine's events into updates. The program opens sessions through
//! [`SessionHost`].

mod capabilities;
mod client_requests;
mod command_result;
mod commands;
mod connection;
mod content;
mod dialogs;
mod error;
mod host;
mod listing;
mod options;
mod outbox;
mod permission;
mod projection;
mod rpc;
mod session;
mod time;
mod title;
mod tool_content;
mod tool_view;
mod traffic_log;
mod turns;
mod v1;
mod view;

pub use capabilities::{AgentInfo, SetupCommand};
pub use connection::{Connection, ConnectionEnd};
pub use error::AcpError;
pub use host::{BuiltSession, ClientServer, Links, Opening, Origin, ServerTarget, SessionHost};
pub use outbox::{AcpProjection, Out};
pub use traffic_log::TrafficLog;
