//! The answers of handlers, and the calls that collect them.

use std::sync::{Arc, MutexGuard, PoisonError};

use pinion_agent::Event;
use pinion_message::{Message, Usage};
use pinion_tools::BashOutcome;
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::extensions::{Inner, RunState};
use super::payload;
use super::work::Work;

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct InputAnswer {
    pub handled: bool,
    pub text: String,
    pub images: Value,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct BeforeRunAnswer {
    pub messages: Vec<Value>,
    pub system_prompt: Option<String>,
    /// The tools that the model may call from now on, if handlers changed them.
    pub active_tools: Option<Vec<String>>,
    pub hidden_tools: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ContextAnswer {
    pub messages: Option<Vec<Message>>,
    pub system_prompt: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ToolCallAnswer {
    pub input: Value,
    pub block: bool,
    pub reason: Option<String>,
    pub terminate: bool,
}

/// The answer to a shell command of the user.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct BashAnswer {
    pub error: Option<String>,
    pub result: Option<BashResult>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct BashResult {
    output: String,
    exit_code: Option<i32>,
    cancelled: bool,
    truncated: bool,
    full_output_path: Option<String>,
}

impl From<BashResult> for BashOutcome {
    fn from(result: BashResult) -> Self {
        Self {
            output: result.output,
            exit_code: result.exit_code,
            cancelled: result.cancelled,
            truncated: result.truncated,
            full_output_path: result.full_output_path,
        }
    }
}

/// The answer to a question that handlers may refuse.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Verdict {
    pub cancel: bool,
    pub compaction: Option<Compaction>,
    pub summary: Option<Summary>,
    pub custom_instructions: Option<String>,
    pub replace_instructions: Option<bool>,
    pub label: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Compaction {
    pub summary: String,
    pub first_kept_entry_id: String,
    pub tokens_before: u64,
    #[serde(default)]
    pub usage: Option<Usage>,
    #[serde(default)]
    pub details: Option<Value>,
}

#[derive(Deserialize)]
pub(super) struct Summary {
    pub summary: String,
    #[serde(default)]
    pub details: Option<Value>,
}

impl Inner {
    pub(super) fn run_state(&self) -> MutexGuard<'_, RunState> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports whether the current instance handles `event`.
    pub(super) fn listens(&self, event: &str) -> bool {
        self.current()
            .is_some_and(|instance| instance.listens(event))
    }

    /// Asks handlers whether an operation may continue. `cancel` reaches them as an abort signal.
    pub(super) async fn question(
        self: &Arc<Self>,
        question: Value,
        cancel: Option<CancellationToken>,
    ) -> Verdict {
        let name = question["type"].as_str().unwrap_or_default().to_owned();
        let instance = self.current().filter(|instance| instance.listens(&name));
        let Some(instance) = instance else {
            return Verdict::default();
        };
        let mut work = Work::new(self, &instance);
        let stop = work.stopper();
        let arguments = vec![question.to_string(), cancel.is_some().to_string()];
        let asking = work.call("main.before", arguments);
        tokio::pin!(asking);
        let answer = match cancel {
            None => asking.await,
            Some(cancel) => tokio::select! {
                answer = &mut asking => answer,
                () = cancel.cancelled() => {
                    stop();
                    asking.await
                }
            },
        };
        let failure = match answer
            .map(|text| pinion_jsonl::json::from_slice::<Option<Verdict>>(text.as_bytes()))
        {
            Ok(Ok(verdict)) => return verdict.unwrap_or_default(),
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        self.fault("<runtime>", &name, failure);
        Verdict::default()
    }

    /// Converts an event of a run to the form that handlers see, and updates the turn count.
    pub(super) fn event_of_run(&self, event: &Event) -> Option<Value> {
        let mut run = self.run_state();
        if matches!(event, Event::AgentStart) {
            run.turn = 0;
        }
        let turn = run.turn;
        if matches!(event, Event::TurnEnd { .. }) {
            run.turn += 1;
        }
        let update = run.partial_answer.take(event);
        drop(run);
        update.or_else(|| payload::event_value(event, turn))
    }
}
