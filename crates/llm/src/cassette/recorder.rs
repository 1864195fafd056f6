//! Writes answers to a cassette as they arrive.
//!
//! The HTTP layer reports each answer once, after its own retries. A line is written when the
//! answer is over, so that simultaneous requests do not mix. A failure to write does not affect the
//! request.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use pinion_http::Response;
use pinion_message::{AssistantMessage, StopReason};

use super::file::{CassetteLine, Exchange, header};
use super::key;
use crate::Request;

/// Response headers that are recorded: they are needed for decoding, and hold no secret.
const RECORDED_HEADERS: [&str; 2] = ["content-type", "request-id"];

/// An open cassette. Clones write to the same file.
#[derive(Debug, Clone)]
pub struct Recorder {
    file: Arc<Mutex<File>>,
    /// The header has not been written yet.
    empty: Arc<AtomicBool>,
}

impl Recorder {
    /// Opens a cassette for appending. Only its owner may read it.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = pinion_files::open_with(&mut options, path)?;
        let empty = file.metadata()?.len() == 0;
        Ok(Self {
            file: Arc::new(Mutex::new(file)),
            empty: Arc::new(empty.into()),
        })
    }

    /// Begins to record the answer to `request`.
    pub(crate) fn begin(&self, request: &Request) -> Recording {
        if self.empty.swap(false, Ordering::Relaxed) {
            self.write(&header(&request.model));
        }
        Recording {
            recorder: self.clone(),
            started: Instant::now(),
            body: Vec::new(),
            whole: false,
            exchange: Some(Exchange::new(key(request))),
        }
    }

    fn write(&self, line: &CassetteLine) {
        let Ok(mut text) = serde_json::to_vec(line) else {
            return;
        };
        text.push(b'\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // A full disk must not fail the user's request; the cassette is incomplete then.
        let _ = file.write_all(&text);
    }
}

/// One answer being recorded. Dropped before its end, it is stored as an answer that was cut off.
#[derive(Debug)]
pub(crate) struct Recording {
    recorder: Recorder,
    started: Instant,
    body: Vec<u8>,
    /// The body is complete; a later failure is one of its content.
    whole: bool,
    /// `None` after it was written.
    exchange: Option<Exchange>,
}

impl Recording {
    /// Call it when the response headers have arrived.
    pub(crate) fn response(&mut self, response: &Response) {
        let Some(exchange) = &mut self.exchange else {
            return;
        };
        // The query of an address may hold a key.
        let mut url = response.url().clone();
        url.set_query(None);
        exchange.url = url.into();
        exchange.status = Some(response.status().as_u16());
        for name in RECORDED_HEADERS {
            if let Some(value) = response.headers().get(name)
                && let Ok(value) = value.to_str()
            {
                exchange.headers.insert(name.to_owned(), value.to_owned());
            }
        }
    }

    pub(crate) fn chunk(&mut self, bytes: &[u8]) {
        let milliseconds = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        if let Some(exchange) = &mut self.exchange {
            exchange.chunks.push((milliseconds, bytes.len()));
            self.body.extend_from_slice(bytes);
        }
    }

    /// Call it when the body has ended regularly.
    pub(crate) fn body_ended(&mut self) {
        self.whole = true;
    }

    /// Writes the answer that ended with `message`.
    pub(crate) fn end(mut self, message: &AssistantMessage) {
        match message.stop_reason {
            StopReason::Stop | StopReason::Length | StopReason::ToolUse => self.write(None),
            StopReason::Error if self.whole => self.write(None),
            StopReason::Error => {
                let text = message.error_message.clone();
                self.write(Some(text.unwrap_or_else(|| "Request failed".to_owned())));
            }
            StopReason::Aborted => {}
        }
    }

    fn write(&mut self, error: Option<String>) {
        if let Some(mut exchange) = self.exchange.take() {
            exchange.set_body(std::mem::take(&mut self.body));
            exchange.error = error;
            self.recorder.write(&CassetteLine::Exchange(exchange));
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.write(Some("The recording was cut short".to_owned()));
    }
}
