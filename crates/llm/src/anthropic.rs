//! The Anthropic Messages API: how a request is written and how its stream is read.

mod messages;
mod request;
mod stream;

pub(crate) use request::build;
pub(crate) use stream::Stream;
