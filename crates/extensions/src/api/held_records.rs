//! Records for a client that does not read. They are held back within limits, so that they do not fill the memory.
//!
//! While the client's queue has no room, a status, a widget or a title replaces the one before it, and notices, questions
//! and errors wait. Beyond the limits they are dropped, and the client gets their number as soon as it reads again.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use uuid::Uuid;

use super::extensions::Inner;

/// Reports whether the client has room for more records. It must not block.
pub type RoomCheck = Arc<dyn Fn() -> bool + Send + Sync>;

/// The most records that are held back.
const MAX_RECORDS: usize = 1000;
/// The most bytes that are held back.
const MAX_BYTES: usize = 4 << 20;
/// Interval at which held records check for room.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Time that a message of an extension waits for room before it is refused.
const MESSAGE_WAIT: Duration = Duration::from_secs(1);

/// Records that wait for room.
#[derive(Default)]
pub(super) struct HeldRecords(Mutex<HeldState>);

#[derive(Default)]
struct HeldState {
    waiting: VecDeque<Item>,
    bytes: usize,
    dropped: u64,
    /// A task is waiting for room.
    watched: bool,
}

struct Item {
    /// Names the state that the record sets, or the question it asks; a newer record replaces an older one with the
    /// same key.
    key: Option<String>,
    content: Waiting,
}

enum Waiting {
    Record(String),
    SyscallError {
        source: String,
        during: String,
        error: String,
    },
}

impl Item {
    fn bytes(&self) -> usize {
        match &self.content {
            Waiting::Record(record) => record.len(),
            Waiting::SyscallError { error, .. } => error.len(),
        }
    }
}

impl HeldState {
    fn remove(&mut self, key: &str) {
        let is_older = |item: &Item| item.key.as_deref() == Some(key);
        if let Some(at) = self.waiting.iter().position(is_older)
            && let Some(older) = self.waiting.remove(at)
        {
            self.bytes -= older.bytes();
        }
    }

    fn add(&mut self, item: Item) -> bool {
        if let Some(key) = &item.key {
            self.remove(key);
        }
        if self.waiting.len() >= MAX_RECORDS || self.bytes + item.bytes() > MAX_BYTES {
            self.dropped += 1;
            return false;
        }
        self.bytes += item.bytes();
        self.waiting.push_back(item);
        true
    }

    fn pop(&mut self) -> Option<Item> {
        let item = self.waiting.pop_front()?;
        self.bytes -= item.bytes();
        Some(item)
    }
}

/// Returns the key of the state that a request sets, if only the newest one matters.
pub(super) fn state_of(request: &Value) -> Option<String> {
    let key = match request["method"].as_str()? {
        "setStatus" => &request["statusKey"],
        "setWidget" => &request["widgetKey"],
        "setTitle" | "set_editor_text" => &Value::Null,
        _ => return None,
    };
    Some(format!("{} {key}", request["method"]))
}

impl Inner {
    fn held_records(&self) -> MutexGuard<'_, HeldState> {
        self.held_records
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a record, or holds it back while the client has no room. Returns whether it will reach the client.
    pub(super) fn deliver(self: &Arc<Self>, key: Option<String>, record: String) -> bool {
        self.deliver_item(Item {
            key,
            content: Waiting::Record(record),
        })
    }

    /// Like [`Inner::deliver`], for a failure of an extension.
    pub(super) fn deliver_fault(self: &Arc<Self>, source: &str, during: &str, error: String) {
        self.deliver_item(Item {
            key: None,
            content: Waiting::SyscallError {
                source: source.to_owned(),
                during: during.to_owned(),
                error,
            },
        });
    }

    fn deliver_item(self: &Arc<Self>, item: Item) -> bool {
        let mut held_records = self.held_records();
        if held_records.waiting.is_empty() && (self.options.has_room)() {
            drop(held_records);
            self.pass_on(item);
            return true;
        }
        let taken = held_records.add(item);
        if !std::mem::replace(&mut held_records.watched, true) {
            let inner = Arc::downgrade(self);
            self.runtime.spawn(async move {
                loop {
                    tokio::time::sleep(POLL_INTERVAL).await;
                    match inner.upgrade() {
                        Some(inner) if inner.pass_held() => {}
                        _ => return,
                    }
                }
            });
        }
        taken
    }

    fn pass_on(&self, item: Item) {
        match item.content {
            Waiting::Record(record) => (self.options.records)(record),
            Waiting::SyscallError {
                source,
                during,
                error,
            } => self.report_fault(source, during, error),
        }
    }

    /// Sends held records while there is room. Returns whether some are left.
    fn pass_held(&self) -> bool {
        while (self.options.has_room)() {
            let mut held_records = self.held_records();
            let Some(item) = held_records.pop() else {
                held_records.watched = false;
                let dropped = std::mem::take(&mut held_records.dropped);
                drop(held_records);
                self.report_dropped(dropped);
                return false;
            };
            drop(held_records);
            self.pass_on(item);
        }
        true
    }

    /// Sends everything that is held, before the program ends.
    pub(super) fn pass_all_held(&self) {
        loop {
            let item = self.held_records().pop();
            match item {
                Some(item) => self.pass_on(item),
                None => break,
            }
        }
        let dropped = std::mem::take(&mut self.held_records().dropped);
        self.report_dropped(dropped);
    }

    fn report_dropped(&self, dropped: u64) {
        if dropped > 0 {
            let record = json!({
                "type": "extension_ui_request",
                "id": Uuid::new_v4().to_string(),
                "method": "notify",
                "message": format!("{dropped} notices of extensions were dropped because the client did not read"),
                "notifyType": "warning",
            });
            (self.options.records)(record.to_string());
        }
    }

    /// Removes a held question that was settled before it reached the client.
    pub(super) fn withdraw(&self, id: &str) {
        self.held_records().remove(id);
    }

    /// AwaitCache up to [`MESSAGE_WAIT`] for room, on JavaScript's thread: a message is accepted only while the client
    /// reads.
    pub(super) fn wait_for_room(&self) -> Result<(), String> {
        let since = Instant::now();
        while !(self.options.has_room)() {
            if since.elapsed() > MESSAGE_WAIT {
                return Err("The client does not read: the message was not sent.".to_owned());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(key: Option<&str>, record: &str) -> Item {
        Item {
            key: key.map(str::to_owned),
            content: Waiting::Record(record.to_owned()),
        }
    }

    #[test]
    fn states_replace_each_other_and_notices_have_a_bound() {
        let mut state = HeldState::default();
        for round in 0..100_000 {
            state.add(item(Some("a"), &round.to_string()));
            state.add(item(Some("b"), "b"));
        }
        assert_eq!((state.waiting.len(), state.dropped), (2, 0));
        for _ in 0..MAX_RECORDS {
            state.add(item(None, "notice"));
        }
        assert_eq!((state.waiting.len(), state.dropped), (MAX_RECORDS, 2));
        // A held state is replaced even when no more records fit.
        assert!(state.add(item(Some("a"), "last")));
        while state.pop().is_some() {}
        assert_eq!(state.bytes, 0);
        assert!(!state.add(item(None, &"x".repeat(MAX_BYTES + 1))));
    }
}
