//! Writes frames to the terminal on a thread.

use std::fs::File;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// Time that the terminal may take to read the last frame before it is given up.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(500);

/// Pages that may wait to be written. A frame is drawn only when none waits, so that this leaves room for what the user
/// copies; more than that is refused.
const WAITING_PAGES: usize = 16;

/// Bytes that become one write.
#[derive(Debug, Clone, Default)]
pub(super) struct FrameBuffer(Arc<Mutex<Vec<u8>>>);

impl FrameBuffer {
    pub fn push(&self, bytes: &[u8]) {
        self.with(|buffer| buffer.extend_from_slice(bytes));
    }

    pub fn take(&self) -> Vec<u8> {
        self.with(std::mem::take)
    }

    fn with<T>(&self, change: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for FrameBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.push(bytes);
        Ok(bytes.len())
    }

    /// Does nothing: the buffer is written when the frame is complete.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Debug, Default)]
struct OutputState {
    /// Frames that are not written yet.
    waiting: AtomicUsize,
    broken: AtomicBool,
    written: Notify,
}

/// Sends frames to the thread that writes them.
#[derive(Debug)]
pub(super) struct Output {
    frames: mpsc::SyncSender<Vec<u8>>,
    state: Arc<OutputState>,
}

impl Output {
    pub fn start(mut file: File) -> io::Result<Self> {
        let (frames, receiver) = mpsc::sync_channel::<Vec<u8>>(WAITING_PAGES);
        let state = Arc::new(OutputState::default());
        let writer_state = Arc::clone(&state);
        let write = move || {
            for buffer in receiver {
                if file.write_all(&buffer).is_err() {
                    writer_state.broken.store(true, Ordering::Release);
                }
                writer_state.waiting.fetch_sub(1, Ordering::AcqRel);
                writer_state.written.notify_one();
            }
        };
        std::thread::Builder::new()
            .name("terminal".to_owned())
            .spawn(write)?;
        Ok(Self { frames, state })
    }

    /// Sends a frame to the thread that writes it. Returns whether there was room for it.
    pub fn send(&self, buffer: Vec<u8>) -> bool {
        self.state.waiting.fetch_add(1, Ordering::AcqRel);
        let Err(error) = self.frames.try_send(buffer) else {
            return true;
        };
        self.state.waiting.fetch_sub(1, Ordering::AcqRel);
        if matches!(error, mpsc::TrySendError::Disconnected(_)) {
            self.state.broken.store(true, Ordering::Release);
        }
        false
    }

    pub fn is_idle(&self) -> bool {
        self.state.waiting.load(Ordering::Acquire) == 0
    }

    /// Waits until everything is written.
    pub async fn idle(&self) -> io::Result<()> {
        loop {
            let written = self.state.written.notified();
            if self.state.broken.load(Ordering::Acquire) {
                return Err(io::Error::from(io::ErrorKind::BrokenPipe));
            }
            if self.is_idle() {
                return Ok(());
            }
            written.await;
        }
    }

    /// Waits a limited time until everything is written. Returns whether it was.
    pub fn finish(&self) -> bool {
        let until = Instant::now() + SHUTDOWN_TIMEOUT;
        while !self.is_idle() {
            if Instant::now() > until {
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        !self.state.broken.load(Ordering::Acquire)
    }
}
