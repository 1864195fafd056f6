//! The chat itself: what it knows, what keys and events do to it, and the loop that draws it.

mod attach;
mod commands;
mod events;
mod keyboard;
mod layout;
mod lists;
mod run;
mod shell;
mod state;
mod status;
mod submit;
#[cfg(test)]
mod tests;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pinion_message::Block;

pub(crate) use self::commands::called;
pub(crate) use self::lists::about_model;
use self::run::Clockwork;
use self::state::State;
pub(crate) use self::state::Turn;
use crate::transcript::Images;
use crate::{Background, Colours, FeedReader, Host, Terminal};

/// How the chat begins.
#[derive(Debug)]
pub struct Options {
    /// Where files are looked for.
    pub cwd: PathBuf,
    /// Shown as `~`.
    pub home: PathBuf,
    /// What the background is like; `None` asks the terminal.
    pub background: Option<Background>,
    /// Whether colours are used.
    pub colours: Colours,
    /// What is said first, one after the other.
    pub texts: Vec<String>,
    /// Goes with the first of them.
    pub images: Vec<Block>,
}

/// How a chat ended.
#[derive(Debug)]
pub struct Ending {
    /// The exit code of the program.
    pub exit_code: u8,
    /// The session it was in, if that is kept.
    pub session: Option<SessionHint>,
}

/// Where a session is found again.
#[derive(Debug, Clone)]
pub struct SessionHint {
    /// Its id.
    pub id: String,
    /// Its file, if something was answered in it.
    pub file: PathBuf,
}

/// A chat on the screen.
#[derive(Debug)]
pub struct Chat {
    terminal: Terminal,
    state: State,
    clockwork: Clockwork,
}

impl Chat {
    /// Shows the chat before there is anybody to talk to.
    pub fn open(terminal: Terminal, options: Options) -> io::Result<Self> {
        let asks_background = options.background.is_none() && options.colours != Colours::None;
        let (mut state, clockwork) = state::begin(options);
        if draws_pictures() {
            state.transcript.set_images(Images::Drawn);
        }
        let mut chat = Self {
            terminal,
            state,
            clockwork,
        };
        chat.draw()?;
        if asks_background && may_be_asked() {
            chat.terminal.ask_background();
        }
        Ok(chat)
    }

    /// Lets the user pick a session to go on with; `None` when they do not want one.
    pub async fn choose_session(&mut self, host: Arc<dyn Host>) -> io::Result<Option<PathBuf>> {
        self.state.set_host(host);
        self.state.pick_session();
        self.state.picking = Some(None);
        let (_, nothing) = crate::feed();
        self.turn(&nothing).await?;
        if self.state.ending.take().is_some() {
            return Ok(None);
        }
        Ok(self.state.picking.take().flatten())
    }

    /// Talks until the user leaves or the program must end.
    pub async fn run(mut self, host: Arc<dyn Host>, feed: FeedReader) -> io::Result<Ending> {
        self.state.set_host(host);
        self.state.answers = Some(feed.answers());
        self.state.begin_session();
        self.turn(&feed).await?;
        Ok(self.state.ended())
    }
}

/// Whether the terminal understands questions.
fn may_be_asked() -> bool {
    !matches!(
        std::env::var("TERM").as_deref(),
        Ok("dumb" | "linux") | Err(_)
    )
}

/// Whether the terminal is known to draw pictures by kitty's protocol.
fn draws_pictures() -> bool {
    let name = std::env::var("TERM").unwrap_or_default();
    let inside = std::env::var_os("TMUX").is_some();
    let knows = std::env::var_os("KITTY_WINDOW_ID").is_some();
    !inside && (knows || matches!(name.as_str(), "xterm-kitty" | "xterm-ghostty"))
}

/// The time until something that changes by itself is drawn again.
const TICK: Duration = Duration::from_millis(120);

fn soonest(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
