//! The terminal chat: the screen on which people read and steer a session, and its line mode.
//!
//! The chat subscribes to the engine's events and sends it commands, like any other front. It holds
//! no state that the session does not have, reads no settings and opens no session: the caller
//! passes a [`Host`], which is a [`SessionHost`] for a session of pinion's own.
//!
//! The module [`fleet`] draws the progress of a fleet.

mod chat;
mod chat_session;
mod completion;
mod diff;
mod editor;
mod feed;
pub mod fleet;
mod highlight;
mod host;
mod keys;
mod markdown;
mod numbered;
mod overlay;
mod plain;
mod plain_chat;
mod request;
mod session_host;
mod status_line;
mod terminal;
mod text;
mod theme;
mod transcript;

pub use chat::{Chat, ChatEnding, Options, SessionHint};
pub use chat_session::run_chat_session;
pub use feed::{Feed, FeedReader, feed};
pub use host::{Abilities, Host, Incoming, SessionScope};
pub use numbered::pick_by_number;
pub use plain_chat::{PlainOptions, plain_chat, typed_lines};
pub use session_host::SessionHost;
pub use status_line::StatusLine;
pub use terminal::{
    CapturedOutput, HiddenInput, Terminal, background_of, has_colours, only_prints_lines,
};
pub use text::{one_line, sanitise, truncate, width};
pub use theme::{Background, Colours, Theme};
