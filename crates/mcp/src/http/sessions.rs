//! MCP sessions over HTTP, each started by `initialize`.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::events::{EventLog, Resumption};
use crate::in_flight::InFlightRequests;

/// Concurrent sessions. For a new one beyond this, the longest idle session ends.
const MAX_SESSIONS: usize = 1024;
/// Time after which an unused session ends.
const IDLE_TIMEOUT: Duration = Duration::from_secs(3600);
/// Time for which a finished stream can be read again, because its last events may have been lost on the network.
const FINISHED_STREAM_TTL: Duration = Duration::from_secs(60);
/// Finished streams that a session stores.
const MAX_FINISHED_STREAMS: usize = 32;

/// A stream that can be resumed.
#[derive(Debug)]
struct SessionStream {
    log: Arc<EventLog>,
    /// The time at which the stream was finished.
    ended: Option<Instant>,
}

#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: String,
    /// The negotiated revision.
    pub(super) revision: &'static str,
    pub(super) calls: InFlightRequests,
    /// Messages outside requests.
    pub(super) notifications: Arc<EventLog>,
    pub(super) ended: CancellationToken,
    streams: Mutex<BTreeMap<u64, SessionStream>>,
    last_stream: AtomicU64,
    used: Mutex<Instant>,
}

impl Session {
    fn new(revision: &'static str) -> Self {
        let resumption = Resumption::Numbered { primed: false };
        Self {
            id: Uuid::new_v4().simple().to_string(),
            revision,
            calls: InFlightRequests::default(),
            notifications: EventLog::new(0, resumption),
            ended: CancellationToken::new(),
            streams: Mutex::default(),
            last_stream: AtomicU64::new(0),
            used: Mutex::new(Instant::now()),
        }
    }

    fn streams(&self) -> MutexGuard<'_, BTreeMap<u64, SessionStream>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a stream that can be resumed until it is [closed](Session::close).
    pub(super) fn open(&self) -> (u64, Arc<EventLog>) {
        // Clients of older revisions treat an event without data as a malformed message.
        let primed = self.revision >= "2025-11-25";
        let number = self.last_stream.fetch_add(1, Ordering::Relaxed) + 1;
        let log = EventLog::new(number, Resumption::Numbered { primed });
        let stream = SessionStream {
            log: log.clone(),
            ended: None,
        };
        self.streams().insert(number, stream);
        (number, log)
    }

    /// Marks a stream as finished. It can be read again for a while.
    pub(super) fn retire(&self, number: u64) {
        let now = Instant::now();
        let mut streams = self.streams();
        if let Some(stream) = streams.get_mut(&number) {
            stream.ended = Some(now);
        }
        let mut ended = streams.values().filter(|it| it.ended.is_some()).count();
        streams.retain(|_, stream| {
            let forgotten =
                |at: Instant| ended > MAX_FINISHED_STREAMS || now >= at + FINISHED_STREAM_TTL;
            let kept = !stream.ended.is_some_and(forgotten);
            ended -= usize::from(!kept);
            kept
        });
    }

    pub(super) fn close(&self, number: u64) {
        self.streams().remove(&number);
    }

    /// Returns the stream of an event id, and the number of the event in it.
    pub(super) fn stream(&self, event: &str) -> Option<(Arc<EventLog>, u64)> {
        let (stream, number) = event.split_once('-')?;
        let (stream, number) = (stream.parse().ok()?, number.parse().ok()?);
        if stream == 0 {
            return Some((self.notifications.clone(), number));
        }
        Some((self.streams().get(&stream)?.log.clone(), number))
    }

    fn used(&self) -> MutexGuard<'_, Instant> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the time of the last request; `None` while a client reads a stream.
    fn idle_since(&self) -> Option<Instant> {
        let in_flight = |stream: &SessionStream| stream.ended.is_none() || stream.log.is_read();
        let listened = self.notifications.is_read() || self.streams().values().any(in_flight);
        (!listened).then(|| *self.used())
    }

    fn end(&self) {
        self.ended.cancel();
        self.calls.cancel_all();
    }
}

#[derive(Debug, Default)]
pub(super) struct Sessions(Mutex<HashMap<String, Arc<Session>>>);

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Session>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a session.
    pub(super) fn begin(&self, revision: &'static str) -> Arc<Session> {
        self.sweep(Instant::now());
        let session = Arc::new(Session::new(revision));
        let mut sessions = self.lock();
        if sessions.len() >= MAX_SESSIONS {
            let idlest = sessions
                .values()
                .min_by_key(|session| session.idle_since().unwrap_or_else(Instant::now))
                .map(|session| session.id.clone());
            if let Some(forgotten) = idlest.and_then(|id| sessions.remove(&id)) {
                forgotten.end();
            }
        }
        sessions.insert(session.id.clone(), session.clone());
        session
    }

    /// Returns the session with this id.
    pub(super) fn find(&self, id: &str) -> Option<Arc<Session>> {
        let session = self.lock().get(id).cloned()?;
        *session.used() = Instant::now();
        Some(session)
    }

    /// Ends the session with this id and reports whether it existed.
    pub(super) fn end(&self, id: &str) -> bool {
        let ended = self.lock().remove(id);
        if let Some(session) = &ended {
            session.end();
        }
        ended.is_some()
    }

    /// Ends all sessions.
    pub(super) fn end_all(&self) {
        for (_, session) in self.lock().drain() {
            session.end();
        }
    }

    /// Ends sessions that are no longer used.
    pub(super) fn sweep(&self, now: Instant) {
        self.lock().retain(|_, session| {
            let kept = session
                .idle_since()
                .is_none_or(|since| now < since + IDLE_TIMEOUT);
            if !kept {
                session.end();
            }
            kept
        });
    }

    /// Sends a message to every session, outside any request.
    pub(super) fn broadcast(&self, message: &Bytes) {
        for session in self.lock().values() {
            session.notifications.push(message.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn conversations_nobody_uses_are_forgotten() {
        let sessions = Sessions::default();
        let begin = || sessions.begin("2025-11-25");
        let (quiet, used, heard) = (begin(), begin(), begin());
        let _listener = heard.notifications.attach(None);
        *used.used() += Duration::from_secs(5);
        sessions.sweep(Instant::now() + IDLE_TIMEOUT + Duration::from_secs(1));
        assert!(sessions.find(&quiet.id).is_none() && quiet.ended.is_cancelled());
        assert!(sessions.find(&used.id).is_some() && sessions.find(&heard.id).is_some());
    }

    #[tokio::test]
    async fn there_are_only_so_many() {
        let sessions = Sessions::default();
        let first = sessions.begin("2025-11-25");
        let second = sessions.begin("2025-11-25");
        *second.used() += Duration::from_secs(1);
        for _ in 0..MAX_SESSIONS - 1 {
            sessions.begin("2025-11-25");
        }
        assert!(sessions.find(&first.id).is_none() && first.ended.is_cancelled());
        assert!(sessions.find(&second.id).is_some());
    }
}
