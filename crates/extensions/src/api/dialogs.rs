//! Messages and questions of extensions to the client, and the client's answers.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::extensions::Inner;
use super::held_records::state_of;
use crate::ScriptError;

/// Accepts one JSON record for the client, without its newline. It must not block.
pub type RecordSink = Arc<dyn Fn(String) + Send + Sync>;

/// Open dialogs: the id that the client answers with, and the instance that asked.
#[derive(Default)]
pub(super) struct OpenDialogs(Mutex<HashMap<String, u64>>);

impl OpenDialogs {
    fn open(&self) -> MutexGuard<'_, HashMap<String, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A handle that passes the client's answers to the extensions.
#[derive(Clone)]
pub struct Dialogs(pub(super) Weak<Inner>);

impl Dialogs {
    /// Passes on the client's answer to the dialog `id`. Ignores late, repeated and unknown answers.
    pub fn answer(&self, id: &str, response: &Value) {
        if let Some(inner) = self.0.upgrade() {
            inner.answer_or_report(id, response);
        }
    }

    /// Marks the client as disconnected: open dialogs get their defaults, and so do later ones without a timeout.
    pub fn hang_up(&self) {
        if let Some(inner) = self.0.upgrade() {
            inner.client_gone.store(true, Ordering::Release);
        }
        self.cancel_all();
    }

    /// Answers every open dialog with its default, because no client is there to answer.
    pub fn cancel_all(&self) {
        if let Some(inner) = self.0.upgrade() {
            let open: Vec<String> = inner.dialogs.open().keys().cloned().collect();
            for id in open {
                inner.answer_or_report(&id, &json!({"cancelled": true}));
            }
        }
    }
}

impl std::fmt::Debug for Dialogs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Dialogs")
    }
}

impl Inner {
    /// Sends a message to the client.
    pub(super) fn send_to_client(self: &Arc<Self>, request: &Value) {
        let record = record_of(&Uuid::new_v4().to_string(), request);
        self.deliver(state_of(request), record);
    }

    /// Sends a question to the client and returns its id.
    ///
    /// Fails when too many questions already wait for a client that does not read, or too many answers for JavaScript.
    pub(super) fn ask(
        self: &Arc<Self>,
        generation: u64,
        request: &Value,
    ) -> Result<String, String> {
        let id = Uuid::new_v4().to_string();
        self.dialogs.open().insert(id.clone(), generation);
        if !self.deliver(Some(id.clone()), record_of(&id, request)) {
            self.dialogs.open().remove(&id);
            return Err("The client does not read: it cannot be asked.".to_owned());
        }
        let ends_by_itself = request["timeout"].as_f64().is_some_and(|time| time > 0.0);
        if !ends_by_itself && self.client_gone.load(Ordering::Acquire) {
            let answered = self.answer_dialog(&id, &json!({"cancelled": true}));
            answered.map_err(|error| error.to_string())?;
        }
        Ok(id)
    }

    /// Closes a question that has ended.
    pub(super) fn close_dialog(&self, id: &str) {
        self.dialogs.open().remove(id);
        self.withdraw(id);
    }

    /// Passes an answer to JavaScript; fails if JavaScript will not receive it.
    fn answer_dialog(&self, id: &str, response: &Value) -> Result<(), ScriptError> {
        let number = self.dialogs.open().remove(id);
        let Some(instance) = number.and_then(|number| self.instance(number)) else {
            return Ok(());
        };
        let arguments = vec![json!(id).to_string(), response.to_string()];
        self.try_post(&instance, "answer", arguments)
    }

    fn answer_or_report(&self, id: &str, response: &Value) {
        if let Err(error @ ScriptError::Busy) = self.answer_dialog(id, response) {
            self.fault("<runtime>", "answer", error.to_string());
        }
    }
}

fn record_of(id: &str, request: &Value) -> String {
    let mut record = Map::new();
    record.insert("type".into(), "extension_ui_request".into());
    record.insert("id".into(), id.into());
    for (name, value) in request.as_object().into_iter().flatten() {
        record.insert(name.clone(), value.clone());
    }
    Value::Object(record).to_string()
}
