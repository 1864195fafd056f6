//! Finds files on a thread, so that no disk access blocks the chat.
//!
//! The thread starts with the first request and ends with the finder. It caches the files below the
//! working directory; a newer request cancels an older one.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::listing::{self, Below};
use super::matching::{Best, best_paths, best_words};

/// Paths read between two checks for a newer request.
const BETWEEN_LOOKS: usize = 128;

/// Shortest time between two partial results.
const BETWEEN_RESULTS: Duration = Duration::from_millis(60);

/// Age from which the cached files are read again when a new reference begins.
const FRESH: Duration = Duration::from_secs(1);

/// Searches files by name.
pub(super) struct Finder {
    shared: Arc<Shared>,
    /// Rings when there is a new question. One ring is enough for any number of them.
    bell: SyncSender<()>,
    asked: u64,
}

struct Shared {
    /// The number of the newest request.
    asked: AtomicU64,
    /// The last question, until the thread takes it.
    question: Mutex<Option<Question>>,
    found: Mutex<Option<Found>>,
    on_ready: Arc<dyn Fn() + Send + Sync>,
}

struct Question {
    number: u64,
    query: String,
    /// A new reference begins, so the cache may be too old.
    begins: bool,
}

impl Shared {
    fn question(&self) -> MutexGuard<'_, Option<Question>> {
        self.question.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What was found for the last question.
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
        let shared = Arc::new(Shared {
            asked: AtomicU64::new(0),
            question: Mutex::new(None),
            found: Mutex::new(None),
            on_ready,
        });
        let (bell, rung) = sync_channel(1);
        let worker = Worker {
            root,
            shared: shared.clone(),
            rung,
            known: Vec::new(),
            seen: None,
        };
        std::thread::Builder::new()
            .name("files".into())
            .spawn(move || worker.work())?;
        Ok(Self {
            shared,
            bell,
            asked: 0,
        })
    }

    /// Requests files; cancels an earlier request.
    pub(super) fn ask(&mut self, query: &str, begins: bool) {
        self.asked += 1;
        self.shared.asked.store(self.asked, Ordering::Release);
        let mut question = self.shared.question();
        let begins = begins || question.as_ref().is_some_and(|earlier| earlier.begins);
        *question = Some(Question {
            number: self.asked,
            query: query.to_owned(),
            begins,
        });
        drop(question);
        // It may have rung already. Without its thread nothing is ever found; there is nothing better to do about it.
        let _ = self.bell.try_send(());
    }

    /// The newest results, if they belong to the newest request and were not returned before.
    pub(super) fn found(&self) -> Option<Found> {
        let found = self
            .shared
            .found
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        found.filter(|found| found.number == self.asked)
    }
}

impl Drop for Finder {
    fn drop(&mut self) {
        // Cancels any search in progress.
        self.shared.asked.store(u64::MAX, Ordering::Release);
    }
}

struct Worker {
    root: PathBuf,
    shared: Arc<Shared>,
    rung: Receiver<()>,
    /// Everything below the root when it was last seen.
    known: Vec<String>,
    seen: Option<Instant>,
}

impl Worker {
    fn work(mut self) {
        while self.rung.recv().is_ok() {
            // A question may have been taken before its ring.
            let question = self.shared.question().take();
            if let Some(question) = question {
                self.answer(question);
            }
        }
    }

    fn answer(&mut self, question: Question) {
        if listing::is_rooted(&question.query) {
            self.tell_inside(&question);
            return;
        }
        let is_old = self
            .seen
            .is_none_or(|seen| question.begins && seen.elapsed() > FRESH);
        if is_old {
            self.look(question);
        } else {
            self.tell(&question, &self.known, Say::Everything);
        }
    }

    /// Walks everything below the root and publishes results meanwhile.
    fn look(&mut self, question: Question) {
        let mut question = question;
        let mut seen = Vec::new();
        if !self.known.is_empty() {
            self.tell(&question, &self.known, Say::Something);
        }
        let mut next_result = Instant::now() + BETWEEN_RESULTS;
        for (count, path) in Below::new(&self.root).enumerate() {
            seen.extend(path);
            if count % BETWEEN_LOOKS != 0 {
                continue;
            }
            let known = if self.known.is_empty() {
                &seen
            } else {
                &self.known
            };
            match self.rung.try_recv() {
                Ok(()) => {
                    let newer = self.shared.question().take();
                    question = newer.unwrap_or(question);
                    self.tell(&question, known, Say::Something);
                }
                Err(TryRecvError::Disconnected) => return,
                Err(TryRecvError::Empty)
                    if self.known.is_empty() && Instant::now() > next_result =>
                {
                    let started = Instant::now();
                    self.tell(&question, known, Say::Something);
                    // Partial searches must not take longer than the walk itself.
                    next_result = Instant::now() + BETWEEN_RESULTS.max(started.elapsed() * 4);
                }
                Err(TryRecvError::Empty) => {}
            }
        }
        // Sorted, so that neighbours stay together among equal matches.
        seen.sort_unstable();
        self.known = seen;
        self.seen = Some(Instant::now());
        self.tell(&question, &self.known, Say::Everything);
    }

    fn tell(&self, question: &Question, known: &[String], say: Say) {
        if listing::is_rooted(&question.query) {
            self.tell_inside(question);
            return;
        }
        let Some(best) = best_paths(known, &question.query, &|| self.is_outdated(question)) else {
            return;
        };
        if best.total > 0 {
            self.publish(question, known, &best, "", say);
        } else if say == Say::Everything {
            // The query may name an ignored file.
            self.tell_inside(question);
        }
    }

    fn tell_inside(&self, question: &Question) {
        let (directory, name) = listing::split(&question.query);
        let names = listing::inside(&directory, name, &self.root);
        self.publish(
            question,
            &names,
            &best_words(&names, name),
            &directory,
            Say::Everything,
        );
    }

    fn is_outdated(&self, question: &Question) -> bool {
        self.shared.asked.load(Ordering::Acquire) != question.number
    }

    fn publish(
        &self,
        question: &Question,
        names: &[String],
        best: &Best,
        directory: &str,
        say: Say,
    ) {
        if self.is_outdated(question) {
            return;
        }
        let name = |position: &usize| {
            names
                .get(*position)
                .map(|name| format!("{directory}{name}"))
        };
        let found = Found {
            number: question.number,
            paths: best.positions.iter().filter_map(name).collect(),
            total: best.total,
            is_complete: say == Say::Everything,
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
enum Say {
    Something,
    Everything,
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
        std::thread::sleep(FRESH);
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
