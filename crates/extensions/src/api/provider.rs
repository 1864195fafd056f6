//! Providers that extensions bring along and answer for themselves.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use futures_util::StreamExt;
use pinion_llm::{EventStream, Provider, Request, StreamEvent};
use pinion_message::{
    AssistantMessage, Block, Message, StopReason, ThinkingBlock, Usage, now_millis,
};
use secrecy::ExposeSecret;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::bridge::{text, value};
use super::extensions::Inner;

static NEXT: AtomicU64 = AtomicU64::new(1);

type Sender = mpsc::UnboundedSender<StreamEvent>;

/// Who waits for which answer. What is not read yet is never more than one answer.
#[derive(Default)]
pub(super) struct OpenStreams(Mutex<HashMap<u64, Sender>>);

impl OpenStreams {
    fn open(&self) -> MutexGuard<'_, HashMap<u64, Sender>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes on an event of an answer; whether anyone still listens.
    pub fn push(&self, request: u64, event: &Value) -> bool {
        let mut open = self.open();
        let Some(sender) = open.get(&request) else {
            return false;
        };
        match stream_event(event) {
            None => true,
            Some(event) => {
                let is_last = matches!(event, StreamEvent::End(_));
                let heard = sender.send(event).is_ok();
                if is_last || !heard {
                    open.remove(&request);
                }
                heard && !is_last
            }
        }
    }
}

/// Asks an extension.
struct ScriptProvider {
    inner: Weak<Inner>,
    number: u64,
    name: String,
}

impl Inner {
    /// Makes a provider known to the program.
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

    /// Runs one request in JavaScript. Whatever happens, its stream ends.
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
                    answer = &mut call => answer,
                    () = request.cancel.cancelled() => {
                        self.post(&instance, "stopStream", vec![id.to_string()]);
                        call.await
                    }
                };
                match answer {
                    Ok(_) => "The provider's stream ended without a result.".to_owned(),
                    Err(error) => error.to_string(),
                }
            }
        };
        if let Some(sender) = self.streams.open().remove(&id) {
            // Nobody listens any more: then nobody misses the end either.
            let _ = sender.send(StreamEvent::End(failure(&request, error)));
        }
    }
}

impl Provider for ScriptProvider {
    fn stream(&self, request: Request) -> EventStream {
        let Some(inner) = self.inner.upgrade() else {
            let end = StreamEvent::End(failure(&request, "The extension is gone.".to_owned()));
            return futures_util::stream::iter([end]).boxed();
        };
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = mpsc::unbounded_channel();
        inner.streams.open().insert(id, sender);
        let runtime = inner.runtime.clone();
        runtime.spawn(inner.run_stream(id, self.number, self.name.clone(), request));
        let next = |mut receiver: mpsc::UnboundedReceiver<StreamEvent>| async move {
            receiver.recv().await.map(|event| (event, receiver))
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

fn failure(request: &Request, error: String) -> AssistantMessage {
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
    }
}

/// An event of an extension's stream as the engine knows it.
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
        // Who streams may be ahead of who listens: `partial` can be more than the beginning.
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
