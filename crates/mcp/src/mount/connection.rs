//! A connection to an MCP server, over pipes or HTTP: the handshake, the list of tools, and calls.

use std::sync::Arc;
use std::time::Duration;

use pinion_clip::manifest::Command;
use pinion_status::{Code, Failure};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::content::{self, Page, Server};
use super::process::Process;
use super::remote::Remote;
use super::status::MountStatus;
use super::{MountConfig, Target};
use crate::param_headers;
use crate::rpc::{Fault, Message, Request, code};
use crate::version::{self, Era, HANDSHAKE_REVISIONS, MODERN_REVISION, PINION, SERVER_KEY};

/// The most tools that a server may list.
const MAX_TOOLS: usize = 10_000;
/// The most pages of tools that are read.
const MAX_PAGES: usize = 1000;
/// Time limit for listing the tools.
const LISTING_TIMEOUT: Duration = Duration::from_secs(30);

/// The reason why a request has no result.
#[derive(Debug)]
pub(super) enum RequestError {
    /// The server answered with an error.
    Answered(Fault),
    /// The server has dropped the session; it did not run the request.
    SessionExpired,
    /// There is no answer.
    Lost(Failure),
}

/// Handles the notifications and requests that a server may send at any time.
#[derive(Debug)]
pub(super) struct ServerMessages {
    pub(super) mount_status: Arc<MountStatus>,
    /// Notified when the tools have changed.
    pub(super) changed: Notify,
}

impl ServerMessages {
    /// Handles a message that is not an answer. Returns the reply to a request.
    pub(super) fn handle(&self, message: &Message) -> Option<bytes::Bytes> {
        match message {
            Message::Request(request) => Some(reply(request)),
            Message::Notification(notification) => {
                match notification.method.as_str() {
                    "notifications/tools/list_changed" => self.changed.notify_one(),
                    "notifications/progress" => self.progress(notification.params.as_deref()),
                    "notifications/message" => self.log(notification.params.as_deref()),
                    _ => {}
                }
                None
            }
            Message::Response(_) => None,
        }
    }

    fn progress(&self, params: Option<&RawValue>) {
        #[derive(Deserialize)]
        struct Progress {
            #[serde(rename = "progressToken")]
            token: u64,
        }
        let progress =
            params.and_then(|params| serde_json::from_str::<Progress>(params.get()).ok());
        if let Some(Progress { token }) = progress {
            self.mount_status.progress.send_replace(token);
        }
    }

    fn log(&self, params: Option<&RawValue>) {
        #[derive(Deserialize)]
        struct LogMessage {
            #[serde(default)]
            level: String,
            #[serde(default)]
            data: Value,
        }
        let message =
            params.and_then(|params| serde_json::from_str::<LogMessage>(params.get()).ok());
        if let Some(LogMessage { level, data }) = message {
            let text = data
                .as_str()
                .map_or_else(|| data.to_string(), str::to_owned);
            let level = pinion_clip::logs::Level::parse(&level);
            self.mount_status
                .log
                .push(level, pinion_clip::logs::Origin::Ipc, &text);
        }
    }
}

/// Answers `ping` and refuses other requests: pinion offers nothing that a server could ask for.
fn reply(request: &Request) -> bytes::Bytes {
    let answer = match request.method.as_str() {
        "ping" => serde_json::value::to_raw_value(&json!({}))
            .map_err(|error| Fault::new(code::INTERNAL, error.to_string())),
        method => Err(Fault::no_method(method)),
    };
    crate::rpc::answer(&request.id, &answer)
}

/// The transport of a connection.
#[derive(Debug)]
enum Transport {
    Process(Process),
    Remote(Remote),
}

/// A connection to a server that has completed the handshake.
#[derive(Debug)]
pub(super) struct Connection {
    transport: Transport,
    era: Era,
    server: Server,
    server_messages: Arc<ServerMessages>,
}

impl Connection {
    /// Connects to a server and lists its tools.
    pub(super) async fn open(
        config: &MountConfig,
        mount_status: Arc<MountStatus>,
    ) -> Result<Self, Failure> {
        let server_messages = Arc::new(ServerMessages {
            mount_status,
            changed: Notify::new(),
        });
        let transport = match &config.target {
            Target::Command { .. } => {
                Transport::Process(Process::start(config, server_messages.clone()).await?)
            }
            Target::Http { url, headers } => {
                Transport::Remote(Remote::new(url, headers, server_messages.clone())?)
            }
        };
        let mut connection = Self {
            transport,
            era: Era::Handshake,
            server: Server::default(),
            server_messages,
        };
        connection.negotiate().await?;
        connection.list().await?;
        Ok(connection)
    }

    async fn request(
        &self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<Box<RawValue>, RequestError> {
        match &self.transport {
            Transport::Process(process) => process.request(method, params).await,
            Transport::Remote(remote) => remote.request(method, params).await,
        }
    }

    /// Negotiates a revision of the protocol with the server.
    ///
    /// A server at a URL is asked in the newest revision first, because requests are independent there. A program is
    /// asked with `initialize` first: many of them wait for `initialize` and answer nothing else.
    async fn negotiate(&mut self) -> Result<(), Failure> {
        if self.set_revision(Some(MODERN_REVISION)) {
            let mut result = self.discover().await;
            if let Err(RequestError::Answered(fault)) = &result
                && version::is_supported_after_all(fault)
            {
                result = self.discover().await;
            }
            match result {
                Ok(true) => return Ok(()),
                // Another revision does not help here.
                Err(RequestError::Lost(failure)) if is_final(failure.code) => return Err(failure),
                _ => self.set_revision(None),
            };
            return self.initialize().await.map_err(refused_to_begin);
        }
        match self.initialize().await {
            Ok(()) => Ok(()),
            // A server of the newest revision does not support `initialize`.
            Err(broken @ RequestError::Answered(_)) => match self.discover().await {
                Ok(true) => Ok(()),
                _ => Err(refused_to_begin(broken)),
            },
            Err(broken) => Err(lost(broken)),
        }
    }

    /// Sets the revision in the headers of later requests. Returns `false` for a program, which has no headers.
    fn set_revision(&self, version: Option<&str>) -> bool {
        let Transport::Remote(remote) = &self.transport else {
            return false;
        };
        remote.set_revision(version);
        true
    }

    async fn initialize(&mut self) -> Result<(), RequestError> {
        #[derive(Deserialize)]
        struct InitializeResult {
            #[serde(rename = "protocolVersion")]
            version: String,
            #[serde(default, rename = "serverInfo")]
            server: Server,
            #[serde(default)]
            instructions: Option<String>,
        }
        let result = json!({ "protocolVersion": HANDSHAKE_REVISIONS[0], "capabilities": {}, "clientInfo": PINION });
        let answer = self.request("initialize", &result).await?;
        let result: InitializeResult = serde_json::from_str(answer.get()).map_err(|error| {
            let message = format!("its answer to initialize cannot be read: {error}");
            RequestError::Lost(Failure::new(Code::Internal, message))
        })?;
        if !HANDSHAKE_REVISIONS.contains(&result.version.as_str()) {
            let message = format!(
                "it uses revision {} of MCP, which pinion does not support",
                result.version
            );
            return Err(RequestError::Lost(Failure::new(
                Code::FailedPrecondition,
                message,
            )));
        }
        self.server = result.server;
        self.server.instructions = result.instructions.unwrap_or_default();
        match &self.transport {
            Transport::Process(process) => process.notify("notifications/initialized").await,
            Transport::Remote(remote) => {
                remote.set_revision(Some(&result.version));
                remote.notify("notifications/initialized").await;
            }
        }
        Ok(())
    }

    /// Asks a server for its capabilities in the newest revision. Returns `false` if its answer does not show that it
    /// supports the revision.
    async fn discover(&mut self) -> Result<bool, RequestError> {
        #[derive(Deserialize)]
        struct DiscoverResult {
            #[serde(rename = "supportedVersions")]
            versions: Vec<String>,
            #[serde(default)]
            instructions: Option<String>,
            #[serde(default, rename = "_meta")]
            meta: Value,
        }
        let asked = json!({ "_meta": version::request_meta(&PINION) });
        let answer = self.request("server/discover", &asked).await?;
        let result = serde_json::from_str::<DiscoverResult>(answer.get())
            .ok()
            .filter(|result| {
                result
                    .versions
                    .iter()
                    .any(|version| version == MODERN_REVISION)
            });
        let Some(mut result) = result else {
            return Ok(false);
        };
        self.era = Era::Modern;
        let server = result.meta.get_mut(SERVER_KEY).map(Value::take);
        self.server = server
            .and_then(|server| serde_json::from_value(server).ok())
            .unwrap_or_default();
        self.server.instructions = result.instructions.unwrap_or_default();
        Ok(true)
    }

    /// Asks for the tools and publishes them.
    async fn list(&self) -> Result<(), Failure> {
        let listed = tokio::time::timeout(LISTING_TIMEOUT, self.commands()).await;
        let commands = listed.unwrap_or_else(|_| {
            let message = "it did not list its tools in time";
            Err(Failure::new(Code::DeadlineExceeded, message))
        })?;
        let mount_status = &self.server_messages.mount_status;
        mount_status.set_manifest(content::manifest(
            &mount_status.alias,
            &self.server,
            commands,
        ));
        Ok(())
    }

    async fn commands(&self) -> Result<Vec<Command>, Failure> {
        let mut commands: Vec<Command> = Vec::new();
        let mut cursor: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let mut asked = json!({});
            if let Some(cursor) = &cursor {
                asked["cursor"] = cursor.clone().into();
            }
            if self.era == Era::Modern {
                asked["_meta"] = version::request_meta(&PINION);
            }
            let answer = self.request("tools/list", &asked).await.map_err(lost)?;
            let page: Page<'_> = serde_json::from_str(answer.get()).map_err(|error| {
                let message = format!("its list of tools is malformed: {error}");
                Failure::new(Code::Internal, message)
            })?;
            commands.extend(
                page.tools
                    .into_iter()
                    .map(content::Tool::command)
                    .filter(|command| self.may_be_called(command)),
            );
            if commands.len() > MAX_TOOLS {
                break;
            }
            match page.next {
                Some(next) if cursor.as_ref() != Some(&next) => cursor = Some(next),
                _ => return Ok(commands),
            }
        }
        let message = format!("it has more than {MAX_TOOLS} tools");
        Err(Failure::new(Code::ResourceExhausted, message))
    }

    /// Reports whether a tool may be called. A tool over HTTP with invalid annotations may not; the log contains the
    /// reason.
    fn may_be_called(&self, command: &Command) -> bool {
        if self.era != Era::Modern || matches!(self.transport, Transport::Process(_)) {
            return true;
        }
        let Err(reason) = param_headers::read(&schema(command)) else {
            return true;
        };
        let message = format!("the tool \"{}\" is skipped: {reason}", command.name);
        let level = pinion_clip::logs::Level::Warn;
        let origin = pinion_clip::logs::Origin::System;
        self.server_messages
            .mount_status
            .log
            .push(level, origin, &message);
        false
    }

    /// Returns the headers that repeat arguments.
    fn param_headers(&self, tool: &str, input: &RawValue) -> Vec<(String, String)> {
        if self.era != Era::Modern {
            return Vec::new();
        }
        let manifest = self
            .server_messages
            .mount_status
            .snapshot
            .borrow()
            .manifest
            .clone();
        let headers = manifest
            .command(tool)
            .map(|command| param_headers::read(&schema(command)));
        let Some(Ok(headers)) =
            headers.filter(|headers| headers.as_ref().is_ok_and(|it| !it.is_empty()))
        else {
            return Vec::new();
        };
        let arguments: Value = serde_json::from_str(input.get()).unwrap_or_default();
        headers
            .into_iter()
            .filter_map(|header| {
                let value = header.value(&arguments)?;
                Some((header.name, param_headers::encode(&value)))
            })
            .collect()
    }

    pub(super) async fn call(
        &self,
        tool: &str,
        input: &RawValue,
        progress: Option<u64>,
    ) -> Result<Box<RawValue>, RequestError> {
        #[derive(Serialize)]
        struct Params<'a> {
            name: &'a str,
            arguments: &'a RawValue,
            #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
            meta: Option<Value>,
        }
        let params = Params {
            name: tool,
            arguments: input,
            meta: self.call_meta(progress),
        };
        match &self.transport {
            Transport::Process(process) => process.request("tools/call", &params).await,
            Transport::Remote(remote) => {
                let headers = self.param_headers(tool, input);
                remote.call(tool, &params, headers).await
            }
        }
    }

    /// Returns the `_meta` object of a call.
    fn call_meta(&self, progress: Option<u64>) -> Option<Value> {
        let mut meta = match self.era {
            Era::Modern => version::request_meta(&PINION),
            Era::Handshake => json!({}),
        };
        if let Some(token) = progress {
            meta["progressToken"] = token.into();
        }
        if let Some(traceparent) = pinion_telemetry::traceparent() {
            meta["traceparent"] = traceparent.into();
        }
        meta.as_object()
            .is_some_and(|meta| !meta.is_empty())
            .then_some(meta)
    }

    /// Updates the published tools as long as the connection exists.
    pub(super) fn follow(self: Arc<Self>) {
        let server_messages = self.server_messages.clone();
        let connection = Arc::downgrade(&self);
        drop(self);
        tokio::spawn(async move {
            loop {
                // Wakes up regularly, so that it does not wait for a server that is gone.
                let changed =
                    tokio::time::timeout(LISTING_TIMEOUT, server_messages.changed.notified()).await;
                let Some(connection) = connection.upgrade() else {
                    return;
                };
                if connection.lost_at().is_some() {
                    return;
                }
                if changed.is_ok()
                    && let Err(failure) = connection.list().await
                {
                    let level = pinion_clip::logs::Level::Warn;
                    let origin = pinion_clip::logs::Origin::System;
                    server_messages
                        .mount_status
                        .log
                        .push(level, origin, &failure.message);
                }
            }
        });
    }

    /// Returns the time at which the connection was lost.
    pub(super) fn lost_at(&self) -> Option<Instant> {
        match &self.transport {
            Transport::Process(process) => process.lost_at(),
            Transport::Remote(remote) => remote.lost_at(),
        }
    }

    /// Returns the reason why the program has exited.
    pub(super) fn reason(&self) -> Option<String> {
        match &self.transport {
            Transport::Process(process) => {
                let lost = process.lost_at();
                lost.map(|_| process.reason())
            }
            Transport::Remote(_) => None,
        }
    }

    /// Reports whether a lost connection is normal for this transport.
    pub(super) fn may_return(&self) -> bool {
        matches!(self.transport, Transport::Remote(_))
    }

    /// Closes the connection.
    pub(super) async fn stop(&self) {
        match &self.transport {
            Transport::Process(process) => process.stop().await,
            Transport::Remote(remote) => remote.stop().await,
        }
    }
}

fn schema(command: &Command) -> Value {
    serde_json::from_str(&command.input).unwrap_or_default()
}

/// Reports whether the server cannot be reached or the credentials are wrong.
fn is_final(code: Code) -> bool {
    matches!(
        code,
        Code::Unauthenticated | Code::PermissionDenied | Code::DeadlineExceeded
    )
}

fn refused_to_begin(broken: RequestError) -> Failure {
    match broken {
        RequestError::Answered(fault) => {
            let message = format!("it refused initialize: {}", fault.message);
            Failure::new(Code::FailedPrecondition, message)
        }
        broken => lost(broken),
    }
}

fn lost(broken: RequestError) -> Failure {
    match broken {
        RequestError::Answered(fault) => content::failure(&fault),
        RequestError::SessionExpired => {
            Failure::new(Code::Unavailable, "it dropped the session at once")
        }
        RequestError::Lost(failure) => failure,
    }
}
