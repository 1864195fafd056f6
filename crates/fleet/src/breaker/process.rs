//! Identifies a process, so that a later one with the same pid is not mistaken for it.

use std::fs;

use serde::{Deserialize, Serialize};

/// A process of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProcessIdentity {
    pid: u32,
    /// The start in clock ticks after boot; together with the pid it is unique until the next boot.
    started: u64,
}

impl ProcessIdentity {
    pub fn current() -> Self {
        let pid = std::process::id();
        let started = started(pid).unwrap_or_default();
        Self { pid, started }
    }

    /// Reports whether the process still runs. A zombie does not.
    pub fn is_alive(self) -> bool {
        self == Self::current() || started(self.pid) == Some(self.started)
    }
}

/// Returns the start of a running process in clock ticks after boot.
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
    fn ended_processes_zombies_and_reused_pids_are_not_alive() {
        let current = ProcessIdentity::current();
        assert!(current.is_alive() && current.started > 0);
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let pid = child.id();
        let sleeper = ProcessIdentity {
            pid,
            started: started(pid).unwrap(),
        };
        assert!(sleeper.is_alive());
        let namesake = ProcessIdentity {
            started: sleeper.started + 1,
            ..sleeper
        };
        assert!(!namesake.is_alive());
        child.kill().unwrap();
        while sleeper.is_alive() {
            std::thread::yield_now();
        }
        // Until now it was a zombie.
        child.wait().unwrap();
        assert!(!sleeper.is_alive());
    }
}
