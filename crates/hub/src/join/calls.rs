//! Calls and file requests that arrive over a stream, each in its own task.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, stream};
use pinion_access::Principal;
use pinion_clip::CallError;
use pinion_clip::data::DataOperation;
use pinion_clip::web::WebRequest;
use pinion_proto::Text;
use pinion_proto::hub::hub_message::Payload as FromHub;
use pinion_proto::hub::provider_message::Payload as ToHub;
use pinion_proto::hub::{
    DataCommand, DataResult, GetClipWebCommand, GetClipWebResult, InvokeCommand, InvokeInput,
    InvokeResult,
};
use pinion_status::{Code, Failure};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::link::Outgoing;
use super::offer::Offer;
use crate::convert::{data_response, hub_error, text};
use crate::endpoint::{Endpoint, HubCall, Input, InputPart};
use crate::limits::Limits;
use crate::queue::Queue;

/// The calls of one stream. They are cancelled when this is dropped.
#[derive(Debug)]
pub(super) struct Calls {
    offer: Arc<dyn Offer>,
    queue: Arc<Queue<Outgoing>>,
    limits: Arc<Limits>,
    running: Arc<Mutex<HashMap<Text, Running>>>,
}

#[derive(Debug)]
struct Running {
    cancel: CancellationToken,
    /// Accepts further input, until the input is complete.
    feed: Option<mpsc::Sender<Result<InputPart, Failure>>>,
}

impl Drop for Calls {
    fn drop(&mut self) {
        for running in self.running().values() {
            running.cancel.cancel();
        }
    }
}

impl Calls {
    pub(super) fn new(
        offer: Arc<dyn Offer>,
        queue: Arc<Queue<Outgoing>>,
        limits: Arc<Limits>,
    ) -> Arc<Self> {
        Arc::new(Self {
            offer,
            queue,
            limits,
            running: Arc::default(),
        })
    }

    fn running(&self) -> MutexGuard<'_, HashMap<Text, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the work for a message of the hub. Returns at once.
    pub(super) fn handle(&self, message: FromHub) {
        match message {
            FromHub::InvokeCommand(command) => self.invoke(command),
            FromHub::InvokeInput(input) => self.feed(input),
            FromHub::InvokeCancel(cancel) => {
                if let Some(running) = self.running().remove(&cancel.request_id) {
                    running.cancel.cancel();
                }
            }
            FromHub::GetClipWebCommand(command) => {
                let found = self.find(&command.clip_name);
                let id = command.request_id.clone();
                self.start(id, None, |_| web(found, command));
            }
            FromHub::DataCommand(command) => {
                let found = self.find(&command.clip_name);
                let id = command.request_id.clone();
                self.start(id, None, |_| data(found, command));
            }
            FromHub::RegisterResponse(_) | FromHub::Pong(_) | FromHub::ProviderHello(_) => {}
        }
    }

    fn find(&self, name: &str) -> Result<Arc<dyn Endpoint>, Failure> {
        let name = name.trim();
        if name.is_empty() {
            return Err(Failure::invalid("clip_name is required"));
        }
        self.offer.get(name).ok_or_else(|| Failure::no_clip(name))
    }

    /// Runs `work`, whose result is the answer to `id`, unless it is cancelled.
    fn start<F>(
        &self,
        id: Text,
        feed: Option<mpsc::Sender<Result<InputPart, Failure>>>,
        work: impl FnOnce(Arc<Queue<Outgoing>>) -> F,
    ) where
        F: Future<Output = ToHub> + Send + 'static,
    {
        let cancel = CancellationToken::new();
        {
            let mut running = self.running();
            if running.contains_key(&id) {
                return;
            }
            let cancel = cancel.clone();
            running.insert(id.clone(), Running { cancel, feed });
        }
        let (queue, running) = (self.queue.clone(), self.running.clone());
        let work = work(queue.clone());
        tokio::spawn(async move {
            let answering = async {
                let reply = work.await;
                let size = queue_size(&reply);
                queue.put(reply.into(), size).await;
            };
            tokio::select! {
                () = cancel.cancelled() => {}
                () = answering => {}
            }
            let mut running = running.lock().unwrap_or_else(PoisonError::into_inner);
            running.remove(&id);
        });
    }

    fn invoke(&self, command: InvokeCommand) {
        let id = command.request_id.clone();
        let found = self.find(&command.clip_name).and_then(|endpoint| {
            let most = self.limits.calls;
            if command.command.trim().is_empty() {
                Err(Failure::invalid("command is required"))
            } else if self.running().len() >= most {
                let message = format!("{most} calls are running already; try again later");
                Err(Failure::new(Code::ResourceExhausted, message))
            } else {
                Ok(endpoint)
            }
        });
        let (feed, more) = if command.open_input {
            let (feed, input) = mpsc::channel(self.limits.chunks);
            let next = |mut input: mpsc::Receiver<_>| async move {
                let part = input.recv().await?;
                Some((part, input))
            };
            let more: Input = Box::pin(stream::unfold(input, next));
            (Some(feed), Some(more))
        } else {
            (None, None)
        };
        self.start(id, feed, |queue| answer(queue, found, command, more));
    }

    fn feed(&self, input: InvokeInput) {
        let mut running = self.running();
        let Some(call) = running.get_mut(&input.request_id) else {
            return;
        };
        let Some(feed) = &call.feed else {
            return;
        };
        let fed = if input.data.is_empty() {
            Ok(())
        } else {
            feed.try_send(Ok(InputPart::new(input.data, input.done)))
        };
        if matches!(fed, Err(mpsc::error::TrySendError::Full(_))) {
            // Waiting for this call would delay all the others.
            call.cancel.cancel();
            running.remove(&input.request_id);
            drop(running);
            let message = "input arrives faster than the clip reads it";
            let failure = Failure::new(Code::ResourceExhausted, message);
            let reply = result(input.request_id, Bytes::new(), Some(&failure), true);
            self.queue.push(reply.into());
        } else if input.done {
            call.feed = None;
        }
    }
}

fn queue_size(reply: &ToHub) -> usize {
    256 + match reply {
        ToHub::InvokeResult(result) => result.output.len(),
        ToHub::GetClipWebResult(result) => result.content.len(),
        ToHub::DataResult(result) => result.content.len(),
        _ => 0,
    }
}

fn result(id: Text, output: Bytes, failure: Option<&Failure>, done: bool) -> ToHub {
    ToHub::InvokeResult(InvokeResult {
        request_id: id,
        output,
        error: failure.map(hub_error),
        done,
    })
}

/// Calls a clip and sends its outputs. Returns the last message of the answer.
async fn answer(
    queue: Arc<Queue<Outgoing>>,
    found: Result<Arc<dyn Endpoint>, Failure>,
    command: InvokeCommand,
    more: Option<Input>,
) -> ToHub {
    let id = command.request_id;
    let endpoint = match found {
        Ok(endpoint) => endpoint,
        Err(failure) => return result(id, Bytes::new(), Some(&failure), true),
    };
    let input = if command.input.is_empty() && more.is_none() {
        Bytes::from_static(b"{}")
    } else {
        command.input
    };
    // The other hub has authenticated the caller and permitted the call.
    let mut call = HubCall::new(Principal::Guest, command.command.trim(), input);
    call.more = more;
    call.secret = Some(command.clip_token.to_string()).filter(|secret| !secret.is_empty());
    call.deadline = u64::try_from(command.timeout_ms)
        .ok()
        .filter(|left| *left > 0)
        .and_then(|left| Instant::now().checked_add(Duration::from_millis(left)));
    if let Err(failure) = endpoint.check(&call) {
        return result(id, Bytes::new(), Some(&failure), true);
    }
    let mut answers = endpoint.invoke(call);
    let mut next = answers.next().await;
    loop {
        let output = match next {
            None => return result(id, Bytes::new(), None, true),
            Some(Err(error)) => {
                let failure = CallError::into_failure(error);
                return result(id, Bytes::new(), Some(&failure), true);
            }
            Some(Ok(output)) => output,
        };
        // The last part of an answer is marked as such if the end is known already.
        let following = answers.next().now_or_never();
        if let Some(None) = following {
            return result(id, output, None, true);
        }
        let part = result(id.clone(), output, None, false);
        let size = queue_size(&part);
        queue.put(part.into(), size).await;
        next = match following {
            Some(item) => item,
            None => answers.next().await,
        };
    }
}

async fn web(found: Result<Arc<dyn Endpoint>, Failure>, command: GetClipWebCommand) -> ToHub {
    let request = WebRequest {
        path: command.path.to_string(),
        if_none_match: command.if_none_match.to_string(),
        offset: u64::try_from(command.offset).unwrap_or_default(),
        length: u64::try_from(command.length).unwrap_or_default(),
    };
    let file = match found {
        Ok(endpoint) => endpoint.web(request).await,
        Err(failure) => Err(failure),
    };
    let mut answer = GetClipWebResult {
        request_id: command.request_id,
        ..GetClipWebResult::default()
    };
    match file {
        Ok(file) => {
            answer.content = file.content;
            answer.content_type = text(&file.content_type);
            answer.etag = text(&file.etag);
            answer.total_size = i64::try_from(file.total_size).unwrap_or(i64::MAX);
            answer.not_modified = file.not_modified;
        }
        Err(failure) => answer.error = Some(hub_error(&failure)),
    }
    ToHub::GetClipWebResult(answer)
}

async fn data(found: Result<Arc<dyn Endpoint>, Failure>, command: DataCommand) -> ToHub {
    let operation = match command.operation.trim() {
        "" | "read" => Ok(DataOperation::Read),
        "write" => Ok(DataOperation::Write {
            content: command.content,
            mime: command.mime.to_string(),
        }),
        "list" => Ok(DataOperation::List),
        "delete" => Ok(DataOperation::Delete),
        "stat" => Ok(DataOperation::Stat),
        other => {
            let message = format!(
                "unknown file operation \"{other}\"; use read, write, list, delete or stat"
            );
            Err(Failure::invalid(message))
        }
    };
    let answer = match (found, operation) {
        (Ok(endpoint), Ok(operation)) => endpoint.data(command.path.to_string(), operation).await,
        (Err(failure), _) | (_, Err(failure)) => Err(failure),
    };
    let answer = data_response(answer);
    ToHub::DataResult(DataResult {
        request_id: command.request_id,
        content: answer.content,
        uri: answer.uri,
        entries: answer.entries,
        stat: answer.stat,
        error: answer.error,
    })
}
