//! Detects the dialect of a process from its first line or its silence, and decides when calls may be written to it.

use std::time::Duration;

use tokio::time::Instant;

use crate::clip::{ClipConfig, Status};
use crate::codec::{DetectedDialect, LineDialect};
use crate::limits::Limits;
use crate::package::DeclaredDialect;
use crate::shared::{SharedClip, SharedState, Shutdown};
use crate::{Code, codec};

/// The decision about a process that has not been written to yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StartDecision {
    /// Calls may be written now.
    Write,
    /// The process speaks the direct dialect: its package lists commands and it does not register.
    Direct,
    /// The time for registering has passed.
    TooLong,
    /// Decide again at this time.
    Wait(Instant),
}

/// Decides about a process by how long it has printed nothing. `None` once it is no longer starting.
fn start_decision(
    state: &SharedState,
    config: &ClipConfig,
    limits: &Limits,
    started: Instant,
    now: Instant,
) -> Option<StartDecision> {
    if !state.stage.is_starting() {
        return None;
    }
    let since = now.duration_since(started);
    let until = |limit: Duration, then: StartDecision| {
        if since >= limit {
            then
        } else {
            StartDecision::Wait(started + limit)
        }
    };
    // A resent call may have reached the previous process too late, because that process exits as soon as it is idle;
    // it must not wait here again.
    if state.waiting.iter().any(|call| call.resent()) {
        return Some(StartDecision::Write);
    }
    let declared = config.package.ipc;
    let known = match declared {
        Some(DeclaredDialect::Register) => Some(DetectedDialect::Register),
        Some(DeclaredDialect::Direct) => Some(DetectedDialect::Direct),
        None => state.detected_dialect,
    };
    Some(match known {
        Some(DetectedDialect::Direct | DetectedDialect::Bare) => StartDecision::Write,
        Some(DetectedDialect::Register) => until(limits.registration, StartDecision::TooLong),
        None if !state.waiting.is_empty() => until(limits.first_line, StartDecision::Write),
        None if !config.package.manifest.commands.is_empty() => {
            until(limits.registration, StartDecision::Direct)
        }
        None => until(limits.registration, StartDecision::TooLong),
    })
}

impl SharedClip {
    /// Checks a process that is starting. Returns the time of the next check.
    pub(super) fn check_start(&self, started: Instant, now: Instant) -> Option<Instant> {
        let mut state = self.state();
        match start_decision(&state, &self.config, &self.limits, started, now)? {
            StartDecision::Wait(until) => return Some(until),
            StartDecision::Write => {
                if self.config.package.ipc == Some(DeclaredDialect::Direct) {
                    state.detected_dialect = Some(DetectedDialect::Direct);
                }
                self.ready(&mut state);
            }
            StartDecision::Direct => {
                state.detected_dialect = Some(DetectedDialect::Direct);
                self.ready(&mut state);
            }
            StartDecision::TooLong => {
                drop(state);
                let message = format!("wait for clip {} register: timed out", self.alias());
                self.set_fatal(Code::Unavailable, Shutdown::Graceful, message);
            }
        }
        None
    }

    /// Makes the process accept calls.
    fn ready(&self, state: &mut SharedState) {
        if state.stage.ready() {
            state.idle_since = Instant::now();
            for probe in state.probes.drain(..) {
                let _ = probe.send(Ok(()));
            }
            self.pump(state);
            self.set_status(Status::running());
        }
    }

    /// Notes the dialect of the first line that was understood. Returns false if the line must be ignored and the
    /// process ended.
    pub(super) fn note_dialect(&self, line_dialect: LineDialect) -> bool {
        let mut state = self.state();
        let process = state.stage.process_mut();
        if !process.is_some_and(|process| process.understood()) {
            return true;
        }
        let seen = line_dialect.detected_dialect();
        match self.config.package.ipc {
            Some(DeclaredDialect::Register) if seen != DetectedDialect::Register => {
                drop(state);
                let message = format!(
                    "clip \"{}\" declares \"ipc\": \"register\" but did not register first",
                    self.alias()
                );
                self.set_fatal(Code::Unavailable, Shutdown::Immediate, message);
                return false;
            }
            Some(DeclaredDialect::Direct) => state.detected_dialect = Some(DetectedDialect::Direct),
            _ => state.detected_dialect = Some(seen),
        }
        if seen != DetectedDialect::Register {
            self.ready(&mut state);
            self.work.notify_one();
        }
        true
    }

    pub(super) fn is_registered(&self) -> bool {
        let state = self.state();
        state
            .stage
            .process()
            .is_some_and(|process| process.is_registered())
    }

    /// Handles the registration of the process.
    pub(super) fn registered(&self) {
        let mut state = self.state();
        if let Some(process) = state.stage.process_mut() {
            process.register();
            process.outbox.push(codec::registered(self.alias()).into());
        }
        if self.config.package.ipc != Some(DeclaredDialect::Direct) {
            state.detected_dialect = Some(DetectedDialect::Register);
        }
        self.ready(&mut state);
        self.work.notify_one();
    }
}
