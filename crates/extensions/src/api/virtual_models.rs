//! Virtual models: an extension's function chooses the model that answers each request.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures_util::StreamExt;
use pinion_llm::{EventStream, Provider, Request, RequestOptions, StreamEvent};
use pinion_message::{AssistantMessage, Message, Model, StopReason, ThinkingLevel};
use pinion_session::{Entry, Store};
use pinion_tools::run_blocking;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::bridge::{text, value};
use super::extensions::Inner;
use super::provider::failure;
use super::work::Work;

/// The API of virtual models. No server has it.
const API: &str = "pi-virtual";
/// The type of the entries with the state of routers.
const STATE_ENTRY: &str = "pi.virtual-model-state";

/// Time for a router to end after the request was aborted.
const ABORT_GRACE: Duration = Duration::from_secs(3);

/// A virtual model as its extension describes it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct VirtualModel {
    provider: String,
    id: String,
    name: String,
    #[serde(default)]
    thinking_levels: Option<Vec<ThinkingLevel>>,
    #[serde(default)]
    context_window: u64,
    #[serde(default)]
    max_tokens: u64,
    #[serde(default)]
    input: Option<Vec<String>>,
}

/// The choice of a router.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Route {
    provider: String,
    id: String,
    #[serde(default)]
    thinking_level: Option<ThinkingLevel>,
    #[serde(default)]
    state: Option<Value>,
}

/// A request of a run that failed.
struct FailedRequest {
    /// The number of messages of the request: a retry has the same number.
    messages: usize,
    model: Arc<Model>,
    level: ThinkingLevel,
    answer: AssistantMessage,
}

/// Sends the requests to one virtual model to the models that its router chooses.
struct Router(Arc<RouterState>);

struct RouterState {
    inner: Weak<Inner>,
    /// The instance of the extension.
    number: u64,
    /// Provider and id, joined by a slash.
    key: String,
    /// The last request of a run, if it failed.
    failed: Mutex<Option<FailedRequest>>,
}

impl VirtualModel {
    fn into_model(self) -> Result<Model, String> {
        let levels = self
            .thinking_levels
            .unwrap_or_else(|| vec![ThinkingLevel::Off]);
        let offered = ThinkingLevel::ALL.into_iter().map(|level| {
            let name = levels.contains(&level).then(|| level.as_str().to_owned());
            (level, name)
        });
        let model = json!({
            "id": self.id,
            "name": self.name,
            "api": API,
            "provider": self.provider,
            "baseUrl": "",
            "reasoning": levels.iter().any(|level| *level != ThinkingLevel::Off),
            "thinkingLevelMap": offered.collect::<BTreeMap<_, _>>(),
            "input": self.input.unwrap_or_else(|| vec!["text".into(), "image".into()]),
            "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
            "contextWindow": self.context_window,
            "maxTokens": self.max_tokens,
        });
        serde_json::from_value(model)
            .map_err(|error| format!("Virtual model {}/{}: {error}", self.provider, self.id))
    }
}

impl Provider for Router {
    fn stream(&self, request: Request) -> EventStream {
        let state = Arc::clone(&self.0);
        let answering = async move {
            let original = request.clone();
            match state.route(request).await {
                Ok((request, provider)) => state.answer(request, &*provider),
                Err(error) => {
                    let end = StreamEvent::End(failure(&original, error));
                    futures_util::stream::iter([end]).boxed()
                }
            }
        };
        futures_util::stream::once(answering).flatten().boxed()
    }
}

impl RouterState {
    fn failed(&self) -> MutexGuard<'_, Option<FailedRequest>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the request to the chosen model, and the provider that answers it.
    async fn route(&self, request: Request) -> Result<(Request, Arc<dyn Provider>), String> {
        let inner = self.inner.upgrade().ok_or("The extension is gone.")?;
        let services = &inner.options.services;
        let provider = services
            .provider()
            .ok_or("Virtual models are not available here.")?;
        // Only the requests of a run are observed.
        let is_direct = request.options.tap.is_none();
        let stored = if is_direct {
            Value::Null
        } else {
            inner.router_state(&request.model).await
        };
        let given = self.described(&inner, &request, is_direct, &stored);
        let route = self.ask(&inner, &request.cancel, given).await?;
        let key = &self.key;
        let Route {
            provider: name,
            id,
            thinking_level,
            state,
        } = route;
        let model = services
            .find_model(&name, &id)
            .filter(|model| model.api != API)
            .ok_or_else(|| {
                format!("The router of {key} chose {name}/{id}, which cannot answer requests.")
            })?;
        if !services.has_credentials(&model.provider) {
            return Err(format!(
                "The router of {key} chose {name}/{id}, whose key is missing."
            ));
        }
        let authorization = services.access(&model).await?;
        let level = model.clamp_thinking(thinking_level.unwrap_or_default());
        let mut options = RequestOptions {
            api_key: None,
            reasoning: (level != ThinkingLevel::Off).then_some(level),
            headers: BTreeMap::new(),
            ..request.options
        };
        authorization.apply(&mut options);
        if let (Some(state), false) = (state, is_direct) {
            inner.store_router_state(&request.model, state).await;
        }
        let request = Request {
            model,
            options,
            ..request
        };
        Ok((request, provider))
    }

    /// Returns the request in the form that routers see.
    fn described(&self, inner: &Inner, request: &Request, is_direct: bool, state: &Value) -> Value {
        let failed = self.failed().take();
        let failed =
            failed.filter(|failed| !is_direct && failed.messages == request.messages.len());
        let last = request.messages.last().map(|message| &**message);
        let reason = match (&failed, last) {
            _ if is_direct => "direct",
            (Some(_), _) => "retry",
            (None, Some(Message::User(_))) => "user",
            (None, _) => "continuation",
        };
        let mut messages = vec![json!({
            "role": "system",
            "content": request.system_prompt.as_deref().unwrap_or_default(),
            "timestamp": 0,
        })];
        messages.extend(request.messages.iter().map(|message| json!(**message)));
        let mut given = json!({
            "model": *request.model,
            "thinkingLevel": request.options.reasoning.unwrap_or_default(),
            "reason": reason,
            "messages": messages,
        });
        let answers = request.messages.iter().rev();
        let previous = answers
            .filter_map(|message| message.as_assistant())
            .find(|answer| !matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted));
        let previous = previous.and_then(|answer| {
            let services = &inner.options.services;
            services.find_model(&answer.provider, &answer.model)
        });
        if let Some(model) = previous {
            given["previous"] = json!({"model": *model});
        }
        if let Some(failed) = failed {
            given["failed"] = json!({
                "model": *failed.model,
                "thinkingLevel": failed.level,
                "message": Message::Assistant(failed.answer),
            });
        }
        if !state.is_null() {
            given["state"] = state.clone();
        }
        given
    }

    async fn ask(
        &self,
        inner: &Arc<Inner>,
        cancel: &CancellationToken,
        given: Value,
    ) -> Result<Route, String> {
        let instance = inner.instance(self.number);
        let instance = instance.ok_or("The extension is gone.")?;
        let mut work = Work::new(inner, &instance);
        let stop = work.stopper();
        let arguments = vec![json!(self.key).to_string(), given.to_string()];
        let call = work.call("main.route", arguments);
        tokio::pin!(call);
        let answer = tokio::select! {
            answer = &mut call => answer,
            () = cancel.cancelled() => {
                stop();
                let late = tokio::time::timeout(ABORT_GRACE, call).await;
                late.map_err(|_| "Request was aborted.")?
            }
        };
        let answer = answer.map_err(|error| error.to_string())?;
        pinion_jsonl::json::from_slice(answer.as_bytes())
            .map_err(|error| format!("The router of {} returned {answer}: {error}", self.key))
    }

    /// Sends the request, and remembers a failure for the next one.
    fn answer(self: &Arc<Self>, request: Request, provider: &dyn Provider) -> EventStream {
        let state = Arc::clone(self);
        let model = Arc::clone(&request.model);
        let level = request.options.reasoning.unwrap_or_default();
        let (messages, is_direct) = (request.messages.len(), request.options.tap.is_none());
        let events = provider.stream(request).inspect(move |event| {
            let StreamEvent::End(answer) = event else {
                return;
            };
            if answer.stop_reason == StopReason::Error && !is_direct {
                *state.failed() = Some(FailedRequest {
                    messages,
                    model: Arc::clone(&model),
                    level,
                    answer: answer.clone(),
                });
            }
        });
        events.boxed()
    }
}

impl Inner {
    pub(super) fn register_virtual_model(
        self: &Arc<Self>,
        generation: u64,
        arguments: &[Value],
    ) -> Result<(), String> {
        let key = text(arguments, 0);
        let described: VirtualModel = serde_json::from_value(value(arguments, 1).clone())
            .map_err(|error| format!("Virtual model {key}: {error}"))?;
        let router = Router(Arc::new(RouterState {
            inner: Arc::downgrade(self),
            number: generation,
            key: key.to_owned(),
            failed: Mutex::default(),
        }));
        let model = described.into_model()?;
        let services = &self.options.services;
        services.register_virtual_model(model, Arc::new(router))
    }

    /// Returns the state that a router stored last on the current branch; null if there is none.
    async fn router_state(&self, model: &Model) -> Value {
        let Some(desk) = self.desk().cloned() else {
            return Value::Null;
        };
        let (provider, id) = (model.provider.clone(), model.id.clone());
        let read = move || desk.read(move |store| stored_state(store, &provider, &id));
        let never = CancellationToken::new();
        match run_blocking(&never, read).await {
            Ok(Ok(state)) => state,
            // Without the session the router begins anew.
            _ => Value::Null,
        }
    }

    async fn store_router_state(&self, model: &Model, state: Value) {
        let Some(desk) = self.desk().cloned() else {
            return;
        };
        let data = json!({"provider": model.provider, "modelId": model.id, "state": state});
        let append = move || desk.append_custom(STATE_ENTRY.to_owned(), Some(data));
        let never = CancellationToken::new();
        let stored = run_blocking(&never, append).await;
        let error = match stored {
            Ok(Ok(_)) => return,
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        self.fault("<runtime>", "route", error);
    }
}

fn stored_state(store: &Store, provider: &str, id: &str) -> Value {
    let entries = store.path().into_iter().rev().filter_map(Entry::value);
    let mut states = entries.filter(|entry| entry["customType"] == STATE_ENTRY);
    let found = states
        .find(|entry| entry["data"]["provider"] == provider && entry["data"]["modelId"] == id);
    found.map_or(Value::Null, |entry| entry["data"]["state"].clone())
}
