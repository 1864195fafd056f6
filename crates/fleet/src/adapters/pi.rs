//! Adapter for pi's JSON mode, old and new, which pinion speaks too.
//!
//! A failed answer is reported before the child retries by itself. Such a retry may follow `agent_end`, but not
//! `agent_settled`. Usage and cost are those of one request, in the `message_end` of its answer.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::adapter::{Adapter, Reading};
use crate::lenient;
use crate::{
    ChildEvent, ChildFailure, Effect, FailureKind, FinishReason, Micros, Step, Text, Tokens,
    ToolPhase, classify_text,
};

#[derive(Debug, Default)]
pub(crate) struct Pi {
    /// The child is done, except perhaps for a compaction.
    idle: bool,
}

#[derive(Deserialize)]
struct SessionLine {
    #[serde(default, deserialize_with = "lenient::text")]
    id: Option<String>,
}

#[derive(Deserialize)]
struct MessageLine<'a> {
    #[serde(borrow)]
    message: Message<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message<'a> {
    #[serde(default, deserialize_with = "lenient::text")]
    role: Option<String>,
    /// Parsed only for the role `assistant`, because tool results may be large.
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "lenient::text")]
    stop_reason: Option<String>,
    #[serde(default, deserialize_with = "lenient::text")]
    error_message: Option<String>,
    #[serde(default, deserialize_with = "lenient::or_default")]
    usage: Usage,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Usage {
    #[serde(deserialize_with = "lenient::count")]
    input: u64,
    #[serde(deserialize_with = "lenient::count")]
    output: u64,
    #[serde(deserialize_with = "lenient::count")]
    cache_read: u64,
    #[serde(deserialize_with = "lenient::count")]
    cache_write: u64,
    #[serde(deserialize_with = "lenient::or_default")]
    cost: Cost,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Cost {
    #[serde(deserialize_with = "lenient::number")]
    total: f64,
}

#[derive(Deserialize)]
struct Block {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default, deserialize_with = "lenient::text")]
    text: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolLine {
    tool_name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CompactionLine {
    #[serde(default, deserialize_with = "lenient::or_default")]
    result: Option<CompactionResult>,
    #[serde(default, deserialize_with = "lenient::or_default")]
    will_retry: Option<bool>,
}

#[derive(Deserialize)]
struct CompactionResult {
    #[serde(default, deserialize_with = "lenient::or_default")]
    usage: Option<Usage>,
}

impl Adapter for Pi {
    fn needs_whole(&self, kind: &[u8]) -> bool {
        matches!(
            kind,
            b"session"
                | b"message_end"
                | b"tool_execution_start"
                | b"tool_execution_end"
                | b"compaction_end"
                | b"auto_compaction_end"
        )
    }

    fn read(&mut self, kind: &[u8], line: &[u8], events: &mut Vec<ChildEvent>) -> Reading {
        let read = match kind {
            b"message_update" | b"tool_execution_update" => {
                events.push(ChildEvent::Text(Text::Partial));
                Ok(())
            }
            b"session" => session(line, events),
            b"message_end" => message(line, events),
            b"tool_execution_start" => tool(line, ToolPhase::Started, events),
            b"tool_execution_end" => tool(line, ToolPhase::Ended, events),
            b"compaction_end" | b"auto_compaction_end" => self.compaction(line, events),
            // `idle` stays unchanged: a child that was idle is idle again after the compaction.
            b"compaction_start" | b"auto_compaction_start" => {
                events.push(ChildEvent::Started { session: None });
                Ok(())
            }
            b"agent_start" | b"turn_start" | b"auto_retry_start" => {
                self.idle = false;
                events.push(ChildEvent::Started { session: None });
                Ok(())
            }
            b"agent_end" | b"agent_settled" => {
                self.idle = true;
                events.push(ChildEvent::Idle);
                Ok(())
            }
            _ => return Reading::Ignored,
        };
        match read {
            Ok(()) => Reading::Event,
            Err(_) => Reading::Invalid,
        }
    }

    fn read_kind_only(&mut self, kind: &[u8], events: &mut Vec<ChildEvent>) {
        match kind {
            b"message_end" => events.push(ChildEvent::Text(Text::Partial)),
            b"compaction_end" | b"auto_compaction_end" if self.idle => {
                events.push(ChildEvent::Idle);
            }
            _ => {}
        }
    }
}

impl Pi {
    /// Handles the end of a compaction, whose cost counts like that of any other step.
    fn compaction(&mut self, line: &[u8], events: &mut Vec<ChildEvent>) -> serde_json::Result<()> {
        let line: CompactionLine = serde_json::from_slice(line)?;
        if let Some(usage) = line.result.and_then(|result| result.usage) {
            events.push(ChildEvent::StepFinished(step(
                FinishReason::Compaction,
                &usage,
            )));
        }
        self.idle &= line.will_retry != Some(true);
        if self.idle {
            events.push(ChildEvent::Idle);
        }
        Ok(())
    }
}

fn session(line: &[u8], events: &mut Vec<ChildEvent>) -> serde_json::Result<()> {
    let line: SessionLine = serde_json::from_slice(line)?;
    let session = line.id;
    events.push(ChildEvent::Started { session });
    Ok(())
}

fn tool(line: &[u8], phase: ToolPhase, events: &mut Vec<ChildEvent>) -> serde_json::Result<()> {
    let line: ToolLine = serde_json::from_slice(line)?;
    events.push(ChildEvent::Tool {
        effect: Effect::of_tool(&line.tool_name),
        name: line.tool_name,
        phase,
    });
    Ok(())
}

fn message(line: &[u8], events: &mut Vec<ChildEvent>) -> serde_json::Result<()> {
    let MessageLine { message } = serde_json::from_slice(line)?;
    if message.role.as_deref() != Some("assistant") {
        return Ok(());
    }
    let text = message.content.map_or(Ok(None), answer_text)?;
    events.extend(text.map(|text| ChildEvent::Text(Text::Complete(text))));
    let reason = message
        .stop_reason
        .as_deref()
        .map_or(FinishReason::Unknown, FinishReason::parse);
    events.push(ChildEvent::StepFinished(step(reason, &message.usage)));
    let error = || message.error_message.clone();
    match reason {
        FinishReason::Error => {
            let error =
                error().unwrap_or_else(|| "the model failed without an error message".into());
            events.push(ChildEvent::Failed(ChildFailure::new(
                classify_text(&error),
                error,
            )));
        }
        FinishReason::Aborted => {
            let error = error().unwrap_or_else(|| "the request was aborted".into());
            events.push(ChildEvent::Failed(ChildFailure::new(
                FailureKind::Aborted,
                error,
            )));
        }
        _ => {}
    }
    Ok(())
}

/// Returns the text of an answer, which is a string or a list of blocks.
fn answer_text(content: &RawValue) -> serde_json::Result<Option<String>> {
    let blocks: Vec<Block> = match serde_json::from_str(content.get()) {
        Ok(blocks) => blocks,
        Err(_) => match serde_json::from_str(content.get())? {
            Value::String(text) => return Ok(Some(text)),
            other => lenient::items(other),
        },
    };
    let texts = blocks.into_iter().filter(|block| block.kind == "text");
    let texts: Vec<String> = texts.filter_map(|block| block.text).collect();
    Ok((!texts.is_empty()).then(|| texts.join("\n")))
}

fn step(reason: FinishReason, usage: &Usage) -> Step {
    Step {
        reason,
        tokens: Tokens {
            input: usage.input,
            output: usage.output,
            cache_read: usage.cache_read,
            cache_write: usage.cache_write,
        },
        cost: Some(Micros::from_dollars(usage.cost.total)),
    }
}
