//! The information that a client has after it has read all lines.

use std::collections::BTreeMap;

use pinion_agent::{CompactionReason, Event};
use pinion_message::{Block, Message};
use pinion_pi::{Additions, Dialect};
use serde_json::Value;

/// The conversation and its events, as a client sees them.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct ClientView {
    /// Every complete message: role, content, stop reason, error.
    messages: Vec<(String, Value, Option<String>, Option<String>)>,
    /// The streamed text of each answer and block.
    shown: BTreeMap<(usize, u64), String>,
    /// The complete blocks in the ends of blocks.
    completed: Vec<Value>,
    /// The calls: id, arguments, failure, text.
    calls: Vec<(String, Value, bool, String)>,
    /// The last partial result of a call.
    progress: BTreeMap<String, String>,
    /// The number of messages that runs produced.
    produced: usize,
    /// The number of messages that each finished prompt produced.
    prompts: Vec<usize>,
    /// The summaries; `true` for automatic ones.
    summaries: Vec<(String, bool)>,
    /// The errors of automatic compactions.
    failures: Vec<String>,
    /// The errors outside the conversation.
    faults: Vec<String>,
    /// The number of pauses before a retry.
    retries: usize,
    names: Vec<String>,
}

impl ClientView {
    pub fn of_events(events: &[Event]) -> Self {
        let mut known = Self::default();
        let mut answers = 0;
        let mut in_prompt = 0;
        for event in events {
            match event {
                Event::MessageStart(message) if message.as_assistant().is_some() => answers += 1,
                Event::MessageEnd(message) => known.message(&as_value(message)),
                Event::BlockDelta { index, delta } => {
                    let shown = known.shown.entry((answers, *index as u64)).or_default();
                    shown.push_str(delta);
                }
                Event::BlockEnd { block, .. } => known.completed.push(complete(block)),
                Event::ToolUpdate { run, output } => {
                    known
                        .progress
                        .insert(run.call_id.to_string(), text_of(&output.content));
                }
                Event::ToolEnd {
                    run,
                    output,
                    is_error,
                    ..
                } => known.calls.push((
                    run.call_id.to_string(),
                    run.arguments.clone(),
                    *is_error,
                    text_of(&output.content),
                )),
                Event::AgentEnd { messages, .. } => {
                    known.produced += messages.len();
                    in_prompt += messages.len();
                }
                Event::Settled { .. } => known.prompts.push(std::mem::take(&mut in_prompt)),
                Event::CompactionEnd {
                    reason,
                    result,
                    error,
                    ..
                } => {
                    let auto = *reason != CompactionReason::Manual;
                    if let Some(result) = result {
                        known.summaries.push((result.summary.clone(), auto));
                    }
                    if let Some(error) = error.as_ref().filter(|_| auto) {
                        known.failures.push(error.clone());
                    }
                }
                Event::Fault { error, .. } => known.faults.push(error.clone()),
                Event::RetryStart { .. } => known.retries += 1,
                Event::SessionInfoChanged(Some(name)) => known.names.push(name.clone()),
                _ => {}
            }
        }
        known
    }

    /// Removes everything that this dialect reports only through commands; see `docs/pi.md`.
    pub fn as_reported_in(&self, dialect: Dialect, additions: Additions) -> Self {
        let mut known = self.clone();
        match (dialect, additions) {
            (Dialect::Early, _) => {
                known.retries = 0;
                known.names.clear();
                known.progress.clear();
            }
            (Dialect::Classic, Additions::None) => {
                known.names.clear();
                // A requested summary is in the response.
                known.summaries.retain(|(_, auto)| *auto);
            }
            (Dialect::Classic, Additions::OfExtensions) | (Dialect::Modern, _) => {}
        }
        known
    }

    pub fn of_lines(lines: &[Value], dialect: Dialect) -> Self {
        let mut known = Self::default();
        let mut answers = 0;
        let mut arguments = BTreeMap::new();
        let mut in_prompt = 0;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        for line in lines {
            match line["type"].as_str().unwrap_or_default() {
                "message_start" if line["message"]["role"] == "assistant" => answers += 1,
                "message_end" => known.message(&line["message"]),
                "message_update" => {
                    known.update(answers, &line["assistantMessageEvent"]);
                    if dialect != Dialect::Modern {
                        assert_repeats(&known, answers, line);
                    }
                }
                "tool_execution_start" => {
                    arguments.insert(text(&line["toolCallId"]), line["args"].clone());
                }
                "tool_execution_update" => {
                    let shown = joined(&line["partialResult"]["content"]);
                    known.progress.insert(text(&line["toolCallId"]), shown);
                }
                "tool_execution_end" => {
                    let id = text(&line["toolCallId"]);
                    let is_error = line["isError"].as_bool().unwrap();
                    let output = match &line["result"] {
                        Value::String(words) => words.clone(),
                        result => joined(&result["content"]),
                    };
                    known
                        .calls
                        .push((id.clone(), arguments[&id].clone(), is_error, output));
                }
                "agent_end" => {
                    let produced = line["messages"].as_array().unwrap().len();
                    known.produced += produced;
                    in_prompt += produced;
                    if dialect == Dialect::Early {
                        known.prompts.push(std::mem::take(&mut in_prompt));
                    }
                }
                "agent_settled" => known.prompts.push(std::mem::take(&mut in_prompt)),
                "compaction" => {
                    known
                        .summaries
                        .push((text(&line["summary"]), line["auto"] == true));
                }
                "auto_compaction_end" | "compaction_end" => {
                    let auto = line["reason"] != "manual";
                    if let Some(summary) = line["result"]["summary"].as_str() {
                        known.summaries.push((summary.to_owned(), auto));
                    }
                    if let Some(error) = line["errorMessage"].as_str().filter(|_| auto) {
                        known.failures.push(error.to_owned());
                    }
                }
                "extension_error" => known.faults.push(text(&line["error"])),
                "error" => {
                    let error = text(&line["error"]);
                    match error.strip_prefix("x.ts: load: ") {
                        Some(fault) => known.faults.push(fault.to_owned()),
                        None => known.failures.push(error),
                    }
                }
                "auto_retry_start" => known.retries += 1,
                "session_info_changed" => known.names.push(text(&line["name"])),
                _ => {}
            }
        }
        known
    }

    fn message(&mut self, message: &Value) {
        let text = |name: &str| message[name].as_str().map(str::to_owned);
        self.messages.push((
            text("role").unwrap_or_default(),
            message["content"].clone(),
            text("stopReason"),
            text("errorMessage"),
        ));
    }

    fn update(&mut self, answers: usize, update: &Value) {
        let index = update["contentIndex"].as_u64().unwrap();
        if let Some(delta) = update["delta"].as_str() {
            let shown = self.shown.entry((answers, index)).or_default();
            shown.push_str(delta);
        }
        let whole = [&update["content"], &update["toolCall"]];
        if let Some(whole) = whole.into_iter().find(|whole| !whole.is_null()) {
            self.completed.push(whole.clone());
        }
    }
}

/// Checks that both copies of the answer so far equal the streamed text.
fn assert_repeats(known: &ClientView, answers: usize, line: &Value) {
    let partial = &line["assistantMessageEvent"]["partial"];
    assert_eq!(partial, &line["message"]);
    let index = line["assistantMessageEvent"]["contentIndex"]
        .as_u64()
        .unwrap();
    let block = &partial["content"][index as usize];
    let shown = known
        .shown
        .get(&(answers, index))
        .map_or("", String::as_str);
    match block["type"].as_str() {
        Some("text") => assert_eq!(block["text"], shown),
        Some("thinking") => assert_eq!(block["thinking"], shown),
        _ => {}
    }
}

fn as_value(message: &Message) -> Value {
    serde_json::to_value(message).unwrap()
}

fn complete(block: &Block) -> Value {
    match block {
        Block::Text(text) => Value::String(text.text.clone()),
        Block::Thinking(thinking) => Value::String(thinking.thinking.clone()),
        other => serde_json::to_value(other).unwrap(),
    }
}

fn text_of(blocks: &[Block]) -> String {
    blocks.iter().filter_map(Block::as_text).collect()
}

fn joined(content: &Value) -> String {
    let blocks = content.as_array().map_or(&[][..], Vec::as_slice);
    blocks
        .iter()
        .filter_map(|block| block["text"].as_str())
        .collect()
}
