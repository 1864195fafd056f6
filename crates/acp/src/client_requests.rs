//! Requests of the agent to the client, and their answers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use pinion_sync::lock;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::outbox::Outbox;
use crate::rpc;

/// The client's answer: a result or an error.
pub(crate) type ClientAnswer = Result<Value, Value>;

/// The open requests of a connection.
#[derive(Debug, Default)]
pub(crate) struct ClientRequests(Mutex<OpenRequests>);

#[derive(Debug, Default)]
struct OpenRequests {
    last: u64,
    waiting: HashMap<u64, oneshot::Sender<ClientAnswer>>,
    /// The client has closed its input and will not answer.
    has_left: bool,
}

impl ClientRequests {
    /// Sends a request.
    pub fn send(
        self: &Arc<Self>,
        out: &Arc<Outbox>,
        method: &str,
        params: &Value,
    ) -> PendingRequest {
        let (sender, answer) = oneshot::channel();
        let mut open = lock(&self.0);
        open.last += 1;
        let id = open.last;
        if !open.has_left {
            open.waiting.insert(id, sender);
            out.line(rpc::request(id, method, params));
        }
        PendingRequest {
            id,
            requests: Arc::clone(self),
            out: Arc::clone(out),
            answer,
        }
    }

    /// Passes on the client's answer; one that no request waits for is ignored.
    pub fn answer(&self, id: &Value, answer: ClientAnswer) {
        let waiting = id.as_u64().and_then(|id| lock(&self.0).waiting.remove(&id));
        if let Some(waiting) = waiting {
            // The request may have ended in this moment.
            let _ = waiting.send(answer);
        }
    }

    /// The client has left: no request is answered any more.
    pub fn hang_up(&self) {
        let mut open = lock(&self.0);
        open.has_left = true;
        open.waiting.clear();
    }
}

/// A request that waits for its answer. Dropping it withdraws the request.
#[derive(Debug)]
pub(crate) struct PendingRequest {
    id: u64,
    requests: Arc<ClientRequests>,
    out: Arc<Outbox>,
    answer: oneshot::Receiver<ClientAnswer>,
}

impl PendingRequest {
    /// Waits for the answer; `None` if the client has left.
    pub async fn answer(&mut self) -> Option<ClientAnswer> {
        (&mut self.answer).await.ok()
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        if lock(&self.requests.0).waiting.remove(&self.id).is_some() {
            let params = json!({"requestId": self.id});
            self.out
                .line(rpc::notification("$/cancel_request", &params));
        }
    }
}
