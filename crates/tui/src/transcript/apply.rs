//! Applies the events of a run to the transcript.

use std::sync::Arc;
use std::time::Instant;

use pinion_agent::{CompactionReason, CompactionResult, Event};
use pinion_message::{
    AssistantMessage, Block, CompactionSummaryMessage, Message, StopReason, now_millis,
};

use super::card::Card;
use super::ending::{AnswerEnding, readable};
use super::entry::{EntryKind, Thinking};
use super::load::whole;
use super::prose::Prose;
use super::waiting::Waiting;
use super::{NoticeKind, Transcript};

/// The messages and calls in progress.
#[derive(Default)]
pub(super) struct InProgress {
    /// The entries of the growing answer's blocks.
    answer: Option<Vec<Option<usize>>>,
    /// Another message that has started.
    announced: Option<usize>,
    /// The entry of the wait in progress.
    waiting: Option<usize>,
    /// The entry that describes how the newest answer failed.
    ending: Option<usize>,
    /// Entries that were running or growing, and may be finished by now.
    pub live: Vec<usize>,
}

impl Transcript {
    /// Shows an event.
    pub(crate) fn apply(&mut self, event: &Event) {
        self.apply_at(event, Instant::now());
    }

    pub(super) fn apply_at(&mut self, event: &Event, now: Instant) {
        match event {
            Event::AgentStart => self.stop_waiting(),
            Event::MessageStart(message) => self.message_start(message),
            Event::MessageEnd(message) => self.message_end(message),
            Event::BlockStart { index, block } => self.block_start(*index, block),
            Event::BlockDelta { index, delta } => self.block_delta(*index, delta),
            Event::BlockEnd { index, block } => self.block_end(*index, block),
            Event::ToolStart(run) => {
                let at = self.card_of(&run.call_id, &run.name);
                self.with_card(at, |card| card.start(run, now));
                self.open.live.push(at);
            }
            Event::ToolUpdate { run, output } => {
                let at = self.card_of(&run.call_id, &run.name);
                self.with_card(at, |card| card.update(output, now));
                if !self.open.live.contains(&at) {
                    self.open.live.push(at);
                }
            }
            Event::ToolEnd {
                run,
                output,
                is_error,
                duration,
            } => {
                let at = self.card_of(&run.call_id, &run.name);
                self.with_card(at, |card| card.end(output, *is_error, *duration));
                self.forget_finished();
            }
            Event::RetryStart {
                attempt,
                max_attempts,
                delay,
                error,
            } => {
                let is_told = self.mark_retried();
                self.wait_for(Waiting::Retry {
                    until: now + *delay,
                    attempt: *attempt,
                    max_attempts: *max_attempts,
                    error: (!is_told).then(|| readable(error)),
                });
            }
            Event::SummaryRetryScheduled {
                attempt,
                max_attempts,
                delay,
                error,
            } => self.wait_for(Waiting::Retry {
                until: now + *delay,
                attempt: *attempt,
                max_attempts: *max_attempts,
                error: Some(format!("Summarising failed: {}", readable(error))),
            }),
            Event::SummaryRetryStart(_) | Event::SummaryRetryFinished => self.stop_waiting(),
            Event::RetryEnd {
                success,
                attempt,
                final_error,
            } => self.retry_end(*success, *attempt, final_error.as_deref()),
            Event::CompactionStart { reason } => self.wait_for(Waiting::Compaction {
                since: now,
                why: match reason {
                    CompactionReason::Manual => "",
                    CompactionReason::Threshold => ", which is close to the model's limit",
                    CompactionReason::Overflow => ", which is too long for the model",
                },
            }),
            Event::CompactionEnd {
                result,
                aborted,
                error,
                ..
            } => self.compacted(result.as_deref(), *aborted, error.as_deref()),
            Event::Fault {
                source,
                during,
                error,
            } => {
                let words = format!("{source} ({during}): {error}");
                self.notice(NoticeKind::Error, &words);
            }
            Event::AgentEnd { .. } => self.stop_cards(),
            Event::Settled { .. } => {
                self.stop_cards();
                self.stop_waiting();
            }
            Event::CallDetail(_)
            | Event::TurnStart
            | Event::TurnEnd { .. }
            | Event::UsageUpdate(_)
            | Event::EntryAppended(_)
            | Event::QueueUpdate { .. }
            | Event::ThinkingLevelChanged(_)
            | Event::SessionInfoChanged(_) => {}
        }
    }

    fn message_start(&mut self, message: &Arc<Message>) {
        match &**message {
            Message::Assistant(_) => {
                self.messages += 1;
                self.open.answer = Some(Vec::new());
            }
            Message::ToolResult(_) => {}
            _ => {
                self.messages += 1;
                let at = self.push(whole(message));
                self.open.announced = Some(at);
            }
        }
    }

    fn message_end(&mut self, message: &Arc<Message>) {
        match &**message {
            Message::Assistant(answer) => match self.open.answer.take() {
                Some(blocks) => self.finish_answer(message, answer, &blocks),
                None => self.add_message(message),
            },
            Message::ToolResult(_) => self.add_result(message),
            _ => match self.open.announced.take() {
                Some(at) => self.replace(at, whole(message)),
                None => self.add_message(message),
            },
        }
    }

    fn block_start(&mut self, index: usize, block: &Block) {
        let kind = match block {
            Block::Text(text) => EntryKind::Answer(Prose::growing(&text.text)),
            Block::Thinking(thinking) => EntryKind::Thinking(Thinking {
                prose: Prose::growing(&thinking.thinking),
                is_growing: true,
                is_withheld: thinking.redacted == Some(true),
            }),
            Block::ToolCall(call) => EntryKind::Card(Box::new(Card::writing(&call.name))),
            Block::Image { .. } => return,
        };
        // The transcript may have been rebuilt since the answer began.
        if self.open.answer.is_none() {
            self.messages += 1;
        }
        let at = self.push(kind);
        if let Block::ToolCall(call) = block {
            self.calls.insert(call.id.as_str().into(), at);
            self.open.live.push(at);
        }
        let blocks = self.open.answer.get_or_insert_default();
        /// Blocks that an answer may have; a larger index is ignored.
        const MAX_BLOCKS: usize = 100_000;
        if index < MAX_BLOCKS {
            if blocks.len() <= index {
                blocks.resize(index + 1, None);
            }
            blocks[index] = Some(at);
        }
    }

    fn open_block(&mut self, index: usize) -> Option<usize> {
        *self.open.answer.as_ref()?.get(index)?
    }

    fn block_delta(&mut self, index: usize, delta: &str) {
        let Some(at) = self.open_block(index) else {
            return;
        };
        match &mut self.entries[at].kind {
            EntryKind::Answer(prose) => prose.push(delta),
            EntryKind::Thinking(thinking) => thinking.prose.push(delta),
            EntryKind::Card(card) => card.write(delta),
            _ => {}
        }
    }

    fn block_end(&mut self, index: usize, block: &Block) {
        let Some(at) = self.open_block(index) else {
            return;
        };
        let entry = &mut self.entries[at];
        match (&mut entry.kind, block) {
            (EntryKind::Answer(prose), Block::Text(text)) => prose.correct(&text.text),
            (EntryKind::Thinking(thinking), Block::Thinking(block)) => {
                thinking.prose.correct(&block.thinking);
                thinking.is_growing = false;
                thinking.is_withheld = block.redacted == Some(true);
                entry.touch();
            }
            (EntryKind::Card(card), Block::ToolCall(call)) => {
                card.complete(call);
                entry.touch();
                // Some providers send the id last.
                self.calls.insert(call.id.as_str().into(), at);
            }
            _ => {}
        }
    }

    /// Completes the answer: streamed blocks become parts of the message.
    fn finish_answer(
        &mut self,
        message: &Arc<Message>,
        answer: &AssistantMessage,
        blocks: &[Option<usize>],
    ) {
        for (index, block) in answer.content.iter().enumerate() {
            let at = blocks.get(index).copied().flatten();
            let is_taken = at.is_some_and(|at| self.finish_block(at, message, index, block));
            if !is_taken {
                if let Some(at) = at {
                    self.remove(at);
                }
                self.add_block(message, index, block);
            }
        }
        for at in blocks.iter().skip(answer.content.len()).flatten() {
            self.remove(*at);
        }
        if matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted) {
            self.stop_cards();
        }
        self.open.ending =
            AnswerEnding::of(answer).map(|ending| self.push(EntryKind::Ending(ending)));
    }

    /// Turns a streamed block into a part of its message. Returns false if the kinds differ.
    fn finish_block(
        &mut self,
        at: usize,
        message: &Arc<Message>,
        index: usize,
        block: &Block,
    ) -> bool {
        let entry = &mut self.entries[at];
        match (&mut entry.kind, block) {
            (EntryKind::Answer(prose), Block::Text(_)) => prose.finish(Arc::clone(message), index),
            (EntryKind::Thinking(thinking), Block::Thinking(block)) => {
                thinking.prose.finish(Arc::clone(message), index);
                thinking.is_growing = false;
                thinking.is_withheld = block.redacted == Some(true);
            }
            (EntryKind::Card(card), Block::ToolCall(call)) => {
                card.name.clone_from(&call.name);
                card.settle(Arc::clone(message), index);
                self.calls.insert(call.id.as_str().into(), at);
            }
            _ => return false,
        }
        entry.touch();
        true
    }

    /// Marks the newest failure as retried. Returns whether it is shown.
    fn mark_retried(&mut self) -> bool {
        let Some(at) = self.open.ending.take() else {
            return false;
        };
        let Some(entry) = self.entries.get_mut(at) else {
            return false;
        };
        if let EntryKind::Ending(ending) = &mut entry.kind {
            ending.retried();
        }
        entry.touch();
        true
    }

    fn retry_end(&mut self, success: bool, attempt: u32, error: Option<&str>) {
        self.stop_waiting();
        let words = match attempt {
            _ if success => return,
            _ if error == Some("Retry cancelled") => "Not retried: you stopped it.".to_owned(),
            1 => "Retried once without success. Giving up.".to_owned(),
            times => format!("Retried {times} times without success. Giving up."),
        };
        self.notice(NoticeKind::Warning, &words);
    }

    fn wait_for(&mut self, waiting: Waiting) {
        self.stop_waiting();
        let at = self.push(EntryKind::Waiting(waiting));
        self.open.waiting = Some(at);
        self.open.live.push(at);
    }

    fn stop_waiting(&mut self) {
        if let Some(at) = self.open.waiting.take() {
            self.remove(at);
        }
        self.forget_finished();
    }

    fn compacted(&mut self, result: Option<&CompactionResult>, aborted: bool, error: Option<&str>) {
        self.stop_waiting();
        if let Some(result) = result {
            let summary = Message::CompactionSummary(CompactionSummaryMessage {
                summary: result.summary.clone(),
                tokens_before: result.tokens_before,
                timestamp: now_millis(),
            });
            self.push(EntryKind::Summary(Arc::new(summary)));
        } else if aborted {
            self.notice(NoticeKind::Information, "Summarising was stopped.");
        } else if let Some(error) = error {
            let words = match error {
                "Already compacted" => "There is nothing new to summarise.".to_owned(),
                _ if error.starts_with("Nothing to compact") => {
                    "There is nothing to summarise yet: the conversation is short.".to_owned()
                }
                _ => format!(
                    "Summarising failed: {}\nThe conversation is unchanged. Use /compact to try again.",
                    readable(error)
                ),
            };
            self.notice(NoticeKind::Error, &words);
        }
    }

    /// Marks all running calls as stopped.
    fn stop_cards(&mut self) {
        for at in std::mem::take(&mut self.open.live) {
            self.with_card(at, Card::stop);
            self.open.live.push(at);
        }
        self.forget_finished();
    }

    fn forget_finished(&mut self) {
        let entries = &self.entries;
        self.open
            .live
            .retain(|at| entries.get(*at).is_some_and(|entry| entry.is_unfinished()));
    }
}
