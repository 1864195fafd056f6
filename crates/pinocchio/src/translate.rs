//! Translates the engine's events of one run into backend events of a chat.
//!
//! The engine reports turns, messages and blocks; a chat reports requests to the provider, segments and calls. Their
//! order and words depend on the kind of engine: `family.rs` has the table.

mod answer;
mod naming;
mod result;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use pinion_agent::{Event, ToolOutput, ToolRun};
use pinion_message::{Block, Message};

use crate::events::ChatEvent;
use crate::family::ProviderCalls;
use crate::ids;
use crate::pb::{self, Text};
use crate::run_end::RunEnd;
use answer::Answer;
use naming::Naming;
use result::result_text;

pub(crate) use result::{from_json_text, to_json_text};

/// The facts about a run when it begins.
#[derive(Debug, Clone)]
pub struct RunStart {
    pub session_id: Text,
    /// The run's name, from [`crate::new_root`].
    pub root: Text,
    /// The engine's id of the run, a UUID.
    pub inference_id: Text,
    /// The turn that the run continues, a UUID.
    pub turn_id: Text,
    /// The user's prompt, as it is shown.
    pub prompt: Text,
}

/// Translates the events of runs, one run after another.
#[derive(Debug, Default)]
pub struct Translator {
    run: Option<Run>,
}

/// A run that has not ended.
#[derive(Debug)]
struct Run {
    start: RunStart,
    /// The time of the request to the model.
    asked: Option<Instant>,
    naming: Naming,
    /// The growing answer, or a failed one whose failure has not been reported.
    answer: Option<Answer>,
    /// The correlation of every call of the model.
    calls: HashMap<String, pb::CorrelationInfo>,
    /// An answer has begun. A failure is then the engine's own, which names no run.
    has_answer: bool,
}

impl Translator {
    /// Starts a run. An unfinished one ends as stopped: a run has exactly one end.
    pub fn begin(&mut self, start: RunStart, out: &mut Vec<ChatEvent>) {
        self.end(&RunEnd::Stopped, Instant::now(), out);
        let prompt = Text::new(start.prompt.trim());
        let start = RunStart { prompt, ..start };
        let run = Run {
            naming: Naming::new(&start),
            start,
            asked: None,
            answer: None,
            calls: HashMap::new(),
            has_answer: false,
        };
        out.push(ChatEvent::UserMessageAccepted(
            pb::ChatUserMessageAccepted {
                message_id: ids::user_message(&run.start.root).into(),
                role: "user".into(),
                text: run.start.prompt.clone(),
                content: run.start.prompt.clone(),
                status: "accepted".into(),
                ..Default::default()
            },
        ));
        out.push(ChatEvent::RunStarted(pb::ChatRunStarted {
            message_id: run.start.root.clone(),
            prompt: run.start.prompt.clone(),
            correlation: Some(run.correlation()),
        }));
        self.run = Some(run);
    }

    pub fn is_running(&self) -> bool {
        self.run.is_some()
    }

    /// Translates an event. All events of the engine are listed here, including those that a chat does not show.
    pub fn event(&mut self, event: &Event, at: Instant, out: &mut Vec<ChatEvent>) {
        let Some(run) = &mut self.run else { return };
        match event {
            Event::TurnStart => run.asked = Some(at),
            Event::MessageStart(message) => run.message_start(message, at, out),
            Event::MessageEnd(message) => run.message_end(message, at, out),
            Event::BlockStart { index, block } => run.block_start(*index, block, out),
            Event::BlockDelta { index, delta } => run.delta(*index, delta, out),
            Event::BlockEnd { index, block } => run.block_end(*index, block, out),
            Event::UsageUpdate(usage) => {
                if let Some(answer) = &mut run.answer {
                    answer.usage = *usage;
                }
            }
            Event::ToolStart(call) => run.tool_start(call, out),
            Event::ToolEnd {
                run: call,
                output,
                is_error,
                duration: _,
            } => run.tool_end(call, output, *is_error, out),
            Event::AgentEnd { will_retry, .. } => {
                if *will_retry {
                    run.close_failed_attempt(at, out);
                }
            }
            // The starter of a run reports its beginning and end, because a prompt may need several runs of the engine.
            Event::AgentStart | Event::TurnEnd { .. } | Event::Settled { .. } => {}
            // A chat does not show partial results of a tool.
            Event::ToolUpdate { .. } => {}
            // They are not emitted for this front.
            Event::CallDetail(_) => {}
            // The repeated request is reported as another one.
            Event::RetryStart { .. } | Event::RetryEnd { .. } => {}
            // Housekeeping and events outside the conversation.
            Event::CompactionStart { .. }
            | Event::CompactionEnd { .. }
            | Event::SummaryRetryScheduled { .. }
            | Event::SummaryRetryStart(_)
            | Event::SummaryRetryFinished
            | Event::EntryAppended(_)
            | Event::QueueUpdate { .. }
            | Event::ThinkingLevelChanged(_)
            | Event::SessionInfoChanged(_)
            | Event::Fault { .. } => {}
        }
    }

    /// Translates an addition to a block of the answer.
    pub fn delta(&mut self, index: usize, delta: &Arc<str>, out: &mut Vec<ChatEvent>) {
        if let Some(run) = &mut self.run {
            run.delta(index, delta, out);
        }
    }

    /// Ends the run.
    pub fn end(&mut self, end: &RunEnd, at: Instant, out: &mut Vec<ChatEvent>) {
        if let Some(run) = self.run.take() {
            run.end(end, at, out);
        }
    }
}

impl Run {
    /// Returns the correlation of the run's own events.
    fn correlation(&self) -> pb::CorrelationInfo {
        pb::CorrelationInfo {
            session_id: self.start.session_id.clone(),
            run_id: self.start.root.clone(),
            ..Default::default()
        }
    }

    fn message_start(&mut self, message: &Message, at: Instant, out: &mut Vec<ChatEvent>) {
        let Message::Assistant(message) = message else {
            return;
        };
        // The answer failed before its first byte, so no request has been reported.
        if message.error_message.is_some() {
            return;
        }
        self.close_failed_attempt(at, out);
        let answer = Answer::begin(message, &mut self.naming, self.asked.unwrap_or(at));
        if answer.family.calls == ProviderCalls::Told {
            out.push(ChatEvent::ProviderCallStarted(
                pb::ChatProviderCallStarted {
                    correlation: Some(answer.correlation.clone()),
                },
            ));
        }
        self.has_answer = true;
        self.answer = Some(answer);
    }

    fn block_start(&mut self, index: usize, block: &Block, out: &mut Vec<ChatEvent>) {
        let Some(answer) = &mut self.answer else {
            return;
        };
        answer.open(index, block, &self.start, &mut self.naming, out);
        if let Block::ToolCall(call) = block
            && let Some(correlation) = answer.correlation_of(index)
        {
            self.calls.insert(call.id.clone(), correlation);
        }
    }

    fn delta(&mut self, index: usize, delta: &Arc<str>, out: &mut Vec<ChatEvent>) {
        if let Some(answer) = &mut self.answer {
            answer.grow(index, delta, out);
        }
    }

    fn block_end(&mut self, index: usize, block: &Block, out: &mut Vec<ChatEvent>) {
        if let Some(answer) = &mut self.answer {
            answer.close(index, block, &self.start, out);
        }
    }

    fn message_end(&mut self, message: &Message, at: Instant, out: &mut Vec<ChatEvent>) {
        let (Message::Assistant(message), Some(answer)) = (message, &mut self.answer) else {
            return;
        };
        if answer.record_end(message) {
            // The handling of a failure depends on whether the engine retries, which it reports later.
            return;
        }
        for (index, block) in message.content.iter().enumerate() {
            if answer.is_unannounced(index) {
                answer.report_whole(index, block, &self.start, &mut self.naming, out);
                if let (Block::ToolCall(call), Some(correlation)) =
                    (block, answer.correlation_of(index))
                {
                    self.calls.insert(call.id.clone(), correlation);
                }
            }
        }
        answer.finish(message, &self.start, at, out);
        self.answer = None;
    }

    /// Closes the segments of a request that failed and will be repeated.
    fn close_failed_attempt(&mut self, at: Instant, out: &mut Vec<ChatEvent>) {
        if let Some(mut answer) = self.answer.take() {
            let (status, reason) = (answer.family.broken_status, "error");
            answer.interrupt(status, reason, &self.start, out);
            answer.report_failure(pinion_message::StopReason::Error, at, out);
        }
    }

    fn tool_start(&mut self, call: &ToolRun, out: &mut Vec<ChatEvent>) {
        out.push(ChatEvent::ToolExecutionStarted(
            pb::ChatToolExecutionStarted {
                message_id: self.start.root.clone(),
                tool_call_id: (&call.call_id).into(),
                tool_name: call.name.clone().into(),
                input: call.arguments.to_string().into(),
                executing: true,
                status: "executing".into(),
                correlation: Some(self.call_correlation(&call.call_id)),
            },
        ));
    }

    fn tool_end(
        &mut self,
        call: &ToolRun,
        output: &ToolOutput,
        is_error: bool,
        out: &mut Vec<ChatEvent>,
    ) {
        let status = if is_error { "error" } else { "success" };
        let correlation = self.call_correlation(&call.call_id);
        out.push(ChatEvent::ToolResultReady(pb::ChatToolResultReady {
            message_id: self.start.root.clone(),
            tool_call_id: (&call.call_id).into(),
            tool_name: call.name.clone().into(),
            result: result_text(output, is_error).into(),
            status: status.into(),
            correlation: Some(correlation.clone()),
        }));
        out.push(ChatEvent::ToolCallFinished(pb::ChatToolCallFinished {
            message_id: self.start.root.clone(),
            tool_call_id: (&call.call_id).into(),
            tool_name: call.name.clone().into(),
            status: status.into(),
            correlation: Some(correlation),
        }));
    }

    fn call_correlation(&self, call_id: &str) -> pb::CorrelationInfo {
        let known = self.calls.get(call_id).cloned();
        known.unwrap_or_else(|| pb::CorrelationInfo {
            session_id: self.start.session_id.clone(),
            run_id: self.start.inference_id.clone(),
            turn_id: self.start.turn_id.clone(),
            tool_call_id: Text::new(call_id),
            ..Default::default()
        })
    }

    fn end(mut self, end: &RunEnd, at: Instant, out: &mut Vec<ChatEvent>) {
        let mut unfinished = self.answer.take();
        if let Some(answer) = &mut unfinished {
            let (status, reason) = match end {
                RunEnd::Finished => ("finished", "stop"),
                RunEnd::Stopped => ("stopped", "stopped"),
                RunEnd::Failed(_) => (answer.family.broken_status, "error"),
            };
            answer.interrupt(status, reason, &self.start, out);
        }
        let message_id = self.start.root.clone();
        let correlation = Some(self.correlation());
        match end {
            RunEnd::Finished => out.push(ChatEvent::RunFinished(pb::ChatRunFinished {
                message_id,
                status: "finished".into(),
                correlation,
                ..Default::default()
            })),
            RunEnd::Stopped => out.push(ChatEvent::RunStopped(pb::ChatRunStopped {
                message_id,
                status: "stopped".into(),
                correlation,
                ..Default::default()
            })),
            RunEnd::Failed(error) => {
                self.warn(error, out);
                out.push(ChatEvent::RunFailed(pb::ChatRunFailed {
                    message_id,
                    status: "failed".into(),
                    error: error.clone().into(),
                    correlation: correlation.filter(|_| !self.has_answer),
                }));
            }
        }
        if let Some(mut answer) = unfinished {
            answer.report_failure(
                match end {
                    RunEnd::Finished => pinion_message::StopReason::Stop,
                    RunEnd::Stopped => pinion_message::StopReason::Aborted,
                    RunEnd::Failed(_) => pinion_message::StopReason::Error,
                },
                at,
                out,
            );
        }
    }

    /// Reports a warning if the run reached its limit of requests.
    fn warn(&self, error: &str, out: &mut Vec<ChatEvent>) {
        if !error.contains("max iterations") {
            return;
        }
        let digits = error
            .split(|character: char| !character.is_ascii_digit())
            .find(|digits| !digits.is_empty());
        let text: Text = match digits {
            Some(limit) => {
                format!("The run was stopped after {limit} requests to the model, its limit.")
                    .into()
            }
            None => {
                "The run was stopped because it reached its limit of requests to the model.".into()
            }
        };
        let message_id = Text::from(ids::warning(&self.start.root));
        out.push(ChatEvent::TextSegmentFinished(
            pb::ChatTextSegmentFinished {
                correlation: Some(pb::CorrelationInfo {
                    segment_id: message_id.clone(),
                    ..self.correlation()
                }),
                message_id,
                role: "warning".into(),
                prompt: self.start.prompt.clone(),
                text: text.clone(),
                content: text,
                status: "finished".into(),
                r#final: true,
                ..Default::default()
            },
        ));
    }
}
