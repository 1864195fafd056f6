//! The error output of a process, line by line into its log.

use std::sync::Arc;

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;

use crate::logs::{ClipLog, MAX_LINE};

/// Reads to the end. Long lines are cut, never kept waiting.
pub(super) async fn drain(log: Arc<ClipLog>, mut pipe: Receiver) {
    let mut buffer = vec![0; 16 * 1024];
    let mut line = Vec::new();
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
                log.stderr(line.strip_suffix(b"\r").unwrap_or(&line));
                line.clear();
            }
        }
    }
    if !line.is_empty() {
        log.stderr(&line);
    }
}
