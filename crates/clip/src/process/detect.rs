//! Which dialect a process speaks, from its first words or its silence; and when calls may be written to it.

use std::time::Duration;

use tokio::time::Instant;

use crate::clip::{ClipConfig, Status};
use crate::codec::{Spelling, Verdict};
use crate::limits::Limits;
use crate::package::Declared;
use crate::shared::{Shared, Stage, State, Wish};
use crate::{Code, codec};

/// What to do about a process that has not been written to yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Silence {
    /// Calls may be written now.
    Write,
    /// It speaks directly: it has commands and does not register.
    Direct,
    /// It has had its time.
    TooLong,
    /// Look again then.
    Wait(Instant),
}

/// Judges a process by its silence. `None` once it is no longer starting.
fn silence(
    state: &State,
    config: &ClipConfig,
    limits: &Limits,
    started: Instant,
    now: Instant,
) -> Option<Silence> {
    if state.stage != Stage::Starting {
        return None;
    }
    let since = now.duration_since(started);
    let until = |limit: Duration, then: Silence| {
        if since >= limit {
            then
        } else {
            Silence::Wait(started + limit)
        }
    };
    // What is sent again may have been too late for a process that leaves as soon as it is idle.
    if state.waiting.iter().any(|call| call.resent()) {
        return Some(Silence::Write);
    }
    let declared = config.package.ipc;
    let known = match declared {
        Some(Declared::Register) => Some(Verdict::Register),
        Some(Declared::Direct) => Some(Verdict::Direct),
        None => state.verdict,
    };
    Some(match known {
        Some(Verdict::Direct | Verdict::Bare) => Silence::Write,
        Some(Verdict::Register) => until(limits.registration, Silence::TooLong),
        None if !state.waiting.is_empty() => until(limits.first_line, Silence::Write),
        None if !config.package.manifest.commands.is_empty() => {
            until(limits.registration, Silence::Direct)
        }
        None => until(limits.registration, Silence::TooLong),
    })
}

impl Shared {
    /// Looks at a process that is starting; when to look again.
    pub(super) fn attend_start(&self, started: Instant, now: Instant) -> Option<Instant> {
        let mut state = self.state();
        match silence(&state, &self.config, &self.limits, started, now)? {
            Silence::Wait(until) => return Some(until),
            Silence::Write => {
                if self.config.package.ipc == Some(Declared::Direct) {
                    state.verdict = Some(Verdict::Direct);
                }
                self.ready(&mut state);
            }
            Silence::Direct => {
                state.verdict = Some(Verdict::Direct);
                self.ready(&mut state);
            }
            Silence::TooLong => {
                drop(state);
                let message = format!("wait for clip {} register: timed out", self.alias());
                self.condemn(Code::Unavailable, Wish::Gently, message);
            }
        }
        None
    }

    /// The process takes calls from now on.
    fn ready(&self, state: &mut State) {
        if state.stage == Stage::Starting {
            state.stage = Stage::Ready;
            state.was_ready = true;
            state.idle_since = Instant::now();
            for probe in state.probes.drain(..) {
                let _ = probe.send(Ok(()));
            }
            self.pump(state);
            self.set_status(Status::running());
        }
    }

    /// A line was understood. Whether it may be acted upon.
    pub(super) fn heard(&self, spelling: Spelling) -> bool {
        let mut state = self.state();
        if state.heard {
            return true;
        }
        state.heard = true;
        let said = spelling.verdict();
        match self.config.package.ipc {
            Some(Declared::Register) if said != Verdict::Register => {
                drop(state);
                let message = format!(
                    "clip \"{}\" declares \"ipc\": \"register\" but did not register first",
                    self.alias()
                );
                self.condemn(Code::Unavailable, Wish::AtOnce, message);
                return false;
            }
            Some(Declared::Direct) => state.verdict = Some(Verdict::Direct),
            _ => state.verdict = Some(said),
        }
        if said != Verdict::Register {
            self.ready(&mut state);
            self.work.notify_one();
        }
        true
    }

    /// The process has registered.
    pub(super) fn registered(&self) {
        let mut state = self.state();
        state.registered = true;
        if self.config.package.ipc != Some(Declared::Direct) {
            state.verdict = Some(Verdict::Register);
        }
        if let Some(outbox) = &state.outbox {
            outbox.push(codec::registered(self.alias()).into());
        }
        self.ready(&mut state);
        self.work.notify_one();
    }
}
