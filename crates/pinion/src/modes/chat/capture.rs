//! Keeps everybody else off the screen: what is printed while the chat has it becomes lines of the chat.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Write};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pinion_agent::Listener;
use pinion_tui::{Feed, Incoming};

/// How often a printer that is too fast is looked after.
const PAUSE: Duration = Duration::from_millis(10);

/// Standard error in safe keeping; dropped, it is put back.
#[derive(Debug)]
pub(crate) struct Printed {
    /// `None` where standard error is no terminal and stays as it is.
    stderr: Option<File>,
    /// What was said about the last panic.
    panic: Arc<Mutex<Option<String>>>,
}

/// Takes standard output, and standard error if it is a terminal, away from everybody: the terminal to draw on,
/// and what puts everything back.
pub(super) fn claim(feed: Feed) -> io::Result<(File, Printed)> {
    let output = duplicate(1)?;
    Ok((output, keep_off(feed)?))
}

/// The same for somebody who has a terminal to draw on already.
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

/// Tells the chat line by line, and the terminal once there is no chat.
fn pass_on(lines: impl BufRead, feed: &Feed, mut aside: File) {
    for line in lines.split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line).into_owned();
        while !feed.has_room() {
            std::thread::sleep(PAUSE);
        }
        if !feed.send(Incoming::Printed(line.clone())) {
            // Nobody is left to hear that it cannot be said.
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
        // Without it the last words are lost, and there is nobody to tell.
        let _ = point(2, stderr.as_raw_fd());
        let _ = point(1, stderr.as_raw_fd());
        let panic = self.panic.lock().unwrap_or_else(PoisonError::into_inner);
        if let (true, Some(panic)) = (std::thread::panicking(), &*panic) {
            eprintln!("{panic}");
        }
    }
}

fn duplicate(descriptor: RawFd) -> io::Result<File> {
    // SAFETY: a plain descriptor call; its result is a fresh descriptor that nobody else owns.
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
