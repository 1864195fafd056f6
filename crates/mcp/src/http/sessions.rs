//! Conversations over HTTP that began with `initialize`.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::events::{EventLog, Resumption};
use crate::calls::Calls;

/// So many at once; with more, the one that has been idle longest is forgotten.
const MAX_SESSIONS: usize = 1024;
/// One that is not used for so long is forgotten.
const IDLE: Duration = Duration::from_secs(3600);
/// A stream that has come to its end can be read again for so long, because its last events may have been lost on the way.
const REMEMBERED: Duration = Duration::from_secs(60);
/// So many of those are kept.
const MAX_ENDED: usize = 32;

/// A stream that can be resumed.
#[derive(Debug)]
struct Stream {
    log: Arc<EventLog>,
    /// When it came to its end.
    ended: Option<Instant>,
}

/// One conversation.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: String,
    /// The revision that was agreed on.
    pub(super) agreed: &'static str,
    pub(super) calls: Calls,
    /// What belongs to no request.
    pub(super) unasked: Arc<EventLog>,
    pub(super) ended: CancellationToken,
    streams: Mutex<BTreeMap<u64, Stream>>,
    last_stream: AtomicU64,
    used: Mutex<Instant>,
}

impl Session {
    fn new(agreed: &'static str) -> Self {
        let resumption = Resumption::Numbered { primed: false };
        Self {
            id: Uuid::new_v4().simple().to_string(),
            agreed,
            calls: Calls::default(),
            unasked: EventLog::new(0, resumption),
            ended: CancellationToken::new(),
            streams: Mutex::default(),
            last_stream: AtomicU64::new(0),
            used: Mutex::new(Instant::now()),
        }
    }

    fn streams(&self) -> MutexGuard<'_, BTreeMap<u64, Stream>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A stream that can be resumed until it is [closed](Session::close).
    pub(super) fn open(&self) -> (u64, Arc<EventLog>) {
        // Clients of older revisions read an event without data as a broken message.
        let primed = self.agreed >= "2025-11-25";
        let number = self.last_stream.fetch_add(1, Ordering::Relaxed) + 1;
        let log = EventLog::new(number, Resumption::Numbered { primed });
        let stream = Stream {
            log: log.clone(),
            ended: None,
        };
        self.streams().insert(number, stream);
        (number, log)
    }

    /// A stream has come to its end but may be read again for a while.
    pub(super) fn retire(&self, number: u64) {
        let now = Instant::now();
        let mut streams = self.streams();
        if let Some(stream) = streams.get_mut(&number) {
            stream.ended = Some(now);
        }
        let mut ended = streams.values().filter(|it| it.ended.is_some()).count();
        streams.retain(|_, stream| {
            let forgotten = |at: Instant| ended > MAX_ENDED || now >= at + REMEMBERED;
            let kept = !stream.ended.is_some_and(forgotten);
            ended -= usize::from(!kept);
            kept
        });
    }

    pub(super) fn close(&self, number: u64) {
        self.streams().remove(&number);
    }

    /// The stream that the id of an event belongs to, and the number of the event in it.
    pub(super) fn stream(&self, event: &str) -> Option<(Arc<EventLog>, u64)> {
        let (stream, number) = event.split_once('-')?;
        let (stream, number) = (stream.parse().ok()?, number.parse().ok()?);
        if stream == 0 {
            return Some((self.unasked.clone(), number));
        }
        Some((self.streams().get(&stream)?.log.clone(), number))
    }

    fn used(&self) -> MutexGuard<'_, Instant> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Since when nothing was asked in it; `None` while somebody listens.
    fn idle_since(&self) -> Option<Instant> {
        let underway = |stream: &Stream| stream.ended.is_none() || stream.log.is_read();
        let listened = self.unasked.is_read() || self.streams().values().any(underway);
        (!listened).then(|| *self.used())
    }

    fn end(&self) {
        self.ended.cancel();
        self.calls.cancel_all();
    }
}

/// All conversations.
#[derive(Debug, Default)]
pub(super) struct Sessions(Mutex<HashMap<String, Arc<Session>>>);

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Session>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins one.
    pub(super) fn begin(&self, agreed: &'static str) -> Arc<Session> {
        self.sweep(Instant::now());
        let session = Arc::new(Session::new(agreed));
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

    /// The one of this id.
    pub(super) fn find(&self, id: &str) -> Option<Arc<Session>> {
        let session = self.lock().get(id).cloned()?;
        *session.used() = Instant::now();
        Some(session)
    }

    /// Ends the one of this id; whether there was one.
    pub(super) fn end(&self, id: &str) -> bool {
        let ended = self.lock().remove(id);
        if let Some(session) = &ended {
            session.end();
        }
        ended.is_some()
    }

    /// Ends all.
    pub(super) fn end_all(&self) {
        for (_, session) in self.lock().drain() {
            session.end();
        }
    }

    /// Forgets those that are not used any more.
    pub(super) fn sweep(&self, now: Instant) {
        self.lock().retain(|_, session| {
            let kept = session.idle_since().is_none_or(|since| now < since + IDLE);
            if !kept {
                session.end();
            }
            kept
        });
    }

    /// Tells every conversation something nobody asked for.
    pub(super) fn tell(&self, message: &Bytes) {
        for session in self.lock().values() {
            session.unasked.push(message.clone());
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
        let _listener = heard.unasked.attach(None);
        *used.used() += Duration::from_secs(5);
        sessions.sweep(Instant::now() + IDLE + Duration::from_secs(1));
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
