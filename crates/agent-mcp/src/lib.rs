//! MCP servers as tools of an agent: `mcp.json`, the servers that it lists, their tools, and sign-ins.
//!
//! [`McpConfig`] reads the user's and a trusted project's `mcp.json`. [`McpServers`] connects to the servers on a thread
//! of its own and supplies their tools to a session. [`list`] connects once, for people. [`oauth`] signs in to servers
//! at a URL.

mod config;
mod list;
mod names;
pub mod oauth;
mod result;
mod server;
mod servers;
mod thread;
mod tool;
mod values;

pub use config::edit::{add_server, remove_server};
pub use config::new_server::{NewServer, NewTarget};
pub use config::{
    ConfigProblem, McpConfig, McpExposure, OauthSettings, ServerConfig, ServerEntry, ServerTarget,
    configured_files, untrusted_notice,
};
pub use list::report::{list_json, list_text};
pub use list::{ListedServer, ListedTool, list};
pub use servers::{McpServers, ToolSelection};
