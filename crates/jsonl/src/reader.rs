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
pub fn read_lines(source: impl Read + Send + 'static, limit: usize) -> mpsc::Receiver<Input> {
    start(source, limit, TooLong::IsPassedOver)
}

/// The same for a protocol that cannot go on after a line that is too long: it is told as soon as it is too long, though its
/// end may never come, and nothing after it.
pub fn read_lines_until_too_long(
    source: impl Read + Send + 'static,
    limit: usize,
) -> mpsc::Receiver<Input> {
    start(source, limit, TooLong::EndsReading)
}

/// What a line that is too long does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TooLong {
    IsPassedOver,
    EndsReading,
}

fn start(
    mut source: impl Read + Send + 'static,
    limit: usize,
    too_long: TooLong,
) -> mpsc::Receiver<Input> {
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
            if too_long == TooLong::EndsReading && splitter.is_too_long() {
                break;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that never end.
    struct Endless;

    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            buffer.fill(b'x');
            Ok(buffer.len())
        }
    }

    #[test]
    fn a_line_without_end_is_told_when_it_is_too_long() {
        let source = std::io::Cursor::new(b"one\n".to_vec()).chain(Endless);
        let mut lines = read_lines_until_too_long(source, 1000);
        let mut next = || lines.blocking_recv();
        assert!(matches!(next(), Some(Input::Line(Line::Complete(line))) if line == b"one"));
        assert!(matches!(next(), Some(Input::Line(Line::TooLong { .. }))));
        assert!(matches!(next(), Some(Input::End)));
        assert!(next().is_none());
    }
}
