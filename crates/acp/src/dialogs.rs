//! Dialogs of extensions: as forms, else as questions about a call that is made up for the purpose.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pinion_agent::Participant;
use pinion_sync::lock;
use serde_json::{Value, json};
use tokio::runtime::Handle;

use crate::client_requests::{ClientAnswer, PendingRequest};
use crate::permission::selected;
use crate::projection::NoticeKind;
use crate::rpc;
use crate::view::SessionView;

/// The most choices that a question about a call offers.
const MAX_CHOICES: usize = 40;
/// The longest choice of such a question, in characters.
const MAX_CHOICE_CHARS: usize = 200;
/// Limit on the records that arrive before the session has started.
const MAX_HELD: usize = 1000;

/// Shows the records of the extensions of one session.
pub(crate) struct Dialogs {
    view: Arc<SessionView>,
    runtime: Handle,
    /// The number of the last call that was made up.
    last_call: AtomicU64,
    state: Mutex<Stage>,
}

enum Stage {
    /// The session is being built.
    Held(Vec<String>),
    Started(Vec<Arc<dyn Participant>>),
}

/// A question of an extension.
struct Dialog {
    id: String,
    title: String,
    form: DialogForm,
    timeout: Option<Duration>,
}

enum DialogForm {
    Select(Vec<String>),
    Confirm {
        message: String,
    },
    Text {
        placeholder: String,
        prefill: String,
    },
}

impl Dialogs {
    pub fn new(view: &Arc<SessionView>, runtime: Handle) -> Arc<Self> {
        Arc::new(Self {
            view: Arc::clone(view),
            runtime,
            last_call: AtomicU64::new(0),
            state: Mutex::new(Stage::Held(Vec::new())),
        })
    }

    /// The session has started; `participants` receive the answers.
    pub fn start(self: &Arc<Self>, participants: Vec<Arc<dyn Participant>>) {
        let stage = std::mem::replace(&mut *lock(&self.state), Stage::Started(participants));
        if let Stage::Held(records) = stage {
            for record in records {
                self.record(record);
            }
        }
    }

    /// Shows a record. It does not block and may be called from any thread.
    pub fn record(self: &Arc<Self>, record: String) {
        if let Stage::Held(held) = &mut *lock(&self.state) {
            if held.len() < MAX_HELD {
                held.push(record);
            }
            return;
        }
        let Ok(record) = serde_json::from_str::<Value>(&record) else {
            return;
        };
        match dialog(&record) {
            Some(dialog) => {
                let dialogs = Arc::clone(self);
                self.runtime.spawn(async move { dialogs.ask(dialog).await });
            }
            None => self.tell(&record),
        }
    }

    fn tell(&self, record: &Value) {
        let text = |name: &str| record[name].as_str().unwrap_or_default();
        if text("method") == "notify" {
            let kind = NoticeKind::of_extension(text("notifyType"));
            if self.view.client().notices {
                self.view.notice(kind, text("message"), None, false);
            } else {
                self.view.say(text("message"));
            }
        } else if self.view.client().ui_records {
            let params = json!({"sessionId": self.view.id(), "record": record});
            self.view
                .out()
                .line(rpc::notification("_pinion/ui", &params));
        }
    }

    async fn ask(&self, dialog: Dialog) {
        let choice = if self.view.is_cancelled() {
            None
        } else if self.view.client().elicitation_form {
            self.ask_in_form(&dialog).await
        } else {
            self.ask_about_call(&dialog).await
        };
        let choice = choice.unwrap_or_else(|| json!({"cancelled": true}));
        let participants = match &*lock(&self.state) {
            Stage::Started(participants) => participants.clone(),
            Stage::Held(_) => Vec::new(),
        };
        if let Value::Object(choice) = choice {
            for participant in participants {
                participant.choice(&dialog.id, &choice);
            }
        }
    }

    /// Waits for an answer, the end of the turn or the timeout of the dialog.
    async fn answer(&self, dialog: &Dialog, mut request: PendingRequest) -> Option<ClientAnswer> {
        let cancelled = self.view.cancelled.notified();
        let expired = async {
            match dialog.timeout {
                Some(timeout) => tokio::time::sleep(timeout).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            answer = request.answer() => answer,
            () = cancelled => None,
            () = expired => None,
        }
    }

    async fn ask_in_form(&self, dialog: &Dialog) -> Option<Value> {
        let title = &dialog.title;
        let mut message = title.clone();
        let option = |value: &str, title: &str| json!({"const": value, "title": title});
        let mut property = json!({"type": "string", "title": title});
        let mut is_required = true;
        match &dialog.form {
            DialogForm::Select(options) => {
                let options = options.iter().enumerate();
                property["oneOf"] = options
                    .map(|(at, it)| option(&at.to_string(), it))
                    .collect();
            }
            DialogForm::Confirm { message: more } => {
                if !more.is_empty() {
                    message = format!("{title}\n\n{more}");
                }
                property["oneOf"] = json!([option("yes", "Yes"), option("no", "No")]);
                property["default"] = "no".into();
            }
            DialogForm::Text {
                placeholder,
                prefill,
            } => {
                is_required = false;
                if !placeholder.is_empty() {
                    property["description"] = placeholder.as_str().into();
                }
                if !prefill.is_empty() {
                    property["default"] = prefill.as_str().into();
                }
            }
        }
        let mut schema = json!({"type": "object", "properties": {"value": property}});
        if is_required {
            schema["required"] = json!(["value"]);
        }
        let params = json!({
            "sessionId": self.view.id(), "mode": "form", "message": message, "requestedSchema": schema,
        });
        let request = self.view.request("elicitation/create", &params);
        let answer = self.answer(dialog, request).await?.ok()?;
        if answer["action"] != "accept" {
            return None;
        }
        let value = &answer["content"]["value"];
        match &dialog.form {
            DialogForm::Select(options) => {
                let at: usize = value.as_str()?.parse().ok()?;
                Some(json!({"value": options.get(at)?}))
            }
            DialogForm::Confirm { .. } => Some(json!({"confirmed": value == "yes"})),
            DialogForm::Text { .. } if value.is_null() => Some(json!({"value": ""})),
            DialogForm::Text { .. } => Some(json!({"value": value.as_str()?})),
        }
    }

    async fn ask_about_call(&self, dialog: &Dialog) -> Option<Value> {
        let option =
            |id: &str, name: &str, kind: &str| json!({"optionId": id, "name": name, "kind": kind});
        let (title, options) = match &dialog.form {
            DialogForm::Select(options) => {
                let is_long = |option: &String| option.chars().count() > MAX_CHOICE_CHARS;
                if options.len() > MAX_CHOICES || options.iter().any(is_long) {
                    self.say_unasked("choices", &dialog.title);
                    return None;
                }
                let choices = options.iter().enumerate();
                let mut choices: Vec<Value> = choices
                    .map(|(at, name)| option(&at.to_string(), name, "allow_once"))
                    .collect();
                choices.push(option("none", "Cancel", "reject_once"));
                (dialog.title.clone(), choices)
            }
            DialogForm::Confirm { message } => {
                let title = if message.is_empty() {
                    dialog.title.clone()
                } else {
                    format!("{}\n\n{message}", dialog.title)
                };
                let yes = option("yes", "Yes", "allow_once");
                (title, vec![yes, option("no", "No", "reject_once")])
            }
            DialogForm::Text { .. } => {
                self.say_unasked("text", &dialog.title);
                return None;
            }
        };
        let number = self.last_call.fetch_add(1, Ordering::Relaxed) + 1;
        let id = format!("ui-{number}");
        let call = self.view.state().projection.made_up_call(&id, &title);
        let params = json!({"sessionId": self.view.id(), "toolCall": call, "options": options});
        let request = self.view.request("session/request_permission", &params);
        let answer = self.answer(dialog, request).await;
        let chosen = answer.as_ref().and_then(selected);
        let (choice, words) = match &dialog.form {
            DialogForm::Select(options) => {
                let at: Option<usize> = chosen.and_then(|id| id.parse().ok());
                match at.and_then(|at| options.get(at)) {
                    Some(option) => (Some(json!({"value": option})), option.as_str()),
                    None => (None, "Nothing was chosen."),
                }
            }
            _ if chosen == Some("yes") => (Some(json!({"confirmed": true})), "Yes"),
            _ => (Some(json!({"confirmed": false})), "No"),
        };
        self.view.state().projection.end_made_up_call(&id, words);
        choice
    }

    fn say_unasked(&self, what: &str, title: &str) {
        let result = if what == "text" {
            "was left empty"
        } else {
            "was not answered"
        };
        let words = format!("This client cannot be asked for {what}: \"{title}\" {result}.\n");
        self.view.say(&words);
    }
}

/// Reads a question; `None` for a record that has no answer.
fn dialog(record: &Value) -> Option<Dialog> {
    let text = |name: &str| record[name].as_str().unwrap_or_default().to_owned();
    let form = match record["method"].as_str()? {
        "select" => {
            let options = record["options"].as_array().map_or(&[][..], Vec::as_slice);
            let options = options
                .iter()
                .filter_map(|it| it.as_str().map(str::to_owned));
            DialogForm::Select(options.collect())
        }
        "confirm" => DialogForm::Confirm {
            message: text("message"),
        },
        "input" | "editor" => DialogForm::Text {
            placeholder: text("placeholder"),
            prefill: text("prefill"),
        },
        _ => return None,
    };
    let milliseconds = record["timeout"].as_f64().filter(|time| *time > 0.0);
    Some(Dialog {
        id: text("id"),
        title: text("title"),
        form,
        timeout: milliseconds.and_then(|time| Duration::try_from_secs_f64(time / 1000.0).ok()),
    })
}
