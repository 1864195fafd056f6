//! Sends finished spans to the receiver, on a thread of its own that starts with the first span.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use pinion_http::{FetchRequest, Fetcher, Redirect};
use pinion_sync::lock;
use tracing::{debug, warn};

use crate::otlp;
use crate::settings::Settings;
use crate::span::FinishedSpan;

/// The most spans that wait; further ones are dropped.
const QUEUE_LIMIT: usize = 2048;
/// The most spans of one request.
const BATCH_LIMIT: usize = 512;
/// The longest time between a span's end and its request.
const INTERVAL: Duration = Duration::from_secs(5);
/// Requests of one batch; then it is dropped.
const MAX_ATTEMPTS: u32 = 5;
/// The longest wait between two of them, also if the receiver names a longer one.
const MAX_BACKOFF: Duration = Duration::from_secs(30);

static DROPPED: AtomicU64 = AtomicU64::new(0);

/// Returns the number of spans that were dropped since the start of the process.
pub(crate) fn dropped() -> u64 {
    DROPPED.load(Ordering::Relaxed)
}

/// Spans that wait to be sent.
#[derive(Debug)]
pub(crate) struct Exporter {
    shared: Arc<SharedQueue>,
}

#[derive(Debug)]
struct SharedQueue {
    settings: Settings,
    state: Mutex<QueueState>,
    /// A full batch waits, or the program ends.
    filled: Condvar,
    /// Everything was sent or dropped.
    emptied: Condvar,
}

#[derive(Debug, Default)]
struct QueueState {
    spans: VecDeque<FinishedSpan>,
    is_started: bool,
    is_sending: bool,
    /// Set at the end of the program: send at once, and try no longer than this.
    deadline: Option<Instant>,
}

impl Exporter {
    pub fn new(settings: Settings) -> Self {
        Self {
            shared: Arc::new(SharedQueue {
                settings,
                state: Mutex::default(),
                filled: Condvar::new(),
                emptied: Condvar::new(),
            }),
        }
    }

    /// Adds a span, or drops and counts it if the queue is full. Never waits for the receiver.
    pub fn push(&self, span: FinishedSpan) {
        let mut state = lock(&self.shared.state);
        if state.spans.len() >= QUEUE_LIMIT {
            DROPPED.fetch_add(1, Ordering::Relaxed);
            return;
        }
        state.spans.push_back(span);
        let is_full = state.spans.len() == BATCH_LIMIT;
        let is_first = !std::mem::replace(&mut state.is_started, true);
        drop(state);
        if is_full {
            self.shared.filled.notify_one();
        }
        if is_first {
            let shared = Arc::clone(&self.shared);
            let thread = std::thread::Builder::new().name("telemetry".to_owned());
            // Without a thread the queue fills up, and further spans are dropped.
            let _ = thread.spawn(move || shared.send_all());
        }
    }

    /// Sends what waits, for at most `timeout`.
    pub fn finish(&self, timeout: Duration) {
        let mut state = lock(&self.shared.state);
        state.deadline = Some(Instant::now() + timeout);
        self.shared.filled.notify_one();
        let is_pending = |state: &mut QueueState| {
            state.is_started && (state.is_sending || !state.spans.is_empty())
        };
        drop(
            self.shared
                .emptied
                .wait_timeout_while(state, timeout, is_pending),
        );
    }
}

impl SharedQueue {
    /// Sends batches as they come. Runs on the exporter's thread until the process ends.
    fn send_all(&self) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let Ok(runtime) = runtime else {
            return;
        };
        let fetcher = Fetcher::default();
        loop {
            let batch = self.next_batch();
            let body = Bytes::from(otlp::encode(&self.settings.resource, &batch));
            if !runtime.block_on(self.send(&fetcher, body)) {
                DROPPED.fetch_add(batch.len() as u64, Ordering::Relaxed);
            }
        }
    }

    /// Waits until a batch is full, five seconds have passed or the program ends.
    fn next_batch(&self) -> Vec<FinishedSpan> {
        let mut state = lock(&self.state);
        state.is_sending = false;
        loop {
            if state.spans.is_empty() {
                self.emptied.notify_all();
            }
            let is_waiting = |state: &mut QueueState| {
                state.spans.len() < BATCH_LIMIT
                    && (state.deadline.is_none() || state.spans.is_empty())
            };
            state = self
                .filled
                .wait_timeout_while(state, INTERVAL, is_waiting)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
            if !state.spans.is_empty() {
                state.is_sending = true;
                let count = state.spans.len().min(BATCH_LIMIT);
                return state.spans.drain(..count).collect();
            }
        }
    }

    /// Posts one batch. Returns `false` if the receiver did not take it.
    async fn send(&self, fetcher: &Fetcher, body: Bytes) -> bool {
        for attempt in 1..=MAX_ATTEMPTS {
            let wait = match self.post(fetcher, body.clone()).await {
                Ok(()) => return true,
                Err(Refused { retry: None }) => return false,
                Err(Refused { retry: Some(wait) }) => {
                    wait.unwrap_or(Duration::from_secs(1 << attempt))
                }
            };
            // At the end of the program no time is left for a second try.
            if attempt == MAX_ATTEMPTS || lock(&self.state).deadline.is_some() {
                break;
            }
            tokio::time::sleep(wait.min(MAX_BACKOFF)).await;
        }
        false
    }

    async fn post(&self, fetcher: &Fetcher, body: Bytes) -> Result<(), Refused> {
        let mut headers = vec![(
            "content-type".to_owned(),
            "application/x-protobuf".to_owned(),
        )];
        headers.extend(self.settings.headers.iter().cloned());
        let request = FetchRequest {
            method: "POST".to_owned(),
            url: self.settings.endpoint.clone(),
            headers,
            body: Some(body),
            redirect: Redirect::Refuse,
        };
        let answer = tokio::time::timeout(self.settings.timeout, fetcher.fetch(request)).await;
        let later = Refused { retry: Some(None) };
        let answer = match answer {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => {
                warn!(cause = %error, "spans were not sent");
                return Err(later);
            }
            Err(_) => {
                warn!(cause = "timeout", "spans were not sent");
                return Err(later);
            }
        };
        let status = answer.status;
        if (200..300).contains(&status) {
            debug!(status, "spans sent");
            return Ok(());
        }
        warn!(status, "the receiver of spans refused them");
        if !matches!(status, 429 | 502 | 503 | 504) {
            return Err(Refused { retry: None });
        }
        let mut headers = answer.headers.iter();
        let seconds = headers
            .find(|(name, _)| name == "retry-after")
            .and_then(|(_, value)| value.trim().parse().ok());
        Err(Refused {
            retry: Some(seconds.map(Duration::from_secs)),
        })
    }
}

/// A batch that the receiver did not take.
struct Refused {
    /// The receiver may take it later, after this time if it names one.
    retry: Option<Option<Duration>>,
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::time::SystemTime;

    use super::*;
    use crate::span::SpanKind;
    use crate::{Sampler, TraceContext};

    fn span() -> FinishedSpan {
        FinishedSpan {
            context: TraceContext {
                trace: [1; 16],
                span: [2; 8],
                sampled: true,
            },
            parent: None,
            name: "run".to_owned(),
            kind: SpanKind::Internal,
            start: SystemTime::now(),
            end: SystemTime::now(),
            attributes: Vec::new(),
            events: Vec::new(),
            has_failed: false,
        }
    }

    fn exporter(endpoint: String) -> Exporter {
        Exporter::new(Settings {
            endpoint,
            headers: vec![("x-key".to_owned(), "k".to_owned())],
            timeout: Duration::from_secs(30),
            resource: Vec::new(),
            sampler: Sampler::AlwaysOn,
        })
    }

    /// Answers requests one after the other with these heads, and returns the requests.
    fn receiver(
        answers: &'static [&'static str],
    ) -> (String, std::thread::JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1/traces", listener.local_addr().unwrap());
        let served = std::thread::spawn(move || {
            let mut requests = Vec::new();
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = Vec::new();
                let mut piece = [0; 4096];
                while !request.windows(3).any(|part| part == b"run") {
                    let count = stream.read(&mut piece).unwrap();
                    request.extend_from_slice(&piece[..count]);
                }
                write!(
                    stream,
                    "HTTP/1.1 {answer}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
                )
                .unwrap();
                requests.push(String::from_utf8_lossy(&request).into_owned());
            }
            requests
        });
        (url, served)
    }

    #[test]
    fn a_batch_is_sent_again_when_the_receiver_is_busy() {
        let (url, served) = receiver(&["503 Busy\r\nretry-after: 0", "200 OK"]);
        let exporter = exporter(url);
        exporter.push(span());
        // The second attempt must not be the last one of the program, which is tried once.
        lock(&exporter.shared.state)
            .spans
            .extend((1..BATCH_LIMIT).map(|_| span()));
        exporter.shared.filled.notify_one();
        let requests = served.join().unwrap();
        assert_eq!(requests.len(), 2);
        for request in &requests {
            assert!(
                request.starts_with("POST /v1/traces HTTP/1.1\r\n"),
                "{request}"
            );
            assert!(request.contains("application/x-protobuf") && request.contains("x-key: k"));
        }
        exporter.finish(Duration::from_secs(30));
        assert!(lock(&exporter.shared.state).spans.is_empty());
    }

    #[test]
    fn the_end_sends_what_waits_at_once() {
        let (url, served) = receiver(&["200 OK"]);
        let exporter = exporter(url);
        exporter.finish(Duration::from_secs(30));
        exporter.push(span());
        exporter.finish(Duration::from_secs(30));
        assert_eq!(served.join().unwrap().len(), 1);
    }

    #[test]
    fn a_full_queue_drops_and_counts() {
        let exporter = exporter("http://127.0.0.1:9/".to_owned());
        // No thread takes spans out.
        lock(&exporter.shared.state).is_started = true;
        let before = dropped();
        for _ in 0..QUEUE_LIMIT + 3 {
            exporter.push(span());
        }
        assert_eq!(lock(&exporter.shared.state).spans.len(), QUEUE_LIMIT);
        assert!(dropped() >= before + 3);
    }
}
