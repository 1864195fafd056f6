//! Protects the screen of the chat: output that other code prints meanwhile becomes lines of the chat.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Write};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pinion_agent::Listener;

use crate::{Feed, Incoming};

/// Time between two checks whether the chat has room for the next printed line.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Redirects standard output and standard error until it is dropped.
#[derive(Debug)]
pub struct CapturedOutput {
    /// The terminal's standard error; `None` if standard error is not a terminal and is not redirected.
    stderr: Option<File>,
    /// The message of the last panic.
    panic: Arc<Mutex<Option<String>>>,
}

impl CapturedOutput {
    /// Redirects standard output, and standard error if it is a terminal, into the feed of the chat.
    pub fn redirect(feed: Feed) -> io::Result<Self> {
        let stderr = if io::stderr().is_terminal() {
            Some(duplicate(2)?)
        } else {
            None
        };
        let panic = remember_panics();
        if let Some(stderr) = &stderr {
            let (reader, writer) = io::pipe()?;
            point(2, writer.as_raw_fd())?;
            let stderr = stderr.try_clone()?;
            std::thread::Builder::new()
                .name("printed".to_owned())
                .spawn(move || forward(BufReader::new(reader), &feed, stderr))?;
        }
        point(1, 2)?;
        Ok(Self { stderr, panic })
    }

    /// Redirects both, and returns the terminal behind standard output to draw on.
    pub fn claim(feed: Feed) -> io::Result<(File, Self)> {
        let output = duplicate(1)?;
        Ok((output, Self::redirect(feed)?))
    }
}

/// Sends printed lines to the chat, or writes them to the terminal once the chat has ended.
fn forward(lines: impl BufRead, feed: &Feed, mut stderr: File) {
    for line in lines.split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line).into_owned();
        while !feed.has_room() {
            std::thread::sleep(POLL_INTERVAL);
        }
        if !feed.send(Incoming::Printed(line.clone())) {
            // There is no other place to report a failure.
            let _ = writeln!(stderr, "{line}");
        }
    }
}

fn remember_panics() -> Arc<Mutex<Option<String>>> {
    let last = Arc::new(Mutex::new(None));
    let remembered = Arc::clone(&last);
    let previous = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        *remembered.lock().unwrap_or_else(PoisonError::into_inner) = Some(panic.to_string());
        previous(panic);
    }));
    last
}

impl Drop for CapturedOutput {
    fn drop(&mut self) {
        let Some(stderr) = &self.stderr else {
            return;
        };
        // If this fails, the last messages are lost; there is no other place to report that.
        let _ = point(2, stderr.as_raw_fd());
        let _ = point(1, stderr.as_raw_fd());
        let panic = self.panic.lock().unwrap_or_else(PoisonError::into_inner);
        if let (true, Some(panic)) = (std::thread::panicking(), &*panic) {
            // There is no other place to report a failure.
            let _ = writeln!(io::stderr(), "{panic}");
        }
    }
}

fn duplicate(descriptor: RawFd) -> io::Result<File> {
    // SAFETY: a plain descriptor call; its result is a fresh descriptor without another owner.
    unsafe {
        let own = libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, 3);
        if own < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(File::from_raw_fd(own))
    }
}

fn point(descriptor: RawFd, at: RawFd) -> io::Result<()> {
    // SAFETY: plain descriptor calls on descriptors that are open.
    match unsafe { libc::dup2(at, descriptor) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
