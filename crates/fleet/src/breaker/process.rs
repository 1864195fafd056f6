//! Who tries a model: a process, told apart from a later one with the same number.

use std::fs;

use serde::{Deserialize, Serialize};

/// A process of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Process {
    pid: u32,
    /// Clock ticks after boot; with the number it names a process for good.
    started: u64,
}

impl Process {
    /// This one.
    pub fn current() -> Self {
        let pid = std::process::id();
        let started = started(pid).unwrap_or_default();
        Self { pid, started }
    }

    /// Whether it still runs. One that has ended and is not buried yet does not.
    pub fn is_alive(self) -> bool {
        self == Self::current() || started(self.pid) == Some(self.started)
    }
}

/// When a process that runs was started.
fn started(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may itself contain blanks and parentheses.
    let (_, fields) = text.rsplit_once(") ")?;
    let mut fields = fields.split(' ');
    let state = fields.next()?;
    let started = fields.nth(18)?.parse().ok()?;
    (!matches!(state, "Z" | "X" | "x")).then_some(started)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dead_the_unburied_and_namesakes_are_not_alive() {
        let us = Process::current();
        assert!(us.is_alive() && us.started > 0);
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let pid = child.id();
        let sleeper = Process {
            pid,
            started: started(pid).unwrap(),
        };
        assert!(sleeper.is_alive());
        let namesake = Process {
            started: sleeper.started + 1,
            ..sleeper
        };
        assert!(!namesake.is_alive());
        child.kill().unwrap();
        while sleeper.is_alive() {
            std::thread::yield_now();
        }
        // Nobody has asked for its exit status until now.
        child.wait().unwrap();
        assert!(!sleeper.is_alive());
    }
}
