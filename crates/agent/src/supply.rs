//! Tools that arrive, change and disappear while a session runs, such as those of MCP servers.

use futures_util::future::BoxFuture;

use crate::SessionApi;

/// Supplies tools while a session runs.
pub trait ToolSupply: Send + Sync {
    /// Receives access to the session. Called once, before every other method; must not block.
    fn attach(&self, session: SessionApi);

    /// Returns when the tools that the model sees from the start have arrived, after a limited time in any case. The
    /// engine waits for it before each prompt.
    fn ready(&self) -> BoxFuture<'_, ()>;

    /// Returns when the tools of `reach` have arrived, after a limited time in any case.
    fn arrived<'a>(&'a self, reach: &'a Reach) -> BoxFuture<'a, ()>;
}

/// The tools that a call may reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// Every tool.
    All,
    /// The tools and namespaces whose names are among the words of this text.
    Words(String),
}
