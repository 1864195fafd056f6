//! The terminal chat: the screen on which people read and steer a session, and its line mode.
//!
//! The chat subscribes to the engine's events and sends it commands, like any other front. It holds
//! no state that the session does not have, reads no settings and opens no session: the caller
//! passes a [`Host`].
//!
//! The module [`fleet`] draws the progress of a fleet.

mod chat;
mod completion;
mod diff;
mod editor;
mod feed;
pub mod fleet;
mod highlight;
mod host;
mod keys;
mod markdown;
mod overlay;
mod plain;
mod plain_chat;
mod request;
mod terminal;
mod text;
mod theme;
mod transcript;

pub use chat::{Chat, ChatEnding, Options, SessionHint};
pub use feed::{Feed, FeedReader, feed};
pub use host::{Abilities, Host, Incoming, SessionScope};
pub use plain_chat::{PlainOptions, plain_chat, typed_lines};
pub use terminal::{CapturedOutput, Terminal, background_of, only_prints_lines};
pub use text::{one_line, sanitise, truncate, width};
pub use theme::{Background, Colours, Theme};
