//! Providers that extensions register and whose requests they answer themselves.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures_util::StreamExt;
use pinion_llm::{EventStream, Provider, Request, StreamEvent};
use pinion_message::{
    AssistantMessage, Block, Message, StopReason, ThinkingBlock, Usage, now_millis,
};
use secrecy::ExposeSecret;
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::bridge::{text, value};
use super::extensions::Inner;

static NEXT_REQUEST: AtomicU64 = AtomicU64::new(1);

/// Bytes of events that may wait until the run reads them. The extension waits before it adds more; a single larger
/// event waits alone.
const WAITING_BYTES: u32 = 4 << 20;
/// Bytes that an event counts in addition to its text, for the memory around it. This also limits the number of
/// waiting events.
const EVENT_BYTES: u32 = 4 << 10;
/// The most events that can wait: 1,024.
const WAITING_EVENTS: usize = (WAITING_BYTES / EVENT_BYTES) as usize;
/// The longest time that an extension may take to end its answer after the run was aborted. The engine gives hooks
/// as long.
const ABORT_GRACE: Duration = Duration::from_secs(3);

/// An event and its share of [`WAITING_BYTES`], which is released when the run takes the event.
type Counted = (StreamEvent, OwnedSemaphorePermit);

/// The extension's end of one answer.
#[derive(Clone)]
struct AnswerSender {
    events: mpsc::Sender<Counted>,
    room: Arc<Semaphore>,
}

/// The result of passing on one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pushed {
    /// The answer may continue.
    Taken,
    /// Too much waits. The event was not taken: push it again when there is room.
    Full,
    /// The answer has ended, or the run does not read it any more.
    Closed,
}

impl AnswerSender {
    fn new() -> (Self, mpsc::Receiver<Counted>) {
        let (events, receiver) = mpsc::channel(WAITING_EVENTS);
        let room = Arc::new(Semaphore::new(WAITING_BYTES as usize));
        (Self { events, room }, receiver)
    }

    fn push(&self, event: StreamEvent) -> Pushed {
        let share = Arc::clone(&self.room).try_acquire_many_owned(share_of(&event));
        let Ok(share) = share else {
            return if self.events.is_closed() {
                Pushed::Closed
            } else {
                Pushed::Full
            };
        };
        // Every event has a share, so the channel has a place for it.
        match self.events.try_send((event, share)) {
            Ok(()) => Pushed::Taken,
            Err(mpsc::error::TrySendError::Full(_)) => Pushed::Full,
            Err(mpsc::error::TrySendError::Closed(_)) => Pushed::Closed,
        }
    }

    /// Sends the last event as soon as there is room for it.
    async fn end(&self, message: AssistantMessage) {
        let event = StreamEvent::End(message);
        let share = Arc::clone(&self.room).acquire_many_owned(share_of(&event));
        if let Ok(share) = share.await {
            // A run that does not read any more does not miss the end.
            let _ = self.events.send((event, share)).await;
        }
    }

    /// AwaitCache until all pushed events are read or the reader is gone. Waiting for all of them, and not for one event,
    /// makes room for an event of any size.
    async fn read(&self) {
        // Dropped at once: only the wait counts. The semaphore is never closed.
        drop(self.room.acquire_many(WAITING_BYTES).await);
    }
}

/// The share of [`WAITING_BYTES`] that an event takes.
fn share_of(event: &StreamEvent) -> u32 {
    let bytes = match event {
        StreamEvent::Delta { delta, .. } => delta.len(),
        StreamEvent::BlockStart { block, .. } | StreamEvent::BlockEnd { block, .. } => {
            json_bytes(block)
        }
        StreamEvent::Start(message) | StreamEvent::End(message) => json_bytes(message),
        StreamEvent::Usage(_) => 0,
    };
    let bytes = u32::try_from(bytes).unwrap_or(WAITING_BYTES);
    bytes.saturating_add(EVENT_BYTES).min(WAITING_BYTES)
}

/// The length of a value as JSON text, which is about the memory that it takes.
fn json_bytes(value: &impl Serialize) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    match serde_json::to_writer(&mut count, value) {
        Ok(()) => count.0,
        // A value of unknown size waits alone.
        Err(_) => usize::MAX,
    }
}

/// The answers that extensions are streaming, by request. Unread events are limited for each.
#[derive(Default)]
pub(super) struct OpenStreams(Mutex<HashMap<u64, AnswerSender>>);

impl OpenStreams {
    fn open(&self) -> MutexGuard<'_, HashMap<u64, AnswerSender>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes on an event of an answer.
    pub fn push(&self, request: u64, event: &Value) -> Pushed {
        let mut open = self.open();
        let Some(sender) = open.get(&request) else {
            return Pushed::Closed;
        };
        let Some(event) = stream_event(event) else {
            return Pushed::Taken;
        };
        let is_last = matches!(event, StreamEvent::End(_));
        let pushed = match sender.push(event) {
            Pushed::Taken if is_last => Pushed::Closed,
            pushed => pushed,
        };
        if pushed == Pushed::Closed {
            open.remove(&request);
        }
        pushed
    }

    /// AwaitCache until an answer has room for its next event, or has ended.
    pub async fn room(&self, request: u64) {
        let sender = self.open().get(&request).cloned();
        if let Some(sender) = sender {
            sender.read().await;
        }
    }
}

/// A provider that forwards requests to an extension.
struct ScriptProvider {
    inner: Weak<Inner>,
    number: u64,
    name: String,
}

impl Inner {
    /// Registers a provider with the program.
    pub(super) fn register_provider(
        self: &Arc<Self>,
        generation: u64,
        arguments: &[Value],
    ) -> Result<(), String> {
        let name = text(arguments, 0);
        let answering = (value(arguments, 2) == true).then(|| {
            let provider: Arc<dyn Provider> = Arc::new(ScriptProvider {
                inner: Arc::downgrade(self),
                number: generation,
                name: name.to_owned(),
            });
            provider
        });
        let config = value(arguments, 1).clone();
        self.options
            .services
            .register_provider(name, config, answering)
    }

    /// Runs one request in JavaScript. Its stream always ends, also after a failure.
    async fn run_stream(self: Arc<Self>, id: u64, number: u64, name: String, request: Request) {
        let error = match self.instance(number) {
            None => "The extension is gone.".to_owned(),
            Some(instance) => {
                let arguments = vec![
                    id.to_string(),
                    json!(name).to_string(),
                    json!(*request.model).to_string(),
                    conversation(&request).to_string(),
                    options(&request).to_string(),
                ];
                let script = match self.script() {
                    Ok(script) => script,
                    Err(_) => return,
                };
                let call = script.call(instance.generation, "main.stream", arguments);
                tokio::pin!(call);
                let answer = tokio::select! {
                    answer = &mut call => Some(answer),
                    () = request.cancel.cancelled() => {
                        self.post(&instance, "stopStream", vec![id.to_string()]);
                        tokio::time::timeout(ABORT_GRACE, call).await.ok()
                    }
                };
                match answer {
                    Some(Ok(_)) => "The provider's stream ended without a result.".to_owned(),
                    Some(Err(error)) => error.to_string(),
                    None => "The provider did not end its answer after the abort.".to_owned(),
                }
            }
        };
        let unfinished = self.streams.open().remove(&id);
        if let Some(sender) = unfinished {
            sender.end(failure(&request, error)).await;
        }
    }
}

impl Provider for ScriptProvider {
    fn stream(&self, request: Request) -> EventStream {
        let Some(inner) = self.inner.upgrade() else {
            let end = StreamEvent::End(failure(&request, "The extension is gone.".to_owned()));
            return futures_util::stream::iter([end]).boxed();
        };
        let id = NEXT_REQUEST.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = AnswerSender::new();
        inner.streams.open().insert(id, sender);
        let runtime = inner.runtime.clone();
        runtime.spawn(inner.run_stream(id, self.number, self.name.clone(), request));
        let next = |mut receiver: mpsc::Receiver<Counted>| async move {
            let (event, _share) = receiver.recv().await?;
            Some((event, receiver))
        };
        futures_util::stream::unfold(receiver, next).boxed()
    }
}

fn conversation(request: &Request) -> Value {
    let messages: Vec<&Message> = request.messages.iter().map(|message| &**message).collect();
    let mut context = json!({"messages": messages, "tools": *request.tools});
    if let Some(prompt) = &request.system_prompt {
        context["systemPrompt"] = (**prompt).into();
    }
    context
}

fn options(request: &Request) -> Value {
    let given = &request.options;
    let mut options = Map::new();
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            options.insert(name.into(), value);
        }
    };
    put(
        "apiKey",
        given.api_key.as_ref().map(|key| key.expose_secret().into()),
    );
    put(
        "reasoning",
        given.reasoning.map(|level| level.as_str().into()),
    );
    put("sessionId", given.session_id.clone().map(Into::into));
    put("maxTokens", given.max_tokens.map(Into::into));
    put("temperature", given.temperature.map(Into::into));
    put(
        "headers",
        (!given.headers.is_empty()).then(|| json!(given.headers)),
    );
    Value::Object(options)
}

pub(super) fn failure(request: &Request, error: String) -> AssistantMessage {
    let aborted = request.cancel.is_cancelled();
    AssistantMessage {
        content: Vec::new(),
        api: request.model.api.clone(),
        provider: request.model.provider.clone(),
        model: request.model.id.clone(),
        usage: Usage::default(),
        stop_reason: if aborted {
            StopReason::Aborted
        } else {
            StopReason::Error
        },
        timestamp: now_millis(),
        response_id: None,
        response_model: None,
        error_message: Some(error),
        raw_stop_reason: None,
        refused: false,
        duration_ms: None,
        thinking_level: None,
    }
}

/// Converts an event of an extension's stream to the engine's form.
fn stream_event(event: &Value) -> Option<StreamEvent> {
    let name = event["type"].as_str()?;
    let message =
        |member: &str| serde_json::from_value::<AssistantMessage>(event[member].clone()).ok();
    match name {
        "start" => return message("partial").map(StreamEvent::Start),
        "done" => return message("message").map(StreamEvent::End),
        "error" => return message("error").map(StreamEvent::End),
        _ => {}
    }
    let index = usize::try_from(event["contentIndex"].as_u64()?).ok()?;
    let block = || serde_json::from_value::<Block>(event["partial"]["content"][index].clone()).ok();
    let (kind, step) = name.rsplit_once('_')?;
    match step {
        // The extension may have streamed further than the reader has read, so `partial` can hold more than the start.
        "start" => Some(StreamEvent::BlockStart {
            index,
            block: match kind {
                "text" => Block::text(""),
                "thinking" => Block::Thinking(ThinkingBlock::default()),
                _ => without_arguments(block()?),
            },
        }),
        "delta" => Some(StreamEvent::Delta {
            index,
            delta: event["delta"].as_str()?.into(),
        }),
        "end" => Some(StreamEvent::BlockEnd {
            index,
            block: block()?,
        }),
        _ => None,
    }
}

fn without_arguments(mut block: Block) -> Block {
    if let Block::ToolCall(call) = &mut block {
        call.arguments = json!({});
    }
    block
}
