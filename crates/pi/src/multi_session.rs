//! The RPC loop for several sessions: it routes each line to the session that the line names, and has three commands to
//! open, close and list sessions.
//!
//! The loop never waits for a session. Each session has its own task with a bounded channel; a line for a session whose
//! channel is full is rejected, and other sessions are not affected. The output of a session begins with its id (see
//! `outbox.rs`); answers to lines without a session do not.

mod envelope;
mod listing;
mod open_session;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use pinion_agent::Handle;
use pinion_jsonl::{Input, InputLine, Queue};
use serde_json::{Value, json};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

use self::envelope::Envelope;
pub(crate) use self::listing::Listing;
pub use self::open_session::OpenSession;
use crate::decode::{Decoded, decode, parse};
use crate::dialect::Dialect;
use crate::outbox::{Addressed, Outbox};
use crate::outgoing::{Out, Sink};
use crate::response::Request;
use crate::rpc::RpcEnd;

/// Limit on the sessions that are open at once.
const MAX_SESSIONS: usize = 1000;
/// Limit on the lines that wait for one session.
const LINE_QUEUE_LIMIT: usize = 256;

/// Creates sessions.
pub trait SessionHost: Send + Sync {
    /// Creates a session with an id that no other open session has. The error is a sentence for the client.
    fn open(&self, opening: OpenSession) -> BoxFuture<'static, Result<OpenedSession, String>>;
}

/// A session that was created and not started yet.
pub struct OpenedSession {
    pub id: String,
    pub session: Handle,
    /// The session file; `None` for a session in memory.
    pub file: Option<String>,
    /// The working directory.
    pub cwd: String,
    pub out: Outbox,
    /// Starts the session.
    pub serve: ServeSession,
}

/// Serves a session until its end. It receives its lines from the first channel; when that closes, it ends after its
/// current work. When the sender of the second channel is dropped, it stops at once.
pub type ServeSession =
    Box<dyn FnOnce(mpsc::Receiver<Input>, oneshot::Receiver<()>) -> BoxFuture<'static, ()> + Send>;

/// A client's connection to several sessions.
pub struct MultiSessionRpc {
    dialect: Dialect,
    host: Arc<dyn SessionHost>,
    /// The outbox for answers that belong to no session.
    common: Outbox,
    queue: Queue<Addressed>,
    /// The sessions that receive lines, by id.
    open: HashMap<String, SessionEntry>,
    /// Dropping a sender stops its session.
    stops: BTreeMap<u64, oneshot::Sender<()>>,
    /// Sessions that run or are being opened, and lists that are being made.
    tasks: FuturesUnordered<BoxFuture<'static, Finished>>,
    /// `open_session` commands that are not answered yet.
    opening: BTreeMap<u64, Request>,
    /// `close_session` commands that are not answered yet.
    closing: BTreeMap<u64, Request>,
    count: u64,
}

/// A session that receives lines.
struct SessionEntry {
    /// Distinguishes it from earlier and later sessions with the same id.
    number: u64,
    lines: mpsc::Sender<Input>,
    session: Handle,
    file: Option<String>,
    cwd: String,
    out: Outbox,
}

/// The result of a finished task.
enum Finished {
    Opened(u64, Result<OpenedSession, String>),
    Ended(u64, SessionEnd),
    Listed,
}

/// The end of a session.
struct SessionEnd {
    id: String,
    out: Outbox,
    /// It ended without a panic.
    orderly: bool,
}

impl MultiSessionRpc {
    /// Creates a connection without sessions that writes to `queue`.
    pub fn new(dialect: Dialect, queue: Queue<Addressed>, host: Arc<dyn SessionHost>) -> Self {
        Self {
            dialect,
            host,
            common: Outbox::common(queue.clone()),
            queue,
            open: HashMap::new(),
            stops: BTreeMap::new(),
            tasks: FuturesUnordered::new(),
            opening: BTreeMap::new(),
            closing: BTreeMap::new(),
            count: 0,
        }
    }

    /// Serves until the client closes its input or stops reading.
    pub async fn serve(&mut self, input: &mut mpsc::Receiver<Input>) -> RpcEnd {
        let queue = self.queue.clone();
        let broken = queue.broken();
        tokio::pin!(broken);
        loop {
            tokio::select! {
                biased;
                () = &mut broken => return RpcEnd::OutputClosed,
                Some(finished) = self.tasks.next(), if !self.tasks.is_empty() => self.finish(finished),
                received = input.recv() => match received {
                    Some(Input::Line(line)) => {
                        self.route(line);
                        queue.room_for_answers().await;
                    }
                    Some(Input::End) | None => return RpcEnd::EndOfInput,
                },
            }
        }
    }

    /// Closes the input of every session and waits until all have ended.
    pub async fn settle(&mut self) {
        self.open.clear();
        while let Some(finished) = self.tasks.next().await {
            self.finish(finished);
            self.open.clear();
        }
    }

    /// Stops every session and waits until they have ended.
    pub async fn stop(&mut self) {
        for (_, request) in std::mem::take(&mut self.opening) {
            self.reject(&request, "the program ends");
        }
        self.stops.clear();
        self.settle().await;
    }

    fn route(&mut self, line: InputLine) {
        let Some(Envelope { request, session }) = Envelope::of(&line) else {
            self.reject_line(&line);
            return;
        };
        let command = request.command.as_ref().and_then(Value::as_str);
        match (command, session) {
            (Some("open_session"), _) => self.open_session(request, &line),
            (Some("list_sessions"), _) => self.list_sessions(request),
            (Some("close_session"), Some(Value::String(id))) => self.close_session(request, &id),
            (_, Some(Value::String(id))) => self.forward(&request, &id, line),
            // Choices get no response, even if they are invalid.
            (Some("extension_ui_response"), _) => {}
            (_, None | Some(Value::Null)) => self.reject(
                &request,
                "sessionId is missing; open a session with open_session or see list_sessions",
            ),
            (_, Some(_)) => self.reject(&request, "sessionId must be a string"),
        }
    }

    fn open_session(&mut self, request: Request, line: &InputLine) {
        let opening =
            match parse(line, self.dialect).and_then(|command| OpenSession::read(&command)) {
                Ok(opening) => opening,
                Err(words) => return self.reject(&request, &words),
            };
        // A session that is being closed still uses its resources.
        if self.stops.len() + self.opening.len() + self.closing.len() >= MAX_SESSIONS {
            let words = format!(
                "{MAX_SESSIONS} sessions are open, which is the limit; close one with close_session"
            );
            return self.reject(&request, &words);
        }
        self.count += 1;
        let number = self.count;
        self.opening.insert(number, request);
        let opened = self.host.open(opening);
        self.tasks.push(Box::pin(
            async move { Finished::Opened(number, opened.await) },
        ));
    }

    /// Answers `open_session` and starts the session.
    fn opened(&mut self, number: u64, opened: OpenedSession, request: &Request) {
        let OpenedSession {
            id,
            session,
            file,
            cwd,
            out,
            serve,
        } = opened;
        let mut data = json!({ "sessionId": id });
        if let Some(file) = &file {
            data["sessionFile"] = json!(file);
        }
        data["cwd"] = json!(cwd);
        out.push(Out::Record(request.data(&data)));
        let (lines, input) = mpsc::channel(LINE_QUEUE_LIMIT);
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(serve(input, stopped));
        let ending = SessionEnd {
            id: id.clone(),
            out: out.clone(),
            orderly: true,
        };
        self.tasks.push(Box::pin(async move {
            let orderly = task.await.is_ok();
            Finished::Ended(number, SessionEnd { orderly, ..ending })
        }));
        self.stops.insert(number, stop);
        let open = SessionEntry {
            number,
            lines,
            session,
            file,
            cwd,
            out,
        };
        self.open.insert(id, open);
    }

    fn close_session(&mut self, request: Request, id: &str) {
        match self.open.remove(id) {
            None => self.reject_unknown(&request, id),
            Some(open) => {
                self.stops.remove(&open.number);
                self.closing.insert(open.number, request);
            }
        }
    }

    fn list_sessions(&self, request: Request) {
        let mut open: Vec<(&String, &SessionEntry)> = self.open.iter().collect();
        open.sort_by_key(|(_, open)| open.number);
        let sessions = open.into_iter().map(|(id, open)| {
            let listing = Listing::new(id, &open.cwd, open.file.as_deref());
            (listing, open.session.clone())
        });
        let sessions: Vec<(Listing, Handle)> = sessions.collect();
        let out = self.common.clone();
        self.tasks.push(Box::pin(async move {
            let sessions = listing::with_states(sessions).await;
            let data = json!({ "sessions": sessions });
            out.push(Out::Record(request.data(&data)));
            Finished::Listed
        }));
    }

    fn forward(&self, request: &Request, id: &str, line: InputLine) {
        let choice =
            request.command.as_ref().and_then(Value::as_str) == Some("extension_ui_response");
        let sent = match self.open.get(id) {
            None => Err(None),
            Some(open) => match open.lines.try_send(Input::Line(line)) {
                Ok(()) => Ok(()),
                Err(TrySendError::Full(_)) => Err(Some(&open.out)),
                Err(TrySendError::Closed(_)) => Err(None),
            },
        };
        match sent {
            Ok(()) => {}
            Err(_) if choice => {}
            Err(Some(out)) => {
                let words = format!(
                    "{LINE_QUEUE_LIMIT} commands wait for this session; send more when some are answered"
                );
                out.push(Out::Record(request.failure(&words)));
            }
            Err(None) => self.reject_unknown(request, id),
        }
    }

    fn finish(&mut self, finished: Finished) {
        match finished {
            Finished::Listed => {}
            Finished::Opened(number, opened) => {
                // A command that was rejected meanwhile gets no session.
                let Some(request) = self.opening.remove(&number) else {
                    return;
                };
                match opened {
                    Ok(opened) => self.opened(number, opened, &request),
                    Err(words) => self.reject(&request, &words),
                }
            }
            Finished::Ended(number, ending) => self.ended(number, &ending),
        }
    }

    fn ended(&mut self, number: u64, ending: &SessionEnd) {
        let stopped = self.stops.remove(&number).is_none();
        let ended_by_itself = self
            .open
            .get(&ending.id)
            .is_some_and(|open| open.number == number);
        if ended_by_itself {
            self.open.remove(&ending.id);
        }
        if let Some(request) = self.closing.remove(&number) {
            ending.out.push(Out::Record(request.done()));
        } else if ended_by_itself && !stopped {
            let reason = if ending.orderly { "ended" } else { "failed" };
            let event = json!({ "type": "session_closed", "reason": reason });
            let line = format!("{event}\n").into_bytes();
            ending.out.push(Out::Record(line));
        }
    }

    fn reject(&self, request: &Request, words: &str) {
        self.common.push(Out::Record(request.failure(words)));
    }

    fn reject_unknown(&self, request: &Request, id: &str) {
        let id = Value::from(id);
        let words = format!("there is no session {id}; list_sessions shows the open ones");
        self.reject(request, &words);
    }

    /// Answers a line that is not a command.
    fn reject_line(&self, line: &InputLine) {
        let answer = match decode(line, self.dialect) {
            Decoded::Rejected(answer) => answer,
            _ => Request::default().failure("the line is not a command"),
        };
        self.common.push(Out::Record(answer));
    }
}

impl std::fmt::Debug for MultiSessionRpc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MultiSessionRpc")
    }
}

impl std::fmt::Debug for OpenedSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenedSession")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}
