//! Facts about running processes: those of a test, their open files and their memory. Reads `/proc`, so Linux only.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::sandbox::MARKER_VARIABLE;

/// A process that belongs to a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub pid: u32,
    pub command: String,
}

/// The processes started with this [`Sandbox::marker`](crate::Sandbox::marker) in their environment, wherever they went:
/// a new session, another parent, another process group.
pub fn marked(marker: &str) -> Vec<Found> {
    let wanted = format!("{MARKER_VARIABLE}={marker}");
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_marked = |pid: &u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment
            .split(|byte| *byte == 0)
            .any(|variable| variable == wanted.as_bytes())
    };
    let describe = |pid: u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&line)
            .replace('\0', " ")
            .trim()
            .to_owned();
        Found { pid, command }
    };
    pids.filter(is_marked).map(describe).collect()
}

/// Waits until no such process is left and returns the remaining ones.
pub fn left_behind(marker: &str, time: Duration) -> Vec<Found> {
    let end = Instant::now() + time;
    loop {
        let found = marked(marker);
        if found.is_empty() || Instant::now() >= end {
            return found;
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Kills a process.
pub fn end(pid: u32) {
    let _ = kill(Pid::from_raw(pid as i32), Signal::SIGKILL);
}

/// Returns the number of open files of a process.
pub fn open_files(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten()
        .count()
}

/// Returns the resident memory of a process, in bytes.
pub fn resident_bytes(pid: u32) -> u64 {
    status_kib(pid, "VmRSS:") * 1024
}

/// Returns the peak resident memory of a process, in bytes.
pub fn peak_resident_bytes(pid: u32) -> u64 {
    status_kib(pid, "VmHWM:") * 1024
}

fn status_kib(pid: u32, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}
