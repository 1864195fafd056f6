//! Finds files on a thread, so that no disk access blocks the chat.
//!
//! The thread starts with the first request and ends with the finder. It caches the files below the
//! working directory; a newer request cancels an older one.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::listing::{self, Walker};
use super::matching::{Best, best_paths, best_words};

/// Paths read between two checks for a newer request.
const CANCEL_CHECK_INTERVAL: usize = 128;

/// Shortest time between two partial results.
const RESULT_INTERVAL: Duration = Duration::from_millis(60);

/// Age from which the cached files are read again when a new reference begins.
const CACHE_LIFETIME: Duration = Duration::from_secs(1);

/// Searches files by name.
pub(super) struct Finder {
    shared: Arc<FinderState>,
    /// Wakes the thread for a new request. One signal is enough for any number of requests.
    wake: SyncSender<()>,
    newest: u64,
}

struct FinderState {
    /// The number of the newest request.
    newest: AtomicU64,
    /// The newest request, until the thread takes it.
    request: Mutex<Option<SearchRequest>>,
    found: Mutex<Option<Found>>,
    on_ready: Arc<dyn Fn() + Send + Sync>,
}

struct SearchRequest {
    number: u64,
    query: String,
    /// A new reference begins, so the cache may be too old.
    begins: bool,
}

impl FinderState {
    fn request(&self) -> MutexGuard<'_, Option<SearchRequest>> {
        self.request.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The result of the newest request.
#[derive(Debug)]
pub(super) struct Found {
    number: u64,
    pub(super) paths: Vec<String>,
    pub(super) total: usize,
    /// No more results will follow.
    pub(super) is_complete: bool,
}

impl Finder {
    /// Starts the thread; it calls `on_ready` whenever there are new results.
    pub(super) fn start(
        root: PathBuf,
        on_ready: Arc<dyn Fn() + Send + Sync>,
    ) -> std::io::Result<Self> {
        let shared = Arc::new(FinderState {
            newest: AtomicU64::new(0),
            request: Mutex::new(None),
            found: Mutex::new(None),
            on_ready,
        });
        let (wake, woken) = sync_channel(1);
        let worker = Worker {
            root,
            shared: shared.clone(),
            woken,
            known: Vec::new(),
            seen: None,
        };
        std::thread::Builder::new()
            .name("files".into())
            .spawn(move || worker.work())?;
        Ok(Self {
            shared,
            wake,
            newest: 0,
        })
    }

    /// Requests files; cancels an earlier request.
    pub(super) fn ask(&mut self, query: &str, begins: bool) {
        self.newest += 1;
        self.shared.newest.store(self.newest, Ordering::Release);
        let mut request = self.shared.request();
        let begins = begins || request.as_ref().is_some_and(|earlier| earlier.begins);
        *request = Some(SearchRequest {
            number: self.newest,
            query: query.to_owned(),
            begins,
        });
        drop(request);
        // The signal may be set already. If the thread could not be started, no file is ever found.
        let _ = self.wake.try_send(());
    }

    /// The newest results, if they belong to the newest request and were not returned before.
    pub(super) fn found(&self) -> Option<Found> {
        let found = self
            .shared
            .found
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        found.filter(|found| found.number == self.newest)
    }
}

impl Drop for Finder {
    fn drop(&mut self) {
        // Cancels any search in progress.
        self.shared.newest.store(u64::MAX, Ordering::Release);
    }
}

struct Worker {
    root: PathBuf,
    shared: Arc<FinderState>,
    woken: Receiver<()>,
    /// All paths below the root at the last walk.
    known: Vec<String>,
    seen: Option<Instant>,
}

impl Worker {
    fn work(mut self) {
        while self.woken.recv().is_ok() {
            // A request may have been taken before its signal.
            let request = self.shared.request().take();
            if let Some(request) = request {
                self.answer(request);
            }
        }
    }

    fn answer(&mut self, request: SearchRequest) {
        if listing::is_rooted(&request.query) {
            self.publish_directory(&request);
            return;
        }
        let is_old = self
            .seen
            .is_none_or(|seen| request.begins && seen.elapsed() > CACHE_LIFETIME);
        if is_old {
            self.walk(request);
        } else {
            self.publish_matches(&request, &self.known, Progress::Final);
        }
    }

    /// Walks everything below the root and publishes results meanwhile.
    fn walk(&mut self, request: SearchRequest) {
        let mut request = request;
        let mut seen = Vec::new();
        if !self.known.is_empty() {
            self.publish_matches(&request, &self.known, Progress::Partial);
        }
        let mut next_result = Instant::now() + RESULT_INTERVAL;
        for (count, path) in Walker::new(&self.root).enumerate() {
            seen.extend(path);
            if count % CANCEL_CHECK_INTERVAL != 0 {
                continue;
            }
            let known = if self.known.is_empty() {
                &seen
            } else {
                &self.known
            };
            match self.woken.try_recv() {
                Ok(()) => {
                    let newer = self.shared.request().take();
                    request = newer.unwrap_or(request);
                    self.publish_matches(&request, known, Progress::Partial);
                }
                Err(TryRecvError::Disconnected) => return,
                Err(TryRecvError::Empty)
                    if self.known.is_empty() && Instant::now() > next_result =>
                {
                    let started = Instant::now();
                    self.publish_matches(&request, known, Progress::Partial);
                    // Partial searches must not take longer than the walk itself.
                    next_result = Instant::now() + RESULT_INTERVAL.max(started.elapsed() * 4);
                }
                Err(TryRecvError::Empty) => {}
            }
        }
        // Sorted, so that neighbours stay together among equal matches.
        seen.sort_unstable();
        self.known = seen;
        self.seen = Some(Instant::now());
        self.publish_matches(&request, &self.known, Progress::Final);
    }

    fn publish_matches(&self, request: &SearchRequest, known: &[String], progress: Progress) {
        if listing::is_rooted(&request.query) {
            self.publish_directory(request);
            return;
        }
        let Some(best) = best_paths(known, &request.query, &|| self.is_outdated(request)) else {
            return;
        };
        if best.total > 0 {
            self.publish(request, known, &best, "", progress);
        } else if progress == Progress::Final {
            // The query may name an ignored file.
            self.publish_directory(request);
        }
    }

    fn publish_directory(&self, request: &SearchRequest) {
        let (directory, name) = listing::split(&request.query);
        let names = listing::list_directory(&directory, name, &self.root);
        self.publish(
            request,
            &names,
            &best_words(&names, name),
            &directory,
            Progress::Final,
        );
    }

    fn is_outdated(&self, request: &SearchRequest) -> bool {
        self.shared.newest.load(Ordering::Acquire) != request.number
    }

    fn publish(
        &self,
        request: &SearchRequest,
        names: &[String],
        best: &Best,
        directory: &str,
        progress: Progress,
    ) {
        if self.is_outdated(request) {
            return;
        }
        let name = |position: &usize| {
            names
                .get(*position)
                .map(|name| format!("{directory}{name}"))
        };
        let found = Found {
            number: request.number,
            paths: best.positions.iter().filter_map(name).collect(),
            total: best.total,
            is_complete: progress == Progress::Final,
        };
        *self
            .shared
            .found
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(found);
        (self.shared.on_ready)();
    }
}

/// Distinguishes partial results from the final one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Partial,
    Final,
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::RecvTimeoutError;

    use super::*;

    /// A directory with this many files, and a finder.
    fn start(files: usize) -> (tempfile::TempDir, Finder, Receiver<()>) {
        let directory = tempfile::tempdir().expect("a directory");
        for number in 0..files {
            std::fs::write(directory.path().join(format!("file{number:05}")), "").expect("a file");
        }
        let (sender, ready) = sync_channel(10_000);
        let on_ready = Arc::new(move || {
            // The test may be over.
            let _ = sender.try_send(());
        });
        let finder = Finder::start(directory.path().to_owned(), on_ready).expect("a thread");
        (directory, finder, ready)
    }

    fn wait(finder: &Finder, ready: &Receiver<()>) -> Found {
        loop {
            ready
                .recv_timeout(Duration::from_secs(20))
                .expect("something is found");
            if let Some(found) = finder.found().filter(|found| found.is_complete) {
                return found;
            }
        }
    }

    #[test]
    fn only_the_last_question_is_answered() {
        let (_directory, mut finder, ready) = start(2000);
        for number in 0..2000 {
            finder.ask(&format!("file{number:05}"), number == 0);
        }
        let found = wait(&finder, &ready);
        assert_eq!(
            (found.paths, found.total),
            (vec!["file01999".to_owned()], 1)
        );
        assert!(finder.found().is_none(), "it is told once");
        // Each result is signalled once, so most requests were skipped.
        assert!(ready.try_iter().count() < 1000);
    }

    #[test]
    fn a_file_that_is_new_is_found_when_the_next_reference_begins() {
        let (directory, mut finder, ready) = start(3);
        finder.ask("", true);
        assert_eq!(wait(&finder, &ready).total, 3);
        std::fs::write(directory.path().join("new"), "").expect("a file");
        // The cached files become old.
        std::thread::sleep(CACHE_LIFETIME);
        finder.ask("new", false);
        let inside = wait(&finder, &ready);
        assert_eq!(
            inside.paths,
            ["new"],
            "found in its directory, though nothing was looked at again"
        );
        finder.ask("", true);
        assert_eq!(wait(&finder, &ready).total, 4);
    }

    #[test]
    fn the_thread_ends_with_the_finder() {
        let (_directory, mut finder, ready) = start(500);
        finder.ask("file", true);
        drop(finder);
        // The thread holds the sender.
        loop {
            match ready.recv_timeout(Duration::from_secs(20)) {
                Ok(()) => {}
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("the thread is still there"),
            }
        }
    }
}
