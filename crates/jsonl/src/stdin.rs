//! Lines of standard input, read by the async runtime itself where the descriptor can be polled.
//!
//! A thread that reads and passes lines on must be woken for each request, and so must the runtime after it. A pipe or a
//! socket needs neither: the runtime already waits for it.
#![allow(unsafe_code)]

use std::io::{self, ErrorKind, Stdin};
use std::os::fd::AsFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc;

use crate::nowait::StreamKind;
use crate::reader::{Input, MAX_WAITING_LINES, READ_BYTES, read_lines};
use crate::{InputLine, Splitter};

/// Starts reading standard input; lines of up to `limit` bytes arrive on the returned channel. When the program falls
/// behind, reading stops and the pipe fills. Must be called inside the runtime.
///
/// A file, a terminal or a device has a reading thread, as with [`read_lines`].
pub fn read_stdin_lines(limit: usize) -> mpsc::Receiver<Input> {
    let stdin = io::stdin();
    let Some(kind) = StreamKind::of(stdin.as_fd()) else {
        return read_lines(stdin, limit);
    };
    // SAFETY: standard input stays the same open descriptor as long as the process lives.
    let registered = unsafe { AsyncFd::register_with_interest(stdin, Interest::READABLE) };
    let Ok(source) = registered else {
        return read_lines(io::stdin(), limit);
    };
    let (sender, receiver) = mpsc::channel(MAX_WAITING_LINES);
    tokio::spawn(read(source, kind, limit, sender));
    receiver
}

async fn read(source: AsyncFd<Stdin>, kind: StreamKind, limit: usize, sender: mpsc::Sender<Input>) {
    let mut splitter = Splitter::new(limit);
    let mut buffer = vec![0; READ_BYTES];
    let mut lines: Vec<InputLine> = Vec::new();
    loop {
        let Ok(mut ready) = source.readable().await else {
            return;
        };
        let count = match kind.read(source.as_fd(), &mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                ready.clear_ready();
                continue;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        drop(ready);
        splitter.feed(&buffer[..count], |line| lines.push(line));
        for line in lines.drain(..) {
            if sender.send(Input::Line(line)).await.is_err() {
                return;
            }
        }
    }
    if let Some(line) = splitter.finish() {
        let _ = sender.send(Input::Line(line)).await;
    }
    let _ = sender.send(Input::End).await;
}
