//! A program on a pseudo-terminal, with typed keys and frames that are read.

use std::fs::File;
use std::io::{self, Read, Write};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use crate::Fallible;
use crate::os;
use crate::process::kilobytes;
use crate::screen::{COLUMNS, ROWS, Screen};

/// Time that a frame may take before a run counts as failed.
const FRAME_TIMEOUT: Duration = Duration::from_secs(30);
/// The answer of a dark terminal to the query for its background.
const DARK: &[u8] = b"\x1b]11;rgb:0000/0000/0000\x1b\\";

/// A terminal and the program on it.
#[derive(Debug)]
pub struct Terminal {
    child: Child,
    line: File,
    screen: Screen,
    /// The time at which the last frame was complete.
    seen: Instant,
    answered: usize,
    /// The time at which the program was started.
    pub started: Instant,
}

impl Terminal {
    /// Starts a program on a new terminal.
    pub fn start(command: &mut Command) -> Fallible<Self> {
        let (line, used) = os::pseudo_terminal(COLUMNS, ROWS)?;
        os::run_on_terminal(command, used)?;
        command.env("TERM", "xterm-256color");
        let started = Instant::now();
        let child = command.spawn()?;
        Ok(Self {
            child,
            line,
            screen: Screen::new(),
            seen: started,
            answered: 0,
            started,
        })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn screen(&self) -> &Screen {
        &self.screen
    }

    pub fn press(&mut self, keys: &str) -> Fallible<()> {
        Ok(self.line.write_all(keys.as_bytes())?)
    }

    /// Waits for a frame that `done` accepts and returns its time.
    pub fn wait_for(
        &mut self,
        what: &str,
        mut done: impl FnMut(&Screen) -> bool,
    ) -> Fallible<Instant> {
        if self.screen.is_complete && done(&self.screen) {
            return Ok(self.seen);
        }
        let deadline = Instant::now() + FRAME_TIMEOUT;
        loop {
            let mut found = None;
            let more = self.look(deadline, |screen, now| {
                if found.is_none() && done(screen) {
                    found = Some(now);
                }
            })?;
            if let Some(found) = found {
                return Ok(found);
            }
            if !more {
                let lines: Vec<String> = self.screen.lines().collect();
                let seen = lines.join("\n");
                return Err(format!("{what} did not come; on the screen:\n{seen}").into());
            }
        }
    }

    /// Lets time pass.
    pub fn rest(&mut self, time: Duration) -> Fallible<()> {
        let deadline = Instant::now() + time;
        while self.look(deadline, |_, _| ())? {}
        Ok(())
    }

    /// Reads once and passes every complete frame to `frame`. Returns whether there was output before the deadline.
    fn look(
        &mut self,
        deadline: Instant,
        mut frame: impl FnMut(&Screen, Instant),
    ) -> Fallible<bool> {
        let left = deadline.saturating_duration_since(Instant::now());
        if !os::readable(&self.line, left)? {
            return Ok(false);
        }
        let mut buffer = [0; 64 * 1024];
        let count = match self.line.read(&mut buffer) {
            Ok(0) => return Err("the program ended too early".into()),
            Ok(count) => count,
            // The program has closed the terminal.
            Err(error) if error.raw_os_error() == Some(libc::EIO) => {
                return Err("the program ended too early".into());
            }
            Err(error) => return Err(error.into()),
        };
        let now = Instant::now();
        self.screen.write(&buffer[..count], |screen| {
            self.seen = now;
            frame(screen, now);
        });
        while self.answered < self.screen.background_asked {
            self.answered += 1;
            self.line.write_all(DARK)?;
        }
        Ok(true)
    }

    /// Highest resident memory so far, in bytes.
    pub fn peak_memory(&self) -> u64 {
        kilobytes(&format!("/proc/{}/status", self.pid()), "VmHWM:")
    }

    /// Processor time used so far.
    pub fn processor_time(&self) -> Duration {
        os::processor_time(self.pid()).unwrap_or_default()
    }

    fn kill(&mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait().map(drop)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Fails if the program has exited already, which has the same effect.
        let _ = self.kill();
    }
}
