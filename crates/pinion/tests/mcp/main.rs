//! MCP servers as tools of the agent, `codemode`, `tool_search` and the verbs `mcp`, `auth` and `config`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

mod codemode;
mod faults;
mod servers;
mod stage;
mod verbs;
