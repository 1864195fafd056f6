//! Clips of providers, as endpoints.

use std::mem;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{Stream, StreamExt, stream};
use pinion_clip::data::{DataAnswer, DataOperation};
use pinion_clip::logs::ClipLog;
use pinion_clip::manifest::Manifest;
use pinion_clip::web::{WebAnswer, WebRequest};
use pinion_clip::{CallError, ClipState, Snapshot, Status};
use pinion_proto::Text;
use pinion_proto::hub::hub_message::Payload;
use pinion_proto::hub::{DataCommand, GetClipWebCommand, InvokeCommand, InvokeInput};
use pinion_status::{Code, Failure};
use tokio::sync::{oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::Sleep;

use super::incoming::Dialect;
use super::pending_call::{PendingCall, disconnected};
use super::session::{FileRequest, Session};
use crate::convert::{data_answer, failure, operation_name, text};
use crate::endpoint::{
    Answers, DeadlineOrigin, Endpoint, HubCall, Input, InputPart, PartPosition, failed,
};
use crate::input::first_value;

pub(super) struct RemoteClip {
    session: Arc<Session>,
    /// The provider's own name for the clip.
    pub(super) name: String,
    guarded: bool,
    snapshot: watch::Sender<Snapshot>,
    log: OnceLock<Arc<ClipLog>>,
}

impl std::fmt::Debug for RemoteClip {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("RemoteClip")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl RemoteClip {
    pub(super) fn new(
        session: Arc<Session>,
        name: String,
        manifest: Manifest,
        guarded: bool,
        earlier: Option<&Self>,
        log: Option<Arc<ClipLog>>,
    ) -> Self {
        let status = earlier.map_or_else(
            || Status {
                state: ClipState::Running,
                message: String::new(),
            },
            |it| it.snapshot.borrow().status.clone(),
        );
        let log = earlier.and_then(Self::log_so_far).or(log);
        Self {
            session,
            name,
            guarded,
            snapshot: watch::Sender::new(Snapshot {
                status,
                manifest: manifest.into(),
            }),
            log: log.map_or_else(OnceLock::new, OnceLock::from),
        }
    }

    pub(super) fn set_status(&self, status: Status) {
        self.snapshot.send_modify(|it| it.status = status);
    }

    pub(super) fn own_log(&self) -> &Arc<ClipLog> {
        self.log.get_or_init(|| Arc::new(ClipLog::in_memory()))
    }

    /// Returns the log, if it was read or written before.
    pub(super) fn log_so_far(&self) -> Option<Arc<ClipLog>> {
        self.log.get().cloned()
    }

    /// Reopens the log that was closed when the clip's earlier session was lost.
    pub(super) fn reopen_log(&self) {
        if let Some(log) = self.log.get() {
            log.reopen();
        }
    }

    /// Closes the log, which ends the streams of its readers.
    pub(super) fn close_log(&self) {
        if let Some(log) = self.log.get() {
            log.close();
        }
    }

    async fn ask<T>(
        &self,
        command: impl FnOnce(Text) -> (Payload, usize),
        request: impl FnOnce(oneshot::Sender<Result<T, Failure>>) -> FileRequest,
        limit: Duration,
    ) -> Result<T, Failure> {
        let id: Text = uuid::Uuid::new_v4().to_string().into();
        let (sender, answer) = oneshot::channel();
        self.session.add_request(id.clone(), request(sender))?;
        let _guard = RemoveOnDrop(&self.session, id.clone());
        let asking = async {
            let (payload, size) = command(id);
            if !self.session.send(payload, size).await {
                return Err(disconnected());
            }
            answer.await.unwrap_or_else(|_| Err(disconnected()))
        };
        match tokio::time::timeout(limit, asking).await {
            Ok(answer) => answer,
            Err(_) => Err(Failure::new(
                Code::DeadlineExceeded,
                format!("the provider of clip \"{}\" did not answer", self.name),
            )),
        }
    }

    /// Sends the command to the provider, then further input as it arrives.
    fn start(self: Arc<Self>, call: HubCall) -> Answers {
        let session = &self.session;
        let pending = match session.begin_call(call.deadline) {
            Ok(pending) => pending,
            Err(failure) => return failed(CallError::Unanswered(failure)),
        };
        let size = call.input.len();
        let command = Payload::InvokeCommand(InvokeCommand {
            request_id: pending.id.clone(),
            clip_name: text(&self.name),
            command: call.command.into(),
            input: call.input,
            clip_token: call.secret.map(Text::from).unwrap_or_default(),
            timeout_ms: match call.deadline_origin {
                DeadlineOrigin::Caller => pending.time_left(),
                DeadlineOrigin::Hub => 0,
            },
            open_input: call.more.is_some(),
        });
        let mut answers = RemoteAnswers {
            sending: None,
            more: call.more,
            feeding: None,
            timer: pending
                .deadline
                .map(|deadline| Box::pin(tokio::time::sleep_until(deadline))),
            finished: false,
            session: session.clone(),
            pending,
        };
        match session.send_now(command, size) {
            None => answers.send_input(),
            Some((message, size)) => {
                let session = session.clone();
                let sending = async move { session.queue.put(message, size).await };
                answers.sending = Some(Box::pin(sending));
            }
        }
        Box::pin(answers)
    }

    fn check_serves_files(&self) -> Result<(), Failure> {
        match self.session.dialect() {
            Dialect::Register => Ok(()),
            Dialect::Typed => Err(Failure::new(
                Code::Unimplemented,
                format!(
                    "the provider of clip \"{}\" does not serve files",
                    self.name
                ),
            )),
        }
    }
}

/// Removes a request when its caller stops waiting.
struct RemoveOnDrop<'a>(&'a Session, Text);

impl Drop for RemoveOnDrop<'_> {
    fn drop(&mut self) {
        self.0.take_request(&self.1);
    }
}

impl Endpoint for RemoteClip {
    fn snapshot(&self) -> Snapshot {
        self.snapshot.borrow().clone()
    }

    fn watch(&self) -> Option<watch::Receiver<Snapshot>> {
        Some(self.snapshot.subscribe())
    }

    fn accepts(&self, command: &str) -> bool {
        self.snapshot.borrow().manifest.accepts(command)
    }

    fn is_guarded(&self) -> bool {
        self.guarded
    }

    fn invoke(self: Arc<Self>, mut call: HubCall) -> Answers {
        let manifest = self.snapshot.borrow().manifest.clone();
        let has_schema = || manifest.has_schema(&call.command);
        let Some(more) = call.more.take_if(|_| has_schema()) else {
            return self.start(call);
        };
        // The schema describes the first value of the input; the parts behind it stay a stream.
        let first = mem::take(&mut call.input);
        let checked = async move {
            let started = first_value(first, more).await.and_then(|started| {
                manifest.check_input(&call.command, &started.text[..started.length])?;
                Ok(started)
            });
            match started {
                Ok(started) => {
                    call.input = started.text;
                    call.more = started.rest;
                    self.start(call)
                }
                Err(failure) => failed(CallError::Unanswered(failure)),
            }
        };
        Box::pin(stream::once(checked).flatten())
    }

    fn data(
        &self,
        path: String,
        operation: DataOperation,
    ) -> BoxFuture<'_, Result<DataAnswer, Failure>> {
        let answer = self.ask_for_data(path, operation);
        Box::pin(async { answer.await.map_err(CallError::into_failure) })
    }

    fn ask_for_data(
        &self,
        path: String,
        operation: DataOperation,
    ) -> BoxFuture<'_, Result<DataAnswer, CallError>> {
        Box::pin(async move {
            self.check_serves_files().map_err(CallError::Unanswered)?;
            let name = operation_name(&operation);
            let (content, mime) = match operation {
                DataOperation::Write { content, mime } => (content, mime),
                _ => Default::default(),
            };
            let size = content.len();
            let command = |id| {
                let command = DataCommand {
                    request_id: id,
                    clip_name: text(&self.name),
                    operation: name.into(),
                    path: path.into(),
                    content,
                    mime: mime.into(),
                };
                (Payload::DataCommand(command), size)
            };
            let result = self.ask(command, FileRequest::Data, self.session.limits.data_timeout);
            let result = result.await.map_err(CallError::Unanswered)?;
            data_answer(name, result).map_err(CallError::Answered)
        })
    }

    fn web(&self, request: WebRequest) -> BoxFuture<'_, Result<WebAnswer, Failure>> {
        Box::pin(async move {
            if !self.snapshot.borrow().manifest.has_web {
                let message = format!("clip \"{}\" web unavailable", self.name);
                return Err(Failure::new(Code::NotFound, message));
            }
            self.check_serves_files()?;
            let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
            let command = |id| {
                let command = GetClipWebCommand {
                    request_id: id,
                    clip_name: text(&self.name),
                    path: request.path.into(),
                    offset: number(request.offset),
                    length: number(request.length),
                    if_none_match: request.if_none_match.into(),
                };
                (Payload::GetClipWebCommand(command), 0)
            };
            let result = self
                .ask(command, FileRequest::Web, self.session.limits.web_timeout)
                .await?;
            if let Some(error) = &result.error {
                return Err(failure(error));
            }
            Ok(WebAnswer {
                content: result.content,
                content_type: result.content_type.to_string().into(),
                etag: result.etag.to_string(),
                total_size: u64::try_from(result.total_size).unwrap_or_default(),
                not_modified: result.not_modified,
                is_fallback: false,
            })
        })
    }

    fn log(&self) -> Option<Arc<ClipLog>> {
        Some(self.own_log().clone())
    }
}

/// The answer to a call. Dropping it cancels the call.
struct RemoteAnswers {
    session: Arc<Session>,
    pending: Arc<PendingCall>,
    /// The command while there is no room for it in the queue.
    sending: Option<BoxFuture<'static, bool>>,
    /// Further input, until the command was sent.
    more: Option<Input>,
    feeding: Option<AbortHandle>,
    timer: Option<Pin<Box<Sleep>>>,
    finished: bool,
}

impl RemoteAnswers {
    /// Sends further input in a separate task, because the answer is only polled while its caller reads.
    fn send_input(&mut self) {
        if let Some(more) = self.more.take() {
            let sending = send_input(self.session.clone(), self.pending.clone(), more);
            self.feeding = Some(tokio::spawn(sending).abort_handle());
        }
    }
}

async fn send_input(session: Arc<Session>, pending: Arc<PendingCall>, mut more: Input) {
    loop {
        // A part that is marked as the last is sent as such; if the stream ends without a mark, an empty last part
        // follows.
        let part = match more.next().await.transpose() {
            Ok(part) => part.unwrap_or_else(|| InputPart::new(Bytes::new(), true)),
            Err(failure) => return session.cancel_call(&pending, failure),
        };
        let (data, done) = (part.data, part.position == PartPosition::Last);
        let size = data.len();
        let input = InvokeInput {
            request_id: pending.id.clone(),
            data,
            done,
        };
        if !session.send(Payload::InvokeInput(input), size).await || done {
            return;
        }
    }
}

impl Stream for RemoteAnswers {
    type Item = Result<Bytes, CallError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let answers = self.get_mut();
        if answers.finished {
            return Poll::Ready(None);
        }
        if let Some(sending) = &mut answers.sending
            && sending.as_mut().poll(context).is_ready()
        {
            answers.sending = None;
            answers.send_input();
        }
        if let Poll::Ready(item) = answers.pending.poll(context) {
            answers.finished = !matches!(item, Some(Ok(_)));
            answers.session.room.notify_one();
            return Poll::Ready(item);
        }
        let timer = answers.timer.as_mut();
        if timer.is_none_or(|timer| timer.as_mut().poll(context).is_pending()) {
            return Poll::Pending;
        }
        answers.finished = true;
        let failure = Failure::new(
            Code::DeadlineExceeded,
            "the provider did not answer in time",
        );
        answers
            .session
            .cancel_call(&answers.pending, failure.clone());
        Poll::Ready(Some(Err(CallError::Unanswered(failure))))
    }
}

impl Drop for RemoteAnswers {
    fn drop(&mut self) {
        if let Some(feeding) = &self.feeding {
            feeding.abort();
        }
        if !self.finished {
            let failure = Failure::new(Code::Canceled, "the caller went away");
            match self.sending {
                // The provider never received the call, so it needs no cancellation.
                Some(_) => self.session.remove_call(&self.pending),
                None => self.session.cancel_call(&self.pending, failure),
            }
        }
    }
}
