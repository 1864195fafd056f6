//! Reads lines from a descriptor on a thread of its own and hands them to async code.

use std::io::Read;
use std::thread;

use tokio::sync::mpsc;

use crate::{Line, Splitter};

/// What came in.
#[derive(Debug)]
pub enum Input {
    /// A line.
    Line(Line),
    /// Nothing more will come: the writer closed its end, or reading failed.
    End,
}

/// How many lines may wait for the program before reading stops.
const LINES_AHEAD: usize = 64;

/// Starts reading `source`; lines of up to `limit` bytes arrive on the returned channel.
///
/// Reading blocks, so it has a thread of its own; the thread ends with the source. When the
/// program falls behind, reading stops and the pipe fills: the client is slowed, not buffered.
pub fn read_lines(mut source: impl Read + Send + 'static, limit: usize) -> mpsc::Receiver<Input> {
    let (sender, receiver) = mpsc::channel(LINES_AHEAD);
    let read = move || {
        let mut splitter = Splitter::new(limit);
        let mut buffer = vec![0u8; 64 * 1024];
        loop {
            let count = match source.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            let mut deaf = false;
            splitter.feed(&buffer[..count], |line| {
                deaf |= sender.blocking_send(Input::Line(line)).is_err();
            });
            if deaf {
                return;
            }
        }
        if let Some(line) = splitter.finish() {
            let _ = sender.blocking_send(Input::Line(line));
        }
        let _ = sender.blocking_send(Input::End);
    };
    // Without a thread there is no input; the closed channel reads as the end of it.
    let _ = thread::Builder::new()
        .name("reader".into())
        .stack_size(128 * 1024)
        .spawn(read);
    receiver
}
