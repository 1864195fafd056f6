//! What a child that is a task of this process prints: bytes in memory, bounded.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// So much may wait before the child has to.
const ROOM: usize = 64 * 1024;

/// A pipe without a pipe: the child writes, the reader takes.
#[derive(Debug, Default)]
pub struct Feed {
    state: Mutex<State>,
    /// Told when there is something to take.
    filled: Notify,
    /// Told when there is room again.
    emptied: Notify,
}

#[derive(Debug, Default)]
struct State {
    bytes: Vec<u8>,
    closed: bool,
}

impl Feed {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds bytes by way of `write`. Never waits; who writes much asks [`Feed::has_room`] first.
    pub fn push(&self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.state();
        if !state.closed {
            write(&mut state.bytes);
        }
        drop(state);
        self.filled.notify_one();
    }

    /// Nothing more comes.
    pub fn close(&self) {
        self.state().closed = true;
        self.filled.notify_one();
        self.emptied.notify_waiters();
    }

    /// Whether more may be added.
    pub fn has_room(&self) -> bool {
        let state = self.state();
        state.closed || state.bytes.len() < ROOM
    }

    /// Waits until more may be added.
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

    /// Waits for bytes and swaps them into `into`; false at the end.
    pub(crate) async fn take(&self, into: &mut Vec<u8>) -> bool {
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
            assert!(piece.len() <= ROOM + 64);
            all.extend_from_slice(&piece);
        }
        writing.await.unwrap();
        assert_eq!(all.len(), 640_000);
        assert_eq!(all[639_996..], 9_999u32.to_le_bytes());
    }
}
