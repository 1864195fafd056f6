//! The events of a run as outputs of the call that started it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream;
use pinion_agent::{Event, Listener, ToolOutput};
use pinion_clip::CallError;
use pinion_hub::Answers;
use pinion_message::{AssistantMessage, Block, Message, Usage};
use pinion_status::{Code, Failure};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Unread outputs from which on the run waits for the caller.
const WAITING_OUTPUTS: usize = 256;
/// Unread bytes from which on the run waits for the caller.
const WAITING_BYTES: usize = 4 << 20;
/// Maximum number of unread outputs. A run cannot wait in the middle of a turn: it still reports the tools of one
/// answer. The answer to a caller that leaves more unread ends with `resource_exhausted`.
const MOST_OUTPUTS: usize = 8 * 1024;
/// Maximum size of unread outputs, in bytes, unless a single output is larger.
const MOST_BYTES: usize = 64 << 20;
/// Silence after which the feed sends an empty text, so that intermediaries do not close the stream.
const SIGN_OF_LIFE: Duration = Duration::from_secs(60);

/// Sends the events of a run to the caller.
pub(super) struct Feed {
    outputs: mpsc::Sender<Output>,
    /// The reserved slot of the last output, until it is sent.
    last_place: Mutex<Option<mpsc::OwnedPermit<Output>>>,
    /// Number of unread outputs; `waiting_bytes` is their size.
    waiting: AtomicUsize,
    waiting_bytes: AtomicUsize,
    /// Notified after the caller has read an output or has left.
    read: Notify,
    /// The caller does not read any more.
    left: AtomicBool,
    seen: Mutex<Seen>,
}

enum Output {
    Part(Bytes),
    Last(Result<Bytes, Failure>),
}

#[derive(Default)]
struct Seen {
    /// The kinds of the growing answer's visible blocks, by position.
    blocks: HashMap<usize, &'static str>,
    last: Option<Arc<Message>>,
}

impl Feed {
    /// Returns a feed and its answer. Dropping the answer cancels `abandoned`, unless `detach` is set.
    pub fn new(
        deadline: Option<Instant>,
        abandoned: CancellationToken,
        detach: bool,
    ) -> (Arc<Self>, Answers) {
        let (outputs, receiver) = mpsc::channel(MOST_OUTPUTS + 1);
        // Nothing waits yet, so the channel has a free slot.
        let last_place = outputs.clone().try_reserve_owned().ok();
        let feed = Arc::new(Self {
            outputs,
            last_place: Mutex::new(last_place),
            waiting: AtomicUsize::new(0),
            waiting_bytes: AtomicUsize::new(0),
            read: Notify::new(),
            left: AtomicBool::new(false),
            seen: Mutex::default(),
        });
        let reader = Reader {
            receiver,
            feed: Arc::downgrade(&feed),
            deadline,
            abandoned: (!detach).then_some(abandoned),
        };
        let answers = stream::unfold(Some(reader), |reader| async {
            let mut reader = reader?;
            let (item, goes_on) = reader.next().await;
            Some((item, goes_on.then_some(reader)))
        });
        (feed, Box::pin(answers))
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends one event to the caller. Ends the answer with `resource_exhausted` if too much is unread.
    pub fn say(&self, event: &Value) {
        if self.left.load(Ordering::Acquire) {
            return;
        }
        let part = Bytes::from(event.to_string());
        let bytes = part.len();
        // Counted before sending: the reader may be faster.
        self.waiting.fetch_add(1, Ordering::AcqRel);
        let before = self.waiting_bytes.fetch_add(bytes, Ordering::AcqRel);
        // A single output may exceed the limit.
        let fits = before == 0 || before + bytes <= MOST_BYTES;
        let sent = fits && {
            let sent = self.outputs.try_send(Output::Part(part));
            !matches!(sent, Err(mpsc::error::TrySendError::Full(_)))
        };
        if !sent {
            let message =
                "too much of the answer waits to be read; read it faster, or detach the run";
            self.end(Err(Failure::new(Code::ResourceExhausted, message)));
            self.leave();
        }
    }

    /// Sends the last output. Only the first call has an effect.
    pub fn end(&self, end: Result<Value, Failure>) {
        let end = end.map(|value| value.to_string().into());
        let place = self.last_place.lock();
        let place = place.unwrap_or_else(PoisonError::into_inner).take();
        if let Some(place) = place {
            place.send(Output::Last(end));
        }
    }

    /// Returns the model's last answer.
    pub fn last(&self) -> Option<Arc<Message>> {
        self.seen().last.clone()
    }

    fn leave(&self) {
        self.left.store(true, Ordering::Release);
        self.read.notify_waiters();
    }
}

impl Listener for Feed {
    fn notice(&self, _ordinal: u64, event: &Event) {
        match event {
            Event::MessageStart(_) => self.seen().blocks.clear(),
            Event::BlockStart { index, block } => {
                let (kind, text) = match &**block {
                    Block::Text(text) => ("text", text.text.as_str()),
                    Block::Thinking(thinking) => ("thinking", thinking.thinking.as_str()),
                    Block::Image { .. } | Block::ToolCall(_) => return,
                };
                self.seen().blocks.insert(*index, kind);
                if !text.is_empty() {
                    self.say(&json!({"type": kind, "content": text}));
                }
            }
            Event::BlockDelta { index, delta } => {
                let kind = self.seen().blocks.get(index).copied();
                if let Some(kind) = kind {
                    self.say(&json!({"type": kind, "content": &**delta}));
                }
            }
            Event::MessageEnd(message) => {
                if let Message::Assistant(answer) = &**message {
                    self.seen().last = Some(Arc::clone(message));
                    self.say(&usage(&answer.usage));
                }
            }
            Event::ToolStart(run) => self.say(&json!({
                "type": "tool_call",
                "id": &*run.call_id,
                "name": run.name,
                "arguments": run.arguments,
            })),
            Event::ToolEnd {
                run,
                output,
                is_error,
                ..
            } => {
                let mut result = json!({
                    "type": "tool_result",
                    "id": &*run.call_id,
                    "content": text_of(output),
                });
                if *is_error {
                    result["is_error"] = true.into();
                }
                self.say(&result);
            }
            _ => {}
        }
    }

    fn has_room(&self) -> bool {
        self.left.load(Ordering::Acquire)
            || self.waiting.load(Ordering::Acquire) < WAITING_OUTPUTS
                && self.waiting_bytes.load(Ordering::Acquire) < WAITING_BYTES
    }

    fn room(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            loop {
                let read = self.read.notified();
                tokio::pin!(read);
                read.as_mut().enable();
                if self.has_room() {
                    return;
                }
                read.await;
            }
        })
    }
}

/// Returns token counts in the form of the `usage` event, with their cost in dollars.
pub(super) fn usage(usage: &Usage) -> Value {
    json!({
        "type": "usage",
        "prompt_tokens": usage.input + usage.cache_read + usage.cache_write,
        "completion_tokens": usage.output,
        "cost": usage.cost.total,
    })
}

fn text_of(output: &ToolOutput) -> String {
    let texts = output.content.iter().map(|block| match block {
        Block::Image { mime_type, .. } => format!("[{mime_type}]"),
        other => other.as_text().unwrap_or_default().to_owned(),
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Returns the reason why the model's request failed.
pub(super) fn fault(answer: &AssistantMessage) -> String {
    let message = answer.error_message.clone();
    message.unwrap_or_else(|| format!("the request ended with {}", answer.stop_reason.as_str()))
}

/// The caller's end of a feed.
struct Reader {
    receiver: mpsc::Receiver<Output>,
    feed: std::sync::Weak<Feed>,
    deadline: Option<Instant>,
    abandoned: Option<CancellationToken>,
}

impl Reader {
    /// Returns the next output, and whether others may follow.
    async fn next(&mut self) -> (Result<Bytes, CallError>, bool) {
        let deadline = self.deadline;
        let too_late = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        let unanswered = |code, message: &'static str| {
            let failure = Failure::new(code, message);
            (Err(CallError::Unanswered(failure)), false)
        };
        tokio::select! {
            biased;
            output = self.receiver.recv() => match output {
                Some(Output::Part(part)) => {
                    if let Some(feed) = self.feed.upgrade() {
                        feed.waiting.fetch_sub(1, Ordering::AcqRel);
                        feed.waiting_bytes.fetch_sub(part.len(), Ordering::AcqRel);
                        feed.read.notify_waiters();
                    }
                    (Ok(part), true)
                }
                Some(Output::Last(Ok(last))) => {
                    self.abandoned = None;
                    (Ok(last), false)
                }
                Some(Output::Last(Err(failure))) => (Err(CallError::Answered(failure)), false),
                None => unanswered(Code::Internal, "the run ended unexpectedly"),
            },
            () = too_late => unanswered(Code::DeadlineExceeded, "the run was not over in time"),
            // Intermediaries treat silence as the end of the stream.
            () = tokio::time::sleep(SIGN_OF_LIFE) => {
                (Ok(Bytes::from_static(br#"{"type":"text","content":""}"#)), true)
            }
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if let Some(abandoned) = &self.abandoned {
            abandoned.cancel();
        }
        if let Some(feed) = self.feed.upgrade() {
            feed.leave();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt;

    use super::*;

    /// Returns a feed with an open text block, and its answer.
    fn growing() -> (Arc<Feed>, Answers) {
        let (feed, answers) = Feed::new(None, CancellationToken::new(), false);
        let block = Arc::new(Block::text(""));
        feed.notice(1, &Event::BlockStart { index: 0, block });
        (feed, answers)
    }

    /// Adds a number to the answer, padded to `bytes` bytes.
    fn grow(feed: &Feed, number: usize, bytes: usize) {
        let mut delta = number.to_string();
        delta.push_str(&" ".repeat(bytes - delta.len()));
        let delta = delta.into();
        feed.notice(1, &Event::BlockDelta { index: 0, delta });
    }

    /// Reads an answer to its end. Returns its numbers and its last output or failure.
    async fn read(mut answers: Answers) -> (Vec<usize>, Result<Value, Failure>) {
        let mut numbers = Vec::new();
        loop {
            let next = tokio::time::timeout(Duration::from_secs(60), answers.next());
            let end = match next.await.unwrap().unwrap() {
                Ok(output) => {
                    let output: Value = serde_json::from_slice(&output).unwrap();
                    match output["content"].as_str() {
                        Some(number) => {
                            numbers.push(number.trim().parse().unwrap());
                            continue;
                        }
                        None => Ok(output),
                    }
                }
                Err(CallError::Answered(failure)) => Err(failure),
                Err(other) => panic!("{other:?}"),
            };
            assert!(answers.next().await.is_none(), "an answer ends once");
            return (numbers, end);
        }
    }

    fn is_gapless(numbers: &[usize]) -> bool {
        numbers.iter().copied().eq(0..numbers.len())
    }

    #[tokio::test]
    async fn a_run_waits_for_a_caller_that_does_not_read_and_nothing_is_lost() {
        const ALL: usize = 40;
        let (feed, answers) = growing();
        let run = tokio::spawn({
            let feed = Arc::clone(&feed);
            async move {
                for number in 0..ALL {
                    grow(&feed, number, 1 << 20);
                    feed.room().await;
                }
                feed.end(Ok(json!({"status": "done"})));
            }
        });
        // Time to run on, if it does not wait.
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert!(!run.is_finished());
        let waiting = feed.waiting_bytes.load(Ordering::Acquire);
        assert!(waiting < 6 << 20, "{waiting} bytes wait");
        let (numbers, end) = read(answers).await;
        assert_eq!((numbers.len(), is_gapless(&numbers)), (ALL, true));
        assert_eq!(end.unwrap()["status"], "done");
        run.await.unwrap();
    }

    #[tokio::test]
    async fn a_run_that_cannot_wait_ends_the_answer_of_a_caller_that_does_not_read() {
        // Many outputs, and large ones.
        for (all, bytes) in [(3 * MOST_OUTPUTS, 8), (200, 1 << 20)] {
            let (feed, answers) = growing();
            for number in 0..all {
                grow(&feed, number, bytes);
            }
            assert!(feed.has_room(), "the run does not wait for it any more");
            feed.end(Ok(json!({"status": "done"})));
            let (numbers, end) = read(answers).await;
            assert_eq!(end.unwrap_err().code, Code::ResourceExhausted);
            assert!(is_gapless(&numbers));
            let most = MOST_OUTPUTS.min(MOST_BYTES / bytes);
            let few = numbers.len() < most / 2;
            assert!(!few && numbers.len() <= most, "{} outputs", numbers.len());
        }
    }

    #[tokio::test]
    async fn a_caller_that_leaves_a_full_answer_stops_the_run() {
        let stop = CancellationToken::new();
        let (feed, answers) = Feed::new(None, stop.clone(), false);
        while feed.has_room() {
            feed.say(&json!({"type": "text", "content": "1"}));
        }
        drop(answers);
        assert!(stop.is_cancelled());
        feed.room().await;
    }
}
