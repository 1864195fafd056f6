//! One attempt of a child, from its start to its end: read, watched by three clocks, and ended for sure.
//!
//! The adapter's last event is the first sign of the end, the exit of the process the second. After the first there is a short
//! grace for the second; then, as for every other reason, the child and all that came of it is ended.

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::launch::{Life, Started};
use crate::{
    ChildEvent, ChildFailure, Clock, ClockReadings, Clocks, Consumer, Counts, Effect, Ending,
    FailureKind, Reason, Text,
};

/// Between being asked to end and being ended.
const TERM_PATIENCE: Duration = Duration::from_secs(2);
/// How long the pipes of a child that is gone may stay open.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// How often it is said that nothing comes.
const QUIET: Duration = Duration::from_secs(30);
/// The longest result that is kept.
pub(crate) const MAX_RESULT: usize = 4 * 1024 * 1024;

/// How long an attempt may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub timeout: Duration,
    /// Which clock that is: the child's, or what is left of the run's.
    pub timeout_clock: Clock,
    pub inactivity: Duration,
    pub grace: Duration,
}

/// Who is told what the child does, and may end it.
pub(crate) trait Watcher {
    /// Something happened; an answer ends the attempt.
    fn notice(&mut self, event: &ChildEvent) -> Option<ChildFailure>;
    /// Nothing came for this long.
    fn quiet(&mut self, time: Duration);
}

/// How an attempt ended.
#[derive(Debug)]
pub(crate) struct AttemptEnd {
    /// Why it failed, if it did.
    pub failure: Option<ChildFailure>,
    /// The same attempt would fail again, whatever the kind of the failure: its program cannot be started.
    pub permanent: bool,
    pub result: Option<String>,
    /// How long the result was, where it was too long to be kept in full.
    pub shortened_from: Option<usize>,
    /// Something outside may be different now.
    pub changed: bool,
    pub session: Option<String>,
    pub counts: Counts,
    pub clocks: ClockReadings,
    pub duration: Duration,
}

/// Follows a child to its end. `stopped` ends it, for the reason it gives.
pub(crate) async fn follow(
    started: Started,
    consumer: Consumer,
    limits: Limits,
    stop: &CancellationToken,
    stop_failure: impl Fn() -> ChildFailure,
    done_without_word: bool,
    watcher: &mut (dyn Watcher + Send),
) -> AttemptEnd {
    let mut attempt = Attempt {
        begun: Instant::now(),
        consumer,
        limits,
        clocks: Clocks::default(),
        doom: None,
        standing: None,
        idle_since: None,
        last_reason: None,
        result: None,
        shortened_from: None,
        changed: false,
        session: None,
        told_quiet: Duration::ZERO,
    };
    let Started {
        mut output,
        mut life,
    } = started;
    let mut piece = Vec::new();
    let mut events = Vec::new();
    let mut open = true;
    let mut exit = None;
    let mut ending = Step::Living;
    let mut stopped = false;
    // When the next step of the ending is due.
    let mut due: Option<Duration> = None;
    while open || exit.is_none() {
        let now = attempt.now();
        if exit.is_none() && ending == Step::Living && attempt.is_to_end(now) {
            life.terminate();
            ending = Step::Terminated;
            due = Some(now + TERM_PATIENCE);
        }
        if due.is_some_and(|due| due <= now) {
            if exit.is_some() {
                break;
            }
            match ending {
                Step::Living | Step::Terminated => {
                    life.kill();
                    ending = Step::Killed;
                    due = Some(now + LAST_WORDS);
                }
                // It does not even die: what can be known of it is known.
                Step::Killed => break,
            }
        }
        let wake = attempt
            .wake(now, ending, exit.is_some())
            .into_iter()
            .chain(due)
            .min();
        let sleep = tokio::time::sleep_until(attempt.begun + wake.unwrap_or(now + QUIET));
        tokio::select! {
            biased;
            () = stop.cancelled(), if !stopped && exit.is_none() => {
                stopped = true;
                match attempt.idle_since {
                    // It is done already and only takes its time.
                    Some(_) => attempt.limits.grace = Duration::ZERO,
                    None => drop(attempt.doom.get_or_insert_with(&stop_failure)),
                }
            }
            more = output.read(&mut piece), if open => {
                let now = attempt.now();
                open = more;
                if more {
                    attempt.clocks.byte(now);
                    attempt.told_quiet = now;
                    attempt.consumer.feed(&piece, now, &mut events);
                } else {
                    attempt.consumer.finish(&mut events);
                }
                for event in events.drain(..) {
                    attempt.take(event, now, watcher);
                }
            }
            ended = life.wait(), if exit.is_none() => {
                exit = Some(ended);
                // What it left behind is not wanted without it, and may hold its pipes.
                life.kill();
                due = Some(attempt.now() + LAST_WORDS);
            }
            () = sleep => attempt.look(watcher),
        }
    }
    attempt.consumer.finish(&mut events);
    let now = attempt.now();
    for event in events.drain(..) {
        attempt.take(event, now, watcher);
    }
    attempt.end(exit, life, done_without_word).await
}

/// How far the ending of a child has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Living,
    Terminated,
    Killed,
}

struct Attempt {
    begun: Instant,
    consumer: Consumer,
    limits: Limits,
    clocks: Clocks,
    /// Why we end it.
    doom: Option<ChildFailure>,
    /// The last failure it told of, unless it went on since.
    standing: Option<ChildFailure>,
    /// Since when it has nothing more to do.
    idle_since: Option<Duration>,
    last_reason: Option<Reason>,
    result: Option<String>,
    /// How long it was, where it is not all of it.
    shortened_from: Option<usize>,
    changed: bool,
    session: Option<String>,
    /// When somebody was last told that nothing comes, or something came.
    told_quiet: Duration,
}

impl Attempt {
    fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    fn take(&mut self, event: ChildEvent, now: Duration, watcher: &mut (dyn Watcher + Send)) {
        self.clocks.event(&event, now);
        let verdict = watcher.notice(&event);
        match event {
            ChildEvent::Started { session } => {
                self.idle_since = None;
                self.session = session.or(self.session.take());
            }
            ChildEvent::Text(Text::Whole(text)) if !text.is_empty() => {
                self.shortened_from = Some(text.len()).filter(|length| *length > MAX_RESULT);
                self.result = Some(shortened(text));
            }
            ChildEvent::Text(_) | ChildEvent::Alive => {}
            ChildEvent::Tool { effect, .. } => self.changed |= effect == Effect::Outside,
            // A summary changes nothing about the answer.
            ChildEvent::StepFinished(step) if step.reason == Reason::Compaction => {}
            ChildEvent::StepFinished(step) => {
                self.last_reason = Some(step.reason);
                if !matches!(step.reason, Reason::Error | Reason::Aborted) {
                    self.standing = None;
                }
            }
            ChildEvent::Failed(failure) => self.standing = Some(failure),
            ChildEvent::Idle => self.idle_since = Some(self.idle_since.unwrap_or(now)),
            ChildEvent::Exited(_) => {}
        }
        if let Some(failure) = verdict {
            self.doom.get_or_insert(failure);
        }
    }

    /// Whether it has to be ended now: for a reason of ours, by a clock, or because it is done and stays.
    fn is_to_end(&mut self, now: Duration) -> bool {
        if self.doom.is_some() {
            return true;
        }
        if let Some(since) = self.idle_since {
            return now >= since + self.limits.grace;
        }
        let clock = if now >= self.limits.timeout {
            self.limits.timeout_clock
        } else if self.inactive_at().is_some_and(|at| now >= at) {
            Clock::Inactivity
        } else {
            return false;
        };
        let kind = FailureKind::Timeout { clock };
        let message = match clock {
            Clock::Child => format!("it took longer than {}", words(self.limits.timeout)),
            Clock::Run => "the time of the run is up".to_owned(),
            Clock::Inactivity => {
                format!(
                    "no progress for {} and no tool running",
                    words(self.limits.inactivity)
                )
            }
        };
        let said = self.standing.clone().filter(|said| !said.retryable());
        self.doom = Some(match said {
            // It said why before it hung: that is the reason, and the same again would end the same.
            Some(said) if clock != Clock::Run => said,
            _ => ChildFailure::new(kind, message),
        });
        true
    }

    fn inactive_at(&self) -> Option<Duration> {
        let since = self.clocks.inactive_since()?;
        Some(since + self.limits.inactivity)
    }

    /// When to look again though nothing comes.
    fn wake(&self, now: Duration, ending: Step, exited: bool) -> Option<Duration> {
        let mut times = vec![self.consumer.due()];
        if ending == Step::Living && !exited {
            match self.idle_since {
                Some(since) => times.push(Some(since + self.limits.grace)),
                None => times.extend([
                    Some(self.limits.timeout),
                    self.inactive_at(),
                    Some(self.told_quiet + QUIET),
                ]),
            }
        }
        times.into_iter().flatten().min().map(|time| time.max(now))
    }

    fn look(&mut self, watcher: &mut (dyn Watcher + Send)) {
        let now = self.now();
        self.consumer.settle(now);
        if self.idle_since.is_none() && now >= self.told_quiet + QUIET {
            self.told_quiet = now;
            watcher.quiet(now.saturating_sub(self.clocks.silent_since()));
        }
    }

    async fn end(self, exit: Option<Ending>, life: Life, done_without_word: bool) -> AttemptEnd {
        let stderr = life.stderr_tail(Duration::from_millis(500)).await;
        let exit_is_enough = done_without_word || self.consumer.exit_is_enough();
        let done = self.idle_since.is_some() || (exit_is_enough && exit == Some(Ending::Code(0)));
        let failure = match (self.doom, self.standing) {
            (Some(doom), _) => Some(doom),
            (None, Some(standing)) => Some(standing),
            (None, None) if done && self.last_reason == Some(Reason::Length) => {
                let message = "the answer reached the limit of tokens in the middle";
                Some(ChildFailure::new(FailureKind::OutputLength, message))
            }
            (None, None) if done => None,
            (None, None) => Some(unfinished(exit, &stderr)),
        };
        AttemptEnd {
            failure: failure.or_else(|| {
                let error = self.consumer.log_failure()?;
                let message = format!("what it printed could not be kept: {error}");
                Some(ChildFailure::new(FailureKind::Protocol, message))
            }),
            permanent: false,
            result: self.result,
            shortened_from: self.shortened_from,
            changed: self.changed,
            session: self.session,
            counts: self.consumer.counts(),
            clocks: self.clocks.readings(),
            duration: self.begun.elapsed(),
        }
    }
}

/// What it means that a child ended without saying that it was done.
fn unfinished(exit: Option<Ending>, stderr: &str) -> ChildFailure {
    let last = stderr.lines().rev().find(|line| !line.trim().is_empty());
    let said = last.map_or(String::new(), |line| format!("; it said: {}", line.trim()));
    let (kind, message) = match exit {
        Some(Ending::Code(0)) => (
            FailureKind::Protocol,
            format!("it ended without saying that it was done{said}"),
        ),
        Some(Ending::Code(code)) => (
            FailureKind::Crashed {
                signal: None,
                code: Some(code),
            },
            format!("it ended with exit code {code}{said}"),
        ),
        Some(Ending::Signal(signal)) => (
            FailureKind::Crashed {
                signal: Some(signal),
                code: None,
            },
            format!("it was ended by signal {signal}{said}"),
        ),
        Some(Ending::Unknown) | None => (
            FailureKind::Crashed {
                signal: None,
                code: None,
            },
            format!("it went away{said}"),
        ),
    };
    ChildFailure::new(kind, message)
}

fn shortened(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(MAX_RESULT));
    text
}

/// A time in words.
pub(crate) fn words(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0 => format!("{} ms", time.as_millis()),
        1..120 => format!("{seconds} s"),
        _ => format!("{} min", seconds / 60),
    }
}
