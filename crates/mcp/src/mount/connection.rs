//! Talking to a server, however it is reached: getting to know it, its tools, calling one.

use std::sync::Arc;
use std::time::Duration;

use pinion_clip::manifest::Command;
use pinion_status::{Code, Failure};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::board::Board;
use super::content::{self, Page, Server};
use super::process::Process;
use super::remote::Remote;
use super::{MountConfig, Target};
use crate::param_headers;
use crate::rpc::{Fault, Message, Request, code};
use crate::version::{self, Era, HANDSHAKE, MODERN, OURSELVES, SERVER_KEY};

/// More tools than anybody can use.
const MAX_TOOLS: usize = 10_000;
/// More pages than anybody needs.
const MAX_PAGES: usize = 1000;
/// How long telling the tools may take.
const LISTING: Duration = Duration::from_secs(30);

/// Why a request has no result.
#[derive(Debug)]
pub(super) enum Broken {
    /// The server says so.
    Answered(Fault),
    /// The server does not know the session any more; nothing was done.
    Forgotten,
    /// There is no answer.
    Lost(Failure),
}

/// What a server may tell or ask at any time.
#[derive(Debug)]
pub(super) struct Asides {
    pub(super) board: Arc<Board>,
    /// Told when the tools have changed.
    pub(super) changed: Notify,
}

impl Asides {
    /// Deals with a message that is no answer; a request is answered.
    pub(super) fn take(&self, message: &Message) -> Option<bytes::Bytes> {
        match message {
            Message::Request(request) => Some(reply(request)),
            Message::Notification(told) => {
                match told.method.as_str() {
                    "notifications/tools/list_changed" => self.changed.notify_one(),
                    "notifications/message" => self.log(told.params.as_deref()),
                    _ => {}
                }
                None
            }
            Message::Response(_) => None,
        }
    }

    fn log(&self, params: Option<&RawValue>) {
        #[derive(Deserialize)]
        struct Said {
            #[serde(default)]
            level: String,
            #[serde(default)]
            data: Value,
        }
        let said = params.and_then(|params| serde_json::from_str::<Said>(params.get()).ok());
        if let Some(Said { level, data }) = said {
            let text = data
                .as_str()
                .map_or_else(|| data.to_string(), str::to_owned);
            let level = pinion_clip::logs::Level::parse(&level);
            self.board
                .log
                .push(level, pinion_clip::logs::Origin::Ipc, &text);
        }
    }
}

/// We offer nothing that a server could ask for.
fn reply(request: &Request) -> bytes::Bytes {
    let answer = match request.method.as_str() {
        "ping" => serde_json::value::to_raw_value(&json!({}))
            .map_err(|error| Fault::new(code::INTERNAL, error.to_string())),
        method => Err(Fault::no_method(method)),
    };
    crate::rpc::answer(&request.id, &answer)
}

/// How a server is reached.
#[derive(Debug)]
enum Way {
    Process(Process),
    Remote(Remote),
}

/// A server that is there and has told who it is.
#[derive(Debug)]
pub(super) struct Connection {
    way: Way,
    era: Era,
    server: Server,
    asides: Arc<Asides>,
}

impl Connection {
    /// Gets to know a server and its tools.
    pub(super) async fn open(config: &MountConfig, board: Arc<Board>) -> Result<Self, Failure> {
        let asides = Arc::new(Asides {
            board,
            changed: Notify::new(),
        });
        let way = match &config.target {
            Target::Command { .. } => Way::Process(Process::start(config, asides.clone()).await?),
            Target::Http { url, headers } => {
                Way::Remote(Remote::new(url, headers, asides.clone())?)
            }
        };
        let mut connection = Self {
            way,
            era: Era::Handshake,
            server: Server::default(),
            asides,
        };
        connection.greet().await?;
        connection.list().await?;
        Ok(connection)
    }

    async fn request(
        &self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<Box<RawValue>, Broken> {
        match &self.way {
            Way::Process(process) => process.request(method, params).await,
            Way::Remote(remote) => remote.request(method, params).await,
        }
    }

    /// Agrees with the server on a revision of the protocol.
    ///
    /// A server at an address is asked in the newest revision first, because every request stands for itself there. A
    /// program is greeted in the older way first: many of them wait for `initialize` and answer nothing else.
    async fn greet(&mut self) -> Result<(), Failure> {
        if self.speaks(Some(MODERN)) {
            let mut found = self.discover().await;
            if let Err(Broken::Answered(fault)) = &found
                && version::is_supported_after_all(fault)
            {
                found = self.discover().await;
            }
            match found {
                Ok(true) => return Ok(()),
                // Another way of asking does not help here.
                Err(Broken::Lost(failure)) if is_final(failure.code) => return Err(failure),
                _ => self.speaks(None),
            };
            return self.initialize().await.map_err(refused_to_begin);
        }
        match self.initialize().await {
            Ok(()) => Ok(()),
            // A server of the newest revision does not know the greeting.
            Err(broken @ Broken::Answered(_)) => match self.discover().await {
                Ok(true) => Ok(()),
                _ => Err(refused_to_begin(broken)),
            },
            Err(broken) => Err(lost(broken)),
        }
    }

    /// Names the revision in the headers of later requests. `false` for a program, which has no headers.
    fn speaks(&self, version: Option<&str>) -> bool {
        let Way::Remote(remote) = &self.way else {
            return false;
        };
        remote.speaks(version);
        true
    }

    async fn initialize(&mut self) -> Result<(), Broken> {
        #[derive(Deserialize)]
        struct Hello {
            #[serde(rename = "protocolVersion")]
            version: String,
            #[serde(default, rename = "serverInfo")]
            server: Server,
            #[serde(default)]
            instructions: Option<String>,
        }
        let hello =
            json!({ "protocolVersion": HANDSHAKE[0], "capabilities": {}, "clientInfo": OURSELVES });
        let answer = self.request("initialize", &hello).await?;
        let hello: Hello = serde_json::from_str(answer.get()).map_err(|error| {
            let message = format!("its answer to initialize cannot be read: {error}");
            Broken::Lost(Failure::new(Code::Internal, message))
        })?;
        if !HANDSHAKE.contains(&hello.version.as_str()) {
            let message = format!(
                "it speaks revision {} of MCP, which pinion does not know",
                hello.version
            );
            return Err(Broken::Lost(Failure::new(
                Code::FailedPrecondition,
                message,
            )));
        }
        self.server = hello.server;
        self.server.instructions = hello.instructions.unwrap_or_default();
        match &self.way {
            Way::Process(process) => process.notify("notifications/initialized").await,
            Way::Remote(remote) => {
                remote.speaks(Some(&hello.version));
                remote.notify("notifications/initialized").await;
            }
        }
        Ok(())
    }

    /// Asks a server what it can do in the newest revision. `false` if its answer does not show that it speaks it.
    async fn discover(&mut self) -> Result<bool, Broken> {
        #[derive(Deserialize)]
        struct Found {
            #[serde(rename = "supportedVersions")]
            versions: Vec<String>,
            #[serde(default)]
            instructions: Option<String>,
            #[serde(default, rename = "_meta")]
            meta: Value,
        }
        let asked = json!({ "_meta": version::own_meta(&OURSELVES) });
        let answer = self.request("server/discover", &asked).await?;
        let found = serde_json::from_str::<Found>(answer.get())
            .ok()
            .filter(|found| found.versions.iter().any(|version| version == MODERN));
        let Some(mut found) = found else {
            return Ok(false);
        };
        self.era = Era::Modern;
        let server = found.meta.get_mut(SERVER_KEY).map(Value::take);
        self.server = server
            .and_then(|server| serde_json::from_value(server).ok())
            .unwrap_or_default();
        self.server.instructions = found.instructions.unwrap_or_default();
        Ok(true)
    }

    /// Asks for the tools and puts them on the board.
    async fn list(&self) -> Result<(), Failure> {
        let listed = tokio::time::timeout(LISTING, self.commands()).await;
        let commands = listed.unwrap_or_else(|_| {
            let message = "it did not tell its tools in time";
            Err(Failure::new(Code::DeadlineExceeded, message))
        })?;
        let board = &self.asides.board;
        board.set_manifest(content::manifest(&board.alias, &self.server, commands));
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
                asked["_meta"] = version::own_meta(&OURSELVES);
            }
            let answer = self.request("tools/list", &asked).await.map_err(lost)?;
            let page: Page<'_> = serde_json::from_str(answer.get()).map_err(|error| {
                let message = format!("its list of tools makes no sense: {error}");
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

    /// A tool over HTTP whose annotations are not valid must not be called; the log says why it is missing.
    fn may_be_called(&self, command: &Command) -> bool {
        if self.era != Era::Modern || matches!(self.way, Way::Process(_)) {
            return true;
        }
        let Err(reason) = param_headers::read(&schema(command)) else {
            return true;
        };
        let message = format!("the tool \"{}\" is left out: {reason}", command.name);
        let level = pinion_clip::logs::Level::Warn;
        let origin = pinion_clip::logs::Origin::System;
        self.asides.board.log.push(level, origin, &message);
        false
    }

    /// The arguments that are sent as headers too.
    fn param_headers(&self, tool: &str, input: &RawValue) -> Vec<(String, String)> {
        if self.era != Era::Modern {
            return Vec::new();
        }
        let manifest = self.asides.board.snapshot.borrow().manifest.clone();
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

    /// Calls a tool.
    pub(super) async fn call(&self, tool: &str, input: &RawValue) -> Result<Box<RawValue>, Broken> {
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
            meta: (self.era == Era::Modern).then(|| version::own_meta(&OURSELVES)),
        };
        match &self.way {
            Way::Process(process) => process.request("tools/call", &params).await,
            Way::Remote(remote) => {
                let headers = self.param_headers(tool, input);
                remote.call(tool, &params, headers).await
            }
        }
    }

    /// Keeps the tools on the board true for as long as the server is there.
    pub(super) fn follow(self: Arc<Self>) {
        let asides = self.asides.clone();
        let connection = Arc::downgrade(&self);
        drop(self);
        tokio::spawn(async move {
            loop {
                // Looks up now and then, lest it waits for a server that is long gone.
                let told = tokio::time::timeout(LISTING, asides.changed.notified()).await;
                let Some(connection) = connection.upgrade() else {
                    return;
                };
                if connection.lost_at().is_some() {
                    return;
                }
                if told.is_ok()
                    && let Err(failure) = connection.list().await
                {
                    let level = pinion_clip::logs::Level::Warn;
                    let origin = pinion_clip::logs::Origin::System;
                    asides.board.log.push(level, origin, &failure.message);
                }
            }
        });
    }

    /// Since when it is gone.
    pub(super) fn lost_at(&self) -> Option<Instant> {
        match &self.way {
            Way::Process(process) => process.lost_at(),
            Way::Remote(remote) => remote.lost_at(),
        }
    }

    /// Why its program is gone.
    pub(super) fn reason(&self) -> Option<String> {
        match &self.way {
            Way::Process(process) => {
                let lost = process.lost_at();
                lost.map(|_| process.reason())
            }
            Way::Remote(_) => None,
        }
    }

    /// Whether being gone is no sign that something is wrong.
    pub(super) fn may_return(&self) -> bool {
        matches!(self.way, Way::Remote(_))
    }

    /// Ends it.
    pub(super) async fn stop(&self) {
        match &self.way {
            Way::Process(process) => process.stop().await,
            Way::Remote(remote) => remote.stop().await,
        }
    }
}

fn schema(command: &Command) -> Value {
    serde_json::from_str(&command.input).unwrap_or_default()
}

/// The server cannot be reached, or the credentials are wrong.
fn is_final(code: Code) -> bool {
    matches!(
        code,
        Code::Unauthenticated | Code::PermissionDenied | Code::DeadlineExceeded
    )
}

fn refused_to_begin(broken: Broken) -> Failure {
    match broken {
        Broken::Answered(fault) => {
            let message = format!("it refuses to begin: {}", fault.message);
            Failure::new(Code::FailedPrecondition, message)
        }
        broken => lost(broken),
    }
}

fn lost(broken: Broken) -> Failure {
    match broken {
        Broken::Answered(fault) => content::failure(&fault),
        Broken::Forgotten => Failure::new(Code::Unavailable, "it forgot the session at once"),
        Broken::Lost(failure) => failure,
    }
}
