//! A gateway on standard input and output: one message a line.
//!
//! Every request is answered once, unless the client takes it back. When the input ends, what is being answered gets a moment
//! to finish; what does not is cancelled, and the client is told so.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use futures_util::future::{BoxFuture, join_all};
use pinion_jsonl::{Input, InputLine, read_lines};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{Id as TaskId, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::calls::{Calls, Underway};
use crate::gateway::{Context, Gateway, Outlet, tell_changes};
use crate::rpc::{self, Fault, Id, Incoming, Message, Request, Wrong, code};
use crate::version::{self, BATCHES, Era};

/// The longest message that is read.
const LINE: usize = 16 * 1024 * 1024;
/// Messages that wait to be written; who has more waits too.
const AHEAD: usize = 16;
/// Short messages that wait are written together up to this.
const BATCH: usize = 64 * 1024;
/// What is being answered when the input ends may take so long. Clients wait two seconds for us to end.
const GRACE: Duration = Duration::from_millis(1500);
/// How long the last answers may take to be written.
const LAST_WORDS: Duration = Duration::from_secs(5);

impl Outlet for mpsc::Sender<Bytes> {
    fn send(&self, message: Bytes) -> BoxFuture<'_, ()> {
        // Without a reader there is nobody to tell; the end is seen elsewhere.
        Box::pin(async { drop(mpsc::Sender::send(self, message).await) })
    }
}

/// Serves one client until its input ends or nobody reads the output. Only messages are written to `output`.
pub async fn stdio(
    gateway: Arc<Gateway>,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
) -> io::Result<()> {
    let (out, written) = write_to(output)?;
    let mut lines = read_lines(input, LINE);
    let mut client = Client {
        gateway,
        out: out.clone(),
        calls: Calls::default(),
        tasks: JoinSet::new(),
        ids: HashMap::new(),
        ending: CancellationToken::new(),
        watch: None,
        agreed: None,
    };
    loop {
        tokio::select! {
            input = lines.recv() => match input {
                Some(Input::Line(line)) => client.line(line).await,
                Some(Input::End) | None => break,
            },
            Some(done) = client.tasks.join_next_with_id() => client.done(done).await,
            () = out.closed() => break,
        }
    }
    client.end().await;
    drop((client, out));
    let written = tokio::time::timeout(LAST_WORDS, written).await;
    match written {
        Ok(Ok(written)) => written,
        // A client that neither reads nor goes away does not hold us.
        Ok(Err(_)) | Err(_) => Ok(()),
    }
}

/// Writes on a thread of its own: writing may block for as long as the reader likes.
fn write_to(
    mut output: impl Write + Send + 'static,
) -> io::Result<(mpsc::Sender<Bytes>, oneshot::Receiver<io::Result<()>>)> {
    let (out, mut messages) = mpsc::channel::<Bytes>(AHEAD);
    let (over, written) = oneshot::channel();
    let mut write = move || {
        let mut batch = Vec::new();
        while let Some(message) = messages.blocking_recv() {
            batch.clear();
            batch.extend_from_slice(&message);
            batch.push(b'\n');
            while batch.len() < BATCH
                && let Ok(message) = messages.try_recv()
            {
                batch.extend_from_slice(&message);
                batch.push(b'\n');
            }
            output.write_all(&batch)?;
            output.flush()?;
        }
        Ok(())
    };
    std::thread::Builder::new()
        .name("writer".into())
        .stack_size(128 * 1024)
        .spawn(move || {
            let end = write();
            drop(write);
            let _ = over.send(end);
        })?;
    Ok((out, written))
}

/// The client at the other end.
struct Client {
    gateway: Arc<Gateway>,
    out: mpsc::Sender<Bytes>,
    calls: Calls,
    tasks: JoinSet<()>,
    /// What each task answers, for the case that it fails to.
    ids: HashMap<TaskId, Vec<Id>>,
    /// No more input will come.
    ending: CancellationToken,
    /// Tells of changes of the tools.
    watch: Option<AbortOnDropHandle<()>>,
    /// The revision, once the client has begun with `initialize`.
    agreed: Option<&'static str>,
}

impl Client {
    async fn say(&self, message: Bytes) {
        Outlet::send(&self.out, message).await;
    }

    async fn line(&mut self, line: InputLine) {
        let line = match line {
            InputLine::Complete(line) => line,
            InputLine::TooLong { length } => {
                let message = format!("a message of {length} bytes is too long; {LINE} are taken");
                let fault = Fault::new(code::INVALID_REQUEST, message);
                return self.say(rpc::fault(None, &fault)).await;
            }
        };
        if line.trim_ascii().is_empty() {
            return;
        }
        match rpc::read(&line) {
            Incoming::One(message) => self.one(message).await,
            Incoming::Batch(messages) if self.agreed == Some(BATCHES) => self.batch(messages),
            Incoming::Batch(_) => {
                let message = format!("batches are taken in revision {BATCHES} only");
                let fault = Fault::new(code::INVALID_REQUEST, message);
                self.say(rpc::fault(None, &fault)).await;
            }
        }
    }

    async fn one(&mut self, message: Result<Message, Wrong>) {
        match message {
            Ok(Message::Request(request)) if request.method == "initialize" => {
                let answer = self.initialize(&request);
                self.say(rpc::answer(&request.id, &answer)).await;
            }
            Ok(Message::Request(request)) => match self.begin(request) {
                Ok(work) => {
                    let out = self.out.clone();
                    let ids = vec![work.request.id.clone()];
                    self.spawn(ids, async move {
                        if let Some(answer) = work.run().await {
                            Outlet::send(&out, answer).await;
                        }
                    });
                }
                Err(answer) => self.say(answer).await,
            },
            Ok(Message::Notification(notification)) => self.calls.heed(&notification),
            // Nothing is ever asked of clients.
            Ok(Message::Response(_)) => {}
            Err(Wrong { id, fault }) => self.say(rpc::fault(id.as_ref(), &fault)).await,
        }
    }

    fn batch(&mut self, messages: Vec<Result<Message, Wrong>>) {
        let mut answers = Vec::new();
        let mut works = Vec::new();
        for message in messages {
            match message {
                Ok(Message::Request(request)) => match self.begin(request) {
                    Ok(work) => works.push(work),
                    Err(answer) => answers.push(answer),
                },
                Ok(Message::Notification(notification)) => self.calls.heed(&notification),
                Ok(Message::Response(_)) => {}
                Err(Wrong { id, fault }) => answers.push(rpc::fault(id.as_ref(), &fault)),
            }
        }
        let out = self.out.clone();
        let ids = works.iter().map(|work| work.request.id.clone()).collect();
        self.spawn(ids, async move {
            let given = join_all(works.into_iter().map(Work::run)).await;
            answers.extend(given.into_iter().flatten());
            if !answers.is_empty() {
                Outlet::send(&out, array(&answers)).await;
            }
        });
    }

    fn initialize(&mut self, request: &Request) -> Result<Box<serde_json::value::RawValue>, Fault> {
        if self.agreed.is_some() {
            let message = "initialize was answered already; it begins a conversation";
            return Err(Fault::new(code::INVALID_REQUEST, message));
        }
        let (agreed, answer) = self.gateway.initialize(request)?;
        self.agreed = Some(agreed);
        let (gateway, out) = (self.gateway.clone(), self.out.clone());
        let watch = tokio::spawn(async move {
            let tell = |message| Outlet::send(&out, message);
            tell_changes(&gateway, tell).await;
        });
        self.watch = Some(AbortOnDropHandle::new(watch));
        Ok(answer)
    }

    /// What must be done to answer a request, or the answer.
    fn begin(&self, request: Request) -> Result<Work, Bytes> {
        let refuse = |fault: &Fault| rpc::fault(Some(&request.id), fault);
        let era = version::era(request.params.as_deref()).map_err(|fault| refuse(&fault))?;
        let early = era == Era::Handshake && self.agreed.is_none() && request.method != "ping";
        if early || request.method == "initialize" {
            let message = "a conversation begins with initialize, on its own";
            return Err(refuse(&Fault::new(code::INVALID_REQUEST, message)));
        }
        let underway = self
            .calls
            .begin(&request.id)
            .map_err(|fault| refuse(&fault))?;
        Ok(Work {
            gateway: self.gateway.clone(),
            request,
            era,
            underway,
            out: self.out.clone(),
            ending: self.ending.clone(),
        })
    }

    fn spawn(&mut self, ids: Vec<Id>, work: impl Future<Output = ()> + Send + 'static) {
        let task = self.tasks.spawn(work);
        self.ids.insert(task.id(), ids);
    }

    async fn done(&mut self, done: Result<(TaskId, ()), tokio::task::JoinError>) {
        match done {
            Ok((task, ())) => drop(self.ids.remove(&task)),
            Err(error) => {
                let message = if error.is_cancelled() {
                    "the input ended before the answer was there"
                } else {
                    "answering failed in a way that is our fault"
                };
                let fault = Fault::new(code::INTERNAL, message);
                for id in self.ids.remove(&error.id()).unwrap_or_default() {
                    self.say(rpc::fault(Some(&id), &fault)).await;
                }
            }
        }
    }

    /// No more input comes: what is being answered ends.
    async fn end(&mut self) {
        self.ending.cancel();
        self.watch = None;
        let until = Instant::now() + GRACE;
        loop {
            tokio::select! {
                done = self.tasks.join_next_with_id() => match done {
                    Some(done) => self.done(done).await,
                    None => return,
                },
                () = self.out.closed() => break,
                () = tokio::time::sleep_until(until) => break,
            }
        }
        self.tasks.abort_all();
        while let Some(done) = self.tasks.join_next_with_id().await {
            let told = tokio::time::timeout(LAST_WORDS, self.done(done)).await;
            if told.is_err() {
                return;
            }
        }
    }
}

/// One request to answer.
struct Work {
    gateway: Arc<Gateway>,
    request: Request,
    era: Era,
    underway: Underway,
    out: mpsc::Sender<Bytes>,
    ending: CancellationToken,
}

impl Work {
    /// The answer; `None` if the client does not want it any more.
    async fn run(self) -> Option<Bytes> {
        let context = Context {
            era: self.era,
            outlet: Some(&self.out),
            ending: &self.ending,
        };
        tokio::select! {
            () = self.underway.cancelled.cancelled() => None,
            answer = self.gateway.answer(&self.request, context) => {
                Some(rpc::answer(&self.request.id, &answer))
            }
        }
    }
}

fn array(answers: &[Bytes]) -> Bytes {
    let mut array = BytesMut::new();
    for answer in answers {
        array.put_u8(if array.is_empty() { b'[' } else { b',' });
        array.put_slice(answer);
    }
    array.put_u8(b']');
    array.freeze()
}
