//! The terminal chat: what people see of a session, and how they talk to it.
//!
//! It is one more subscriber of the engine's events and one more sender of its commands. It keeps no truth of
//! its own, reads no settings and opens no session: whoever starts it hands in a [`Host`].

#[allow(dead_code, unused_imports, reason = "the chat that uses it follows")]
mod completion;
#[allow(dead_code, reason = "for the views of tools")]
mod diff;
#[allow(dead_code, unused_imports, reason = "the chat that uses it follows")]
mod editor;
mod feed;
#[allow(dead_code, reason = "for the transcript")]
mod highlight;
mod host;
#[allow(dead_code, reason = "the chat uses it")]
mod keys;
#[allow(dead_code, reason = "for the transcript")]
mod markdown;
#[allow(dead_code, unused_imports, reason = "the chat uses it")]
mod overlay;
#[allow(dead_code, reason = "the chat uses it")]
mod plain;
#[allow(dead_code, reason = "the chat uses it")]
mod request;
#[allow(dead_code, unused_imports, reason = "the chat uses it")]
mod terminal;
#[allow(dead_code, unused_imports, reason = "for everything that is shown")]
mod text;
mod theme;
#[allow(dead_code, unused_imports, reason = "the chat uses it")]
mod transcript;

pub use feed::{Feed, FeedReader, feed};
pub use host::{Abilities, Host, Incoming, Scope};
pub use terminal::{Terminal, named_background};
pub use theme::{Background, Colours, Theme};
