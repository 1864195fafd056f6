//! A bounded pipe in memory, for the lines of a session that runs as a task of this process.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The number of unread bytes from which the writer has to wait.
const CAPACITY: usize = 64 * 1024;

/// A pipe in memory from a writer to its reader.
#[derive(Debug, Default)]
pub struct Feed {
    state: Mutex<FeedState>,
    /// Notified when there is something to read, or the feed is closed.
    filled: Notify,
    /// Notified when there is room again.
    emptied: Notify,
}

#[derive(Debug, Default)]
struct FeedState {
    bytes: Vec<u8>,
    closed: bool,
}

impl Feed {
    fn state(&self) -> MutexGuard<'_, FeedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends bytes through `write`. Never waits; writers of much data call [`Feed::has_room`] first.
    pub fn push(&self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.state();
        if !state.closed {
            write(&mut state.bytes);
        }
        drop(state);
        self.filled.notify_one();
    }

    /// Ends the output. Later bytes are discarded.
    pub fn close(&self) {
        self.state().closed = true;
        self.filled.notify_one();
        self.emptied.notify_waiters();
    }

    /// Reports whether a writer may continue.
    pub fn has_room(&self) -> bool {
        let state = self.state();
        state.closed || state.bytes.len() < CAPACITY
    }

    /// Waits until a writer may continue.
    pub async fn room(&self) {
        loop {
            let emptied = self.emptied.notified();
            tokio::pin!(emptied);
            emptied.as_mut().enable();
            if self.has_room() {
                return;
            }
            emptied.await;
        }
    }

    /// Waits for bytes and swaps them into `into`; returns false at the end.
    pub async fn take(&self, into: &mut Vec<u8>) -> bool {
        into.clear();
        loop {
            {
                let mut state = self.state();
                if !state.bytes.is_empty() {
                    std::mem::swap(&mut state.bytes, into);
                    break;
                }
                if state.closed {
                    return false;
                }
            }
            self.filled.notified().await;
        }
        self.emptied.notify_waiters();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[tokio::test]
    async fn everything_arrives_and_a_slow_reader_slows_the_writer() {
        let feed = Arc::new(Feed::default());
        let writer = Arc::clone(&feed);
        let writing = tokio::spawn(async move {
            for index in 0..10_000u32 {
                writer.room().await;
                writer.push(|bytes| bytes.extend_from_slice(&index.to_le_bytes().repeat(16)));
            }
            writer.close();
        });
        let (mut all, mut piece) = (Vec::new(), Vec::new());
        while feed.take(&mut piece).await {
            assert!(piece.len() <= CAPACITY + 64);
            all.extend_from_slice(&piece);
        }
        writing.await.unwrap();
        assert_eq!(all.len(), 640_000);
        assert_eq!(all[639_996..], 9_999u32.to_le_bytes());
    }
}
