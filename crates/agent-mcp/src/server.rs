//! The connection to one server: its credentials, its tools, and calls.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pinion_clip::logs::ClipLog;
use pinion_config::Dirs;
use pinion_mcp::{Mount, MountConfig, MountLimits, Target};
use pinion_message::{Mask, Secret};
use pinion_status::{Code, Failure};
use serde_json::Value;

use crate::config::{ServerEntry, ServerTarget};
use crate::oauth::Credentials;
use crate::{thread, values};

/// The longest time from the start of a server to its list of tools, including anything that it downloads first.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Pauses before a server at a URL is tried again.
const RETRY_DELAYS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(3)];

/// A server, connected or not.
pub(crate) struct Server {
    entry: ServerEntry,
    cwd: PathBuf,
    home: PathBuf,
    mask: Mask,
    credentials: Credentials,
    log: Arc<ClipLog>,
    mount: tokio::sync::Mutex<Option<Arc<Mount>>>,
    /// The mount again, for readers that must not wait.
    current: Mutex<Option<Arc<Mount>>>,
}

impl Server {
    pub fn new(entry: ServerEntry, dirs: &Dirs, mask: Mask) -> Self {
        Self {
            credentials: Credentials::new(&entry, dirs, mask.clone()),
            entry,
            cwd: dirs.cwd.clone(),
            home: dirs.home.clone(),
            mask,
            log: Arc::new(ClipLog::in_memory()),
            mount: tokio::sync::Mutex::default(),
            current: Mutex::default(),
        }
    }

    pub fn name(&self) -> &str {
        &self.entry.name
    }

    pub fn entry(&self) -> &ServerEntry {
        &self.entry
    }

    /// The last lines that the server printed outside the protocol, oldest first.
    pub fn printed(&self, count: usize) -> Vec<String> {
        let lines = self.log.tail(count).into_iter();
        lines.map(|line| line.message.to_string()).collect()
    }

    /// Connects, if there is no connection, and returns the mount with the server's tools. Runs on the thread of
    /// connections.
    pub async fn connect(&self) -> Result<Arc<Mount>, Failure> {
        let mut delays = RETRY_DELAYS.iter();
        loop {
            let failure = match self.connect_once().await {
                Ok(mount) => return Ok(mount),
                Err(failure) => failure,
            };
            let is_remote = matches!(self.entry.config.target, ServerTarget::Http { .. });
            let may_pass = is_remote && failure.code == Code::Unavailable;
            match delays.next() {
                Some(delay) if may_pass => tokio::time::sleep(*delay).await,
                _ => return Err(failure),
            }
        }
    }

    async fn connect_once(&self) -> Result<Arc<Mount>, Failure> {
        let mount = self.mount().await?;
        match mount.inspect().await {
            Err(failure) if failure.code == Code::Unauthenticated => {
                if !self.credentials.renew().await? {
                    return Err(self.credentials.sign_in_required(failure));
                }
                self.forget().await;
                let mount = self.mount().await?;
                let inspected = mount.inspect().await;
                inspected
                    .map(|_| mount)
                    .map_err(|failure| self.credentials.sign_in_required(failure))
            }
            inspected => inspected.map(|_| mount),
        }
    }

    /// Returns the mount, creating it with resolved values if there is none.
    async fn mount(&self) -> Result<Arc<Mount>, Failure> {
        let mut slot = self.mount.lock().await;
        if let Some(mount) = &*slot {
            return Ok(Arc::clone(mount));
        }
        let target = self.target().await.map_err(|message| {
            let message = format!("MCP server \"{}\": {message}", self.name());
            Failure::new(Code::FailedPrecondition, message)
        })?;
        let config = MountConfig {
            limits: MountLimits {
                start: START_TIMEOUT,
                ..MountLimits::default()
            },
            ..MountConfig::new(self.name(), target)
        };
        let mount = Arc::new(Mount::new(config, Arc::clone(&self.log)));
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&mount));
        Ok(Arc::clone(slot.insert(mount)))
    }

    async fn forget(&self) {
        *self.mount.lock().await = None;
    }

    async fn target(&self) -> Result<Target, String> {
        match &self.entry.config.target {
            ServerTarget::Unusable(reason) => Err(reason.clone()),
            ServerTarget::Command {
                command, args, env, ..
            } if self.entry.of_client => Ok(Target::Command {
                words: std::iter::once(command)
                    .chain(args)
                    .map(Into::into)
                    .collect(),
                directory: self.cwd.clone(),
                variables: self
                    .resolved(env)
                    .await?
                    .into_iter()
                    .map(|(name, value)| (name.into(), value.into()))
                    .collect(),
                pass: Vec::new(),
            }),
            ServerTarget::Command {
                command,
                args,
                env,
                cwd,
            } => {
                let words = std::iter::once(command).chain(args);
                let words = words.map(|word| values::with_home(word, &self.home).into());
                let directory = cwd.as_deref().unwrap_or_default();
                Ok(Target::Command {
                    words: words.collect(),
                    directory: self.cwd.join(values::with_home(directory, &self.home)),
                    variables: self
                        .resolved(env)
                        .await?
                        .into_iter()
                        .map(|(name, value)| (name.into(), value.into()))
                        .collect(),
                    pass: Vec::new(),
                })
            }
            ServerTarget::Http { url, headers, .. } => {
                let mut headers = self.resolved(headers).await?;
                if let Some(token) = self.credentials.access_token().await {
                    headers.push(("Authorization".to_owned(), format!("Bearer {token}")));
                }
                Ok(Target::Http {
                    url: url.clone(),
                    headers,
                })
            }
        }
    }

    /// Resolves values. The log of the server masks all of them; those with the name of a secret are masked in everything
    /// that is stored or sent from now on.
    async fn resolved(&self, pairs: &[(String, String)]) -> Result<Vec<(String, String)>, String> {
        let mut resolved = Vec::new();
        for (name, text) in pairs {
            let value = if self.entry.of_client {
                text.clone()
            } else {
                let value = values::resolve(text, &self.cwd).await;
                value.map_err(|error| format!("{name}: {error}"))?
            };
            self.log.mask(&value);
            let secret = value.strip_prefix("Bearer ").unwrap_or(&value);
            if is_name_of_secret(name) {
                self.mask.learn(&Secret::from(secret.to_owned()));
            }
            resolved.push((name.clone(), value));
        }
        Ok(resolved)
    }

    /// Calls a tool and returns the server's answer. Dropping the future cancels the call.
    pub async fn call(self: Arc<Self>, tool: String, arguments: Value) -> Result<Value, String> {
        let called = thread::run(async move { self.call_here(&tool, &arguments).await }).await;
        called.unwrap_or_else(|| Err("the call was not completed".into()))
    }

    async fn call_here(&self, tool: &str, arguments: &Value) -> Result<Value, String> {
        let limit = self.entry.config.timeout;
        let mount = self.mount().await.map_err(|failure| failure.to_string())?;
        let called = mount.call_tool(tool, arguments, limit).await;
        let error = match called {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        // The server has refused the token and has not run the call.
        if error.failure().code == Code::Unauthenticated {
            let renewed = self.credentials.renew().await;
            if renewed.map_err(|failure| failure.to_string())? {
                self.forget().await;
                let mount = self.mount().await.map_err(|failure| failure.to_string())?;
                let again = mount.call_tool(tool, arguments, limit).await;
                return again.map_err(|error| error.failure().to_string());
            }
            let failure = error.failure().clone();
            return Err(self.credentials.sign_in_required(failure).to_string());
        }
        Err(error.failure().to_string())
    }

    /// Ends the connection. Runs on the thread of connections.
    pub async fn stop(&self) {
        let mount = {
            let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
            current.take()
        };
        if let Some(mount) = mount {
            mount.close().await;
        }
    }
}

/// Reports whether a variable or header of this name holds a secret.
fn is_name_of_secret(name: &str) -> bool {
    let authorizes = ["authorization", "cookie", "proxy-authorization"];
    authorizes
        .iter()
        .any(|known| name.eq_ignore_ascii_case(known))
        || pinion_clip::is_secret(&name.replace('-', "_"))
}
