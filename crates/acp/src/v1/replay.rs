//! The conversation of a session as updates, for `session/load`.

use std::collections::HashSet;
use std::path::Path;

use pinion_agent::ToolOutput;
use pinion_message::{AssistantMessage, BashExecutionMessage, Block, Message, StopReason};
use pinion_session::{EntryKind, Store};
use serde_json::{Value, json};

use super::call::Call;
use super::user_updates;
use crate::capabilities::ClientCapabilities;
use crate::outbox::{ChunkKind, text_updates};

/// Returns the updates of the current branch, in order.
pub(crate) fn replay(store: &Store, client: &ClientCapabilities, cwd: &Path) -> Vec<Value> {
    let path = store.path();
    let results = path.iter().filter_map(|entry| match &*entry.message()? {
        Message::ToolResult(result) => Some(result.tool_call_id.clone()),
        _ => None,
    });
    let mut replay = Replay {
        client,
        cwd,
        saved: results.collect(),
        calls: Vec::new(),
        updates: Vec::new(),
    };
    for entry in path {
        let id = entry.id().as_str();
        if entry.kind() == EntryKind::Compaction {
            if let Some(compaction) = entry.compaction() {
                replay.compaction(id, &compaction.summary);
            }
        } else if let Some(message) = entry.message() {
            replay.message(id, &message);
        }
    }
    replay.updates
}

struct Replay<'a> {
    client: &'a ClientCapabilities,
    cwd: &'a Path,
    /// The ids of the calls whose results are saved.
    saved: HashSet<String>,
    /// Calls whose results follow.
    calls: Vec<Call>,
    updates: Vec<Value>,
}

impl Replay<'_> {
    fn message(&mut self, id: &str, message: &Message) {
        match message {
            Message::User(user) => self.updates.extend(user_updates(id, &user.content)),
            Message::Assistant(answer) => self.answer(id, answer),
            Message::ToolResult(result) => {
                let known = self
                    .calls
                    .iter()
                    .position(|call| call.id == result.tool_call_id);
                let Some(at) = known else { return };
                let mut call = self.calls.remove(at);
                let output = ToolOutput {
                    content: result.content.clone(),
                    details: result.details.clone(),
                    ..ToolOutput::default()
                };
                let update = call.replayed(&output, result.is_error, self.cwd);
                self.updates.push(update);
            }
            Message::BashExecution(run) => self.user_command(id, run),
            Message::Custom(custom) if custom.display => {
                self.say(id, &custom.content.joined_text("\n"));
            }
            Message::BranchSummary(summary) => self.say(id, &summary.summary),
            Message::Custom(_) | Message::CompactionSummary(_) | Message::System(_) => {}
        }
    }

    fn say(&mut self, id: &str, text: &str) {
        self.updates
            .extend(text_updates(ChunkKind::Agent, id, text));
    }

    fn answer(&mut self, id: &str, answer: &AssistantMessage) {
        for block in &answer.content {
            match block {
                Block::Text(text) => self.say(id, &text.text),
                Block::Thinking(thinking) if thinking.redacted != Some(true) => {
                    let updates = text_updates(ChunkKind::Thought, id, &thinking.thinking);
                    self.updates.extend(updates);
                }
                Block::ToolCall(call) => {
                    let made =
                        !matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted);
                    let mut shown = Call::begin(&call.id, &call.name, self.client, self.cwd);
                    shown.describe(&call.arguments, None, self.cwd);
                    shown.show_written(&call.arguments);
                    self.updates.push(shown.created(self.cwd));
                    if self.saved.contains(&call.id) {
                        self.calls.push(shown);
                    } else {
                        let reason = if made {
                            "No result was saved."
                        } else {
                            "This call was not made."
                        };
                        self.updates.push(shown.failed(reason));
                    }
                }
                Block::Thinking(_) | Block::Image { .. } => {}
            }
        }
    }

    /// Shows a command that the user ran as a call.
    fn user_command(&mut self, id: &str, run: &BashExecutionMessage) {
        let mut call = Call::begin(id, "bash", self.client, self.cwd);
        call.describe(&json!({"command": run.command}), None, self.cwd);
        self.updates.push(call.created(self.cwd));
        let is_error = run.cancelled || run.exit_code.is_some_and(|code| code != 0);
        let mut text = run.output.clone();
        match run.exit_code {
            Some(code) if code != 0 => {
                text.push_str(&format!("\n\nCommand exited with code {code}"))
            }
            None => text.push_str("\n\nCommand aborted"),
            Some(_) => {}
        }
        let update = call.replayed(&ToolOutput::text(text), is_error, self.cwd);
        self.updates.push(update);
    }

    fn compaction(&mut self, id: &str, summary: &str) {
        if self.client.compaction {
            self.updates.push(json!({
                "sessionUpdate": "compaction_update",
                "compactionId": id,
                "status": "completed",
                "summary": [{"type": "text", "text": summary}],
            }));
        } else {
            self.say(id, summary);
        }
    }
}
