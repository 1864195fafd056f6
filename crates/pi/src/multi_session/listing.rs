//! The description of a session in the answer to `list_sessions`.

use std::time::Duration;

use futures_util::future::join_all;
use pinion_agent::{Answer, Command, Handle, Reply, StateView};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;

/// Time for a session to report its state; a session that takes longer is listed without it.
const STATE_TIMEOUT: Duration = Duration::from_secs(2);

/// A session in the list.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Listing {
    session_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_name: Option<String>,
    cwd: String,
    /// This and the following members are missing if the session does not answer in time.
    #[serde(skip_serializing_if = "Option::is_none")]
    is_streaming: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message_count: Option<usize>,
}

impl Listing {
    /// Creates a listing without the state of the session.
    pub fn new(id: &str, cwd: &str, file: Option<&str>) -> Self {
        Self {
            session_id: id.to_owned(),
            session_file: file.map(str::to_owned),
            session_name: None,
            cwd: cwd.to_owned(),
            is_streaming: None,
            model: None,
            message_count: None,
        }
    }

    fn complete(&mut self, state: StateView) {
        self.session_file = state.session_file;
        self.session_name = state.session_name;
        self.is_streaming = Some(state.is_streaming);
        self.model = state
            .model
            .map(|model| json!({ "provider": model.provider, "id": model.id }));
        self.message_count = Some(state.message_count);
    }
}

/// Adds the state of every session; asks all of them in parallel.
pub(super) async fn with_states(sessions: Vec<(Listing, Handle)>) -> Vec<Listing> {
    join_all(sessions.into_iter().map(|(mut listing, session)| async {
        let state = tokio::time::timeout(STATE_TIMEOUT, state(session)).await;
        if let Ok(Some(state)) = state {
            listing.complete(state);
        }
        listing
    }))
    .await
}

async fn state(session: Handle) -> Option<StateView> {
    let (sender, answer) = oneshot::channel();
    let reply = Reply::new(move |result| {
        if let Ok(Answer::State(state)) = result {
            // The receiver is dropped after the timeout.
            let _ = sender.send(*state);
        }
    });
    session.send(Command::GetState, reply).await;
    drop(session);
    answer.await.ok()
}
