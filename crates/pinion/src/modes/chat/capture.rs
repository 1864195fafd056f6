//! Protects the screen of the chat: output that other code prints meanwhile becomes lines of the chat.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Write};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pinion_agent::Listener;
use pinion_tui::{Feed, Incoming};

/// Time between two checks whether the chat has room for the next printed line.
const PAUSE: Duration = Duration::from_millis(10);

/// Redirects standard output and standard error until it is dropped.
#[derive(Debug)]
pub(crate) struct Printed {
    /// The terminal's standard error; `None` if standard error is not a terminal and is not redirected.
    stderr: Option<File>,
    /// The message of the last panic.
    panic: Arc<Mutex<Option<String>>>,
}

/// Redirects standard output, and standard error if it is a terminal. Returns the terminal to draw on, and the guard
/// that restores both.
pub(super) fn claim(feed: Feed) -> io::Result<(File, Printed)> {
    let output = duplicate(1)?;
    Ok((output, keep_off(feed)?))
}

/// Redirects the same descriptors for a caller that already has a terminal to draw on.
pub(crate) fn keep_off(feed: Feed) -> io::Result<Printed> {
    let stderr = match io::stderr().is_terminal() {
        true => Some(duplicate(2)?),
        false => None,
    };
    let panic = remember_panics();
    if let Some(stderr) = &stderr {
        let (reader, writer) = io::pipe()?;
        point(2, writer.as_raw_fd())?;
        let aside = stderr.try_clone()?;
        std::thread::Builder::new()
            .name("printed".to_owned())
            .spawn(move || pass_on(BufReader::new(reader), &feed, aside))?;
    }
    point(1, 2)?;
    Ok(Printed { stderr, panic })
}

/// Sends printed lines to the chat, or writes them to the terminal once the chat has ended.
fn pass_on(lines: impl BufRead, feed: &Feed, mut aside: File) {
    for line in lines.split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line).into_owned();
        while !feed.has_room() {
            std::thread::sleep(PAUSE);
        }
        if !feed.send(Incoming::Printed(line.clone())) {
            // There is no other place to report a failure.
            let _ = writeln!(aside, "{line}");
        }
    }
}

fn remember_panics() -> Arc<Mutex<Option<String>>> {
    let last = Arc::new(Mutex::new(None));
    let kept = Arc::clone(&last);
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(panic.to_string());
        before(panic);
    }));
    last
}

impl Drop for Printed {
    fn drop(&mut self) {
        let Some(stderr) = &self.stderr else {
            return;
        };
        // If this fails, the last messages are lost; there is no other place to report that.
        let _ = point(2, stderr.as_raw_fd());
        let _ = point(1, stderr.as_raw_fd());
        let panic = self.panic.lock().unwrap_or_else(PoisonError::into_inner);
        if let (true, Some(panic)) = (std::thread::panicking(), &*panic) {
            eprintln!("{panic}");
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
