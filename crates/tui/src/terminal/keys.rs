//! Reads keys on a thread.
//!
//! The thread polls the descriptor before it calls crossterm, because a read may block; only this
//! thread then waits. crossterm is built with `use-dev-tty`, which polls the terminal each time.
//! Its other implementation is edge-triggered and loses input that arrives together with a change
//! of size.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossterm::event::Event;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

/// Milliseconds after which the thread notices that the reader was dropped.
const POLL_INTERVAL_MS: u16 = 200;
/// Time to wait for the next byte of an escape sequence. crossterm returns nothing, not even
/// buffered input, once this time is over, so it must not be zero.
const ESCAPE_TIMEOUT: Duration = Duration::from_millis(10);

/// Keys that may wait for the chat. While as many wait, the thread reads no more, and the terminal holds the rest.
const WAITING_KEYS: usize = 1024;

/// Keys, mouse events, pastes and changes of size.
#[derive(Debug)]
pub(crate) struct Keys {
    events: mpsc::Receiver<Event>,
    resized: Signal,
    wanted: Arc<AtomicBool>,
}

impl Keys {
    /// Starts the thread. Must be called inside the runtime.
    pub fn read() -> io::Result<Self> {
        let terminal: OwnedFd = if io::stdin().is_terminal() {
            io::stdin().as_fd().try_clone_to_owned()?
        } else {
            File::open("/dev/tty")?.into()
        };
        let (sender, events) = mpsc::channel(WAITING_KEYS);
        let wanted = Arc::new(AtomicBool::new(true));
        let asked = Arc::clone(&wanted);
        std::thread::Builder::new()
            .name("keys".to_owned())
            .spawn(move || read_until_gone(&terminal, &sender, &asked))?;
        Ok(Self {
            events,
            resized: signal(SignalKind::window_change())?,
            wanted,
        })
    }

    /// Returns the next event; `None` when the terminal is gone.
    pub async fn next(&mut self) -> Option<Event> {
        tokio::select! {
            biased;
            event = self.events.recv() => event,
            _ = self.resized.recv() => {
                let (columns, rows) = crossterm::terminal::size().ok()?;
                Some(Event::Resize(columns, rows))
            }
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.wanted.store(false, Ordering::Relaxed);
    }
}

fn read_until_gone(terminal: &OwnedFd, sender: &mpsc::Sender<Event>, wanted: &AtomicBool) {
    while wanted.load(Ordering::Relaxed) {
        let mut polled = [PollFd::new(terminal.as_fd(), PollFlags::POLLIN)];
        match poll(&mut polled, PollTimeout::from(POLL_INTERVAL_MS)) {
            Err(Errno::EINTR) => continue,
            // crossterm may also hold buffered input.
            Ok(_) => {}
            Err(_) => return,
        }
        let events_seen = polled[0].revents().unwrap_or(PollFlags::POLLERR);
        let gone = PollFlags::POLLHUP | PollFlags::POLLERR | PollFlags::POLLNVAL;
        if events_seen.intersects(gone) || !wanted.load(Ordering::Relaxed) {
            return;
        }
        if take_all(sender).is_err() {
            return;
        }
    }
}

/// Forwards all available events. Fails when the terminal or the receiver is gone.
fn take_all(sender: &mpsc::Sender<Event>) -> Result<(), ()> {
    loop {
        let event = match crossterm::event::poll(ESCAPE_TIMEOUT) {
            Ok(false) => return Ok(()),
            Ok(true) => crossterm::event::read(),
            Err(error) => Err(error),
        };
        match event {
            // Changes of size arrive through their signal, also when no key is pressed.
            Ok(Event::Resize(..)) => {}
            // Also ends when the keys are dropped.
            Ok(event) => sender.blocking_send(event).map_err(drop)?,
            // Input that cannot be parsed is skipped; errors of the system are permanent.
            Err(error) if error.raw_os_error().is_some() => return Err(()),
            Err(_) => return Ok(()),
        }
    }
}
