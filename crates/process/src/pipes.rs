//! Pipes between pinion and the processes that it launches.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::{Receiver, Sender};

use crate::{Launch, Running, launch};

/// The most bytes of an output that are read at once to find its end.
const READ_SIZE: usize = 16 * 1024;

/// pinion's ends of the pipes to a process.
#[derive(Debug)]
pub struct Pipes {
    /// Dropping it closes the input of the process.
    pub stdin: Sender,
    /// The output of the process.
    pub stdout: Receiver,
    /// The error output of the process.
    pub stderr: Receiver,
}

/// Starts a process whose input and outputs are pipes. The three descriptors in `launch` are replaced.
pub async fn launch_piped(launch_request: Launch) -> io::Result<(Running, Pipes)> {
    let (their_stdin, stdin) = input_pipe()?;
    let (stdout, their_stdout) = output_pipe()?;
    let (stderr, their_stderr) = output_pipe()?;
    let running = launch(Launch {
        stdin: Some(their_stdin),
        stdout: Some(their_stdout),
        stderr: Some(their_stderr),
        ..launch_request
    });
    let pipes = Pipes {
        stdin,
        stdout,
        stderr,
    };
    Ok((running.await?, pipes))
}

/// Creates a pipe for an input of a process: its end, then pinion's. Needs a runtime.
pub fn input_pipe() -> io::Result<(OwnedFd, Sender)> {
    let (theirs, ours) = io::pipe()?;
    Ok((theirs.into(), Sender::from_owned_fd(ours.into())?))
}

/// Creates a pipe for an output of a process: pinion's end, then that of the process. Needs a runtime.
pub fn output_pipe() -> io::Result<(Receiver, OwnedFd)> {
    let (ours, theirs) = io::pipe()?;
    Ok((Receiver::from_owned_fd(ours.into())?, theirs.into()))
}

/// The last bytes of an output, for messages about a failure.
#[derive(Debug, Clone)]
pub struct Tail {
    bytes: Vec<u8>,
    limit: usize,
}

impl Tail {
    /// Creates a tail of at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            bytes: Vec::new(),
            limit,
        }
    }

    /// Reads `pipe` to its end and returns its tail.
    pub async fn read(mut pipe: Receiver, limit: usize) -> Self {
        let mut tail = Self::new(limit);
        tail.fill(&mut pipe).await;
        tail
    }

    /// Adds the rest of `pipe`. May be dropped at any time.
    pub async fn fill(&mut self, pipe: &mut Receiver) {
        let mut piece = vec![0; READ_SIZE];
        while let Ok(count @ 1..) = pipe.read(&mut piece).await {
            self.push(&piece[..count]);
        }
    }

    /// Adds the next bytes of the output.
    pub fn push(&mut self, bytes: &[u8]) {
        let bytes = &bytes[bytes.len().saturating_sub(self.limit)..];
        // Twice the limit may be stored, so that not every piece moves the others.
        if self.bytes.len() + bytes.len() > self.limit * 2 {
            let stored = self.limit - bytes.len();
            self.bytes.drain(..self.bytes.len().saturating_sub(stored));
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the last bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[self.bytes.len().saturating_sub(self.limit)..]
    }

    /// Returns the last lines that are not blank, at most `most`, oldest first.
    pub fn lines(&self, most: usize) -> Vec<String> {
        let text = String::from_utf8_lossy(self.bytes());
        let lines = text.lines().rev().filter(|line| !line.trim().is_empty());
        let mut lines: Vec<String> = lines.take(most).map(str::to_owned).collect();
        lines.reverse();
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_bytes_are_stored() {
        let mut tail = Tail::new(8);
        for (piece, stored) in [
            ("", ""),
            ("one\n", "one\n"),
            ("two\n", "one\ntwo\n"),
            ("three\n", "o\nthree\n"),
            ("x", "\nthree\nx"),
            ("a line of many bytes", "ny bytes"),
            ("12345678", "12345678"),
        ] {
            tail.push(piece.as_bytes());
            assert_eq!(tail.bytes(), stored.as_bytes());
            assert!(tail.bytes.len() <= 16);
        }
    }

    #[test]
    fn blank_lines_are_not_among_the_last() {
        let mut tail = Tail::new(100);
        tail.push(b"first\n\nsecond\n  \nthird\r\n\n");
        assert_eq!(tail.lines(2), ["second", "third"]);
        assert_eq!(tail.lines(9), ["first", "second", "third"]);
        assert_eq!(Tail::new(9).lines(2), [""; 0]);
    }
}
