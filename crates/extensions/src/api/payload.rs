//! Conversions between the engine's values and the JSON that handlers see.

use std::path::Path;
use std::sync::Arc;

use pinion_agent::{
    BranchSummary, CompactionPlan, CompactionReason, Event, ForkPosition, NavigationPlan,
    Replacement, ToolRun,
};
use pinion_message::{Block, Message, now_millis};
use pinion_tools::ToolOutput;
use serde_json::{Map, Value, json};

/// Converts a tool's output to the form that handlers and clients see.
pub(super) fn output_value(output: &ToolOutput) -> Value {
    let mut value = Map::new();
    value.insert("content".into(), json!(output.content));
    if let Some(details) = &output.details {
        value.insert("details".into(), details.clone());
    }
    if let Some(structured) = &output.structured_content {
        value.insert("structuredContent".into(), structured.clone());
    }
    if output.terminate {
        value.insert("terminate".into(), true.into());
    }
    Value::Object(value)
}

/// Converts an extension's value to a tool's output. Content that cannot be sent to a model is left out.
pub(super) fn output_from(value: &Value) -> ToolOutput {
    ToolOutput {
        content: blocks_from(&value["content"]),
        details: value.get("details").cloned(),
        terminate: value["terminate"] == true,
        structured_content: value.get("structuredContent").cloned(),
        is_error: value["isError"] == true,
        change: None,
    }
}

/// Returns the blocks in `value`; a string becomes one block.
pub(super) fn blocks_from(value: &Value) -> Vec<Block> {
    match value {
        Value::String(text) => vec![Block::text(text.clone())],
        Value::Array(blocks) => {
            let blocks = blocks.iter().cloned();
            blocks
                .filter_map(|block| serde_json::from_value(block).ok())
                .collect()
        }
        _ => Vec::new(),
    }
}

/// Converts `images` to the form that handlers see; null if there are none.
pub(super) fn images_value(images: &[Block]) -> Value {
    if images.is_empty() {
        Value::Null
    } else {
        json!(images)
    }
}

/// Converts an event of a run that handlers receive unchanged; `None` for other events.
pub(super) fn event_value(event: &Event, turn: u64) -> Option<Value> {
    Some(match event {
        Event::AgentStart => json!({"type": "agent_start"}),
        Event::AgentEnd { messages, .. } => {
            json!({"type": "agent_end", "messages": message_values(messages)})
        }
        Event::TurnStart => {
            json!({"type": "turn_start", "turnIndex": turn, "timestamp": now_millis()})
        }
        Event::TurnEnd {
            message,
            tool_results,
        } => json!({
            "type": "turn_end",
            "turnIndex": turn,
            "message": **message,
            "toolResults": message_values(tool_results),
        }),
        Event::MessageStart(message) => json!({"type": "message_start", "message": **message}),
        Event::ToolStart(run) => {
            tool_event("tool_execution_start", run, "args", run.arguments.clone())
        }
        Event::ToolUpdate { run, output } => {
            let mut value = tool_event("tool_execution_update", run, "args", run.arguments.clone());
            value["partialResult"] = output_value(output);
            value
        }
        Event::ToolEnd {
            run,
            output,
            is_error,
            duration,
        } => {
            let mut value = tool_event("tool_execution_end", run, "result", output_value(output));
            value["isError"] = (*is_error).into();
            if let Some(duration) = duration {
                let milliseconds = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
                value["later"]["durationMs"] = milliseconds.into();
            }
            value
        }
        Event::Settled { aborted } => json!({"type": "agent_settled", "aborted": aborted}),
        _ => return None,
    })
}

fn tool_event(name: &str, run: &ToolRun, member: &str, value: Value) -> Value {
    let mut event = json!({"type": name, "toolCallId": &*run.call_id, "toolName": run.name});
    event[member] = value;
    add_parent(&mut event, run);
    event
}

/// Adds the call that made this one, if a tool made it.
pub(super) fn add_parent(event: &mut Value, run: &ToolRun) {
    if let Some(parent) = &run.parent_call_id {
        event["later"]["parentToolCallId"] = (**parent).into();
    }
}

fn message_values(messages: &[Arc<Message>]) -> Vec<&Message> {
    messages.iter().map(|message| &**message).collect()
}

/// Returns the event that handlers receive before a session is replaced.
pub(super) fn replacement_question(change: &Replacement) -> Value {
    match change {
        Replacement::New => json!({"type": "session_before_switch", "reason": "new"}),
        Replacement::Resume { file } => json!({
            "type": "session_before_switch",
            "reason": "resume",
            "targetSessionFile": file.display().to_string(),
        }),
        Replacement::Fork { entry_id, position } => json!({
            "type": "session_before_fork",
            "entryId": entry_id,
            "position": match position {
                ForkPosition::Before => "before",
                ForkPosition::At => "at",
            },
        }),
    }
}

/// Returns the reason why one session is replaced by another.
pub(super) fn replacement_reason(change: &Replacement) -> &'static str {
    match change {
        Replacement::New => "new",
        Replacement::Resume { .. } => "resume",
        Replacement::Fork { .. } => "fork",
    }
}

/// Returns an event with a reason and an optional session file.
pub(super) fn session_event(name: &str, reason: &str, member: &str, file: Option<&Path>) -> Value {
    let mut event = json!({"type": name, "reason": reason});
    if let Some(file) = file {
        event[member] = file.display().to_string().into();
    }
    event
}

/// Returns the event that handlers receive before a compaction.
pub(super) fn compaction_question(plan: &CompactionPlan) -> Value {
    let mut preparation = json!({
        "firstKeptEntryId": plan.first_kept_entry_id,
        "messagesToSummarize": message_values(&plan.messages_to_summarise),
        "turnPrefixMessages": message_values(&plan.turn_prefix),
        "isSplitTurn": plan.is_split_turn,
        "tokensBefore": plan.tokens_before,
        "fileOps": plan.files,
        "settings": plan.settings,
    });
    if let Some(summary) = &plan.previous_summary {
        preparation["previousSummary"] = summary.as_str().into();
    }
    let mut question = json!({
        "type": "session_before_compact",
        "preparation": preparation,
        "branchEntries": plan.branch,
        "later": compaction_cause(plan.reason),
    });
    if let Some(instructions) = &plan.instructions {
        question["customInstructions"] = instructions.as_str().into();
    }
    question
}

/// Returns the members that describe the cause of a compaction.
pub(super) fn compaction_cause(reason: CompactionReason) -> Value {
    json!({"reason": reason, "willRetry": reason == CompactionReason::Overflow})
}

/// Returns the event that handlers receive before the session moves to another entry of its tree.
pub(super) fn navigation_question(plan: &NavigationPlan) -> Value {
    let navigation = &plan.navigation;
    let mut preparation = json!({
        "targetId": navigation.target_id,
        "oldLeafId": plan.old_leaf,
        "commonAncestorId": plan.common_ancestor,
        "entriesToSummarize": plan.left,
        "userWantsSummary": navigation.summary.is_some(),
    });
    match &navigation.summary {
        Some(BranchSummary::Focused(text)) => {
            preparation["customInstructions"] = text.as_str().into();
        }
        Some(BranchSummary::Replaced(text)) => {
            preparation["customInstructions"] = text.as_str().into();
            preparation["replaceInstructions"] = true.into();
        }
        Some(BranchSummary::Default) | None => {}
    }
    if let Some(label) = &navigation.label {
        preparation["label"] = label.as_str().into();
    }
    json!({"type": "session_before_tree", "preparation": preparation})
}
