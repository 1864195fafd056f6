//! The Anthropic Messages API: writes requests and reads response streams.

mod messages;
mod request;
mod stream;

pub(crate) use request::build;
pub(crate) use stream::Stream;
