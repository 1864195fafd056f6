//! A conversation over the dialog protocol, with which extensions ask questions too: records go to the screen, answers come
//! back by id.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use crate::{Choice, LoginConversation, LoginMessage, LoginQuestion};

/// The beginning of the ids of questions about accounts.
const ID_PREFIX: &str = "account-";

/// Sends a record of the dialog protocol to the screen.
pub type SendRecord = Arc<dyn Fn(String) + Send + Sync>;

/// Asks its questions as dialogs. Clones share the open questions.
#[derive(Clone)]
pub struct DialogConversation {
    send: SendRecord,
    open: Arc<Mutex<HashMap<String, Asked>>>,
}

struct Asked {
    answer: oneshot::Sender<Option<String>>,
    /// The ids of the labels that were shown.
    choices: Vec<Choice>,
}

impl std::fmt::Debug for DialogConversation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DialogConversation").finish_non_exhaustive()
    }
}

impl DialogConversation {
    /// Creates a conversation over `send`.
    pub fn new(send: SendRecord) -> Self {
        Self {
            send,
            open: Arc::default(),
        }
    }

    /// Shows a notice of a kind: `info` or `error`.
    pub fn notify(&self, kind: &str, message: &str) {
        let record = json!({
            "type": "extension_ui_request",
            "id": new_id(),
            "method": "notify",
            "message": message,
            "notifyType": kind,
        });
        (self.send)(record.to_string());
    }

    /// Passes on the answer to a dialog. Returns `false` if the dialog is not one of this conversation.
    pub fn answer(&self, id: &str, response: &Map<String, Value>) -> bool {
        if !id.starts_with(ID_PREFIX) {
            return false;
        }
        let asked = self.open_questions().remove(id);
        if let Some(asked) = asked {
            let text = response.get("value").and_then(Value::as_str);
            let chosen = text.map(|text| {
                let choice = asked.choices.iter().find(|choice| choice.label == text);
                choice.map_or(text, |choice| choice.id.as_str()).to_owned()
            });
            // The flow may have ended meanwhile.
            let _ = asked.answer.send(chosen);
        }
        true
    }

    fn open_questions(&self) -> MutexGuard<'_, HashMap<String, Asked>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn asked(&self, mut record: Value, choices: Vec<Choice>) -> Option<String> {
        let id = new_id();
        record["type"] = "extension_ui_request".into();
        record["id"] = id.clone().into();
        let (answer, answered) = oneshot::channel();
        self.open_questions().insert(id, Asked { answer, choices });
        (self.send)(record.to_string());
        answered.await.ok().flatten()
    }
}

fn new_id() -> String {
    format!("{ID_PREFIX}{}", uuid::Uuid::new_v4())
}

impl LoginConversation for DialogConversation {
    fn show(&self, message: LoginMessage) {
        match message {
            LoginMessage::Open { url, instructions } => {
                let instructions = instructions
                    .map(|text| format!("\n{text}"))
                    .unwrap_or_default();
                self.notify(
                    "info",
                    &format!("Open this address in a browser to sign in:\n{url}{instructions}"),
                );
            }
            LoginMessage::Device(code) => {
                let (code, page) = (code.user_code, code.verification_uri);
                self.notify("info", &format!("Enter the code {code} at {page}"));
            }
            LoginMessage::Progress(text) => self.notify("info", &text),
        }
    }

    fn ask(&self, question: LoginQuestion) -> BoxFuture<'_, Option<String>> {
        let (record, choices) = match question {
            LoginQuestion::Select { message, choices } => {
                let labels: Vec<&str> =
                    choices.iter().map(|choice| choice.label.as_str()).collect();
                (
                    json!({"method": "select", "title": message, "options": labels}),
                    choices,
                )
            }
            LoginQuestion::Text {
                message,
                placeholder,
                hidden,
            } => {
                let record = json!({"method": "input", "title": message, "placeholder": placeholder, "hidden": hidden});
                (record, Vec::new())
            }
            LoginQuestion::PastedAnswer {
                message,
                placeholder,
            } => {
                let record =
                    json!({"method": "input", "title": message, "placeholder": placeholder});
                (record, Vec::new())
            }
        };
        Box::pin(self.asked(record, choices))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;

    #[tokio::test]
    async fn questions_are_dialogs_and_labels_become_ids() {
        let (sender, records) = sync_channel(8);
        let conversation =
            DialogConversation::new(Arc::new(move |record| sender.send(record).unwrap()));
        let choices = vec![Choice {
            id: "key".to_owned(),
            label: "API key".to_owned(),
        }];
        let asking = conversation.clone();
        let asked = tokio::spawn(async move {
            asking
                .ask(LoginQuestion::Select {
                    message: "How?".to_owned(),
                    choices,
                })
                .await
        });
        tokio::task::yield_now().await;
        let record: Value = serde_json::from_str(&records.recv().unwrap()).unwrap();
        assert_eq!(record["options"], json!(["API key"]));
        let id = record["id"].as_str().unwrap();
        let answer = json!({"value": "API key"});
        assert!(!conversation.answer("another", answer.as_object().unwrap()));
        assert!(conversation.answer(id, answer.as_object().unwrap()));
        assert_eq!(asked.await.unwrap().as_deref(), Some("key"));

        let asking = conversation.clone();
        let asked = tokio::spawn(async move {
            let question = LoginQuestion::Text {
                message: "Key".to_owned(),
                placeholder: None,
                hidden: true,
            };
            asking.ask(question).await
        });
        tokio::task::yield_now().await;
        let record: Value = serde_json::from_str(&records.recv().unwrap()).unwrap();
        assert_eq!(record["hidden"], true);
        let cancelled = json!({"cancelled": true});
        conversation.answer(
            record["id"].as_str().unwrap(),
            cancelled.as_object().unwrap(),
        );
        assert_eq!(asked.await.unwrap(), None);
    }
}
