//! Lets scripts observe an exchange: the body before it is sent, and the head of the response.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use pinion_llm::Tap;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::StreamItem;
use super::request::Interest;

/// The tasks that wait for an answer, by the number of the question.
type Waiting = HashMap<u32, oneshot::Sender<Option<String>>>;

/// Questions that a script has not answered yet.
#[derive(Default)]
pub(super) struct Questions {
    last: AtomicU32,
    open: Mutex<Waiting>,
}

impl Questions {
    fn ask(&self) -> (u32, oneshot::Receiver<Option<String>>) {
        let (sender, receiver) = oneshot::channel();
        let number = self.last.fetch_add(1, Ordering::Relaxed);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.insert(number, sender);
        (number, receiver)
    }

    /// Passes on the answer to a question; further answers are ignored.
    pub(super) fn answer(&self, number: u32, text: Option<String>) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(waiting) = open.remove(&number) {
            // A request that was cancelled needs no answer.
            let _ = waiting.send(text);
        }
    }
}

/// Sends questions to the script that made the request.
pub(super) struct ScriptTap {
    interest: Interest,
    items: mpsc::Sender<StreamItem>,
    questions: Arc<Questions>,
}

impl ScriptTap {
    pub(super) fn new(
        interest: Interest,
        items: mpsc::Sender<StreamItem>,
        questions: Arc<Questions>,
    ) -> Self {
        Self {
            interest,
            items,
            questions,
        }
    }

    async fn ask(&self, mut question: Value) -> Option<String> {
        let (number, answer) = self.questions.ask();
        question["question"] = number.into();
        self.items.send(StreamItem::Question(question)).await.ok()?;
        answer.await.ok().flatten()
    }
}

impl Tap for ScriptTap {
    fn wants_payload(&self) -> bool {
        self.interest.payload
    }

    fn payload(&self, payload: Value) -> BoxFuture<'_, Value> {
        Box::pin(async move {
            let answer = self.ask(json!({ "type": "payload", "payload": payload }));
            let changed = answer
                .await
                .and_then(|text| serde_json::from_str(&text).ok());
            changed.unwrap_or(payload)
        })
    }

    fn response(&self, status: u16, headers: BTreeMap<String, String>) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if self.interest.response {
                let question = json!({ "type": "response", "status": status, "headers": headers });
                self.ask(question).await;
            }
        })
    }
}
