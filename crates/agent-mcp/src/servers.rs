//! The servers of one session, and the supply of their tools.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use pinion_agent::{Reach, SessionApi, ToolSupply};
use pinion_clip::manifest::Manifest;
use pinion_clip::{ClipState, Snapshot};
use pinion_config::Dirs;
use pinion_message::Mask;
use pinion_text::fits_wildcard;
use pinion_tools::{Exposure, Namespace, Tool};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tracing::{debug, info};

use crate::config::{McpConfig, McpExposure};
use crate::names::{self, PREFIX};
use crate::server::Server;
use crate::thread;
use crate::tool::McpTool;

/// Time that the first prompt waits for servers whose tools the model sees from the start.
const READY_TIMEOUT: Duration = Duration::from_secs(10);
/// Time that a call waits for the servers that it may reach.
const ARRIVAL_TIMEOUT: Duration = Duration::from_secs(30);
/// The shortest time between two changes of the tools of one server.
const REFRESH_INTERVAL: Duration = Duration::from_millis(200);
/// The most tools of one server.
const MAX_TOOLS: usize = 1000;
/// Time for all servers to end.
const STOP_TIMEOUT: Duration = Duration::from_secs(7);
/// Characters of a server's instructions that describe it.
const MAX_SUMMARY_CHARS: usize = 300;

/// The flags that select tools by name.
#[derive(Debug, Clone, Default)]
pub struct ToolSelection {
    /// The tools that the model sees; `None` selects all. Names, or patterns with `*`.
    pub only: Option<Vec<String>>,
    /// Tools that are removed.
    pub without: Vec<String>,
}

impl ToolSelection {
    /// Returns the exposure of a tool; `None` removes it.
    fn exposure(&self, name: &str, exposure: McpExposure) -> Option<Exposure> {
        let listed = |list: &[String]| list.iter().any(|pattern| fits_wildcard(pattern, name));
        if listed(&self.without) || exposure == McpExposure::Hidden {
            return None;
        }
        let is_named = match &self.only {
            None => true,
            Some(list) => {
                let is_named = listed(list);
                let filters = list.iter().any(|entry| entry.starts_with(PREFIX));
                if filters && !is_named {
                    return None;
                }
                is_named
            }
        };
        Some(match exposure {
            McpExposure::Direct if is_named => Exposure::Direct,
            _ => Exposure::Deferred,
        })
    }
}

/// The progress of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Connecting,
    /// The tools have been supplied, or there will be none.
    Settled,
}

/// The servers of one session. They end when this is dropped.
pub struct McpServers {
    inner: Arc<Inner>,
    tasks: Mutex<Vec<AbortHandle>>,
    /// A prompt has waited for servers.
    has_waited: AtomicBool,
}

struct Inner {
    servers: Vec<ConnectedServer>,
    selection: ToolSelection,
    enables_codemode: bool,
    session: OnceLock<SessionApi>,
    /// The tools of each connected server, by its position.
    supplied: Mutex<BTreeMap<usize, Supplied>>,
}

struct ConnectedServer {
    server: Arc<Server>,
    stage: watch::Sender<Stage>,
}

struct Supplied {
    tools: Vec<Arc<dyn Tool>>,
    summary: String,
}

impl std::fmt::Debug for McpServers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.inner.servers.iter().map(|it| it.server.name());
        f.debug_list().entries(names).finish()
    }
}

impl McpServers {
    /// Creates the enabled servers of `config`; `None` if there are none. Nothing is started before the session is.
    pub fn new(
        config: McpConfig,
        dirs: &Dirs,
        selection: ToolSelection,
        mask: &Mask,
    ) -> Option<Self> {
        let enabled = config.servers.into_iter().filter(|it| it.config.enabled);
        let servers: Vec<_> = enabled
            .map(|entry| ConnectedServer {
                server: Arc::new(Server::new(entry, dirs, mask.clone())),
                stage: watch::Sender::new(Stage::Connecting),
            })
            .collect();
        (!servers.is_empty()).then(|| Self {
            inner: Arc::new(Inner {
                servers,
                selection,
                enables_codemode: config.enables_codemode,
                session: OnceLock::new(),
                supplied: Mutex::default(),
            }),
            tasks: Mutex::default(),
            has_waited: AtomicBool::new(false),
        })
    }

    /// Returns a list of the servers whose tools the model does not see, for the system prompt; empty if there are
    /// none.
    pub fn section(&self) -> String {
        self.inner.section()
    }

    /// Ends all servers, within a limited time.
    pub async fn stop(&self) {
        for task in self.tasks().drain(..) {
            task.abort();
        }
        let inner = Arc::clone(&self.inner);
        let stopped = thread::run(async move {
            join_all(inner.servers.iter().map(|it| it.server.stop())).await;
        });
        // A server that takes longer is killed when the program ends.
        let _ = tokio::time::timeout(STOP_TIMEOUT, stopped).await;
    }

    fn tasks(&self) -> std::sync::MutexGuard<'_, Vec<AbortHandle>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for McpServers {
    fn drop(&mut self) {
        for task in self.tasks().drain(..) {
            task.abort();
        }
    }
}

impl ToolSupply for McpServers {
    fn attach(&self, session: SessionApi) {
        if self.inner.session.set(session).is_err() {
            return;
        }
        for position in 0..self.inner.servers.len() {
            let inner = Arc::downgrade(&self.inner);
            match thread::spawn(follow(inner, position)) {
                Some(task) => self.tasks().push(task.abort_handle()),
                None => {
                    self.inner
                        .report(position, "the thread for MCP servers cannot be started");
                    self.inner.settle(position);
                }
            }
        }
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        let wanted = |it: &&ConnectedServer| it.server.entry().config.may_declare();
        let servers = self.inner.servers.iter().filter(wanted);
        let servers = servers.collect();
        Box::pin(async move {
            if !self.has_waited.load(Ordering::Relaxed) {
                settled(servers, READY_TIMEOUT).await;
                self.has_waited.store(true, Ordering::Relaxed);
            }
        })
    }

    fn arrived<'a>(&'a self, reach: &'a Reach) -> BoxFuture<'a, ()> {
        let wanted = |it: &&ConnectedServer| match reach {
            Reach::All => true,
            Reach::Words(text) => text.contains(&names::namespace(it.server.name())),
        };
        let servers = self.inner.servers.iter().filter(wanted);
        Box::pin(settled(servers.collect(), ARRIVAL_TIMEOUT))
    }
}

/// Returns when these servers are connected or have failed, or after `limit`.
async fn settled(servers: Vec<&ConnectedServer>, limit: Duration) {
    let waits = servers.into_iter().map(|it| {
        let mut stage = it.stage.subscribe();
        async move {
            // The sender lives as long as the server.
            let _ = stage.wait_for(|stage| *stage == Stage::Settled).await;
        }
    });
    let _ = tokio::time::timeout(limit, join_all(waits)).await;
}

/// Connects to a server and supplies its tools, as long as the session exists.
async fn follow(inner: Weak<Inner>, position: usize) {
    let mut known: Option<Arc<Manifest>> = None;
    let mut has_failed = false;
    while let Some((server, changes)) = connect(&inner, position).await {
        follow_connection(
            &inner,
            position,
            server,
            changes,
            &mut known,
            &mut has_failed,
        )
        .await;
    }
}

/// Supplies the tools of one connection, until it is replaced by one with new credentials.
async fn follow_connection(
    inner: &Weak<Inner>,
    position: usize,
    server: Arc<Server>,
    mut changes: watch::Receiver<Snapshot>,
    known: &mut Option<Arc<Manifest>>,
    has_failed: &mut bool,
) {
    loop {
        let Snapshot { status, manifest } = changes.borrow_and_update().clone();
        let Some(inner) = inner.upgrade() else {
            return;
        };
        if known.as_ref() != Some(&manifest) {
            inner.supply(&server, position, &manifest);
            *known = Some(manifest);
        }
        inner.settle(position);
        let fails = status.state == ClipState::Error;
        if fails && !*has_failed {
            inner.report(position, &status.message);
        }
        *has_failed = fails;
        drop(inner);
        tokio::time::sleep(REFRESH_INTERVAL).await;
        if changes.changed().await.is_err() {
            return;
        }
    }
}

async fn connect(
    inner: &Weak<Inner>,
    position: usize,
) -> Option<(Arc<Server>, watch::Receiver<Snapshot>)> {
    let server = Arc::clone(&inner.upgrade()?.servers.get(position)?.server);
    debug!(server = server.name(), "MCP server starting");
    match server.connect().await {
        Ok(mount) => {
            info!(server = server.name(), "MCP server connected");
            Some((server, mount.watch()))
        }
        Err(failure) => {
            let inner = inner.upgrade()?;
            inner.report(position, &failure.message);
            inner.settle(position);
            None
        }
    }
}

impl Inner {
    fn settle(&self, position: usize) {
        if let Some(server) = self.servers.get(position) {
            server.stage.send_replace(Stage::Settled);
        }
    }

    /// Reports an error of a server to the clients of the session.
    fn report(&self, position: usize, message: &str) {
        if let (Some(session), Some(it)) = (self.session.get(), self.servers.get(position)) {
            let name = it.server.name();
            if it.server.entry().of_client {
                session.fault(name.to_owned(), "mcp".into(), message.to_owned());
                return;
            }
            let file = it.server.entry().file.display().to_string();
            let message = if message.contains(name) {
                message.to_owned()
            } else {
                format!("MCP server \"{name}\": {message}")
            };
            session.fault(file, "mcp".into(), message);
        }
    }

    /// Supplies the tools of a server, in place of those it had before.
    fn supply(&self, server: &Arc<Server>, position: usize, manifest: &Manifest) {
        let config = &server.entry().config;
        let instructions = manifest.patterns.join("\n\n");
        let summary = config.description.clone().unwrap_or_else(|| {
            let line = instructions.lines().find(|line| !line.trim().is_empty());
            let line = line.unwrap_or_default().trim();
            line.chars().take(MAX_SUMMARY_CHARS).collect()
        });
        let namespace = Arc::new(Namespace {
            name: names::spelled_namespace(server.name(), server.entry().spelling()),
            alias: server.name().to_owned(),
            description: summary.clone(),
            instructions,
        });
        let all = &manifest.commands;
        let commands = &all[..all.len().min(MAX_TOOLS)];
        if commands.len() < all.len() {
            let message = format!("only the first {MAX_TOOLS} of its tools are used");
            self.report(position, &message);
        }
        let offered: Vec<&str> = commands.iter().map(|it| it.name.as_str()).collect();
        let names = names::tool_names(server.name(), &offered, server.entry().spelling());
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        for (command, name) in commands.iter().zip(names) {
            let exposure = config.exposure_of(&command.name);
            let Some(exposure) = self.selection.exposure(&name, exposure) else {
                continue;
            };
            match McpTool::new(server, command, name, exposure, &namespace) {
                Ok(tool) => tools.push(Arc::new(tool)),
                Err(message) => self.report(position, &message),
            }
        }
        let supplied = Supplied { tools, summary };
        self.supplied().insert(position, supplied);
        self.send();
    }

    fn supplied(&self) -> std::sync::MutexGuard<'_, BTreeMap<usize, Supplied>> {
        self.supplied.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends all tools to the session.
    fn send(&self) {
        let Some(session) = self.session.get() else {
            return;
        };
        let tools: Vec<Arc<dyn Tool>> = {
            let supplied = self.supplied();
            let tools = supplied.values().flat_map(|it| &it.tools);
            tools.cloned().collect()
        };
        let connected: Vec<usize> = self.supplied().keys().copied().collect();
        let reaches = |exposure: McpExposure| {
            connected.iter().any(|position| {
                let config = self
                    .servers
                    .get(*position)
                    .map(|it| &it.server.entry().config);
                config.is_some_and(|config| {
                    let overrides = config.tool_exposure.iter().map(|(_, exposure)| *exposure);
                    std::iter::once(config.exposure)
                        .chain(overrides)
                        .any(|one| one == exposure)
                })
            })
        };
        let mut wanted = Vec::new();
        if self.enables_codemode && reaches(McpExposure::Codemode) {
            wanted.push("codemode");
        }
        if reaches(McpExposure::Deferred) {
            wanted.push("tool_search");
        }
        // The session may have ended.
        let _ = session.supply_tools(tools, &wanted);
    }

    fn section(&self) -> String {
        let supplied = self.supplied();
        let mut lines = Vec::new();
        for (position, it) in self.servers.iter().enumerate() {
            let config = &it.server.entry().config;
            let way = match config.exposure {
                McpExposure::Codemode => "call its tools in codemode scripts",
                McpExposure::Deferred => "load its tools with tool_search",
                McpExposure::Direct | McpExposure::Hidden => continue,
            };
            let known = supplied.get(&position).map(|it| it.summary.as_str());
            let summary = known
                .or(config.description.as_deref())
                .filter(|summary| !summary.is_empty());
            let summary = summary.map_or(String::new(), |summary| format!(" {summary}"));
            let namespace = names::namespace(it.server.name());
            lines.push(format!("- {namespace} ({way}){summary}"));
        }
        if lines.is_empty() {
            return String::new();
        }
        format!("MCP servers:\n{}", lines.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(only: Option<&[&str]>, without: &[&str]) -> ToolSelection {
        let owned = |list: &[&str]| list.iter().map(ToString::to_string).collect();
        ToolSelection {
            only: only.map(owned),
            without: owned(without),
        }
    }

    #[test]
    fn flags_select_tools() {
        use McpExposure::{Codemode, Direct};
        let name = "mcp__lab__shout";
        for (only, without, exposure, expected) in [
            (None, &[][..], Direct, Some(Exposure::Direct)),
            (None, &[], Codemode, Some(Exposure::Deferred)),
            (None, &["mcp__*"], Direct, None),
            (Some(&["read"][..]), &[], Direct, Some(Exposure::Deferred)),
            (Some(&["mcp__lab__*"]), &[], Direct, Some(Exposure::Direct)),
            (Some(&["mcp__x__*"]), &[], Direct, None),
            (Some(&[]), &[], Codemode, Some(Exposure::Deferred)),
            (None, &[], McpExposure::Hidden, None),
        ] {
            let selection = selection(only, without);
            assert_eq!(
                selection.exposure(name, exposure),
                expected,
                "{selection:?}"
            );
        }
    }
}
