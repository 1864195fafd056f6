//! Clips over MCP.
