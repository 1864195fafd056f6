//! Copies the stderr of a process to its log, line by line. The last lines are stored, because they usually show why a
//! process crashed.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;

use crate::logs::{ClipLog, MAX_LINE};

/// Number of stored lines, and of characters of each.
const KEPT_LINES: usize = 10;
const KEPT_LETTERS: usize = 200;

/// The last lines that a process printed on stderr.
#[derive(Debug, Clone, Default)]
pub(super) struct LastLines(Arc<Mutex<VecDeque<String>>>);

impl LastLines {
    fn push(&self, line: &[u8]) {
        let text = String::from_utf8_lossy(&line[..line.len().min(KEPT_LETTERS * 4)]);
        if text.trim().is_empty() {
            return;
        }
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.push_back(text.chars().take(KEPT_LETTERS).collect());
        if lines.len() > KEPT_LINES {
            lines.pop_front();
        }
    }

    /// Returns the lines, each after a line feed; empty if there are none.
    pub(super) fn text(&self) -> String {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().flat_map(|line| ["\n", line]).collect()
    }
}

/// Reads to the end. Lines longer than [`MAX_LINE`] are cut.
pub(super) async fn drain(log: Arc<ClipLog>, mut pipe: Receiver, last: LastLines) {
    let mut buffer = vec![0; 16 * 1024];
    let mut line = Vec::new();
    let take = |line: &[u8]| {
        log.stderr(line);
        last.push(line);
    };
    loop {
        let count = match pipe.read(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(count) => count,
        };
        for piece in buffer[..count].split_inclusive(|byte| *byte == b'\n') {
            let text = piece.strip_suffix(b"\n").unwrap_or(piece);
            let room = MAX_LINE.saturating_sub(line.len());
            line.extend_from_slice(&text[..text.len().min(room)]);
            if text.len() < piece.len() {
                take(line.strip_suffix(b"\r").unwrap_or(&line));
                line.clear();
            }
        }
    }
    if !line.is_empty() {
        take(&line);
    }
}
