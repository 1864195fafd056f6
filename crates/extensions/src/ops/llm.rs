//! `ops.llm`: the models of the program, and requests to them.
//!
//! A script starts a request, fetches its events in batches until there are no more, and finishes it. Events and
//! requests cross as JSON text.

mod request;
mod tap;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use futures_util::StreamExt;
use pinion_llm::StreamEvent;
use pinion_message::{AssistantMessage, Message, Model, StopReason};
use rquickjs::prelude::{Async, Func};
use rquickjs::{Ctx, Exception, Object, Result};
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::group;
use crate::script::Host;
use crate::services::Services;
use tap::{Questions, ScriptTap};

/// The most events that wait for the script.
const BACKLOG: usize = 256;

/// A model's answer in progress.
struct Answer {
    events: tokio::sync::Mutex<mpsc::Receiver<StreamItem>>,
    questions: Arc<Questions>,
    cancel: CancellationToken,
    /// Cancels the request when the script stops fetching events.
    _stops: DropGuard,
}

/// An item that a script fetches.
enum StreamItem {
    /// An event of the answer.
    Event(Box<StreamEvent>),
    /// A question about the exchange, which the script answers with `reply`.
    Question(Value),
}

#[derive(Default)]
struct Answers {
    next: Cell<u32>,
    open: RefCell<HashMap<u32, Rc<Answer>>>,
}

impl Answers {
    fn get(&self, id: u32) -> Option<Rc<Answer>> {
        self.open.borrow().get(&id).cloned()
    }
}

pub(crate) fn install<'js>(ctx: &Ctx<'js>, ops: &Object<'js>, host: &Host) -> Result<()> {
    let llm = group(ctx, ops, "llm")?;
    install_models(&llm, host)?;
    install_requests(&llm, host)?;
    llm.set(
        "parsePartial",
        Func::from(|text: String| pinion_llm::parse_arguments(&text).to_string()),
    )?;
    llm.set(
        "repair",
        Func::from(|text: String| pinion_llm::repair(&text).into_owned()),
    )?;
    llm.set(
        "environmentKeys",
        Func::from(|provider: String| {
            let set = |name: &&&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
            let names: Vec<_> = pinion_llm::key_variables(&provider)
                .iter()
                .filter(set)
                .collect();
            json!(names).to_string()
        }),
    )?;
    llm.set(
        "keyVariables",
        Func::from(|provider: String| json!(pinion_llm::key_variables(&provider)).to_string()),
    )?;
    llm.set(
        "environmentKey",
        Func::from(|name: String| std::env::var(name).ok()),
    )?;
    Ok(())
}

fn install_models<'js>(llm: &Object<'js>, host: &Host) -> Result<()> {
    let services = Arc::clone(host.services());
    llm.set(
        "model",
        Func::from(move |provider: String, id: String| {
            services
                .find_model(&provider, &id)
                .map(|model| text_of(&*model))
        }),
    )?;
    let services = Arc::clone(host.services());
    llm.set(
        "models",
        Func::from(move |provider: String| {
            let mut models = services.all_models();
            models.retain(|model| model.provider == provider);
            text_of(&models)
        }),
    )?;
    let services = Arc::clone(host.services());
    llm.set(
        "providers",
        Func::from(move || {
            let mut names: Vec<String> = Vec::new();
            for model in services.all_models() {
                if !names.contains(&model.provider) {
                    names.push(model.provider.clone());
                }
            }
            text_of(&names)
        }),
    )?;
    let services = Arc::clone(host.services());
    llm.set(
        "allModels",
        Func::from(move || text_of(&services.all_models())),
    )?;
    let services = Arc::clone(host.services());
    llm.set(
        "availableModels",
        Func::from(move || text_of(&services.available_models())),
    )?;
    let services = Arc::clone(host.services());
    llm.set(
        "hasCredentials",
        Func::from(move |provider: String| services.has_credentials(&provider)),
    )?;
    let services = Arc::clone(host.services());
    llm.set(
        "access",
        Func::from(Async(move |ctx: Ctx<'js>, model: String| {
            let services = Arc::clone(&services);
            async move {
                let model = request::model(&model)
                    .map_err(|message| Exception::throw_type(&ctx, &message))?;
                Ok::<_, rquickjs::Error>(access(&*services, &model).await.to_string())
            }
        })),
    )?;
    Ok(())
}

async fn access(services: &dyn Services, model: &Model) -> Value {
    match services.access(model).await {
        Ok(granted) => {
            let headers: serde_json::Map<String, Value> = granted
                .headers
                .iter()
                .map(|(name, value)| (name.clone(), value.expose_secret().into()))
                .collect();
            let headers = (!headers.is_empty()).then_some(headers);
            let key = granted
                .api_key
                .as_ref()
                .map(|key| key.expose_secret().to_owned());
            json!({ "ok": true, "apiKey": key, "headers": headers })
        }
        Err(error) => json!({ "ok": false, "error": error }),
    }
}

fn install_requests<'js>(llm: &Object<'js>, host: &Host) -> Result<()> {
    let answers = Rc::new(Answers::default());
    let (open, shared) = (Rc::clone(&answers), host.clone());
    llm.set(
        "start",
        Func::from(move |ctx: Ctx<'js>, text: String| -> Result<u32> {
            let cancel = shared.closed().child_token();
            let answer = start(&shared, &text, cancel)
                .map_err(|message| Exception::throw_message(&ctx, &message))?;
            let id = open.next.get();
            open.next.set(id + 1);
            open.open.borrow_mut().insert(id, Rc::new(answer));
            Ok(id)
        }),
    )?;
    let open = Rc::clone(&answers);
    llm.set(
        "next",
        Func::from(Async(move |id: u32| {
            let answer = open.get(id);
            async move {
                match answer {
                    Some(answer) => next(&answer).await,
                    None => None,
                }
            }
        })),
    )?;
    let open = Rc::clone(&answers);
    llm.set(
        "cancel",
        Func::from(move |id: u32| {
            if let Some(answer) = open.get(id) {
                answer.cancel.cancel();
            }
        }),
    )?;
    let open = Rc::clone(&answers);
    llm.set(
        "reply",
        Func::from(move |id: u32, question: u32, text: Option<String>| {
            if let Some(answer) = open.get(id) {
                answer.questions.answer(question, text);
            }
        }),
    )?;
    llm.set(
        "finish",
        Func::from(move |id: u32| {
            answers.open.borrow_mut().remove(&id);
        }),
    )?;
    Ok(())
}

/// Starts a request. It runs on the runtime of the program's own requests, so that a busy script does not delay
/// connections that are shared with them.
fn start(
    host: &Host,
    text: &str,
    cancel: CancellationToken,
) -> std::result::Result<Answer, String> {
    let mut request = request::request(text, cancel.clone())?;
    let services = Arc::clone(host.services());
    let Some(provider) = services.provider() else {
        return Err("This program has no models to send requests to.".to_owned());
    };
    let runtime = match services.runtime() {
        Some(runtime) => runtime,
        None => tokio::runtime::Handle::try_current().map_err(|error| error.to_string())?,
    };
    let (sender, receiver) = mpsc::channel(BACKLOG);
    let questions = Arc::new(Questions::default());
    if let Some(interest) = request::interest(text) {
        let tap = ScriptTap::new(interest, sender.clone(), Arc::clone(&questions));
        request.options.tap = Some(Arc::new(tap));
    }
    runtime.spawn(async move {
        if request.options.api_key.is_none() {
            match services.access(&request.model).await {
                Ok(granted) => granted.apply(&mut request.options),
                Err(message) => {
                    // An error means that the script does not read the answer any more.
                    let refused = StreamEvent::End(refused(&request.model, message));
                    let _ = sender.send(StreamItem::Event(Box::new(refused))).await;
                    return;
                }
            }
        } else {
            request.options.environment = services.environment(&request.model.provider);
        }
        let mut events = provider.stream(request);
        while let Some(event) = events.next().await {
            if sender
                .send(StreamItem::Event(Box::new(event)))
                .await
                .is_err()
            {
                return;
            }
        }
    });
    Ok(Answer {
        events: tokio::sync::Mutex::new(receiver),
        questions,
        _stops: cancel.clone().drop_guard(),
        cancel,
    })
}

fn refused(model: &Model, message: String) -> AssistantMessage {
    AssistantMessage {
        content: Vec::new(),
        api: model.api.clone(),
        provider: model.provider.clone(),
        model: model.id.clone(),
        usage: pinion_message::Usage::default(),
        stop_reason: StopReason::Error,
        timestamp: pinion_message::now_millis(),
        response_id: None,
        response_model: None,
        error_message: Some(message),
        raw_stop_reason: None,
        refused: false,
        duration_ms: None,
        thinking_level: None,
    }
}

/// AwaitCache for an event and returns all available ones; `None` after the last.
async fn next(answer: &Answer) -> Option<String> {
    let mut events = answer.events.lock().await;
    let mut batch = vec![to_json(events.recv().await?)];
    while let Ok(event) = events.try_recv() {
        batch.push(to_json(event));
    }
    Some(Value::Array(batch).to_string())
}

fn to_json(item: StreamItem) -> Value {
    let event = match item {
        StreamItem::Event(event) => *event,
        StreamItem::Question(question) => return question,
    };
    match event {
        StreamEvent::Start(message) => {
            json!({ "type": "start", "message": Message::Assistant(message) })
        }
        StreamEvent::BlockStart { index, block } => {
            json!({ "type": "blockStart", "index": index, "block": block })
        }
        StreamEvent::Delta { index, delta } => {
            json!({ "type": "delta", "index": index, "delta": &*delta })
        }
        StreamEvent::BlockEnd { index, block } => {
            json!({ "type": "blockEnd", "index": index, "block": block })
        }
        StreamEvent::Usage(usage) => json!({ "type": "usage", "usage": usage }),
        StreamEvent::End(message) => {
            json!({ "type": "end", "message": Message::Assistant(message) })
        }
    }
}

fn text_of(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}
