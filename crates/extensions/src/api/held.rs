//! Records for a client that does not read: held back within limits instead of filling the memory.
//!
//! While the client's queue has no room, a status, a widget or a title replaces the one before it, and notices, questions
//! and errors wait. Beyond the limits they are dropped, and the client gets their number as soon as it reads again.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use uuid::Uuid;

use super::extensions::Inner;

/// Whether the client has room for more records. It must not block.
pub type RoomCheck = Arc<dyn Fn() -> bool + Send + Sync>;

/// How many records are held back at most.
const MOST_HELD: usize = 1000;
/// How many bytes are held back at most.
const MOST_BYTES: usize = 4 << 20;
/// How often held records look for room.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// How long a message of an extension waits for room before it is refused.
const MESSAGE_WAIT: Duration = Duration::from_secs(1);

/// Records that wait for room.
#[derive(Default)]
pub(super) struct Held(Mutex<State>);

#[derive(Default)]
struct State {
    waiting: VecDeque<Item>,
    bytes: usize,
    dropped: u64,
    /// A task waits for room.
    watched: bool,
}

struct Item {
    /// Names the state that the record sets, or the question it asks: a newer one takes its place.
    key: Option<String>,
    what: Waiting,
}

enum Waiting {
    Record(String),
    Fault {
        source: String,
        during: String,
        error: String,
    },
}

impl Item {
    fn bytes(&self) -> usize {
        match &self.what {
            Waiting::Record(record) => record.len(),
            Waiting::Fault { error, .. } => error.len(),
        }
    }
}

impl State {
    fn forget(&mut self, key: &str) {
        let is_older = |item: &Item| item.key.as_deref() == Some(key);
        if let Some(at) = self.waiting.iter().position(is_older)
            && let Some(older) = self.waiting.remove(at)
        {
            self.bytes -= older.bytes();
        }
    }

    fn add(&mut self, item: Item) -> bool {
        if let Some(key) = &item.key {
            self.forget(key);
        }
        if self.waiting.len() >= MOST_HELD || self.bytes + item.bytes() > MOST_BYTES {
            self.dropped += 1;
            return false;
        }
        self.bytes += item.bytes();
        self.waiting.push_back(item);
        true
    }

    fn take(&mut self) -> Option<Item> {
        let item = self.waiting.pop_front()?;
        self.bytes -= item.bytes();
        Some(item)
    }
}

/// The state that a request sets, if only the newest one matters.
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
    fn held(&self) -> MutexGuard<'_, State> {
        self.held.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes a record on, or holds it back while the client has no room; whether it will reach the client.
    pub(super) fn deliver(self: &Arc<Self>, key: Option<String>, record: String) -> bool {
        self.deliver_item(Item {
            key,
            what: Waiting::Record(record),
        })
    }

    /// Like [`Inner::deliver`], for the failure of an extension.
    pub(super) fn deliver_fault(self: &Arc<Self>, source: &str, during: &str, error: String) {
        self.deliver_item(Item {
            key: None,
            what: Waiting::Fault {
                source: source.to_owned(),
                during: during.to_owned(),
                error,
            },
        });
    }

    fn deliver_item(self: &Arc<Self>, item: Item) -> bool {
        let mut held = self.held();
        if held.waiting.is_empty() && (self.options.has_room)() {
            drop(held);
            self.pass_on(item);
            return true;
        }
        let taken = held.add(item);
        if !std::mem::replace(&mut held.watched, true) {
            let inner = Arc::downgrade(self);
            self.runtime.spawn(async move {
                loop {
                    tokio::time::sleep(LOOK_INTERVAL).await;
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
        match item.what {
            Waiting::Record(record) => (self.options.records)(record),
            Waiting::Fault {
                source,
                during,
                error,
            } => self.report_fault(source, during, error),
        }
    }

    /// Passes on what there is room for; whether something is left.
    fn pass_held(&self) -> bool {
        while (self.options.has_room)() {
            let mut held = self.held();
            let Some(item) = held.take() else {
                held.watched = false;
                let dropped = std::mem::take(&mut held.dropped);
                drop(held);
                self.report_dropped(dropped);
                return false;
            };
            drop(held);
            self.pass_on(item);
        }
        true
    }

    /// Passes on everything, for before the end.
    pub(super) fn pass_all_held(&self) {
        loop {
            let item = self.held().take();
            match item {
                Some(item) => self.pass_on(item),
                None => break,
            }
        }
        let dropped = std::mem::take(&mut self.held().dropped);
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

    /// A question was settled before the client could be asked.
    pub(super) fn withdraw(&self, id: &str) {
        self.held().forget(id);
    }

    /// Waits a moment for room, on JavaScript's thread: a message is taken only when the client reads.
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
            what: Waiting::Record(record.to_owned()),
        }
    }

    #[test]
    fn states_replace_each_other_and_notices_have_a_bound() {
        let mut state = State::default();
        for round in 0..100_000 {
            state.add(item(Some("a"), &round.to_string()));
            state.add(item(Some("b"), "b"));
        }
        assert_eq!((state.waiting.len(), state.dropped), (2, 0));
        for _ in 0..MOST_HELD {
            state.add(item(None, "notice"));
        }
        assert_eq!((state.waiting.len(), state.dropped), (MOST_HELD, 2));
        // A state that is held is replaced however full it is.
        assert!(state.add(item(Some("a"), "last")));
        while state.take().is_some() {}
        assert_eq!(state.bytes, 0);
        assert!(!state.add(item(None, &"x".repeat(MOST_BYTES + 1))));
    }
}
