//! A thread that reads lines from a descriptor and passes them to async code.

use std::io::Read;
use std::thread;

use tokio::sync::mpsc;

use crate::{InputLine, Splitter};

/// An item from the reading thread.
#[derive(Debug)]
pub enum Input {
    Line(InputLine),
    /// The end of the input: the writer closed its end, or reading failed.
    End,
}

/// The number of lines that may wait for the program before reading stops.
pub(crate) const MAX_WAITING_LINES: usize = 64;
/// The bytes to ask for with one read.
pub(crate) const READ_BYTES: usize = 64 * 1024;

/// Starts reading `source`; lines of up to `limit` bytes arrive on the returned channel.
///
/// Reading blocks, so it has its own thread, which ends with the source. When the program falls
/// behind, reading stops and the pipe fills, so that the client slows down instead of filling
/// memory.
pub fn read_lines(source: impl Read + Send + 'static, limit: usize) -> mpsc::Receiver<Input> {
    start(source, limit, TooLong::IsSkipped)
}

/// Like [`read_lines`], for a protocol that cannot continue after an oversized line: such a line is
/// reported as soon as it passes the limit, because its end may never come, and reading stops.
pub fn read_lines_until_too_long(
    source: impl Read + Send + 'static,
    limit: usize,
) -> mpsc::Receiver<Input> {
    start(source, limit, TooLong::EndsReading)
}

/// The reader's response to an oversized line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TooLong {
    IsSkipped,
    EndsReading,
}

fn start(
    mut source: impl Read + Send + 'static,
    limit: usize,
    too_long: TooLong,
) -> mpsc::Receiver<Input> {
    let (sender, receiver) = mpsc::channel(MAX_WAITING_LINES);
    let read = move || {
        let mut splitter = Splitter::new(limit);
        let mut buffer = vec![0u8; READ_BYTES];
        loop {
            let count = match source.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            let mut disconnected = false;
            splitter.feed(&buffer[..count], |line| {
                disconnected |= sender.blocking_send(Input::Line(line)).is_err();
            });
            if disconnected {
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
    // If the thread cannot start, the closed channel reads as the end of the input.
    let _ = thread::Builder::new()
        .name("reader".into())
        .stack_size(128 * 1024)
        .spawn(read);
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An input without an end.
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
        assert!(matches!(next(), Some(Input::Line(InputLine::Complete(line))) if line == b"one"));
        assert!(matches!(
            next(),
            Some(Input::Line(InputLine::TooLong { .. }))
        ));
        assert!(matches!(next(), Some(Input::End)));
        assert!(next().is_none());
    }
}
