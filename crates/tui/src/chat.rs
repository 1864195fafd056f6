//! The chat on the screen: its state, its reactions to keys and events, and the loop that draws it.

mod attach;
mod commands;
mod events;
mod keyboard;
mod layout;
mod overlays;
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
pub(crate) use self::overlays::about_model;
use self::run::Clockwork;
use self::state::State;
pub(crate) use self::state::Turn;
use crate::transcript::Images;
use crate::{Background, Colours, FeedReader, Host, Terminal};

/// The settings of a chat.
#[derive(Debug)]
pub struct Options {
    /// The working directory, in which files are searched.
    pub cwd: PathBuf,
    /// The home directory, shown as `~`.
    pub home: PathBuf,
    /// The background of the terminal; `None` queries the terminal.
    pub background: Option<Background>,
    pub colours: Colours,
    /// Prompts to send at the start, one after the other.
    pub texts: Vec<String>,
    /// Images for the first of them.
    pub images: Vec<Block>,
}

/// The result of a chat.
#[derive(Debug)]
pub struct ChatEnding {
    /// The exit code of the program.
    pub exit_code: u8,
    /// The session that was open at the end, if it is stored.
    pub session: Option<SessionHint>,
}

/// The data needed to resume a session.
#[derive(Debug, Clone)]
pub struct SessionHint {
    pub id: String,
    /// The session file; it exists once an answer was received.
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
    /// Shows the chat before a session exists.
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
        if asks_background && understands_queries() {
            chat.terminal.ask_background();
        }
        Ok(chat)
    }

    /// Lets the user choose a session to resume; `None` if they cancel.
    pub async fn choose_session(&mut self, host: Arc<dyn Host>) -> io::Result<Option<PathBuf>> {
        self.state.set_host(host);
        self.state.pick_session();
        self.state.picking = Some(None);
        let (_, nothing) = crate::feed();
        self.run_loop(&nothing).await?;
        if self.state.ending.take().is_some() {
            return Ok(None);
        }
        Ok(self.state.picking.take().flatten())
    }

    /// Runs until the user leaves or the program must end.
    pub async fn run(mut self, host: Arc<dyn Host>, feed: FeedReader) -> io::Result<ChatEnding> {
        self.state.set_host(host);
        self.state.answers = Some(feed.answers());
        self.state.begin_session();
        self.run_loop(&feed).await?;
        Ok(self.state.ended())
    }
}

/// Reports whether the terminal understands queries.
fn understands_queries() -> bool {
    !matches!(
        std::env::var("TERM").as_deref(),
        Ok("dumb" | "linux") | Err(_)
    )
}

/// Reports whether the terminal supports kitty's graphics protocol.
fn draws_pictures() -> bool {
    let name = std::env::var("TERM").unwrap_or_default();
    let inside = std::env::var_os("TMUX").is_some();
    let knows = std::env::var_os("KITTY_WINDOW_ID").is_some();
    !inside && (knows || matches!(name.as_str(), "xterm-kitty" | "xterm-ghostty"))
}

/// Time between two frames while something on the screen changes by itself.
const TICK: Duration = Duration::from_millis(120);

fn soonest(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
