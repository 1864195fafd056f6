//! Opens sessions: new ones, existing ones with and without their conversation, and copies.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pinion_sync::lock;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::{Claim, MAX_SESSIONS, Shared};
use crate::capabilities::ClientCapabilities;
use crate::dialogs::Dialogs;
use crate::error::AcpError;
use crate::host::{BuiltSession, ClientServer, Links, Opening, Origin, ServerTarget, SessionHost};
use crate::outbox::Outbox;
use crate::permission::Permissions;
use crate::rpc::Params;
use crate::session::OpenSession;
use crate::view::SessionView;
use crate::{title, v1};

/// Longest time that a client waits for a session. A file system that hangs must not hold the client without end.
const OPEN_TIMEOUT: Duration = Duration::from_secs(120);

/// The conversation in the answer to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Replay {
    /// Sent before the answer.
    Whole,
    None,
}

/// A request to open a session.
pub(super) struct OpenRequest {
    id: Value,
    opening: Opening,
    replay: Replay,
    /// The answer names the session.
    is_new: bool,
}

impl OpenRequest {
    /// Reads a request. Whether the directories exist is checked when the session is opened.
    pub fn read(
        id: Value,
        method: &str,
        params: &Params,
        unstable: bool,
    ) -> Result<Self, AcpError> {
        let session = || params.text("sessionId").map(str::to_owned);
        let origin = match method {
            "session/new" => Origin::New,
            "session/fork" => Origin::CopyOf(session()?),
            _ => Origin::Existing(session()?),
        };
        let cwd = directory("cwd", params.text("cwd")?)?;
        let mut roots = Vec::new();
        for root in params
            .optional_list("additionalDirectories")?
            .unwrap_or_default()
        {
            let problem =
                || AcpError::invalid_params("additionalDirectories must be a list of strings");
            let root = root.as_str().ok_or_else(problem)?;
            roots.push(directory("additionalDirectories", root)?);
        }
        let servers = match method {
            "session/new" | "session/load" => params.list("mcpServers")?,
            _ => params.optional_list("mcpServers")?.unwrap_or_default(),
        };
        let servers = servers
            .iter()
            .enumerate()
            .map(|(at, server)| read_server(at, server));
        let system_prompt = params.get("systemPrompt").filter(|_| unstable);
        Ok(Self {
            id,
            replay: if method == "session/load" {
                Replay::Whole
            } else {
                Replay::None
            },
            is_new: matches!(method, "session/new" | "session/fork"),
            opening: Opening {
                origin,
                cwd,
                roots,
                servers: servers.collect::<Result<_, _>>()?,
                system_prompt: system_prompt.map(read_system_prompt).transpose()?,
                shows_terminals: false,
            },
        })
    }
}

fn directory(name: &str, path: &str) -> Result<PathBuf, AcpError> {
    if !Path::new(path).is_absolute() {
        let problem = format!("{name} must be an absolute path, not \"{path}\"");
        return Err(AcpError::invalid_params(problem));
    }
    Ok(path.into())
}

fn read_server(at: usize, server: &Value) -> Result<ClientServer, AcpError> {
    let wrong = |name: &str| {
        AcpError::invalid_params(format_args!("mcpServers[{at}]: {name} must be a string"))
    };
    let name = server["name"]
        .as_str()
        .ok_or_else(|| wrong("name"))?
        .to_owned();
    let pairs = |list: &str| -> Result<Vec<(String, String)>, AcpError> {
        let items = server[list].as_array().map_or(&[][..], Vec::as_slice);
        let pair = |item: &Value| {
            let text = |name: &str| {
                item[name]
                    .as_str()
                    .map(str::to_owned)
                    .ok_or_else(|| wrong(list))
            };
            Ok((text("name")?, text("value")?))
        };
        items.iter().map(pair).collect()
    };
    let target = match &server["type"] {
        Value::Null => {
            let args = server["args"].as_array().map_or(&[][..], Vec::as_slice);
            let arg = |arg: &Value| arg.as_str().map(str::to_owned).ok_or_else(|| wrong("args"));
            ServerTarget::Command {
                command: server["command"]
                    .as_str()
                    .ok_or_else(|| wrong("command"))?
                    .to_owned(),
                args: args.iter().map(arg).collect::<Result<_, _>>()?,
                env: pairs("env")?,
            }
        }
        kind if kind == "http" => ServerTarget::Http {
            url: server["url"]
                .as_str()
                .ok_or_else(|| wrong("url"))?
                .to_owned(),
            headers: pairs("headers")?,
        },
        kind => ServerTarget::Unusable(format!(
            "the transport {kind} is not supported; use stdio or http"
        )),
    };
    Ok(ClientServer { name, target })
}

fn read_system_prompt(prompt: &Value) -> Result<String, AcpError> {
    if prompt["mode"] != "append" {
        return Err(AcpError::invalid_params(
            "systemPrompt.mode must be \"append\"",
        ));
    }
    let blocks = prompt["content"].as_array().map_or(&[][..], Vec::as_slice);
    let texts: Vec<&str> = blocks
        .iter()
        .filter_map(|block| block["text"].as_str())
        .collect();
    Ok(texts.join("\n"))
}

/// A session that was opened, and not yet announced.
struct Opened {
    id: String,
    view: Arc<SessionView>,
    dialogs: Arc<Dialogs>,
    built: BuiltSession,
    replay: Vec<Value>,
    has_messages: bool,
}

impl<H: SessionHost> Shared<H> {
    /// Opens a session and answers the request.
    pub(super) async fn open(
        self: Arc<Self>,
        request: OpenRequest,
        client: Arc<ClientCapabilities>,
        cancel: CancellationToken,
    ) {
        let id = request.id.clone();
        let opened = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(AcpError::cancelled()),
            opened = Arc::clone(&self).opened(request, client.clone()) => opened,
        };
        self.not_cancellable(&id);
        if let Err(error) = opened {
            let error = if error.is_about_authentication() {
                error.with("authMethods", client.auth_methods())
            } else {
                error
            };
            self.common.respond(&id, &Err(error));
        }
    }

    async fn opened(
        self: Arc<Self>,
        request: OpenRequest,
        client: Arc<ClientCapabilities>,
    ) -> Result<(), AcpError> {
        let OpenRequest {
            id: request,
            mut opening,
            replay,
            is_new,
        } = request;
        opening.shows_terminals = client.terminal_output;
        let _place = self.place()?;
        let mut _claim: Option<Claim<H>> = None;
        if let Origin::Existing(id) = &opening.origin {
            _claim = Some(self.claim(id)?);
            // Never two engines for one file.
            let open = lock(&self.sessions).open.remove(id);
            if let Some(session) = open {
                session.close().await;
            }
        }
        let Ok(permit) = self.opens.acquire().await else {
            return Err(AcpError::cancelled());
        };
        let shared = Arc::clone(&self);
        let runtime = Handle::current();
        let open = tokio::task::spawn_blocking(move || {
            runtime
                .clone()
                .block_on(shared.open_apart(opening, client, replay, runtime))
        });
        let opened = tokio::time::timeout(OPEN_TIMEOUT, open).await;
        drop(permit);
        let opened = opened.map_err(|_| {
            let seconds = OPEN_TIMEOUT.as_secs();
            let words = format!(
                "The session did not open within {seconds} seconds; do its files and its directory answer?"
            );
            AcpError::internal(words, "session_not_opened")
        })?;
        let opened = super::done(opened)?;
        self.announce(&request, opened, is_new);
        Ok(())
    }

    /// Opens a session on a blocking thread.
    async fn open_apart(
        self: Arc<Self>,
        opening: Opening,
        client: Arc<ClientCapabilities>,
        replay: Replay,
        runtime: Handle,
    ) -> Result<Opened, AcpError> {
        for directory in std::iter::once(&opening.cwd).chain(&opening.roots) {
            if !directory.is_dir() {
                let problem = format!("there is no directory {}", directory.display());
                return Err(AcpError::invalid_params(problem));
            }
        }
        let cwd = opening.cwd.clone();
        let prepared = self.host.prepare(opening)?;
        let store = self.host.store(&prepared);
        let id = store.id().to_owned();
        let out = Outbox::new(self.queue.clone(), &id);
        let view = SessionView::new(&id, &cwd, &client, out, &self.requests, self.unstable);
        let view = Arc::new(view);
        let first = store.user_messages().into_iter().next();
        let has_messages = first.is_some();
        let name = store.name().map(str::to_owned);
        view.set_known_title(name.or_else(|| title::of_message(&first?.1)));
        let replay = match replay {
            Replay::Whole => v1::replay(store, &client, &cwd),
            Replay::None => Vec::new(),
        };
        let dialogs = Dialogs::new(&view, runtime);
        let (records, room) = (Arc::clone(&dialogs), Arc::clone(&view));
        let built = self.host.build(
            prepared,
            Links {
                listener: Arc::clone(&view) as _,
                asker: Arc::new(Permissions(Arc::clone(&view))),
                records: Arc::new(move |record| records.record(record)),
                has_room: Arc::new(move || room.out().has_room()),
            },
        );
        Ok(Opened {
            id,
            built: built.await?,
            view,
            dialogs,
            replay,
            has_messages,
        })
    }

    /// Starts a session, answers the request, and lets the session speak.
    fn announce(&self, request: &Value, opened: Opened, is_new: bool) {
        let Opened {
            id,
            view,
            dialogs,
            built,
            replay,
            has_messages,
        } = opened;
        let companions = Arc::clone(&built.companions);
        let session = OpenSession::start(&view, built);
        lock(&self.sessions)
            .open
            .insert(id.clone(), Arc::clone(&session));
        for update in replay {
            view.out().update_ahead(update);
        }
        let mut answer = session.described();
        if is_new {
            answer["sessionId"] = json!(id);
        }
        view.out().respond_ahead(request, &Ok(answer));
        view.out().release();
        dialogs.start(companions.participants());
        session.serve(has_messages);
    }

    /// Takes a place among the sessions; dropping it gives it back to the session that opened, or to others.
    fn place(self: &Arc<Self>) -> Result<Place<H>, AcpError> {
        let mut sessions = lock(&self.sessions);
        if sessions.has_ended {
            return Err(AcpError::internal("The program ends.", "program_ends"));
        }
        if sessions.open.len() + sessions.opening >= MAX_SESSIONS {
            let words = format!(
                "{MAX_SESSIONS} sessions are open, which is the limit; close one with session/close"
            );
            return Err(AcpError::internal(words, "too_many_sessions"));
        }
        sessions.opening += 1;
        Ok(Place(Arc::clone(self)))
    }
}

/// A place for a session that is being opened.
struct Place<H: SessionHost>(Arc<Shared<H>>);

impl<H: SessionHost> Drop for Place<H> {
    fn drop(&mut self) {
        lock(&self.0.sessions).opening -= 1;
    }
}
