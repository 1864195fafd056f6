//! Questions about tool calls as dialogs of the protocol: a client that answers dialogs of extensions can answer them
//! too.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures_util::future::BoxFuture;
use pinion_agent::Participant;
use pinion_message::Mask;
use pinion_sync::lock;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::{Absence, Answer, Ask, Question};

const ALLOW_ONCE: &str = "Allow once";
const ALLOW_FOR_RUN: &str = "Allow for this run";
const REFUSE: &str = "Refuse";

/// The questions that a client receives about tool calls.
pub struct ClientQuestions {
    /// Sends a record to the client.
    records: Arc<dyn Fn(String) + Send + Sync>,
    mask: Mask,
    /// Questions that wait for an answer, by the id in the client's answer; `None` once the client has left.
    open: Mutex<Option<HashMap<String, oneshot::Sender<Answer>>>>,
}

impl ClientQuestions {
    /// Creates the questions of one client. `records` sends a record to it.
    pub fn new(records: Arc<dyn Fn(String) + Send + Sync>, mask: Mask) -> Self {
        Self {
            records,
            mask,
            open: Mutex::new(Some(HashMap::new())),
        }
    }

    fn open(&self) -> MutexGuard<'_, Option<HashMap<String, oneshot::Sender<Answer>>>> {
        lock(&self.open)
    }

    async fn put(&self, question: &Question, timeout: Duration) -> Answer {
        let id = Uuid::new_v4().to_string();
        let (sender, answer) = oneshot::channel();
        match &mut *self.open() {
            Some(open) => open.insert(id.clone(), sender),
            None => return Answer::Absent(Absence::ClientLeft),
        };
        let _pending = Pending {
            questions: self,
            id: &id,
        };
        let record = json!({
            "type": "extension_ui_request",
            "id": id,
            "method": "select",
            "title": self.mask.text(&question.title),
            "options": [ALLOW_ONCE, ALLOW_FOR_RUN, REFUSE],
            "timeout": u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
        });
        (self.records)(record.to_string());
        match tokio::time::timeout(timeout, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Answer::Absent(Absence::ClientLeft),
            Err(_) => Answer::Absent(Absence::Expired),
        }
    }
}

impl std::fmt::Debug for ClientQuestions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientQuestions").finish_non_exhaustive()
    }
}

/// A question that waits for its answer. Dropping it withdraws the question.
struct Pending<'a> {
    questions: &'a ClientQuestions,
    id: &'a str,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        if let Some(open) = &mut *self.questions.open() {
            open.remove(self.id);
        }
    }
}

impl Ask for ClientQuestions {
    fn ask<'a>(&'a self, question: &'a Question, timeout: Duration) -> BoxFuture<'a, Answer> {
        Box::pin(self.put(question, timeout))
    }
}

impl Participant for ClientQuestions {
    fn choice(&self, id: &str, choice: &Map<String, Value>) {
        let waiting = self.open().as_mut().and_then(|open| open.remove(id));
        if let Some(waiting) = waiting {
            // The question may have expired in this moment.
            let _ = waiting.send(meaning(choice));
        }
    }

    fn wants_to_end(&self) -> bool {
        false
    }

    fn hang_up(&self) {
        *self.open() = None;
    }
}

/// Translates a client's response. A response that is not clearly an approval is a refusal.
fn meaning(choice: &Map<String, Value>) -> Answer {
    if choice.get("cancelled") == Some(&Value::Bool(true)) {
        return Answer::Refused;
    }
    match choice.get("value").and_then(Value::as_str) {
        Some(ALLOW_ONCE) => Answer::Allowed,
        Some(ALLOW_FOR_RUN) => Answer::AllowedForRun,
        Some(_) => Answer::Refused,
        None if choice.get("confirmed") == Some(&Value::Bool(true)) => Answer::Allowed,
        None => Answer::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_is_a_yes() {
        for (response, answer) in [
            (json!({"value": "Allow once"}), Answer::Allowed),
            (
                json!({"value": "Allow for this run"}),
                Answer::AllowedForRun,
            ),
            (json!({"confirmed": true}), Answer::Allowed),
            (json!({"value": "Refuse"}), Answer::Refused),
            (json!({"value": "Allow"}), Answer::Refused),
            (json!({"value": 1}), Answer::Refused),
            (
                json!({"value": "Refuse", "confirmed": true}),
                Answer::Refused,
            ),
            (
                json!({"value": "Allow once", "cancelled": true}),
                Answer::Refused,
            ),
            (json!({"confirmed": false}), Answer::Refused),
            (json!({"confirmed": "true"}), Answer::Refused),
            (json!({}), Answer::Refused),
        ] {
            let Value::Object(members) = &response else {
                continue;
            };
            assert_eq!(meaning(members), answer, "{response}");
        }
    }
}
