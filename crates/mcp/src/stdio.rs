//! A gateway on standard input and output: one message per line.
//!
//! Every request is answered once, unless the client cancels it. When the input ends, requests in flight have a moment
//! to finish; the others are cancelled, with an error to the client.

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

use crate::gateway::{Gateway, NotificationSink, RequestContext, report_changes};
use crate::in_flight::{InFlightRequest, InFlightRequests};
use crate::rpc::{self, Fault, Id, Incoming, MalformedMessage, Message, Request, code};
use crate::version::{self, BATCH_REVISION, Era};

/// The longest message that is read, in bytes.
const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;
/// Unwritten messages from which their senders wait.
const MAX_UNWRITTEN: usize = 16;
/// Bytes up to which short messages are written together.
const WRITE_BATCH_BYTES: usize = 64 * 1024;
/// Time for requests in flight to finish after the input has ended. Clients wait two seconds for the server to exit.
const SHUTDOWN_GRACE: Duration = Duration::from_millis(1500);
/// Time limit for writing the last answers.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

impl NotificationSink for mpsc::Sender<Bytes> {
    fn send(&self, message: Bytes) -> BoxFuture<'_, ()> {
        // Without a reader the message is lost; the end of the output is handled elsewhere.
        Box::pin(async { drop(mpsc::Sender::send(self, message).await) })
    }
}

/// Serves one client until its input ends or its output is closed. Only messages are written to `output`.
pub async fn stdio(
    gateway: Arc<Gateway>,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
) -> io::Result<()> {
    let (out, written) = write_to(output)?;
    let mut lines = read_lines(input, MAX_MESSAGE_BYTES);
    let mut client = Client {
        gateway,
        out: out.clone(),
        calls: InFlightRequests::default(),
        tasks: JoinSet::new(),
        ids: HashMap::new(),
        ending: CancellationToken::new(),
        watch: None,
        revision: None,
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
    let written = tokio::time::timeout(FLUSH_TIMEOUT, written).await;
    match written {
        Ok(Ok(written)) => written,
        // A client that neither reads nor exits must not block the exit of the gateway.
        Ok(Err(_)) | Err(_) => Ok(()),
    }
}

/// Writes on a separate thread, because writing may block as long as the client does not read.
fn write_to(
    mut output: impl Write + Send + 'static,
) -> io::Result<(mpsc::Sender<Bytes>, oneshot::Receiver<io::Result<()>>)> {
    let (out, mut messages) = mpsc::channel::<Bytes>(MAX_UNWRITTEN);
    let (over, written) = oneshot::channel();
    let mut write = move || {
        let mut batch = Vec::new();
        while let Some(message) = messages.blocking_recv() {
            batch.clear();
            batch.extend_from_slice(&message);
            batch.push(b'\n');
            while batch.len() < WRITE_BATCH_BYTES
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

struct Client {
    gateway: Arc<Gateway>,
    out: mpsc::Sender<Bytes>,
    calls: InFlightRequests,
    tasks: JoinSet<()>,
    /// The ids that each task answers, needed if the task panics.
    ids: HashMap<TaskId, Vec<Id>>,
    /// Cancelled when no more input will arrive.
    ending: CancellationToken,
    /// Reports changes of the tools.
    watch: Option<AbortOnDropHandle<()>>,
    /// The revision, once the client has sent `initialize`.
    revision: Option<&'static str>,
}

impl Client {
    async fn say(&self, message: Bytes) {
        NotificationSink::send(&self.out, message).await;
    }

    async fn line(&mut self, line: InputLine) {
        let line = match line {
            InputLine::Complete(line) => line,
            InputLine::TooLong { length } => {
                let message = format!(
                    "a message of {length} bytes is too long; the limit is {MAX_MESSAGE_BYTES}"
                );
                let fault = Fault::new(code::INVALID_REQUEST, message);
                return self.say(rpc::fault(None, &fault)).await;
            }
        };
        if line.trim_ascii().is_empty() {
            return;
        }
        match rpc::read(&line) {
            Incoming::One(message) => self.one(message).await,
            Incoming::Batch(messages) if self.revision == Some(BATCH_REVISION) => {
                self.batch(messages)
            }
            Incoming::Batch(_) => {
                let message = format!("batches are supported in revision {BATCH_REVISION} only");
                let fault = Fault::new(code::INVALID_REQUEST, message);
                self.say(rpc::fault(None, &fault)).await;
            }
        }
    }

    async fn one(&mut self, message: Result<Message, MalformedMessage>) {
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
                            NotificationSink::send(&out, answer).await;
                        }
                    });
                }
                Err(answer) => self.say(answer).await,
            },
            Ok(Message::Notification(notification)) => {
                self.calls.handle_notification(&notification)
            }
            // The gateway never sends requests to clients.
            Ok(Message::Response(_)) => {}
            Err(MalformedMessage { id, fault }) => self.say(rpc::fault(id.as_ref(), &fault)).await,
        }
    }

    fn batch(&mut self, messages: Vec<Result<Message, MalformedMessage>>) {
        let mut answers = Vec::new();
        let mut works = Vec::new();
        for message in messages {
            match message {
                Ok(Message::Request(request)) => match self.begin(request) {
                    Ok(work) => works.push(work),
                    Err(answer) => answers.push(answer),
                },
                Ok(Message::Notification(notification)) => {
                    self.calls.handle_notification(&notification)
                }
                Ok(Message::Response(_)) => {}
                Err(MalformedMessage { id, fault }) => {
                    answers.push(rpc::fault(id.as_ref(), &fault))
                }
            }
        }
        let out = self.out.clone();
        let ids = works.iter().map(|work| work.request.id.clone()).collect();
        self.spawn(ids, async move {
            let given = join_all(works.into_iter().map(PendingRequest::run)).await;
            answers.extend(given.into_iter().flatten());
            if !answers.is_empty() {
                NotificationSink::send(&out, array(&answers)).await;
            }
        });
    }

    fn initialize(&mut self, request: &Request) -> Result<Box<serde_json::value::RawValue>, Fault> {
        if self.revision.is_some() {
            let message = "initialize was answered already; send it only once";
            return Err(Fault::new(code::INVALID_REQUEST, message));
        }
        let (revision, answer) = self.gateway.initialize(request)?;
        self.revision = Some(revision);
        let (gateway, out) = (self.gateway.clone(), self.out.clone());
        let watch = tokio::spawn(async move {
            let tell = |message| NotificationSink::send(&out, message);
            report_changes(&gateway, tell).await;
        });
        self.watch = Some(AbortOnDropHandle::new(watch));
        Ok(answer)
    }

    /// Returns the work that answers a request, or the answer.
    fn begin(&self, request: Request) -> Result<PendingRequest, Bytes> {
        let refuse = |fault: &Fault| rpc::fault(Some(&request.id), fault);
        let era = version::era(request.params.as_deref()).map_err(|fault| refuse(&fault))?;
        let early = era == Era::Handshake && self.revision.is_none() && request.method != "ping";
        if early || request.method == "initialize" {
            let message = "initialize cannot be part of a batch; send it on its own";
            return Err(refuse(&Fault::new(code::INVALID_REQUEST, message)));
        }
        let in_flight = self
            .calls
            .begin(&request.id)
            .map_err(|fault| refuse(&fault))?;
        Ok(PendingRequest {
            gateway: self.gateway.clone(),
            request,
            era,
            in_flight,
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
                    "pinion failed while it answered this request"
                };
                let fault = Fault::new(code::INTERNAL, message);
                for id in self.ids.remove(&error.id()).unwrap_or_default() {
                    self.say(rpc::fault(Some(&id), &fault)).await;
                }
            }
        }
    }

    /// Ends the requests in flight after the last input.
    async fn end(&mut self) {
        self.ending.cancel();
        self.watch = None;
        let until = Instant::now() + SHUTDOWN_GRACE;
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
            let flushed = tokio::time::timeout(FLUSH_TIMEOUT, self.done(done)).await;
            if flushed.is_err() {
                return;
            }
        }
    }
}

/// One request to answer.
struct PendingRequest {
    gateway: Arc<Gateway>,
    request: Request,
    era: Era,
    in_flight: InFlightRequest,
    out: mpsc::Sender<Bytes>,
    ending: CancellationToken,
}

impl PendingRequest {
    /// Returns the answer; `None` if the client cancelled the request.
    async fn run(self) -> Option<Bytes> {
        let context = RequestContext {
            era: self.era,
            sink: Some(&self.out),
            ending: &self.ending,
        };
        tokio::select! {
            () = self.in_flight.cancelled.cancelled() => None,
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
