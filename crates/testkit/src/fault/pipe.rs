//! A badly behaved reader or writer at the other end of a pipe.

use std::io::{Read, Write};
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use pinion_sync::lock;

/// The behaviour of a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// Reads as fast as it can.
    Steady,
    /// Reads this many bytes per second.
    Slow(u64),
    /// Reads this many bytes per second until [`Reader::go_on`] is called.
    SlowAtFirst(u64),
    /// Stops reading after this many bytes, with the pipe open.
    StopAfter(u64),
    /// Closes the pipe after this many bytes.
    CloseAfter(u64),
}

/// A reader at the end of a pipe. [`Reader::go_on`] resumes one that stopped; all end with the pipe.
#[derive(Debug)]
pub struct Reader {
    bytes: Arc<Mutex<Vec<u8>>>,
    go_on: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Reader {
    /// Begins to read.
    pub fn start(mut from: impl Read + Send + 'static, manner: Reading) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let (go_on, held) = mpsc::sync_channel(1);
        let kept = Arc::clone(&bytes);
        let thread = thread::spawn(move || {
            let mut buffer = vec![0; 64 * 1024];
            let mut total = 0_u64;
            let mut manner = manner;
            loop {
                if matches!(manner, Reading::SlowAtFirst(_)) && held.try_recv().is_ok() {
                    manner = Reading::Steady;
                }
                let room = match manner {
                    Reading::Steady => buffer.len() as u64,
                    // Small reads, so that the speed is even.
                    Reading::Slow(rate) | Reading::SlowAtFirst(rate) => (rate / 20).max(1),
                    Reading::StopAfter(limit) | Reading::CloseAfter(limit) => {
                        limit.saturating_sub(total)
                    }
                };
                match manner {
                    Reading::CloseAfter(_) if room == 0 => return,
                    Reading::StopAfter(_) if room == 0 => {
                        // A dropped reader also ends the wait.
                        if held.recv().is_err() {
                            return;
                        }
                        manner = Reading::Steady;
                        continue;
                    }
                    Reading::Slow(_) | Reading::SlowAtFirst(_) => {
                        thread::sleep(Duration::from_millis(50))
                    }
                    _ => {}
                }
                let room = buffer.len().min(room as usize);
                match from.read(&mut buffer[..room]) {
                    Ok(0) | Err(_) => return,
                    Ok(count) => {
                        total += count as u64;
                        lock(&kept).extend_from_slice(&buffer[..count]);
                    }
                }
            }
        });
        Self {
            bytes,
            go_on: Some(go_on),
            thread: Some(thread),
        }
    }

    /// Lets a reader that stopped, or was slow at first, read the rest.
    pub fn go_on(&self) {
        if let Some(go_on) = &self.go_on {
            // A second request has no effect.
            let _ = go_on.try_send(());
        }
    }

    /// Returns the bytes read so far.
    pub fn bytes(&self) -> Vec<u8> {
        lock(&self.bytes).clone()
    }

    /// Waits for the end of the pipe and returns all bytes read, or those read until `time` is over.
    pub fn finish(mut self, time: Duration) -> Vec<u8> {
        let end = Instant::now() + time;
        if let Some(thread) = self.thread.take() {
            while !thread.is_finished() && Instant::now() < end {
                thread::sleep(Duration::from_millis(2));
            }
        }
        self.bytes()
    }
}

/// Writes `bytes` in pieces of `size`, with a pause after each, so that the other side reads torn lines.
pub fn write_torn(
    to: &mut impl Write,
    bytes: &[u8],
    size: usize,
    pause: Duration,
) -> std::io::Result<()> {
    for piece in bytes.chunks(size.max(1)) {
        to.write_all(piece)?;
        to.flush()?;
        thread::sleep(pause);
    }
    Ok(())
}
