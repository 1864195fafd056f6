//! Copies the stderr of a process to its log, line by line. The last lines are stored, because they usually show why a
//! process crashed.

use std::sync::{Arc, Mutex, PoisonError};

use pinion_process::Tail;
use pinion_text::start;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;

use crate::logs::{ClipLog, MAX_LINE};

/// Number of lines in the error of a crash, and of characters of each.
const SHOWN_LINES: usize = 10;
const SHOWN_CHARACTERS: usize = 200;
/// Bytes at the end of stderr that are stored for them.
const TAIL_BYTES: usize = 16 * 1024;

/// The last lines that a process printed on stderr.
#[derive(Debug, Clone)]
pub(super) struct LastLines(Arc<Mutex<Tail>>);

impl LastLines {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(Tail::new(TAIL_BYTES))))
    }

    fn push(&self, bytes: &[u8]) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(bytes);
    }

    /// Returns the lines, each after a line feed; empty if there are none.
    pub(super) fn text(&self) -> String {
        let tail = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = tail.lines(SHOWN_LINES);
        let lines = lines.iter().map(|line| start(line, SHOWN_CHARACTERS));
        lines.flat_map(|line| ["\n", line]).collect()
    }
}

/// Reads to the end. Lines longer than [`MAX_LINE`] are cut.
pub(super) async fn drain(log: Arc<ClipLog>, mut pipe: Receiver, last: LastLines) {
    let mut buffer = vec![0; 16 * 1024];
    let mut line = Vec::new();
    let take = |line: &[u8]| log.stderr(line);
    loop {
        let count = match pipe.read(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(count) => count,
        };
        last.push(&buffer[..count]);
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
