//! The connection to one client: reads its messages and routes them to sessions.
//!
//! The loop never waits for a session or a file. Requests that take time run as tasks and answer when they are done;
//! prompts enter the queue of their session in the order in which they arrive.

mod opening;
mod parameters;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use pinion_jsonl::{Input, InputLine, Queue};
use pinion_sync::lock;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::opening::OpenRequest;
use crate::capabilities::{AgentInfo, ClientCapabilities};
use crate::client_requests::ClientRequests;
use crate::content;
use crate::error::AcpError;
use crate::host::SessionHost;
use crate::listing;
use crate::outbox::{Common, Out};
use crate::rpc::{self, Incoming, Params};
use crate::session::OpenSession;
use crate::traffic_log::{Direction, TrafficLog};

/// Limit on the sessions that are open at once.
const MAX_SESSIONS: usize = 1000;
/// Sessions that are opened at the same time.
const MAX_OPENING: usize = 8;
/// Requests that run at the same time, besides prompts; above it no more lines are read.
const MAX_TASKS: usize = 256;
/// Time for a list of sessions, whose files may be on a mount that does not answer.
const LIST_TIMEOUT: Duration = Duration::from_secs(60);

/// The reason why the connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionEnd {
    /// The client closed its input.
    EndOfInput,
    /// The client no longer reads.
    OutputClosed,
}

/// A connection to one client.
pub struct Connection<H: SessionHost> {
    shared: Arc<Shared<H>>,
    queue: Queue<Out>,
    agent: AgentInfo,
    log: Option<Arc<TrafficLog>>,
    tasks: JoinSet<()>,
}

/// The parts that tasks use.
struct Shared<H> {
    host: H,
    queue: Queue<Out>,
    common: Common,
    requests: Arc<ClientRequests>,
    /// `None` before `initialize`.
    client: Mutex<Option<Arc<ClientCapabilities>>>,
    sessions: Mutex<Sessions>,
    opens: Semaphore,
    unstable: bool,
}

/// The sessions of a connection by their ids.
#[derive(Default)]
struct Sessions {
    open: HashMap<String, Arc<OpenSession>>,
    /// Ids whose files are being opened, closed or deleted: one at a time.
    busy: HashSet<String>,
    /// The number of sessions that are being opened.
    opening: usize,
    /// Requests that can be cancelled, and are not prompts.
    cancels: Vec<(Value, CancellationToken)>,
    has_ended: bool,
}

impl<H: SessionHost> Connection<H> {
    /// Creates a connection that writes to `queue`.
    pub fn new(host: H, queue: Queue<Out>, agent: AgentInfo, log: Option<Arc<TrafficLog>>) -> Self {
        Self {
            shared: Arc::new(Shared {
                host,
                common: Common(queue.clone()),
                queue: queue.clone(),
                requests: Arc::default(),
                client: Mutex::new(None),
                sessions: Mutex::default(),
                opens: Semaphore::new(MAX_OPENING),
                unstable: agent.unstable,
            }),
            queue,
            agent,
            log,
            tasks: JoinSet::new(),
        }
    }

    /// Serves until the client closes its input or stops reading.
    pub async fn serve(&mut self, input: &mut mpsc::Receiver<Input>) -> ConnectionEnd {
        let queue = self.queue.clone();
        let broken = queue.broken();
        tokio::pin!(broken);
        loop {
            tokio::select! {
                biased;
                () = &mut broken => return ConnectionEnd::OutputClosed,
                Some(_) = self.tasks.join_next(), if !self.tasks.is_empty() => {}
                received = input.recv(), if self.tasks.len() < MAX_TASKS => match received {
                    Some(Input::Line(line)) => {
                        self.receive(&line).await;
                        queue.room_for_answers().await;
                    }
                    Some(Input::End) | None => return ConnectionEnd::EndOfInput,
                },
            }
        }
    }

    /// Stops every session and answers what is open.
    pub async fn stop(&mut self) {
        self.shared.requests.hang_up();
        let open: Vec<Arc<OpenSession>> = {
            let mut sessions = lock(&self.shared.sessions);
            sessions.has_ended = true;
            for (_, cancel) in &sessions.cancels {
                cancel.cancel();
            }
            sessions.open.drain().map(|(_, session)| session).collect()
        };
        join_all(open.iter().map(|session| session.close())).await;
        while self.tasks.join_next().await.is_some() {}
    }

    async fn receive(&mut self, line: &InputLine) {
        if let (Some(log), InputLine::Complete(line)) = (&self.log, line) {
            log.record(Direction::Received, line);
        }
        match rpc::decode(line) {
            Incoming::Request { id, method, params } => self.request(id, &method, params).await,
            Incoming::Notification { method, params } => self.notified(&method, &params).await,
            Incoming::Response { id, result } => self.shared.requests.answer(&id, result),
            Incoming::Invalid { id, error } => self.shared.common.respond(&id, &Err(error)),
        }
    }

    async fn request(&mut self, id: Value, method: &str, params: Params) {
        let shared = Arc::clone(&self.shared);
        if method == "initialize" {
            let answer = ClientCapabilities::read(&params).map(|client| {
                let answer = client.answer(&self.agent);
                *lock(&shared.client) = Some(Arc::new(client));
                answer
            });
            return shared.common.respond(&id, &answer);
        }
        let Some(client) = lock(&shared.client).clone() else {
            let error = AcpError::invalid_request("initialize comes first", "not_initialized");
            return shared.common.respond(&id, &Err(error));
        };
        match method {
            "session/prompt" => {
                if let Err(error) = shared.prompt(&id, &params) {
                    shared.common.respond(&id, &Err(error));
                }
            }
            "session/new" | "session/load" | "session/resume" | "session/fork" => {
                match OpenRequest::read(id.clone(), method, &params, self.agent.unstable) {
                    Ok(request) => {
                        let cancel = shared.cancellable(&id);
                        self.tasks.spawn(shared.open(request, client, cancel));
                    }
                    Err(error) => shared.common.respond(&id, &Err(error)),
                }
            }
            "session/set_config_option" | "session/set_mode" | "session/set_model" => {
                match shared.change(method, &params) {
                    Ok(change) => {
                        self.tasks.spawn(change.make(id, shared));
                    }
                    Err(error) => shared.common.respond(&id, &Err(error)),
                }
            }
            "session/set_title" if self.agent.unstable => {
                self.tasks.spawn(async move {
                    let answer = shared.set_title(&params).await;
                    shared.common.respond(&id, &answer);
                });
            }
            "_session/steering" => {
                self.tasks.spawn(async move {
                    let answer = shared.steer(&params).await;
                    shared.common.respond(&id, &answer);
                });
            }
            "session/close" => match params.text("sessionId") {
                Ok(session) => {
                    let session = session.to_owned();
                    // Prompts that follow meet no open session.
                    let open = lock(&shared.sessions).open.remove(&session);
                    self.tasks.spawn(async move {
                        let answer = shared.close(&session, open).await;
                        shared.common.respond(&id, &answer);
                    });
                }
                Err(error) => shared.common.respond(&id, &Err(error)),
            },
            "session/delete" => {
                self.tasks.spawn(async move {
                    let answer = Arc::clone(&shared).delete(&params).await;
                    shared.common.respond(&id, &answer);
                });
            }
            "session/list" => {
                self.tasks.spawn(async move {
                    let answer = Arc::clone(&shared).list(params).await;
                    shared.common.respond(&id, &answer);
                });
            }
            "authenticate" => {
                self.tasks.spawn(async move {
                    let answer = Arc::clone(&shared).authenticate(&params, &client).await;
                    shared.common.respond(&id, &answer);
                });
            }
            _ => shared
                .common
                .respond(&id, &Err(AcpError::method_not_found(method))),
        }
    }

    async fn notified(&mut self, method: &str, params: &Params) {
        let shared = &self.shared;
        match method {
            "session/cancel" => {
                let session = params
                    .text("sessionId")
                    .ok()
                    .and_then(|id| shared.session(id).ok());
                if let Some(session) = session {
                    session.cancel().await;
                }
            }
            "$/cancel_request" => {
                if let Some(request) = params.get("requestId") {
                    shared.cancel_request(request).await;
                }
            }
            // Unknown notifications are ignored.
            _ => {}
        }
    }
}

impl<H: SessionHost> Shared<H> {
    fn session(&self, id: &str) -> Result<Arc<OpenSession>, AcpError> {
        let sessions = lock(&self.sessions);
        sessions
            .open
            .get(id)
            .cloned()
            .ok_or_else(|| AcpError::not_open(id))
    }

    /// Returns a token that `$/cancel_request` for this request cancels.
    fn cancellable(&self, request: &Value) -> CancellationToken {
        let cancel = CancellationToken::new();
        let mut sessions = lock(&self.sessions);
        sessions.cancels.push((request.clone(), cancel.clone()));
        cancel
    }

    fn not_cancellable(&self, request: &Value) {
        let mut sessions = lock(&self.sessions);
        if let Some(at) = sessions.cancels.iter().position(|(id, _)| id == request) {
            sessions.cancels.remove(at);
        }
    }

    async fn cancel_request(&self, request: &Value) {
        let open: Vec<Arc<OpenSession>> = {
            let sessions = lock(&self.sessions);
            for (_, cancel) in sessions.cancels.iter().filter(|(id, _)| id == request) {
                cancel.cancel();
            }
            sessions.open.values().cloned().collect()
        };
        for session in open {
            if session.cancel_request(request).await {
                return;
            }
        }
    }

    fn prompt(&self, id: &Value, params: &Params) -> Result<(), AcpError> {
        let session = params.text("sessionId")?;
        let prompt = params.list("prompt")?;
        let session = self.session(session)?;
        session.add_prompt(Some(id.clone()), content::read(prompt)?)
    }

    async fn steer(&self, params: &Params) -> Result<Value, AcpError> {
        let session = self.session(params.text("sessionId")?)?;
        let prompt = content::read(params.list("prompt")?)?;
        let none = Value::Null;
        let idle = &params.get("_meta").unwrap_or(&none)["steering"]["idleBehavior"];
        if !idle.is_null() && idle != "promptRequired" {
            let problem = "_meta.steering.idleBehavior must be \"promptRequired\"";
            return Err(AcpError::invalid_params(problem));
        }
        match session.steer(prompt.clone()).await {
            Some(steered) => steered.map(|()| json!({"outcome": "injected"})),
            None if !idle.is_null() => {
                Ok(json!({"outcome": "promptRequired", "reason": "noRunningTurn"}))
            }
            None => {
                session.add_prompt(None, prompt)?;
                Ok(json!({"outcome": "startedNewTurn"}))
            }
        }
    }

    async fn set_title(&self, params: &Params) -> Result<Value, AcpError> {
        let session = self.session(params.text("sessionId")?)?;
        let title = params.text("title")?.to_owned();
        let named = session
            .ask(pinion_agent::Command::SetName(title.clone()))
            .await;
        named.map_err(|error| AcpError::invalid_params(error.to_string()))?;
        Ok(json!({ "title": title }))
    }

    async fn close(
        self: &Arc<Self>,
        id: &str,
        open: Option<Arc<OpenSession>>,
    ) -> Result<Value, AcpError> {
        let session = open.ok_or_else(|| AcpError::not_open(id))?;
        self.end(id, &session).await;
        Ok(json!({}))
    }

    /// Ends a session and the commands that it left running.
    async fn end(self: &Arc<Self>, id: &str, session: &OpenSession) {
        session.close().await;
        let (shared, id) = (Arc::clone(self), id.to_owned());
        // Leftovers that cannot be ended now end with the process.
        let _ = tokio::task::spawn_blocking(move || shared.host.clean_up(&id)).await;
    }

    async fn delete(self: Arc<Self>, params: &Params) -> Result<Value, AcpError> {
        let id = params.text("sessionId")?.to_owned();
        let _claim = self.claim(&id)?;
        let open = lock(&self.sessions).open.remove(&id);
        if let Some(session) = open {
            self.end(&id, &session).await;
        }
        let shared = Arc::clone(&self);
        let deleted = tokio::task::spawn_blocking(move || shared.host.delete(&id)).await;
        done(deleted)?;
        Ok(json!({}))
    }

    async fn list(self: Arc<Self>, params: Params) -> Result<Value, AcpError> {
        params.check()?;
        let cwd = params.optional_text("cwd")?.map(PathBuf::from);
        let cursor = params.optional_text("cursor")?.map(str::to_owned);
        let listing = tokio::task::spawn_blocking(move || {
            listing::page(self.host.list(cwd.as_deref()), cursor.as_deref())
        });
        match tokio::time::timeout(LIST_TIMEOUT, listing).await {
            Ok(listed) => done(listed),
            Err(_) => {
                let words = "The sessions could not be read in time.";
                Err(AcpError::internal(words, "sessions_not_read"))
            }
        }
    }

    async fn authenticate(
        self: Arc<Self>,
        params: &Params,
        client: &ClientCapabilities,
    ) -> Result<Value, AcpError> {
        match params.text("methodId")? {
            "keys" => {
                let checked = tokio::task::spawn_blocking(move || self.host.check_keys()).await;
                done(checked).map_err(|error| error.with("authMethods", client.auth_methods()))?;
                Ok(json!({}))
            }
            "setup" => Err(AcpError::invalid_params("\"setup\" is run in a terminal")),
            other => Err(AcpError::invalid_params(format_args!(
                "there is no method \"{other}\""
            ))),
        }
    }

    /// Claims an id whose file is opened, closed or deleted. Fails if another request has it.
    fn claim(self: &Arc<Self>, id: &str) -> Result<Claim<H>, AcpError> {
        let mut sessions = lock(&self.sessions);
        if !sessions.busy.insert(id.to_owned()) {
            let words =
                format!("The session \"{id}\" is being opened or deleted by another request.");
            return Err(AcpError::internal(words, "session_in_use"));
        }
        drop(sessions);
        Ok(Claim {
            shared: Arc::clone(self),
            id: id.to_owned(),
        })
    }
}

/// A claimed id; dropping it frees the id.
struct Claim<H: SessionHost> {
    shared: Arc<Shared<H>>,
    id: String,
}

impl<H: SessionHost> Drop for Claim<H> {
    fn drop(&mut self) {
        lock(&self.shared.sessions).busy.remove(&self.id);
    }
}

/// Returns the result of blocking work.
fn done<T>(joined: Result<Result<T, AcpError>, tokio::task::JoinError>) -> Result<T, AcpError> {
    joined.unwrap_or_else(|_| {
        let words = "The request failed inside. This is a bug in pinion.";
        Err(AcpError::internal(words, "internal"))
    })
}

impl<H: SessionHost> std::fmt::Debug for Connection<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Connection")
    }
}
