//! Finds and kills processes that have left their group, their session or their parent.
//!
//! Processes are found in `/proc`: by descent, by session, and by the mark that every command has in its environment. All of
//! them are stopped before any is killed, because a running process could fork between the two. When all have stopped, none
//! can have started another unseen.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The variable that marks every process a command starts.
pub(crate) const MARK: &str = "PINION_RUN_ID";
/// The variable with the session that a command belongs to, in a process with several sessions.
pub const FAMILY: &str = "PINION_SESSION_ID";
/// Rounds after which a set of processes that still grows is killed as it is.
const MAX_ROUNDS: usize = 32;
/// Pause before looking again at a process that received SIGSTOP.
const STOP_PAUSE: Duration = Duration::from_millis(1);

#[derive(Debug, Clone, Copy)]
pub(crate) struct Process {
    pub pid: i32,
    pub parent: i32,
    pub session: i32,
    /// Stopped by a signal, so it cannot fork.
    pub is_stopped: bool,
}

/// All living processes, without zombies.
pub(crate) fn living() -> Vec<Process> {
    pids()
        .filter_map(stat)
        .filter(|stat| stat.alive)
        .map(|stat| stat.process)
        .collect()
}

fn pids() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

struct Stat {
    process: Process,
    alive: bool,
    /// Clock ticks after boot. Together with the process id it identifies a process.
    started: u64,
}

fn stat(pid: i32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may itself contain blanks and parentheses.
    let (_, fields) = text.rsplit_once(") ")?;
    let fields: Vec<&str> = fields.split(' ').collect();
    let number = |index: usize| fields.get(index)?.parse().ok();
    Some(Stat {
        process: Process {
            pid,
            parent: number(1)?,
            session: number(3)?,
            is_stopped: matches!(*fields.first()?, "T" | "t"),
        },
        alive: !matches!(*fields.first()?, "Z" | "X" | "x"),
        started: fields.get(19)?.parse().ok()?,
    })
}

/// Returns `roots` and all their descendants.
pub(crate) fn with_descendants(processes: &[Process], roots: HashSet<i32>) -> HashSet<i32> {
    let mut members = roots;
    loop {
        let before = members.len();
        for process in processes {
            if members.contains(&process.parent) {
                members.insert(process.pid);
            }
        }
        if members.len() == before {
            return members;
        }
    }
}

/// Returns the mark in the environment of a process.
pub(crate) fn mark_of(pid: i32) -> Option<String> {
    variable_of(pid, MARK)
}

fn variable_of(pid: i32, name: &str) -> Option<String> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    environment
        .split(|&byte| byte == 0)
        .find_map(|variable| variable.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
        .and_then(|value| String::from_utf8(value.to_vec()).ok())
}

/// Kills every process with a mark of `owner`.
pub(crate) fn kill_marked(owner: &str) {
    kill_chosen(owner, |_| true);
}

/// Kills every process with a mark of `owner` that belongs to `family`.
pub(crate) fn kill_family(owner: &str, family: &str) {
    kill_chosen(owner, |pid| {
        variable_of(pid, FAMILY).is_some_and(|found| found == family)
    });
}

fn kill_chosen(owner: &str, chosen: impl Fn(i32) -> bool) {
    if owner.is_empty() {
        return;
    }
    let marked = |process: &&Process| {
        let mark = mark_of(process.pid);
        let ours = mark.is_some_and(|mark| {
            mark.strip_prefix(owner)
                .is_some_and(|rest| rest.starts_with('/'))
        });
        ours && chosen(process.pid)
    };
    kill_all(|processes| {
        let seeds = processes
            .iter()
            .filter(marked)
            .map(|process| process.pid)
            .collect();
        with_descendants(processes, seeds)
    });
}

/// Stops the processes that `select` returns until it returns no new ones, then kills them.
pub(crate) fn kill_all(select: impl Fn(&[Process]) -> HashSet<i32>) {
    let mut stopped: HashSet<i32> = HashSet::new();
    let ourselves = std::process::id() as i32;
    // A process may have forked between the look at `/proc` and its stop, so one more look follows.
    let mut all_stopped = false;
    for _ in 0..MAX_ROUNDS {
        let processes = living();
        let mut found = select(&processes);
        found.retain(|&pid| pid > 1 && pid != ourselves);
        let new: Vec<i32> = found.difference(&stopped).copied().collect();
        if new.is_empty() && all_stopped {
            break;
        }
        let runs = |process: &Process| !process.is_stopped && stopped.contains(&process.pid);
        all_stopped = new.is_empty() && !processes.iter().any(runs);
        if new.is_empty() && !all_stopped {
            std::thread::sleep(STOP_PAUSE);
        }
        signal(&new, Signal::SIGSTOP);
        stopped.extend(new);
    }
    let stopped: Vec<i32> = stopped.into_iter().collect();
    signal(&stopped, Signal::SIGKILL);
}

fn signal(pids: &[i32], signal: Signal) {
    for &pid in pids {
        // The process has ended, or this user may not signal it.
        let _ = kill(Pid::from_raw(pid), signal);
    }
}

/// Returns the owner part of a mark: namespace, process id and start time.
pub(crate) fn owner(pid: i32) -> Option<String> {
    Some(format!("{}-{pid}-{}", namespace(pid)?, stat(pid)?.started))
}

fn namespace(pid: i32) -> Option<u64> {
    fs::metadata(format!("/proc/{pid}/ns/pid"))
        .ok()
        .map(|metadata| metadata.ino())
}

/// Kills the processes of owners that were killed together with their guardian.
pub(crate) fn kill_stale() {
    let Some(here) = namespace(std::process::id() as i32) else {
        return;
    };
    kill_all(|processes| {
        let kin = ancestors(processes);
        let stale = |process: &&Process| {
            !kin.contains(&process.pid)
                && namespace(process.pid) == Some(here)
                && mark_of(process.pid).is_some_and(|mark| is_stale(&mark, here))
        };
        processes
            .iter()
            .filter(stale)
            .map(|process| process.pid)
            .collect()
    });
}

/// Reports whether a mark names an owner of this namespace that has ended.
fn is_stale(mark: &str, here: u64) -> bool {
    let Some((name, _call)) = mark.split_once('/') else {
        return false;
    };
    let fields: Vec<&str> = name.split('-').collect();
    let [space, pid, started] = fields[..] else {
        return false;
    };
    let (Ok(space), Ok(pid), Ok(started)) = (
        space.parse::<u64>(),
        pid.parse::<i32>(),
        started.parse::<u64>(),
    ) else {
        return false;
    };
    let running = stat(pid).is_some_and(|stat| stat.alive && stat.started == started);
    space == here && !running
}

/// Returns this process and its ancestors.
fn ancestors(processes: &[Process]) -> HashSet<i32> {
    let mut line = HashSet::new();
    let mut pid = std::process::id() as i32;
    while line.insert(pid) {
        match processes.iter().find(|process| process.pid == pid) {
            Some(process) => pid = process.parent,
            None => break,
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: i32, parent: i32) -> Process {
        Process {
            pid,
            parent,
            session: 0,
            is_stopped: false,
        }
    }

    #[test]
    fn descent_is_followed_in_any_order() {
        let processes = [
            process(9, 7),
            process(7, 5),
            process(5, 1),
            process(6, 1),
            process(4, 9),
        ];
        assert_eq!(
            with_descendants(&processes, HashSet::from([5])),
            HashSet::from([5, 7, 9, 4])
        );
    }

    #[test]
    fn a_process_finds_itself() {
        let pid = std::process::id() as i32;
        assert!(living().iter().any(|process| process.pid == pid));
        let owner = owner(pid).unwrap();
        let here = namespace(pid).unwrap();
        assert!(
            !is_stale(&format!("{owner}/1"), here),
            "a living owner is not stale"
        );
        assert!(
            is_stale(&format!("{owner}0/1"), here),
            "same process id, another start time"
        );
        assert!(
            !is_stale(&format!("{owner}0/1"), here + 1),
            "processes of another namespace are left alone"
        );
        assert!(!is_stale("nonsense", here));
    }
}
