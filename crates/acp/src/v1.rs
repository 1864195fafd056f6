//! Version 1 of the protocol: the updates that the events of a session become.

mod call;
mod replay;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pinion_agent::{CallDetail, CompactionResult, Event, TextChange, ToolRun};
use pinion_message::{AssistantMessage, Block, Content, Message, StopReason};
use serde_json::{Value, json};
use uuid::Uuid;

use self::call::Call;
pub(crate) use self::replay::replay;
use crate::capabilities::ClientCapabilities;
use crate::outbox::{ChunkKind, Outbox};
use crate::projection::{NoticeKind, Projection};
use crate::tool_content;

/// The shortest pause before a retry that is reported to a client without notices.
const TOLD_PAUSE: Duration = Duration::from_secs(5);
/// Characters of an error in a notice.
const MAX_ERROR_CHARS: usize = 2000;

/// The projection of one session.
pub(crate) struct V1 {
    client: Arc<ClientCapabilities>,
    cwd: PathBuf,
    out: Arc<Outbox>,
    /// The message that is streamed, or was streamed last.
    message_id: Arc<str>,
    /// The message of the agent's own words in the current turn.
    own_id: Option<Arc<str>>,
    /// The blocks of the streamed message by their positions.
    blocks: HashMap<usize, Streamed>,
    calls: HashMap<String, Call>,
    previews: HashMap<String, Arc<TextChange>>,
    compaction: Option<String>,
    /// The size of the context of the model, in tokens.
    window: u64,
    /// USD.
    cost: f64,
}

/// A block that is streamed.
enum Streamed {
    Text(ChunkKind),
    /// Nothing is sent for it.
    Silent,
    Call,
}

impl V1 {
    pub fn new(client: Arc<ClientCapabilities>, cwd: &Path, out: Arc<Outbox>) -> Self {
        Self {
            client,
            cwd: cwd.to_owned(),
            out,
            message_id: new_id(),
            own_id: None,
            blocks: HashMap::new(),
            calls: HashMap::new(),
            previews: HashMap::new(),
            compaction: None,
            window: 0,
            cost: 0.0,
        }
    }

    fn block_start(&mut self, index: usize, block: &Block) {
        let streamed = match block {
            Block::Text(_) => Streamed::Text(ChunkKind::Agent),
            Block::Thinking(thinking) if thinking.redacted == Some(true) => Streamed::Silent,
            Block::Thinking(_) => Streamed::Text(ChunkKind::Thought),
            Block::Image { .. } => Streamed::Silent,
            Block::ToolCall(call) => {
                if !call.id.is_empty() && !call.name.is_empty() {
                    let call = Call::begin(&call.id, &call.name, &self.client, &self.cwd);
                    self.out.update(call.created(&self.cwd));
                    self.calls.insert(call.id.clone(), call);
                }
                Streamed::Call
            }
        };
        let text = match block {
            Block::Text(text) => text.text.as_str(),
            Block::Thinking(thinking) => thinking.thinking.as_str(),
            _ => "",
        };
        if let Streamed::Text(kind) = streamed {
            self.out.chunk(kind, &self.message_id, text);
        }
        self.blocks.insert(index, streamed);
    }

    fn block_end(&mut self, block: &Block) {
        let Block::ToolCall(call) = block else {
            return;
        };
        let change = self.previews.remove(&call.id);
        self.describe_call(&call.id, &call.name, &call.arguments, change.as_deref());
    }

    /// Describes a call whose arguments are complete; creates it if the client does not know it.
    fn describe_call(
        &mut self,
        id: &str,
        name: &str,
        arguments: &Value,
        change: Option<&TextChange>,
    ) {
        let is_known = self.calls.contains_key(id);
        let call = self
            .calls
            .entry(id.to_owned())
            .or_insert_with(|| Call::begin(id, name, &self.client, &self.cwd));
        call.describe(arguments, change, &self.cwd);
        if is_known {
            self.out.update(call.described());
        } else {
            self.out.update(call.created(&self.cwd));
        }
    }

    fn tool_start(&mut self, run: &ToolRun) {
        // A call of another call, or of an answer that was not streamed, is not known yet.
        if !self.calls.contains_key(&*run.call_id) {
            self.describe_call(&run.call_id, &run.name, &run.arguments, None);
        }
    }

    fn detail(&mut self, detail: &CallDetail) {
        match detail {
            CallDetail::Preview { call_id, change } => {
                self.previews
                    .insert(call_id.to_string(), Arc::clone(change));
            }
            CallDetail::Admitted(run) => {
                if let Some(call) = self.calls.get_mut(&*run.call_id) {
                    self.out.update(call.admitted());
                }
            }
            CallDetail::Printed { run, text } => {
                if let Some(call) = self.calls.get_mut(&*run.call_id)
                    && let Some(update) = call.printed(text)
                {
                    self.out.update(update);
                }
            }
        }
    }

    fn message_end(&mut self, message: &Message) {
        if let Message::Assistant(answer) = message {
            self.cost += answer.usage.cost.total;
            // Calls of an answer that failed never run.
            if matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted) {
                for call in answer.tool_calls() {
                    self.fail_call(&call.id, "This call was not made.");
                }
                self.fail_unmade_calls();
            }
        }
    }

    fn fail_call(&mut self, id: &str, reason: &str) {
        if let Some(call) = self.calls.remove(id) {
            self.out.update(call.failed(reason));
        }
    }

    /// Ends every call that is still open.
    fn fail_unmade_calls(&mut self) {
        let mut open: Vec<String> = self.calls.keys().cloned().collect();
        open.sort();
        for id in open {
            self.fail_call(&id, "This call was not made.");
        }
    }

    fn turn_end(&mut self, answer: &AssistantMessage) {
        let used = answer.usage.context_tokens();
        if used > 0 && answer.stop_reason != StopReason::Aborted {
            self.usage(used);
        }
    }

    fn retry(&mut self, attempt: u32, most: u32, delay: Duration, error: &str) {
        let pause = pinion_text::duration::words(delay);
        let title = format!("Trying again in {pause} ({attempt} of {most})");
        let error = shortened(error);
        if self.client.notices {
            self.notice(NoticeKind::Warning, &title, Some(&error));
        } else if delay > TOLD_PAUSE {
            self.thought(&format!("{title}: {error}\n"));
        }
    }

    fn thought(&self, text: &str) {
        self.out.chunk(ChunkKind::Thought, &new_id(), text);
    }

    fn compaction_start(&mut self) {
        let id = Uuid::new_v4().to_string();
        if self.client.compaction {
            self.out.update(json!({
                "sessionUpdate": "compaction_update", "compactionId": id, "status": "in_progress",
            }));
        } else {
            self.thought("The conversation is being summarised.\n");
        }
        self.compaction = Some(id);
    }

    fn compaction_end(
        &mut self,
        result: Option<&CompactionResult>,
        is_aborted: bool,
        error: Option<&str>,
    ) {
        // A compaction that could not even begin has no start.
        let id = self.compaction.take();
        let id = id.unwrap_or_else(|| Uuid::new_v4().to_string());
        let mut update = json!({"sessionUpdate": "compaction_update", "compactionId": id});
        match result {
            Some(result) => {
                update["status"] = "completed".into();
                update["summary"] = json!([{"type": "text", "text": result.summary}]);
            }
            None if is_aborted => update["status"] = "cancelled".into(),
            None => {
                update["status"] = "failed".into();
                if let Some(error) = error {
                    update["error"] = shortened(error).into();
                }
            }
        }
        if self.client.compaction {
            self.out.update(update);
        }
        if let Some(result) = result {
            self.usage(result.estimated_tokens_after);
        }
    }

    fn usage(&self, used: u64) {
        if self.window == 0 {
            return;
        }
        let mut update =
            json!({"sessionUpdate": "usage_update", "used": used, "size": self.window});
        if self.cost > 0.0 {
            update["cost"] = json!({"amount": self.cost, "currency": "USD"});
        }
        self.out.update(update);
    }
}

impl Projection for V1 {
    fn event(&mut self, event: &Event) {
        match event {
            Event::MessageStart(message) => {
                self.message_id = new_id();
                self.blocks.clear();
                if let Message::Custom(custom) = &**message
                    && custom.display
                {
                    self.out.chunk(
                        ChunkKind::Agent,
                        &self.message_id,
                        &custom.content.joined_text("\n"),
                    );
                }
            }
            Event::BlockStart { index, block } => self.block_start(*index, block),
            Event::BlockDelta { index, delta } => {
                if let Some(Streamed::Text(kind)) = self.blocks.get(index) {
                    self.out.chunk(*kind, &self.message_id, delta);
                }
            }
            Event::BlockEnd { block, .. } => self.block_end(block),
            Event::MessageEnd(message) => self.message_end(message),
            Event::TurnEnd { message, .. } => {
                if let Message::Assistant(answer) = &**message {
                    self.turn_end(answer);
                }
            }
            Event::ToolStart(run) => self.tool_start(run),
            Event::CallDetail(detail) => self.detail(detail),
            Event::ToolUpdate { run, output } => {
                if let Some(call) = self.calls.get(&*run.call_id)
                    && let Some(update) = call.updated(output)
                {
                    self.out.update(update);
                }
            }
            Event::ToolEnd {
                run,
                output,
                is_error,
                ..
            } => {
                if let Some(call) = self.calls.remove(&*run.call_id) {
                    self.out.update(call.ended(output, *is_error, &self.cwd));
                }
            }
            Event::RetryStart {
                attempt,
                max_attempts,
                delay,
                error,
            }
            | Event::SummaryRetryScheduled {
                attempt,
                max_attempts,
                delay,
                error,
            } => self.retry(*attempt, *max_attempts, *delay, error),
            Event::CompactionStart { .. } => self.compaction_start(),
            Event::CompactionEnd {
                result,
                aborted,
                error,
                ..
            } => self.compaction_end(result.as_deref(), *aborted, error.as_deref()),
            Event::SessionInfoChanged(name) => self.session_info(Some(name.as_deref()), None),
            Event::Settled { .. } => {
                self.fail_unmade_calls();
                self.previews.clear();
            }
            Event::AgentStart
            | Event::AgentEnd { .. }
            | Event::TurnStart
            | Event::UsageUpdate(_)
            | Event::RetryEnd { .. }
            | Event::SummaryRetryStart(_)
            | Event::SummaryRetryFinished
            | Event::EntryAppended(_)
            | Event::QueueUpdate { .. }
            // The session reports faults, and sends the options, which also depend on the model.
            | Event::Fault { .. }
            | Event::ThinkingLevelChanged(_) => {}
        }
    }

    fn begin_turn(&mut self) {
        self.own_id = None;
    }

    fn user_message(&mut self, message: &Message) {
        let Message::User(user) = message else { return };
        let id = new_id();
        for update in user_updates(&id, &user.content) {
            self.out.update(update);
        }
    }

    fn say(&mut self, text: &str) {
        let id = self.own_id.get_or_insert_with(new_id);
        self.out.chunk(ChunkKind::Agent, id, text);
    }

    fn notice(&mut self, kind: NoticeKind, title: &str, description: Option<&str>) -> bool {
        if !self.client.notices {
            return false;
        }
        let mut update = json!({
            "sessionUpdate": "notice", "severity": kind.name(), "title": title,
        });
        if let Some(description) = description {
            update["description"] = shortened(description).into();
        }
        self.out.update(update);
        true
    }

    fn call(&self, id: &str) -> Option<Value> {
        self.calls.get(id).map(Call::question)
    }

    fn set_window(&mut self, window: u64) {
        self.window = window;
    }

    fn spent(&mut self, cost: f64) {
        self.cost += cost;
    }

    fn context(&self, used: u64) {
        self.usage(used);
    }

    fn session_info(&self, title: Option<Option<&str>>, updated_at: Option<&str>) {
        let mut update = json!({"sessionUpdate": "session_info_update"});
        if let Some(title) = title {
            update["title"] = title.into();
        }
        if let Some(updated_at) = updated_at {
            update["updatedAt"] = updated_at.into();
        }
        self.out.update(update);
    }

    fn commands(&self, commands: &Value) {
        self.out.update(json!({
            "sessionUpdate": "available_commands_update", "availableCommands": commands,
        }));
    }

    fn options(&self, options: &Value) {
        self.out.update(json!({
            "sessionUpdate": "config_option_update", "configOptions": options,
        }));
    }

    fn mode(&self, mode: &str) {
        self.out.update(json!({
            "sessionUpdate": "current_mode_update", "currentModeId": mode,
        }));
    }

    fn made_up_call(&self, id: &str, title: &str) -> Value {
        self.out.update(json!({
            "sessionUpdate": "tool_call", "toolCallId": id, "title": title, "kind": "other",
            "status": "pending",
        }));
        json!({"toolCallId": id, "title": title, "kind": "other", "status": "pending"})
    }

    fn end_made_up_call(&self, id: &str, answer: &str) {
        self.out.update(json!({
            "sessionUpdate": "tool_call_update", "toolCallId": id, "status": "completed",
            "content": [tool_content::text(answer)],
        }));
    }
}

/// Returns the updates of a user's message.
fn user_updates(id: &str, content: &Content) -> Vec<Value> {
    match content {
        Content::Text(text) => crate::outbox::text_updates(ChunkKind::User, id, text),
        Content::Blocks(blocks) => blocks
            .iter()
            .flat_map(|block| match block {
                Block::Text(text) => crate::outbox::text_updates(ChunkKind::User, id, &text.text),
                Block::Image { .. } => tool_content::of_result("", std::slice::from_ref(block))
                    .into_iter()
                    .map(|item| crate::outbox::block_update(ChunkKind::User, id, &item["content"]))
                    .collect(),
                _ => Vec::new(),
            })
            .collect(),
    }
}

fn shortened(text: &str) -> String {
    pinion_text::shorten(text, MAX_ERROR_CHARS)
}

fn new_id() -> Arc<str> {
    Uuid::new_v4().to_string().into()
}
