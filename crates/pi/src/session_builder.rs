//! Opens the sessions of a client that has several: their ids, their outboxes and their lifetimes.
//!
//! Sessions are built on blocking threads, so that opening one does not delay another.

use std::collections::HashSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::{BoxFuture, LocalBoxFuture};
use pinion_agent::{Companions, Config, Listener};
use pinion_jsonl::Queue;
use tokio::runtime::Handle;
use tokio::sync::{Notify, Semaphore};

use crate::classic::Additions;
use crate::dialect::Dialect;
use crate::listener::PiListener;
use crate::multi_session::{OpenSession, OpenedSession, SessionHost};
use crate::outbox::{Addressed, Outbox};
use crate::outgoing::{Out, Sink};
use crate::serving::{OnEof, Serving, ServingEnd};

/// Number of sessions that may be built at the same time, with those whose client no longer waits.
const BUILD_LIMIT: usize = 8;
/// Longest time a client waits for a session to open. A file system that hangs must not hold the client without end.
const OPEN_TIMEOUT: Duration = Duration::from_secs(120);

/// The program's part of opening a session.
pub trait SessionBuilder: Send + Sync + 'static {
    /// The program's own part of a prepared session.
    type Rest: Send;

    /// Opens the file of a session. The error is a sentence for the client.
    fn prepare(&self, opening: OpenSession) -> Result<PreparedSession<Self::Rest>, String>;

    /// Builds the session. It has the id `id` among the open ones, and its events go to `listener`.
    fn build<'a>(
        &'a self,
        rest: Self::Rest,
        id: &'a str,
        listener: Arc<dyn Listener>,
        records: Arc<RecordOutbox>,
    ) -> LocalBoxFuture<'a, Result<BuiltSession, String>>;

    /// Ends what the session `id` has left behind, on a blocking thread.
    fn clean_up(&self, id: &str);
}

/// A session whose file is open, and the facts about it that the client receives.
#[derive(Debug)]
pub struct PreparedSession<T> {
    /// The id of the session file.
    pub id: String,
    /// The session file; `None` for a session in memory.
    pub file: Option<PathBuf>,
    /// The working directory.
    pub cwd: PathBuf,
    /// The rest, which only the program reads.
    pub rest: T,
}

/// A session ready to be started.
pub struct BuiltSession {
    pub config: Config,
    pub companions: Arc<dyn Companions>,
    /// The events that the client receives in addition to those of its dialect.
    pub additions: Additions,
}

/// Opens sessions for [`MultiSessionRpc`](crate::MultiSessionRpc).
pub struct BuildingHost<B>(Arc<Builder<B>>);

struct Builder<B> {
    program: B,
    dialect: Dialect,
    queue: Queue<Addressed>,
    ids: Arc<OpenIds>,
    builds: Arc<Semaphore>,
}

impl<B: SessionBuilder> BuildingHost<B> {
    /// Creates a host whose sessions write to `queue`.
    pub fn new(program: B, dialect: Dialect, queue: Queue<Addressed>) -> Self {
        Self(Arc::new(Builder {
            program,
            dialect,
            queue,
            ids: Arc::default(),
            builds: Arc::new(Semaphore::new(BUILD_LIMIT)),
        }))
    }

    /// Returns the ids of the open sessions.
    pub fn open_ids(&self) -> Arc<OpenIds> {
        Arc::clone(&self.0.ids)
    }
}

impl<B: SessionBuilder> SessionHost for BuildingHost<B> {
    fn open(&self, opening: OpenSession) -> BoxFuture<'static, Result<OpenedSession, String>> {
        let builder = Arc::clone(&self.0);
        Box::pin(async move {
            let opened = tokio::time::timeout(OPEN_TIMEOUT, builder.open_apart(opening)).await;
            opened.unwrap_or_else(|_| {
                let seconds = OPEN_TIMEOUT.as_secs();
                Err(format!(
                    "the session did not open within {seconds} seconds; do its files and its directory answer?"
                ))
            })
        })
    }
}

impl<B: SessionBuilder> Builder<B> {
    /// Opens a session on a blocking thread, which counts against the limit until it is done.
    async fn open_apart(self: Arc<Self>, opening: OpenSession) -> Result<OpenedSession, String> {
        let Ok(permit) = Arc::clone(&self.builds).acquire_owned().await else {
            return Err("the program ends".to_owned());
        };
        let runtime = Handle::current();
        let open = move || {
            let opened = runtime.block_on(self.open(opening));
            drop(permit);
            opened
        };
        let opened = tokio::task::spawn_blocking(open).await;
        opened.unwrap_or_else(|error| Err(format!("the session could not be made: {error}")))
    }

    async fn open(self: &Arc<Self>, opening: OpenSession) -> Result<OpenedSession, String> {
        let PreparedSession {
            id,
            file,
            cwd,
            rest,
        } = self.program.prepare(opening)?;
        let id = OpenId::claim(&self.ids, &id);
        let out = Outbox::of_session(self.queue.clone(), &id.0, self.dialect);
        let listener = Arc::new(PiListener::new(out.clone(), self.dialect));
        let records = Arc::new(RecordOutbox::new(out.clone()));
        let built = self
            .program
            .build(rest, &id.0, listener, Arc::clone(&records));
        let BuiltSession {
            config,
            companions,
            additions,
        } = built.await?;
        out.add(additions);
        let serving = Serving::start(config, companions, self.dialect, out.clone());
        let builder = Arc::clone(self);
        Ok(OpenedSession {
            id: id.0.clone(),
            session: serving.session(),
            file: file.map(|file| file.display().to_string()),
            cwd: cwd.display().to_string(),
            out,
            serve: Box::new(move |input, stopped| {
                Box::pin(async move {
                    records.release();
                    let stopped = async {
                        // A dropped sender also means stop.
                        let _ = stopped.await;
                        ServingEnd::Requested
                    };
                    let end = serving.serve(input, OnEof::Drain, stopped).await;
                    // At the end of input the program ends, and with it every command.
                    if end != ServingEnd::Input {
                        let name = id.0.clone();
                        let clean_up = move || builder.program.clean_up(&name);
                        // Leftovers that cannot be ended now end with the process.
                        let _ = tokio::task::spawn_blocking(clean_up).await;
                    }
                    drop(id);
                })
            }),
        })
    }
}

impl fmt::Debug for BuiltSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BuiltSession")
    }
}

impl<B> fmt::Debug for BuildingHost<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BuildingHost")
    }
}

/// The ids of the open sessions.
#[derive(Debug, Default)]
pub struct OpenIds {
    ids: Mutex<HashSet<String>>,
    closed: Notify,
}

impl OpenIds {
    /// Waits until a session has closed since the last call.
    pub async fn closed(&self) {
        self.closed.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<String>> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The id by which the client addresses a session. Dropping it frees the id.
struct OpenId(String, Arc<OpenIds>);

impl OpenId {
    /// Claims the session's own id, with a number appended if another open session uses it.
    fn claim(open: &Arc<OpenIds>, id: &str) -> Self {
        let mut ids = open.lock();
        let numbered = (2_u64..).map(|number| format!("{id}-{number}"));
        let mut candidates = std::iter::once(id.to_owned()).chain(numbered);
        let free = candidates.find(|candidate| !ids.contains(candidate));
        let id = free.unwrap_or_else(|| id.to_owned());
        ids.insert(id.clone());
        drop(ids);
        Self(id, Arc::clone(open))
    }
}

impl Drop for OpenId {
    fn drop(&mut self) {
        self.1.lock().remove(&self.0);
        self.1.closed.notify_one();
    }
}

/// Sends the records of a session's companions. Holds them back while the session is being built: the client must
/// learn of the session first.
#[derive(Debug)]
pub struct RecordOutbox {
    out: Outbox,
    waiting: Mutex<Option<Vec<String>>>,
}

impl RecordOutbox {
    fn new(out: Outbox) -> Self {
        Self {
            out,
            waiting: Mutex::new(Some(Vec::new())),
        }
    }

    /// Sends a record, or holds it back.
    pub fn send(&self, record: String) {
        let mut waiting = self.lock();
        match &mut *waiting {
            Some(waiting) => waiting.push(record),
            None => self.out.push(Out::line(record)),
        }
    }

    /// Reports whether the client has room for more records.
    pub fn has_room(&self) -> bool {
        self.out.has_room()
    }

    /// Sends the held records; later records are sent at once.
    fn release(&self) {
        let mut waiting = self.lock();
        for record in waiting.take().into_iter().flatten() {
            self.out.push(Out::line(record));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Vec<String>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use pinion_jsonl::Coalesce;

    use super::*;

    #[tokio::test]
    async fn an_id_is_unique_among_the_open_sessions() {
        let open = Arc::default();
        let first = OpenId::claim(&open, "a");
        let second = OpenId::claim(&open, "a");
        let third = OpenId::claim(&open, "a");
        assert_eq!((&*first.0, &*second.0, &*third.0), ("a", "a-2", "a-3"));
        drop(second);
        open.closed().await;
        assert_eq!(OpenId::claim(&open, "a").0, "a-2");
    }

    /// Opens nothing until the test ends.
    struct Hanging(Mutex<std::sync::mpsc::Receiver<()>>);

    impl SessionBuilder for Hanging {
        type Rest = ();

        fn prepare(&self, _: OpenSession) -> Result<PreparedSession<()>, String> {
            let end = self.0.lock().unwrap();
            let _ = end.recv();
            Err("the test has ended".to_owned())
        }

        fn build<'a>(
            &'a self,
            (): (),
            _: &'a str,
            _: Arc<dyn Listener>,
            _: Arc<RecordOutbox>,
        ) -> LocalBoxFuture<'a, Result<BuiltSession, String>> {
            Box::pin(async { Err("nothing is prepared".to_owned()) })
        }

        fn clean_up(&self, _: &str) {}
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_does_not_wait_for_ever_for_files_that_hang() {
        let (end, ended) = std::sync::mpsc::sync_channel(1);
        let program = Hanging(Mutex::new(ended));
        let queue = Queue::new(Coalesce::Never);
        let host = BuildingHost::new(program, Dialect::Classic, queue);
        let opening = tokio::spawn(host.open(OpenSession::default()));
        let too_many: Vec<_> = (0..BUILD_LIMIT)
            .map(|_| tokio::spawn(host.open(OpenSession::default())))
            .collect();
        tokio::task::yield_now().await;
        tokio::time::advance(OPEN_TIMEOUT).await;
        for opening in std::iter::once(opening).chain(too_many) {
            let Err(error) = opening.await.unwrap() else {
                panic!("opened");
            };
            assert!(error.contains("did not open within 120 seconds"), "{error}");
        }
        assert_eq!(
            host.0.builds.available_permits(),
            0,
            "the threads still count"
        );
        drop(end);
    }

    #[test]
    fn records_wait_until_the_client_knows_the_session() {
        let queue = Queue::new(Coalesce::Never);
        let out = Outbox::of_session(queue, "a", Dialect::Modern);
        let records = RecordOutbox::new(out);
        records.send("{}".to_owned());
        let held = |records: &RecordOutbox| records.lock().as_ref().map(Vec::len);
        assert_eq!(held(&records), Some(1));
        records.release();
        records.send("{}".to_owned());
        assert_eq!(held(&records), None);
    }
}
