//! The output of the command of a tool call, as it is printed, on its way to the listeners.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use pinion_tools::Follower;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The shortest time between two events about the output of one call.
const INTERVAL: Duration = Duration::from_millis(50);
/// Bytes that may wait for the next event; the command waits above it.
const WAITING_LIMIT: usize = 256 << 10;

/// Collects what a command prints until the run emits it.
#[derive(Debug, Default)]
pub(crate) struct CallOutput {
    waiting: Mutex<Waiting>,
    printed: Notify,
    taken: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    text: String,
    last_taken: Option<Instant>,
}

impl CallOutput {
    /// Waits for text, and until the next event is due; then removes and returns all text.
    pub async fn next(&self) -> Arc<str> {
        loop {
            let due = {
                let waiting = self.lock();
                (!waiting.text.is_empty()).then(|| waiting.last_taken.map(|last| last + INTERVAL))
            };
            match due {
                None => self.printed.notified().await,
                Some(due) => {
                    if let Some(due) = due {
                        tokio::time::sleep_until(due).await;
                    }
                    if let Some(text) = self.take() {
                        return text;
                    }
                }
            }
        }
    }

    /// Removes and returns the text that waits.
    pub fn take(&self) -> Option<Arc<str>> {
        let mut waiting = self.lock();
        if waiting.text.is_empty() {
            return None;
        }
        waiting.last_taken = Some(Instant::now());
        let text = std::mem::take(&mut waiting.text);
        drop(waiting);
        self.taken.notify_waiters();
        Some(text.into())
    }

    fn has_room(&self) -> bool {
        self.lock().text.len() < WAITING_LIMIT
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Follower for CallOutput {
    fn printed(&self, text: &str) {
        self.lock().text.push_str(text);
        self.printed.notify_one();
    }

    fn has_room(&self) -> bool {
        self.has_room()
    }

    fn room(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            loop {
                let taken = self.taken.notified();
                tokio::pin!(taken);
                taken.as_mut().enable();
                if self.has_room() {
                    return;
                }
                taken.await;
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn text_is_merged_to_twenty_events_a_second_and_none_is_lost() {
        let output = Arc::new(CallOutput::default());
        let printer = Arc::clone(&output);
        tokio::spawn(async move {
            for number in 0..1000 {
                printer.printed(&format!("{number} "));
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
        let begun = Instant::now();
        let (mut text, mut events) = (String::new(), 0);
        while !text.ends_with("999 ") {
            text.push_str(&output.next().await);
            events += 1;
        }
        let expected: String = (0..1000).map(|number| format!("{number} ")).collect();
        assert_eq!(text, expected);
        assert!(events <= 22, "{events} events in {:?}", begun.elapsed());
    }

    #[tokio::test]
    async fn a_command_waits_while_too_much_waits() {
        let output = CallOutput::default();
        output.printed(&"x".repeat(WAITING_LIMIT));
        assert!(!Follower::has_room(&output));
        let (text, ()) = tokio::join!(async { output.take() }, Follower::room(&output));
        assert_eq!(text.unwrap().len(), WAITING_LIMIT);
    }
}
