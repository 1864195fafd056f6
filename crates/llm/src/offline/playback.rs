//! Plays one turn as the events of a stream.
//!
//! Text arrives as fast as it is read, unless a step has a pace. Cancelling ends the stream at the
//! next event, also in the middle of a wait. This module does not depend on the source of the turn.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use futures_util::stream;
use pinion_message::{
    AssistantMessage, Block, Model, StopReason, TextBlock, ThinkingBlock, ToolCall, Usage,
};
use serde_json::{Map, Value};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::pieces::{Pieces, prompt_tokens};
use super::script::{Paced, ScriptedCall, ScriptedTurn, Step, Tokens};
use crate::answer::blank;
use crate::deadlines::{Deadlines, Interruption};
use crate::partial_json::read_arguments;
use crate::{EventStream, Request, StreamEvent};

/// Events in a row after which other tasks run.
const EVENTS_PER_YIELD: u32 = 64;

/// The error of an overloaded provider.
const OVERLOADED: &str =
    r#"529 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;

/// The failures of each scripted overload so far in this process.
///
/// Failed answers are not part of the history, so the count cannot be derived from a request.
static OVERLOADS: LazyLock<Mutex<HashMap<u64, u32>>> = LazyLock::new(Mutex::default);

/// One answer being played.
pub(super) struct Playback {
    model: Arc<Model>,
    cancel: CancellationToken,
    deadlines: Deadlines,
    /// Identifies the turn within the session.
    key: u64,
    steps: std::vec::IntoIter<Step>,
    /// Events that are due before the next step.
    ready: VecDeque<StreamEvent>,
    /// The rest of the text that is being sent.
    streaming: Option<Streaming>,
    message: AssistantMessage,
    state: PlaybackState,
    /// The kind of the last block, while it still grows.
    open: Option<BlockKind>,
    /// The arguments of the open tool call, set when all of its text was sent.
    arguments: (Map<String, Value>, Option<String>),
    call_prefix: String,
    stop: Option<StopReason>,
    tokens: Option<Tokens>,
    prompt_tokens: u64,
    answer_characters: u64,
    events_in_a_row: u32,
}

#[derive(Clone, Copy, PartialEq)]
enum PlaybackState {
    Waiting,
    Started,
    Over,
}

#[derive(Clone, Copy, PartialEq)]
enum BlockKind {
    Text,
    Thinking,
    Tool,
}

struct Streaming {
    pieces: Pieces,
    pace: Duration,
    due: Option<Instant>,
}

impl Playback {
    pub(super) fn new(request: &Request, turn: ScriptedTurn) -> Self {
        let model = Arc::clone(&request.model);
        let mut hasher = DefaultHasher::new();
        (&request.options.session_id, turn.key).hash(&mut hasher);
        Self {
            cancel: request.cancel.clone(),
            deadlines: Deadlines::new(request),
            key: hasher.finish(),
            steps: turn.steps.into_iter(),
            ready: VecDeque::new(),
            streaming: None,
            message: blank(&model),
            state: PlaybackState::Waiting,
            open: None,
            arguments: Default::default(),
            call_prefix: format!("offline-{}", request.messages.len()),
            stop: None,
            tokens: turn.usage,
            prompt_tokens: prompt_tokens(request),
            answer_characters: 0,
            events_in_a_row: 0,
            model,
        }
    }

    pub(super) fn into_stream(self) -> EventStream {
        Box::pin(stream::unfold(Box::new(self), |mut playback| async move {
            playback.next().await.map(|event| (event, playback))
        }))
    }

    async fn next(&mut self) -> Option<StreamEvent> {
        self.events_in_a_row += 1;
        if self.events_in_a_row >= EVENTS_PER_YIELD {
            self.events_in_a_row = 0;
            tokio::task::yield_now().await;
        }
        loop {
            if self.state != PlaybackState::Over && self.cancel.is_cancelled() {
                self.abort();
            } else if self.state != PlaybackState::Over && self.deadlines.is_past_deadline() {
                self.interrupted(Interruption::DeadlinePassed);
            }
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if self.state == PlaybackState::Over {
                return None;
            }
            if let Some(event) = self.next_piece().await {
                return Some(event);
            }
            if self.streaming.is_none()
                && self.ready.is_empty()
                && self.state != PlaybackState::Over
            {
                match self.steps.next() {
                    Some(step) => self.begin(step).await,
                    None => self.finish(),
                }
            }
        }
    }

    /// The next delta of the text that is being sent.
    async fn next_piece(&mut self) -> Option<StreamEvent> {
        let streaming = self.streaming.as_mut()?;
        if !streaming.pace.is_zero() {
            let (now, pace) = (Instant::now(), streaming.pace);
            // Pieces follow their schedule, also when an earlier one was late.
            let due = streaming.due.unwrap_or(now).checked_add(pace);
            streaming.due = due;
            let pause = due.map_or(pace, |due| due.saturating_duration_since(now));
            if !self.pause(pause).await {
                return None;
            }
        }
        let Some(delta) = self.streaming.as_mut()?.pieces.next() else {
            self.streaming = None;
            return None;
        };
        self.answer_characters += delta.chars().count() as u64;
        match self.message.content.last_mut() {
            Some(Block::Text(block)) => block.text.push_str(&delta),
            Some(Block::Thinking(block)) => block.thinking.push_str(&delta),
            // The arguments of a call are set when it ends.
            _ => {}
        }
        Some(StreamEvent::Delta {
            index: self.message.content.len() - 1,
            delta,
        })
    }

    async fn begin(&mut self, step: Step) {
        match step {
            Step::Text(Paced { what, chunk, pace }) => {
                self.open_block(BlockKind::Text, || Block::Text(TextBlock::default()));
                self.arrive(
                    Pieces::Cut {
                        text: what,
                        at: 0,
                        chunk,
                    },
                    pace,
                );
            }
            Step::Deltas { count, size, pace } => {
                self.open_block(BlockKind::Text, || Block::Text(TextBlock::default()));
                self.arrive(
                    Pieces::Numbered {
                        next: 0,
                        count,
                        size,
                    },
                    pace,
                );
            }
            Step::Think(Paced { what, chunk, pace }) => {
                self.open_block(BlockKind::Thinking, || {
                    Block::Thinking(ThinkingBlock::default())
                });
                self.arrive(
                    Pieces::Cut {
                        text: what,
                        at: 0,
                        chunk,
                    },
                    pace,
                );
            }
            Step::Signature(signature) => {
                if let Some(Block::Thinking(block)) = self.message.content.last_mut() {
                    block.thinking_signature = Some(signature);
                }
            }
            Step::Tool(Paced {
                what: ScriptedCall { id, name, text },
                chunk,
                pace,
            }) => {
                self.close_block();
                let arguments = match read_arguments(&text) {
                    (Value::Object(arguments), None) => (arguments, None),
                    (_, error) => (Map::new(), error),
                };
                let id = id.unwrap_or_else(|| {
                    format!("{}-{}", self.call_prefix, self.message.content.len())
                });
                let empty = Value::Object(Map::new());
                let call = ToolCall {
                    id,
                    name,
                    arguments: empty,
                    thought_signature: None,
                    arguments_error: None,
                };
                self.open_block(BlockKind::Tool, || Block::ToolCall(call));
                self.arguments = arguments;
                self.arrive(Pieces::Cut { text, at: 0, chunk }, pace);
            }
            Step::Stall(time) => self.stall(time).await,
            Step::Overload(times) => self.overload(times),
            Step::Fail(message) => self.end(StopReason::Error, Some(message)),
            Step::Stop(reason) => self.stop = Some(reason),
        }
    }

    fn start(&mut self) {
        if self.state == PlaybackState::Waiting {
            self.state = PlaybackState::Started;
            self.ready
                .push_back(StreamEvent::Start(self.message.clone()));
        }
    }

    /// Begins a block, or continues the last one when it is of the same kind.
    fn open_block(&mut self, kind: BlockKind, block: impl FnOnce() -> Block) {
        self.start();
        if self.open == Some(kind) && kind != BlockKind::Tool {
            return;
        }
        self.close_block();
        let (index, block) = (self.message.content.len(), block());
        self.ready.push_back(StreamEvent::BlockStart {
            index,
            block: block.clone(),
        });
        self.message.content.push(block);
        self.open = Some(kind);
    }

    fn close_block(&mut self) {
        if self.open.take().is_some()
            && let Some(block) = self.message.content.last_mut()
        {
            if let Block::ToolCall(call) = block {
                let (arguments, error) = std::mem::take(&mut self.arguments);
                call.arguments = Value::Object(arguments);
                call.arguments_error = error;
            }
            let block = block.clone();
            let index = self.message.content.len() - 1;
            self.ready.push_back(StreamEvent::BlockEnd { index, block });
        }
    }

    fn arrive(&mut self, pieces: Pieces, pace: Duration) {
        self.streaming = Some(Streaming {
            pieces,
            pace,
            due: None,
        });
    }

    async fn stall(&mut self, time: Duration) {
        self.start();
        self.pause(time).await;
    }

    /// Waits, and ends the answer if the request does not permit that long a wait. Returns true
    /// when the time has passed.
    async fn pause(&mut self, time: Duration) -> bool {
        let idle = self.deadlines.timeouts().idle;
        let waited = self.deadlines.within(idle, tokio::time::sleep(time)).await;
        if let Err(interruption) = waited {
            self.interrupted(interruption);
        }
        waited.is_ok()
    }

    fn interrupted(&mut self, interruption: Interruption) {
        let message = match interruption {
            // `next` checks for it first.
            Interruption::Cancelled => return,
            Interruption::TimedOut => self.deadlines.idle_text(),
            Interruption::DeadlinePassed => self.deadlines.deadline_text(),
        };
        self.end(StopReason::Error, Some(message));
    }

    fn overload(&mut self, times: u32) {
        let mut overloads = OVERLOADS.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = overloads.entry(self.key).or_default();
        if *failed < times {
            *failed += 1;
            drop(overloads);
            self.end(StopReason::Error, Some(OVERLOADED.to_owned()));
        } else {
            // A repeated prompt is overloaded again.
            overloads.remove(&self.key);
        }
    }

    fn finish(&mut self) {
        self.start();
        self.close_block();
        let wants_tools = self.message.tool_calls().next().is_some();
        let natural = if wants_tools {
            StopReason::ToolUse
        } else {
            StopReason::Stop
        };
        self.end(self.stop.unwrap_or(natural), None);
    }

    fn abort(&mut self) {
        self.end(StopReason::Aborted, Some("Request was aborted".to_owned()));
    }

    fn end(&mut self, reason: StopReason, error: Option<String>) {
        if self.state != PlaybackState::Waiting {
            self.message.usage = self.usage();
        }
        self.message.stop_reason = reason;
        self.message.error_message = error;
        self.state = PlaybackState::Over;
        self.streaming = None;
        let content = std::mem::take(&mut self.message.content);
        let message = AssistantMessage {
            content,
            ..self.message.clone()
        };
        self.ready.push_back(StreamEvent::End(message));
    }

    fn usage(&self) -> Usage {
        let tokens = self.tokens.unwrap_or(Tokens {
            input: self.prompt_tokens,
            output: self.answer_characters.div_ceil(4),
            ..Tokens::default()
        });
        let Tokens {
            input,
            output,
            cache_read,
            cache_write,
        } = tokens;
        let total_tokens = input + output + cache_read + cache_write;
        let mut usage = Usage {
            input,
            output,
            cache_read,
            cache_write,
            total_tokens,
            ..Usage::default()
        };
        usage.price(&self.model.cost);
        usage
    }
}
