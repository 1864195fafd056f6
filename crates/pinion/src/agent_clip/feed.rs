//! What happens in a run, as the outputs of the call that began it.

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

/// How many outputs may wait to be read before the run waits.
const WAITING: usize = 256;
/// How long a run may be silent before it says that it goes on.
const SIGN_OF_LIFE: Duration = Duration::from_secs(60);

/// Takes what happens to the caller.
pub(super) struct Feed {
    outputs: mpsc::UnboundedSender<Output>,
    waiting: AtomicUsize,
    /// Told when something was read.
    read: Notify,
    /// Nobody reads any more.
    left: AtomicBool,
    seen: Mutex<Seen>,
}

enum Output {
    Part(Bytes),
    Last(Result<Bytes, Failure>),
}

#[derive(Default)]
struct Seen {
    /// The blocks of the growing answer that are shown, by position.
    blocks: HashMap<usize, &'static str>,
    last: Option<Arc<Message>>,
}

impl Feed {
    /// A feed, and the answer it goes into. Dropping the answer tells `abandoned`, unless the run is to go on.
    pub fn new(
        deadline: Option<Instant>,
        abandoned: CancellationToken,
        detach: bool,
    ) -> (Arc<Self>, Answers) {
        let (outputs, receiver) = mpsc::unbounded_channel();
        let feed = Arc::new(Self {
            outputs,
            waiting: AtomicUsize::new(0),
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

    /// Says something.
    pub fn say(&self, event: &Value) {
        if self.left.load(Ordering::Acquire) {
            return;
        }
        self.waiting.fetch_add(1, Ordering::AcqRel);
        // Who has left does not want it.
        let _ = self.outputs.send(Output::Part(event.to_string().into()));
    }

    /// Says how it ended.
    pub fn end(&self, end: Result<Value, Failure>) {
        let end = end.map(|value| value.to_string().into());
        // Who has left does not want it.
        let _ = self.outputs.send(Output::Last(end));
    }

    /// The last answer of the model.
    pub fn last(&self) -> Option<Arc<Message>> {
        self.seen().last.clone()
    }

    fn leave(&self) {
        self.left.store(true, Ordering::Release);
        self.waiting.store(0, Ordering::Release);
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
        self.waiting.load(Ordering::Acquire) < WAITING
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

/// Tokens as callers know them, and what they cost in US dollars.
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

/// Why an answer is none.
pub(super) fn fault(answer: &AssistantMessage) -> String {
    let message = answer.error_message.clone();
    message.unwrap_or_else(|| format!("the request ended with {}", answer.stop_reason.as_str()))
}

/// The caller's end.
struct Reader {
    receiver: mpsc::UnboundedReceiver<Output>,
    feed: std::sync::Weak<Feed>,
    deadline: Option<Instant>,
    abandoned: Option<CancellationToken>,
}

impl Reader {
    /// The next output, and whether others may follow.
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
            // Those in between take silence for the end.
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
