//! Connects to every server once and lists its tools, for people.

pub(crate) mod report;

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::join_all;
use pinion_config::Dirs;
use pinion_message::Mask;

use crate::config::{McpConfig, McpExposure, ServerTarget};
use crate::server::Server;
use crate::thread;

/// Lines of a failed server's output.
const PRINTED_LINES: usize = 5;

/// A server and its tools.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct ListedServer {
    pub name: String,
    pub enabled: bool,
    pub exposure: McpExposure,
    /// `stdio` or `http`.
    pub transport: &'static str,
    pub file: PathBuf,
    /// The tools, or the reason why the server is not connected. Empty for a disabled server.
    pub tools: Result<Vec<ListedTool>, String>,
    /// The last lines of a failed server's output.
    pub printed: Vec<String>,
}

/// A tool of a server.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct ListedTool {
    pub name: String,
    pub description: String,
    pub exposure: McpExposure,
}

/// Connects to every enabled server at the same time and returns all servers in the order of the files.
pub async fn list(config: &McpConfig, dirs: &Dirs, mask: &Mask) -> Vec<ListedServer> {
    let servers = config.servers.iter().map(|entry| async {
        let server = Arc::new(Server::new(entry.clone(), dirs, mask.clone()));
        let tools = if entry.config.enabled {
            tools(&server).await
        } else {
            Ok(Vec::new())
        };
        ListedServer {
            name: entry.name.clone(),
            enabled: entry.config.enabled,
            exposure: entry.config.exposure,
            transport: match entry.config.target {
                ServerTarget::Command { .. } => "stdio",
                ServerTarget::Http { .. } => "http",
                ServerTarget::Unusable(_) => "none",
            },
            file: entry.file.clone(),
            printed: match tools {
                Ok(_) => Vec::new(),
                Err(_) => server.printed(PRINTED_LINES),
            },
            tools,
        }
    });
    join_all(servers).await
}

async fn tools(server: &Arc<Server>) -> Result<Vec<ListedTool>, String> {
    let connecting = Arc::clone(server);
    let listed = thread::run(async move {
        let mount = connecting.connect().await;
        let snapshot = mount.map(|mount| mount.snapshot());
        connecting.stop().await;
        snapshot
    });
    let listed = listed.await.ok_or("the connection was not completed")?;
    let snapshot = listed.map_err(|failure| failure.message.into_owned())?;
    let config = &server.entry().config;
    let tools = snapshot.manifest.commands.iter().map(|command| ListedTool {
        name: command.name.clone(),
        description: command.description.clone(),
        exposure: config.exposure_of(&command.name),
    });
    Ok(tools.collect())
}
