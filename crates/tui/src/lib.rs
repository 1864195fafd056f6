//! The terminal chat: what people see of a session, and how they talk to it.
//!
//! It is one more subscriber of the engine's events and one more sender of its commands. It keeps no truth of
//! its own, reads no settings and opens no session: whoever starts it hands in a [`Host`].

mod chat;
mod completion;
mod diff;
mod editor;
mod feed;
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

pub use chat::{Chat, Ending, Options, SessionHint};
pub use feed::{Feed, FeedReader, feed};
pub use host::{Abilities, Host, Incoming, Scope};
pub use plain_chat::{PlainOptions, plain_chat};
pub use terminal::{Terminal, named_background};
pub use text::{clip, one_line, sanitise, width};
pub use theme::{Background, Colours, Theme};
