//! The event loop: handles everything that arrived, then draws one frame.

use std::io;
use std::time::{Duration, Instant};

use crossterm::event::Event;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::state::{Effect, Turn};
use super::{Chat, TICK, soonest};
use crate::FeedReader;
use crate::feed::FeedItem;
use crate::terminal::{BackgroundQuery, Keys, Sorted, SuspendTarget};

/// Shortest time between two frames that were not caused by a key.
const FRAME_INTERVAL: Duration = Duration::from_millis(16);

/// The state of the event loop.
#[derive(Debug)]
pub(super) struct Clockwork {
    turns: mpsc::Receiver<Turn>,
    query: BackgroundQuery,
    keys: Option<Keys>,
    drawn: Instant,
    /// Duration of the last drawing.
    took: Duration,
    /// The urgency of the next frame.
    due: Due,
    held_since: Option<Instant>,
}

/// The urgency of the next frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Never,
    Soon,
    Now,
}

impl Clockwork {
    pub fn new(turns: mpsc::Receiver<Turn>) -> Self {
        Self {
            turns,
            query: BackgroundQuery::default(),
            keys: None,
            drawn: Instant::now(),
            took: Duration::ZERO,
            due: Due::Soon,
            held_since: None,
        }
    }

    /// The earliest time of a frame that was not caused by a key: drawing takes at most a third of
    /// the time.
    fn next_frame(&self) -> Instant {
        self.drawn + FRAME_INTERVAL.max(2 * self.took)
    }

    /// The time until which events are held back because they may be an answer of the terminal.
    fn held_until(&self) -> Option<Instant> {
        let since = self.held_since.filter(|_| self.query.holds())?;
        Some(since + self.query.hold_time())
    }

    fn want(&mut self, due: Due) {
        self.due = self.due.max(due);
    }
}

/// The cause of a wakeup.
enum Wakeup {
    Key(Event),
    /// Keys cannot be read any more.
    NoKeys,
    Turn(Turn),
    Feed,
    /// The process received SIGTSTP.
    Stopped,
    Continued,
    Time,
    Ready(io::Result<()>),
}

impl Chat {
    pub(super) fn draw(&mut self) -> io::Result<()> {
        let begun = Instant::now();
        let state = &mut self.state;
        self.terminal.draw(|frame| {
            let area = frame.area();
            let cursor = state.draw(area, frame.buffer_mut());
            if let Some(cursor) = cursor {
                frame.set_cursor_position(cursor);
            }
        })?;
        if let Some(pictures) = self.state.transcript.take_pictures() {
            self.terminal.write(pictures);
        }
        self.clockwork.drawn = Instant::now();
        self.clockwork.took = begun.elapsed();
        self.clockwork.due = Due::Never;
        Ok(())
    }

    /// Runs until the state reports its end.
    pub(super) async fn run_loop(&mut self, feed: &FeedReader) -> io::Result<()> {
        let mut stopped = signal(SignalKind::from_raw(nix::libc::SIGTSTP))?;
        let mut continued = signal(SignalKind::from_raw(nix::libc::SIGCONT))?;
        if self.clockwork.keys.is_none() {
            self.clockwork.keys = Some(Keys::read()?);
        }
        loop {
            self.handle_feed(feed);
            self.do_effects()?;
            if self.state.is_over() {
                return Ok(());
            }
            let now = Instant::now();
            let ready = self.terminal.is_ready();
            let may_draw = match self.clockwork.due {
                Due::Never => false,
                Due::Soon => ready && now >= self.clockwork.next_frame(),
                Due::Now => ready,
            };
            if may_draw {
                self.draw()?;
            }
            // Checked once, so that either the terminal or the clock wakes the loop.
            let ready = self.terminal.is_ready();
            let wake = self.next_wake(ready);
            let woken = {
                let Clockwork { turns, keys, .. } = &mut self.clockwork;
                tokio::select! {
                    biased;
                    key = next_key(keys) => match key {
                        Some(event) => Wakeup::Key(event),
                        None => Wakeup::NoKeys,
                    },
                    Some(turn) = turns.recv() => Wakeup::Turn(turn),
                    _ = stopped.recv() => Wakeup::Stopped,
                    _ = continued.recv() => Wakeup::Continued,
                    done = self.terminal.ready(), if !ready => Wakeup::Ready(done),
                    () = feed.arrived() => Wakeup::Feed,
                    () = until(wake) => Wakeup::Time,
                }
            };
            match woken {
                Wakeup::Key(event) => self.terminal_event(event),
                Wakeup::NoKeys => self.state.end(129),
                Wakeup::Turn(turn) => {
                    turn(&mut self.state);
                    self.clockwork.want(Due::Soon);
                }
                Wakeup::Stopped => self
                    .state
                    .effects
                    .push(Effect::Suspend(SuspendTarget::Program)),
                Wakeup::Continued => {
                    self.terminal.resume()?;
                    self.clockwork.want(Due::Now);
                }
                Wakeup::Ready(Err(_)) => self.state.end(129),
                Wakeup::Feed | Wakeup::Ready(Ok(())) => {}
                Wakeup::Time => self.time_passed(),
            }
        }
    }

    fn handle_feed(&mut self, feed: &FeedReader) {
        for told in feed.take_all() {
            match told {
                FeedItem::Incoming(incoming) => self.state.incoming(incoming),
                FeedItem::Reply(turn) => turn(&mut self.state),
            }
            self.clockwork.want(Due::Soon);
        }
        self.state.show_printed();
        while let Ok(turn) = self.clockwork.turns.try_recv() {
            turn(&mut self.state);
            self.clockwork.want(Due::Soon);
        }
    }

    fn terminal_event(&mut self, event: Event) {
        self.clockwork.want(Due::Now);
        match self.clockwork.query.sort(event) {
            Sorted::Held => self.clockwork.held_since = Some(Instant::now()),
            Sorted::Background(background) => self.state.set_background(background),
            Sorted::Keys(events) => {
                for event in events {
                    self.state.terminal_event(event);
                }
            }
        }
    }

    fn time_passed(&mut self) {
        let now = Instant::now();
        if self
            .clockwork
            .held_until()
            .is_some_and(|until| until <= now)
        {
            for event in self.clockwork.query.release() {
                self.state.terminal_event(event);
            }
        }
        self.state.time_passed();
        self.clockwork.want(Due::Soon);
    }

    /// The time at which something must be done without a message.
    fn next_wake(&self, ready: bool) -> Option<Instant> {
        let clockwork = &self.clockwork;
        let frame = (clockwork.due > Due::Never && ready).then(|| clockwork.next_frame());
        let lively = self.state.is_lively().then(|| clockwork.drawn + TICK);
        let own = soonest(self.state.deadline(), clockwork.held_until());
        soonest(soonest(frame, lively), own)
    }

    fn do_effects(&mut self) -> io::Result<()> {
        for effect in std::mem::take(&mut self.state.effects) {
            match effect {
                Effect::Copy(text) => {
                    let words = if self.terminal.copy(&text) {
                        "Copied."
                    } else {
                        "Not copied: the text is longer than the 1 MB limit for a terminal's clipboard."
                    };
                    self.state.hint(words);
                    self.clockwork.want(Due::Now);
                }
                Effect::Title(title) => {
                    self.terminal.set_title(&title);
                    self.clockwork.want(Due::Soon);
                }
                Effect::Suspend(target) => {
                    // Keys typed at the shell belong to the shell.
                    self.clockwork.keys = None;
                    self.terminal.suspend(target)?;
                    self.clockwork.keys = Some(Keys::read()?);
                    self.clockwork.want(Due::Now);
                }
            }
        }
        Ok(())
    }
}

async fn next_key(keys: &mut Option<Keys>) -> Option<Event> {
    match keys {
        Some(keys) => keys.next().await,
        None => std::future::pending().await,
    }
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}
