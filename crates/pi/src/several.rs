//! The RPC loop for several sessions: lines go to the session they name, and three commands open,
//! close and list sessions.
//!
//! The loop never waits for a session. Each has a task of its own, fed by a bounded channel; a session
//! whose channel is full refuses the line, and the others are not held up. What a session writes begins
//! with its id (see `lane.rs`); answers to lines that name no session do not.

mod envelope;
mod listing;
mod opening;

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
pub use self::opening::Opening;
use crate::decode::{Decoded, decode, parse};
use crate::dialect::Dialect;
use crate::lane::{Addressed, Outbox};
use crate::outgoing::{Out, Sink};
use crate::response::Asked;
use crate::rpc::RpcEnd;

/// How many sessions may be open at once.
const MAX_SESSIONS: usize = 1000;
/// How many lines may wait for a session.
const LINES_AHEAD: usize = 256;

/// Who makes sessions.
pub trait Host: Send + Sync {
    /// Makes a session under an id no other open one has; the error is for the client.
    fn open(&self, opening: Opening) -> BoxFuture<'static, Result<Tenant, String>>;
}

/// A session that was made and does nothing yet.
pub struct Tenant {
    /// What the client calls it.
    pub id: String,
    /// The session itself.
    pub session: Handle,
    /// Its file, if it has one.
    pub file: Option<String>,
    /// Where it works.
    pub cwd: String,
    /// Where it writes.
    pub out: Outbox,
    /// What happens from now on.
    pub life: Life,
}

/// Serves a session until everything of it is over. Its lines come on the channel; when that ends, it
/// ends once it has settled, and when the sender of the other one is gone, it is stopped.
pub type Life =
    Box<dyn FnOnce(mpsc::Receiver<Input>, oneshot::Receiver<()>) -> BoxFuture<'static, ()> + Send>;

/// A client's connection to several sessions.
pub struct Several {
    dialect: Dialect,
    host: Arc<dyn Host>,
    /// Where answers go that belong to no session.
    common: Outbox,
    queue: Queue<Addressed>,
    /// The sessions that take lines, by what the client calls them.
    open: HashMap<String, Open>,
    /// Dropping one stops its session.
    stops: BTreeMap<u64, oneshot::Sender<()>>,
    /// What happens beside the lines.
    beside: FuturesUnordered<BoxFuture<'static, Beside>>,
    /// `open_session` commands that are not answered yet.
    opening: BTreeMap<u64, Asked>,
    /// `close_session` commands that are not answered yet.
    closing: BTreeMap<u64, Asked>,
    count: u64,
}

/// A session that takes lines.
struct Open {
    /// Tells it from others that had or will have its id.
    number: u64,
    lines: mpsc::Sender<Input>,
    session: Handle,
    file: Option<String>,
    cwd: String,
    out: Outbox,
}

/// What is over.
enum Beside {
    Opened(u64, Result<Tenant, String>),
    Ended(u64, Ending),
    Listed,
}

/// The end of a session.
struct Ending {
    id: String,
    out: Outbox,
    /// It ended as it should.
    orderly: bool,
}

impl Several {
    /// No session yet; what is written goes to `queue`.
    pub fn new(dialect: Dialect, queue: Queue<Addressed>, host: Arc<dyn Host>) -> Self {
        Self {
            dialect,
            host,
            common: Outbox::common(queue.clone()),
            queue,
            open: HashMap::new(),
            stops: BTreeMap::new(),
            beside: FuturesUnordered::new(),
            opening: BTreeMap::new(),
            closing: BTreeMap::new(),
            count: 0,
        }
    }

    /// Serves until the client closes its end or stops reading.
    pub async fn serve(&mut self, input: &mut mpsc::Receiver<Input>) -> RpcEnd {
        let queue = self.queue.clone();
        let broken = queue.broken();
        tokio::pin!(broken);
        loop {
            tokio::select! {
                biased;
                () = &mut broken => return RpcEnd::OutputClosed,
                Some(over) = self.beside.next(), if !self.beside.is_empty() => self.over(over),
                received = input.recv() => match received {
                    Some(Input::Line(line)) => {
                        self.take(line);
                        queue.room_for_answers().await;
                    }
                    Some(Input::End) | None => return RpcEnd::EndOfInput,
                },
            }
        }
    }

    /// Waits until every session has settled and ended. No more lines come.
    pub async fn settle(&mut self) {
        self.open.clear();
        while let Some(over) = self.beside.next().await {
            self.over(over);
            self.open.clear();
        }
    }

    /// Stops every session and waits until they have ended.
    pub async fn stop(&mut self) {
        for (_, asked) in std::mem::take(&mut self.opening) {
            self.refuse(&asked, "the program ends");
        }
        self.stops.clear();
        self.settle().await;
    }

    fn take(&mut self, line: InputLine) {
        let Some(Envelope { asked, session }) = Envelope::of(&line) else {
            self.refuse_line(&line);
            return;
        };
        let command = asked.command.as_ref().and_then(Value::as_str);
        match (command, session) {
            (Some("open_session"), _) => self.open_session(asked, &line),
            (Some("list_sessions"), _) => self.list_sessions(asked),
            (Some("close_session"), Some(Value::String(id))) => self.close_session(asked, &id),
            (_, Some(Value::String(id))) => self.forward(&asked, &id, line),
            // Choices are not answered, whatever is wrong with them.
            (Some("extension_ui_response"), _) => {}
            (_, None | Some(Value::Null)) => self.refuse(
                &asked,
                "sessionId is missing; open a session with open_session or see list_sessions",
            ),
            (_, Some(_)) => self.refuse(&asked, "sessionId must be a string"),
        }
    }

    fn open_session(&mut self, asked: Asked, line: &InputLine) {
        let opening = match parse(line).and_then(|command| Opening::read(&command)) {
            Ok(opening) => opening,
            Err(words) => return self.refuse(&asked, &words),
        };
        // A session that is being closed still has what it is made of.
        if self.stops.len() + self.opening.len() + self.closing.len() >= MAX_SESSIONS {
            let words = format!(
                "{MAX_SESSIONS} sessions are open, which is the limit; close one with close_session"
            );
            return self.refuse(&asked, &words);
        }
        self.count += 1;
        let number = self.count;
        self.opening.insert(number, asked);
        let opened = self.host.open(opening);
        self.beside.push(Box::pin(
            async move { Beside::Opened(number, opened.await) },
        ));
    }

    /// Begins the life of a session, its answer first.
    fn opened(&mut self, number: u64, tenant: Tenant, asked: &Asked) {
        let Tenant {
            id,
            session,
            file,
            cwd,
            out,
            life,
        } = tenant;
        let mut data = json!({ "sessionId": id });
        if let Some(file) = &file {
            data["sessionFile"] = json!(file);
        }
        data["cwd"] = json!(cwd);
        out.push(Out::Record(asked.data(&data)));
        let (lines, input) = mpsc::channel(LINES_AHEAD);
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(life(input, stopped));
        let ending = Ending {
            id: id.clone(),
            out: out.clone(),
            orderly: true,
        };
        self.beside.push(Box::pin(async move {
            let orderly = task.await.is_ok();
            Beside::Ended(number, Ending { orderly, ..ending })
        }));
        self.stops.insert(number, stop);
        let open = Open {
            number,
            lines,
            session,
            file,
            cwd,
            out,
        };
        self.open.insert(id, open);
    }

    fn close_session(&mut self, asked: Asked, id: &str) {
        match self.open.remove(id) {
            None => self.refuse_unknown(&asked, id),
            Some(open) => {
                self.stops.remove(&open.number);
                self.closing.insert(open.number, asked);
            }
        }
    }

    fn list_sessions(&self, asked: Asked) {
        let mut open: Vec<(&String, &Open)> = self.open.iter().collect();
        open.sort_by_key(|(_, open)| open.number);
        let sessions = open.into_iter().map(|(id, open)| {
            let listing = Listing::new(id, &open.cwd, open.file.as_deref());
            (listing, open.session.clone())
        });
        let sessions: Vec<(Listing, Handle)> = sessions.collect();
        let out = self.common.clone();
        self.beside.push(Box::pin(async move {
            let sessions = listing::look(sessions).await;
            let data = json!({ "sessions": sessions });
            out.push(Out::Record(asked.data(&data)));
            Beside::Listed
        }));
    }

    fn forward(&self, asked: &Asked, id: &str, line: InputLine) {
        let choice =
            asked.command.as_ref().and_then(Value::as_str) == Some("extension_ui_response");
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
                    "{LINES_AHEAD} commands wait for this session; send more when some are answered"
                );
                out.push(Out::Record(asked.failure(&words)));
            }
            Err(None) => self.refuse_unknown(asked, id),
        }
    }

    fn over(&mut self, over: Beside) {
        match over {
            Beside::Listed => {}
            Beside::Opened(number, opened) => {
                // Whoever was refused meanwhile gets no session.
                let Some(asked) = self.opening.remove(&number) else {
                    return;
                };
                match opened {
                    Ok(tenant) => self.opened(number, tenant, &asked),
                    Err(words) => self.refuse(&asked, &words),
                }
            }
            Beside::Ended(number, ending) => self.ended(number, &ending),
        }
    }

    fn ended(&mut self, number: u64, ending: &Ending) {
        let stopped = self.stops.remove(&number).is_none();
        let of_itself = self
            .open
            .get(&ending.id)
            .is_some_and(|open| open.number == number);
        if of_itself {
            self.open.remove(&ending.id);
        }
        if let Some(asked) = self.closing.remove(&number) {
            ending.out.push(Out::Record(asked.done()));
        } else if of_itself && !stopped {
            let reason = match ending.orderly {
                true => "ended",
                false => "failed",
            };
            let event = json!({ "type": "session_closed", "reason": reason });
            let line = format!("{event}\n").into_bytes();
            ending.out.push(Out::Record(line));
        }
    }

    fn refuse(&self, asked: &Asked, words: &str) {
        self.common.push(Out::Record(asked.failure(words)));
    }

    fn refuse_unknown(&self, asked: &Asked, id: &str) {
        let id = Value::from(id);
        let words = format!("there is no session {id}; list_sessions tells which are open");
        self.refuse(asked, &words);
    }

    /// Answers a line that is no command.
    fn refuse_line(&self, line: &InputLine) {
        let answer = match decode(line, self.dialect) {
            Decoded::Refused(answer) => answer,
            _ => Asked::default().failure("the line is not a command"),
        };
        self.common.push(Out::Record(answer));
    }
}

impl std::fmt::Debug for Several {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Several")
    }
}

impl std::fmt::Debug for Tenant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tenant")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}
