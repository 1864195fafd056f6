//! Finding and killing processes that have left their group, their session or their parent.
//!
//! Processes are found in `/proc`: by descent, by session, and by the mark every command carries in its
//! environment. They are stopped before they are killed, so that none can fork away in between; only when all of them
//! stand still is it known that nothing came of them unseen.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The variable that marks every process a command starts.
pub(crate) const MARK: &str = "PINION_RUN_ID";
/// The variable that says for whom a command was started, where several have commands.
pub const FAMILY: &str = "PINION_SESSION_ID";
/// Rounds after which a set of processes that keeps growing is killed as it is.
const MAX_ROUNDS: usize = 32;
/// How long a process that was told to stop is given before it is looked at again.
const STANDSTILL: Duration = Duration::from_millis(1);

/// One process, as far as it matters here.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Process {
    pub pid: i32,
    pub parent: i32,
    pub session: i32,
    /// It has stopped, and starts nothing any more.
    pub stands_still: bool,
}

/// All living processes; zombies are past killing.
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
    /// Clock ticks after boot; with the process id it names a process for good.
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
            stands_still: matches!(*fields.first()?, "T" | "t"),
        },
        alive: !matches!(*fields.first()?, "Z" | "X" | "x"),
        started: fields.get(19)?.parse().ok()?,
    })
}

/// `roots` (if they live) and everything that descends from them.
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

/// The mark in the environment a process was started with.
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

/// Kills everything that carries a mark of `owner`.
pub(crate) fn kill_marked(owner: &str) {
    kill_chosen(owner, |_| true);
}

/// Kills everything that carries a mark of `owner` and belongs to `family`.
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

/// Stops, then kills, what `select` picks, until it picks nothing new.
pub(crate) fn kill_all(select: impl Fn(&[Process]) -> HashSet<i32>) {
    let mut stopped: HashSet<i32> = HashSet::new();
    let ourselves = std::process::id() as i32;
    // Who was about to fork when told to stop may still have done so while we looked.
    let mut stood_still = false;
    for _ in 0..MAX_ROUNDS {
        let processes = living();
        let mut found = select(&processes);
        found.retain(|&pid| pid > 1 && pid != ourselves);
        let new: Vec<i32> = found.difference(&stopped).copied().collect();
        if new.is_empty() && stood_still {
            break;
        }
        let moves = |process: &Process| !process.stands_still && stopped.contains(&process.pid);
        stood_still = new.is_empty() && !processes.iter().any(moves);
        if new.is_empty() && !stood_still {
            std::thread::sleep(STANDSTILL);
        }
        signal(&new, Signal::SIGSTOP);
        stopped.extend(new);
    }
    let stopped: Vec<i32> = stopped.into_iter().collect();
    signal(&stopped, Signal::SIGKILL);
}

fn signal(pids: &[i32], signal: Signal) {
    for &pid in pids {
        // Already gone, or not ours to kill: nothing can be done either way.
        let _ = kill(Pid::from_raw(pid), signal);
    }
}

/// Names the process that owns commands: namespace, process id and start time.
pub(crate) fn owner(pid: i32) -> Option<String> {
    Some(format!("{}-{pid}-{}", namespace(pid)?, stat(pid)?.started))
}

fn namespace(pid: i32) -> Option<u64> {
    fs::metadata(format!("/proc/{pid}/ns/pid"))
        .ok()
        .map(|metadata| metadata.ino())
}

/// Kills what an owner that died together with its guardian has left behind.
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

/// Whether a mark names an owner of this namespace that is no more.
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

/// This process and those it descends from.
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
            stands_still: false,
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
    fn we_find_ourselves() {
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
            "another namespace is not our business"
        );
        assert!(!is_stale("nonsense", here));
    }
}
