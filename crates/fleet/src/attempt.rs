//! Follows one attempt of a child from its start to its end.
//!
//! A child is done when its adapter reports [`ChildEvent::Idle`]; its process then has a short grace period to exit. After
//! that, after a timeout, or for any other reason to stop, the child and all processes it started are terminated.

use std::time::Duration;

use pinion_process::{Ending, EndingLimits, EndingStep};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::launch::{ChildHandle, StartedChild};
use crate::{
    ChildEvent, ChildExit, ChildFailure, ClockReadings, Clocks, Consumer, Counts, Effect,
    FailureKind, FinishReason, Text, TimeoutClock,
};

/// Time limits for the end of a child. Processes that it started may hold its pipes after its exit.
const ENDING: EndingLimits = EndingLimits {
    input_closed: Duration::ZERO,
    terminated: Duration::from_secs(2),
    killed: Duration::from_secs(2),
    exited: Duration::from_secs(2),
};
/// The time to wait for the end of standard error, which is quoted in the message about a failure.
const STDERR_TIMEOUT: Duration = Duration::from_millis(500);
/// The interval between two reports that a child prints nothing.
const QUIET_INTERVAL: Duration = Duration::from_secs(30);
/// The longest stored result, in bytes.
pub(crate) const MAX_RESULT: usize = 4 * 1024 * 1024;

/// The time limits of an attempt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub timeout: Duration,
    /// The source of `timeout`: the child's own limit, or the rest of the run's.
    pub timeout_clock: TimeoutClock,
    pub inactivity: Duration,
    pub grace: Duration,
}

/// Receives the events of an attempt and may end it.
pub(crate) trait Watcher {
    /// Handles an event; a returned failure ends the attempt.
    fn notice(&mut self, event: &ChildEvent) -> Option<ChildFailure>;
    /// Handles that the child has printed nothing for `time`.
    fn quiet(&mut self, time: Duration);
}

/// The result of an attempt.
#[derive(Debug)]
pub(crate) struct AttemptEnd {
    pub failure: Option<ChildFailure>,
    /// Another attempt would fail too, whatever the kind of the failure: the program cannot be started.
    pub permanent: bool,
    pub result: Option<String>,
    /// The length of the full result in bytes, if it exceeded [`MAX_RESULT`] and was cut.
    pub shortened_from: Option<usize>,
    /// The child may have changed files or other state outside of itself.
    pub changed: bool,
    pub session: Option<String>,
    pub counts: Counts,
    pub clocks: ClockReadings,
    pub duration: Duration,
}

/// Follows a child to its end. `stop` ends it early, with the failure that `stop_failure` returns.
pub(crate) async fn follow(
    started: StartedChild,
    consumer: Consumer,
    limits: Limits,
    stop: &CancellationToken,
    stop_failure: impl Fn() -> ChildFailure,
    exit_means_done: bool,
    watcher: &mut (dyn Watcher + Send),
) -> AttemptEnd {
    let mut attempt = Attempt {
        begun: Instant::now(),
        consumer,
        limits,
        clocks: Clocks::default(),
        end_reason: None,
        reported_failure: None,
        idle_since: None,
        last_reason: None,
        result: None,
        shortened_from: None,
        changed: false,
        session: None,
        last_quiet_report: Duration::ZERO,
    };
    let StartedChild {
        mut output,
        mut handle,
    } = started;
    let mut piece = Vec::new();
    let mut events = Vec::new();
    let mut open = true;
    let mut exit = None;
    let mut ending = Ending::new(ENDING);
    let mut stopped = false;
    while open || exit.is_none() {
        let now = attempt.now();
        if !ending.has_begun() && attempt.must_end(now) && ending.begin(EndingStep::Terminated) {
            handle.terminate();
        }
        match ending.advance() {
            Some(EndingStep::Killed) => handle.kill(),
            // It survived SIGKILL, or others hold its pipes: nothing more can be learned about it.
            Some(EndingStep::GivenUp) => break,
            _ => {}
        }
        let due = ending.due().map(|due| due - attempt.begun);
        let wake = attempt.wake(now, &ending).into_iter().chain(due).min();
        let sleep = tokio::time::sleep_until(attempt.begun + wake.unwrap_or(now + QUIET_INTERVAL));
        tokio::select! {
            biased;
            () = stop.cancelled(), if !stopped && exit.is_none() => {
                stopped = true;
                match attempt.idle_since {
                    // The child is done and has only not exited yet.
                    Some(_) => attempt.limits.grace = Duration::ZERO,
                    None => drop(attempt.end_reason.get_or_insert_with(&stop_failure)),
                }
            }
            more = output.read(&mut piece), if open => {
                let now = attempt.now();
                open = more;
                if more {
                    attempt.clocks.byte(now);
                    attempt.last_quiet_report = now;
                    attempt.consumer.feed(&piece, now, &mut events);
                } else {
                    attempt.consumer.finish(&mut events);
                }
                for event in events.drain(..) {
                    attempt.on_event(event, now, watcher);
                }
            }
            ended = handle.wait(), if exit.is_none() => {
                exit = Some(ended);
                // Processes that the child left behind may hold its pipes.
                handle.kill();
                ending.exited();
            }
            () = sleep => attempt.on_timer(watcher),
        }
    }
    attempt.consumer.finish(&mut events);
    let now = attempt.now();
    for event in events.drain(..) {
        attempt.on_event(event, now, watcher);
    }
    attempt.end(exit, handle, exit_means_done).await
}

struct Attempt {
    begun: Instant,
    consumer: Consumer,
    limits: Limits,
    clocks: Clocks,
    /// The reason to end the child.
    end_reason: Option<ChildFailure>,
    /// The last failure that the child reported, unless a later step succeeded.
    reported_failure: Option<ChildFailure>,
    /// The time since which the child is done.
    idle_since: Option<Duration>,
    last_reason: Option<FinishReason>,
    result: Option<String>,
    /// The length of the full result in bytes, if the stored one was cut.
    shortened_from: Option<usize>,
    changed: bool,
    session: Option<String>,
    /// The time of the last output or of the last report that there is none.
    last_quiet_report: Duration,
}

impl Attempt {
    fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    fn on_event(&mut self, event: ChildEvent, now: Duration, watcher: &mut (dyn Watcher + Send)) {
        self.clocks.event(&event, now);
        let verdict = watcher.notice(&event);
        match event {
            ChildEvent::Started { session } => {
                self.idle_since = None;
                self.session = session.or(self.session.take());
            }
            ChildEvent::Text(Text::Complete(text)) if !text.is_empty() => {
                self.shortened_from = Some(text.len()).filter(|length| *length > MAX_RESULT);
                self.result = Some(shortened(text));
            }
            ChildEvent::Text(_) | ChildEvent::Alive => {}
            ChildEvent::Tool { effect, .. } => self.changed |= effect == Effect::Outside,
            // A compaction does not affect the answer.
            ChildEvent::StepFinished(step) if step.reason == FinishReason::Compaction => {}
            ChildEvent::StepFinished(step) => {
                self.last_reason = Some(step.reason);
                if !matches!(step.reason, FinishReason::Error | FinishReason::Aborted) {
                    self.reported_failure = None;
                }
            }
            ChildEvent::Failed(failure) => self.reported_failure = Some(failure),
            ChildEvent::Idle => self.idle_since = Some(self.idle_since.unwrap_or(now)),
            ChildEvent::Exited(_) => {}
        }
        if let Some(failure) = verdict {
            self.end_reason.get_or_insert(failure);
        }
    }

    /// Reports whether the child has to be ended now: for a known reason, because of a timeout, or because it is done and
    /// did not exit within its grace period.
    fn must_end(&mut self, now: Duration) -> bool {
        if self.end_reason.is_some() {
            return true;
        }
        if let Some(since) = self.idle_since {
            return now >= since + self.limits.grace;
        }
        let clock = if now >= self.limits.timeout {
            self.limits.timeout_clock
        } else if self.inactive_at().is_some_and(|at| now >= at) {
            TimeoutClock::Inactivity
        } else {
            return false;
        };
        let kind = FailureKind::Timeout { clock };
        let message = match clock {
            TimeoutClock::Child => format!(
                "it took longer than {}",
                format_duration(self.limits.timeout)
            ),
            TimeoutClock::Run => "the run reached its timeout".to_owned(),
            TimeoutClock::Inactivity => {
                format!(
                    "it made no progress for {} while no tool was running",
                    format_duration(self.limits.inactivity)
                )
            }
        };
        let permanent = self
            .reported_failure
            .clone()
            .filter(|failure| !failure.retryable());
        self.end_reason = Some(match permanent {
            // The child reported a permanent failure before it hung. A timeout would hide it and cause a useless retry.
            Some(permanent) if clock != TimeoutClock::Run => permanent,
            _ => ChildFailure::new(kind, message),
        });
        true
    }

    fn inactive_at(&self) -> Option<Duration> {
        let since = self.clocks.inactive_since()?;
        Some(since + self.limits.inactivity)
    }

    /// Returns the next time at which something is due although the child prints nothing.
    fn wake(&self, now: Duration, ending: &Ending) -> Option<Duration> {
        let mut times = vec![self.consumer.due()];
        if !ending.has_begun() {
            match self.idle_since {
                Some(since) => times.push(Some(since + self.limits.grace)),
                None => times.extend([
                    Some(self.limits.timeout),
                    self.inactive_at(),
                    Some(self.last_quiet_report + QUIET_INTERVAL),
                ]),
            }
        }
        times.into_iter().flatten().min().map(|time| time.max(now))
    }

    fn on_timer(&mut self, watcher: &mut (dyn Watcher + Send)) {
        let now = self.now();
        self.consumer.flush_if_due(now);
        if self.idle_since.is_none() && now >= self.last_quiet_report + QUIET_INTERVAL {
            self.last_quiet_report = now;
            watcher.quiet(now.saturating_sub(self.clocks.silent_since()));
        }
    }

    async fn end(
        self,
        exit: Option<ChildExit>,
        handle: ChildHandle,
        exit_means_done: bool,
    ) -> AttemptEnd {
        let stderr = handle.stderr_tail(STDERR_TIMEOUT).await;
        let clean_exit_means_done = exit_means_done || self.consumer.clean_exit_means_done();
        let done = self.idle_since.is_some()
            || (clean_exit_means_done && exit == Some(ChildExit::Code(0)));
        let failure = match (self.end_reason, self.reported_failure) {
            (Some(end_reason), _) => Some(end_reason),
            (None, Some(reported_failure)) => Some(reported_failure),
            (None, None) if done && self.last_reason == Some(FinishReason::Length) => {
                let message = "the answer was cut off at the token limit";
                Some(ChildFailure::new(FailureKind::OutputLength, message))
            }
            (None, None) if done => None,
            (None, None) => Some(unfinished_failure(exit, &stderr)),
        };
        AttemptEnd {
            failure: failure.or_else(|| {
                let error = self.consumer.log_failure()?;
                let message = format!("its output could not be written to the log: {error}");
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

/// Returns the failure of a child that exited without reporting that it was done.
fn unfinished_failure(exit: Option<ChildExit>, stderr: &str) -> ChildFailure {
    let last = stderr.lines().rev().find(|line| !line.trim().is_empty());
    let quoted = last.map_or(String::new(), |line| {
        format!("; its last error output was \"{}\"", line.trim())
    });
    let (kind, message) = match exit {
        Some(ChildExit::Code(0)) => (
            FailureKind::Protocol,
            format!("it exited without reporting that it was done{quoted}"),
        ),
        Some(ChildExit::Code(code)) => (
            FailureKind::Crashed {
                signal: None,
                code: Some(code),
            },
            format!("it exited with code {code}{quoted}"),
        ),
        Some(ChildExit::Signal(signal)) => (
            FailureKind::Crashed {
                signal: Some(signal),
                code: None,
            },
            format!("signal {signal} ended it{quoted}"),
        ),
        Some(ChildExit::Unknown) | None => (
            FailureKind::Crashed {
                signal: None,
                code: None,
            },
            format!("it ended in an unknown way{quoted}"),
        ),
    };
    ChildFailure::new(kind, message)
}

fn shortened(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(MAX_RESULT));
    text
}

/// Formats a duration in milliseconds, seconds or minutes.
pub(crate) fn format_duration(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0 => format!("{} ms", time.as_millis()),
        1..120 => format!("{seconds} s"),
        _ => format!("{} min", seconds / 60),
    }
}
