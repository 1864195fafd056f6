//! The thread that parses code.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

use syntect::parsing::{ParseState, ScopeStack, SyntaxSet};
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::classes::{Class, Classes};
use super::{Signal, lock};

/// Bytes above which a line stays plain: such lines are generated and would take long.
const MAX_LINE: usize = 2 * 1024;
/// Bytes of code that may wait for the thread; more is left plain. A screen shows much less, and the codes of a whole
/// session fit.
const WAITING_BYTES: u32 = 16 << 20;
/// Bytes that a job counts in addition to its text. This also limits the number of waiting jobs, to 16,384.
const JOB_BYTES: u32 = 1 << 10;
/// Interval between reports of progress while there is more to do.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(30);

/// Lengths and classes of the pieces of a line.
pub(super) type Pieces = Vec<(u32, Class)>;

/// One piece of code: the colours found so far and the state of the parser.
pub(super) struct Ticket {
    syntax: Cow<'static, str>,
    found: Mutex<Found>,
    reading: Mutex<Reading>,
}

/// The colours found so far.
#[derive(Default)]
pub(super) struct Found {
    /// Of whole lines.
    pub lines: Vec<Pieces>,
    /// Of the line after them, with the text that was parsed.
    pub partial: (String, Pieces),
    /// No more colours will follow.
    pub is_given_up: bool,
}

enum Reading {
    NotStarted,
    At(Box<(ParseState, ScopeStack)>),
    /// The syntax is unknown or invalid.
    GivenUp,
}

impl Ticket {
    pub fn new(syntax: Cow<'static, str>) -> Self {
        Self {
            syntax,
            found: Mutex::default(),
            reading: Mutex::new(Reading::NotStarted),
        }
    }

    pub fn found(&self) -> MutexGuard<'_, Found> {
        lock(&self.found)
    }
}

/// Lines to parse.
pub(super) struct Job {
    /// Once the ticket is dropped, the job is skipped.
    ticket: Weak<Ticket>,
    text: String,
    is_partial: bool,
    /// The part of [`WAITING_BYTES`] that it takes.
    _share: Option<OwnedSemaphorePermit>,
}

/// The way to the thread.
#[derive(Clone)]
pub(super) struct Jobs {
    sender: mpsc::Sender<Job>,
    room: Arc<Semaphore>,
}

impl Jobs {
    fn new() -> (Self, mpsc::Receiver<Job>) {
        let (sender, jobs) = mpsc::channel((WAITING_BYTES / JOB_BYTES) as usize);
        let room = Arc::new(Semaphore::new(WAITING_BYTES as usize));
        (Self { sender, room }, jobs)
    }

    /// Hands over a job; reports whether there was room for it.
    pub fn send(&self, job: Job) -> bool {
        let bytes = u32::try_from(job.text.len()).unwrap_or(WAITING_BYTES);
        let share = bytes.saturating_add(JOB_BYTES);
        let Ok(share) = Arc::clone(&self.room).try_acquire_many_owned(share) else {
            return false;
        };
        let job = Job {
            _share: Some(share),
            ..job
        };
        self.sender.try_send(job).is_ok()
    }
}

impl Job {
    pub fn lines(ticket: &Arc<Ticket>, text: &str) -> Self {
        Self {
            ticket: Arc::downgrade(ticket),
            text: text.to_owned(),
            is_partial: false,
            _share: None,
        }
    }

    pub fn partial(ticket: &Arc<Ticket>, text: &str) -> Self {
        Self {
            is_partial: true,
            ..Self::lines(ticket, text)
        }
    }
}

/// Starts the thread, which ends when the last sender is dropped. Returns `None` if it cannot be
/// started.
pub(super) fn start(signal: Arc<Signal>) -> Option<Jobs> {
    let (sender, jobs) = Jobs::new();
    std::thread::Builder::new()
        .name("highlight".to_owned())
        .spawn(move || work(jobs, &signal))
        .ok()?;
    Some(sender)
}

fn work(mut jobs: mpsc::Receiver<Job>, signal: &Signal) {
    let Some(first) = jobs.blocking_recv() else {
        return;
    };
    let mut reader = Reader {
        syntaxes: two_face::syntax::extra_newlines(),
        classes: Classes::new(),
        reported: Instant::now(),
        signal,
    };
    let mut queue = VecDeque::from([first]);
    loop {
        loop {
            match jobs.try_recv() {
                Ok(job) => queue.push_back(job),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return,
            }
        }
        if let Some(job) = next(&mut queue) {
            reader.read(&job);
            continue;
        }
        reader.report();
        match jobs.blocking_recv() {
            Some(job) => queue.push_back(job),
            None => return,
        }
    }
}

/// Returns the next job of the code that was requested last, because that is the one on the screen;
/// jobs of one code stay in order.
fn next(queue: &mut VecDeque<Job>) -> Option<Job> {
    loop {
        let ticket = Weak::clone(&queue.back()?.ticket);
        let is_same = |job: &Job| job.ticket.ptr_eq(&ticket);
        let job = queue
            .iter()
            .position(is_same)
            .and_then(|at| queue.remove(at))?;
        // The beginning of a line is obsolete once a longer part of it is queued.
        let is_outdated = job.is_partial && queue.iter().any(is_same);
        if !is_outdated {
            return Some(job);
        }
    }
}

struct Reader<'a> {
    syntaxes: SyntaxSet,
    classes: Classes,
    reported: Instant,
    signal: &'a Signal,
}

impl Reader<'_> {
    fn report(&mut self) {
        self.reported = Instant::now();
        self.signal.raise();
    }

    fn read(&mut self, job: &Job) {
        let Some(ticket) = job.ticket.upgrade() else {
            return;
        };
        let mut reading = lock(&ticket.reading);
        if matches!(*reading, Reading::NotStarted) {
            *reading = match self.syntaxes.find_syntax_by_token(&ticket.syntax) {
                Some(syntax) => Reading::At(Box::new((ParseState::new(syntax), ScopeStack::new()))),
                None => Reading::GivenUp,
            };
        }
        let Reading::At(at) = &mut *reading else {
            ticket.found().is_given_up = true;
            return;
        };
        if job.is_partial {
            let mut ahead = at.clone();
            if let Some(pieces) = self.line(&job.text, &mut ahead) {
                ticket.found().partial = (job.text.clone(), pieces);
            }
            return;
        }
        for line in job.text.split_inclusive('\n') {
            let is_wanted = Arc::strong_count(&ticket) > 1;
            if !is_wanted {
                return;
            }
            let Some(pieces) = self.line(line, at) else {
                *reading = Reading::GivenUp;
                ticket.found().is_given_up = true;
                return;
            };
            ticket.found().lines.push(pieces);
            if self.reported.elapsed() > PROGRESS_INTERVAL {
                self.report();
            }
        }
    }

    fn line(&mut self, line: &str, at: &mut (ParseState, ScopeStack)) -> Option<Pieces> {
        if line.len() > MAX_LINE {
            return Some(Pieces::new());
        }
        let (state, scopes) = at;
        let operations = state.parse_line(line, &self.syntaxes).ok()?;
        let end = line.trim_end_matches('\n').len();
        let mut pieces = Pieces::new();
        let mut from = 0;
        for (to, operation) in operations {
            self.piece(&mut pieces, from, to.min(end), scopes);
            from = to.min(end);
            scopes.apply(&operation).ok()?;
        }
        self.piece(&mut pieces, from, end, scopes);
        Some(pieces)
    }

    fn piece(&mut self, pieces: &mut Pieces, from: usize, to: usize, scopes: &ScopeStack) {
        if to <= from {
            return;
        }
        let class = self.classes.of(scopes.as_slice());
        let length = (to - from) as u32;
        match pieces.last_mut() {
            Some((before, same)) if *same == class => *before += length,
            _ => pieces.push((length, class)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_for_last_is_read_first() {
        let [old, new] = [(); 2].map(|()| Arc::new(Ticket::new("rust".into())));
        let mut queue = VecDeque::from([
            Job::lines(&old, "old 1\n"),
            Job::lines(&new, "new 1\n"),
            Job::partial(&new, "ne"),
            Job::lines(&old, "old 2\n"),
            Job::partial(&new, "new"),
        ]);
        let order: Vec<String> = std::iter::from_fn(|| next(&mut queue))
            .map(|job| job.text)
            .collect();
        assert_eq!(order, ["new 1\n", "new", "old 1\n", "old 2\n"]);
    }
}
