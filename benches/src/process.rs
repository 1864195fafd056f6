//! A program under measurement: started with pipes, driven by lines, observed from outside.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::Fallible;
use crate::lines::{Line, Lines, Pumped};
use crate::os;

/// Time that a single step may take before a run counts as failed.
const STEP_TIMEOUT: Duration = Duration::from_secs(60);
/// Interval between two readings of the memory in [`Process::follow`].
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// A running program.
#[derive(Debug)]
pub struct Process {
    child: Child,
    stdin: Option<ChildStdin>,
    /// The lines that it prints.
    pub lines: Lines,
    /// The time at which it was started.
    pub started: Instant,
}

/// The measurements of a program from its start to its end.
#[derive(Debug)]
pub struct Followed {
    /// The elapsed time.
    pub wall: Duration,
    /// The processor time, without its last milliseconds.
    pub processor: Duration,
    /// Its highest resident memory, in bytes.
    pub peak: u64,
    /// The exit status, in words.
    pub ending: String,
}

impl Process {
    /// Starts a program. Its standard error is discarded, because an agent may warn about the machine.
    pub fn start(command: &mut Command) -> Fallible<Self> {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let started = Instant::now();
        let mut child = command.spawn()?;
        let stdout = child
            .stdout
            .take()
            .ok_or("the program has no standard output")?;
        let stdin = child.stdin.take();
        let lines = Lines::new(File::from(OwnedFd::from(stdout)));
        Ok(Self {
            child,
            stdin,
            lines,
            started,
        })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn send(&mut self, line: &str) -> Fallible<()> {
        let stdin = self.stdin.as_mut().ok_or("standard input is closed")?;
        Ok(stdin.write_all(format!("{line}\n").as_bytes())?)
    }

    /// Reads until `done` returns true.
    pub fn read_until(&mut self, mut done: impl FnMut(&Line<'_>) -> bool) -> Fallible<()> {
        let deadline = Instant::now() + STEP_TIMEOUT;
        let mut found = false;
        while !found {
            if Instant::now() > deadline {
                return Err("no answer within a minute".into());
            }
            match self
                .lines
                .pump(STEP_TIMEOUT, &mut |line| found |= done(line))?
            {
                Pumped::Bytes => {}
                Pumped::Nothing => return Err("no answer within a minute".into()),
                Pumped::Closed => return Err("the program ended too early".into()),
            }
        }
        Ok(())
    }

    /// Sends a command with this id, waits for its response and returns the whole line.
    pub fn ask(&mut self, id: &str, kind: &str) -> Fallible<Vec<u8>> {
        self.send(&format!(r#"{{"id":"{id}","type":"{kind}"}}"#))?;
        let mut answer = Vec::new();
        self.read_until(|line| {
            let found = line.answers(id);
            if found {
                answer = line.head.to_vec();
            }
            found
        })?;
        Ok(answer)
    }

    /// Processor time used so far.
    pub fn processor_time(&self) -> Duration {
        os::processor_time(self.pid()).unwrap_or_default()
    }

    /// Highest resident memory so far, in bytes.
    pub fn peak_memory(&self) -> u64 {
        kilobytes(&format!("/proc/{}/status", self.pid()), "VmHWM:")
    }

    /// Resident memory now, in bytes.
    pub fn memory(&self) -> u64 {
        kilobytes(&format!("/proc/{}/status", self.pid()), "VmRSS:")
    }

    /// Returns its share of memory, in bytes, with that of all its children.
    pub fn proportional_memory(&self) -> u64 {
        family(self.pid())
            .into_iter()
            .map(|pid| kilobytes(&format!("/proc/{pid}/smaps_rollup"), "Pss:"))
            .sum()
    }

    /// Returns the memory that it has written and shares with no other process, in bytes, with that of all its children.
    pub fn private_memory(&self) -> u64 {
        let of = |pid| kilobytes(&format!("/proc/{pid}/smaps_rollup"), "Private_Dirty:");
        family(self.pid()).into_iter().map(of).sum()
    }

    /// Returns the exit status, in words.
    pub fn ending(&mut self) -> String {
        use std::os::unix::process::ExitStatusExt;
        match self.child.wait() {
            Ok(status) => match status.signal() {
                Some(signal) => format!("ended by signal {signal}"),
                None => format!("ended with {}", status.code().unwrap_or_default()),
            },
            Err(error) => error.to_string(),
        }
    }

    /// Closes its input and waits for its exit; kills it after a timeout.
    pub fn finish(mut self) -> Fallible<()> {
        self.stdin = None;
        let deadline = Instant::now() + Duration::from_secs(5);
        loop {
            if self.child.try_wait()?.is_some() {
                return Ok(());
            }
            let wait = Duration::from_millis(5);
            if self.lines.pump(wait, &mut |_| {})? == Pumped::Closed {
                thread::sleep(Duration::from_millis(1));
            }
            if Instant::now() > deadline {
                return Ok(self.kill()?);
            }
        }
    }

    /// Closes its input and follows it to its exit, however long that takes.
    pub fn follow(mut self) -> Fallible<Followed> {
        self.stdin = None;
        let (mut peak, mut processor) = (0, Duration::ZERO);
        while self.child.try_wait()?.is_none() {
            peak = self.peak_memory().max(peak);
            processor = self.processor_time().max(processor);
            if self.lines.pump(POLL_INTERVAL, &mut |_| {})? == Pumped::Closed {
                thread::sleep(POLL_INTERVAL);
            }
        }
        Ok(Followed {
            wall: self.started.elapsed(),
            processor,
            peak,
            ending: self.ending(),
        })
    }

    fn kill(&mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait().map(drop)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Fails if the program has exited already, which has the same effect.
        let _ = self.kill();
    }
}

/// A process and its descendants.
fn family(pid: u32) -> Vec<u32> {
    let mut all = vec![pid];
    let mut next = 0;
    while let Some(parent) = all.get(next) {
        let path = format!("/proc/{parent}/task/{parent}/children");
        let children = fs::read_to_string(path).unwrap_or_default();
        all.extend(
            children
                .split_whitespace()
                .filter_map(|id| id.parse::<u32>().ok()),
        );
        next += 1;
    }
    all
}

/// Returns a number from a file of the system about a process, converted from kilobytes to bytes.
pub fn kilobytes(path: &str, name: &str) -> u64 {
    let text = fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    number.unwrap_or(0) * 1024
}
