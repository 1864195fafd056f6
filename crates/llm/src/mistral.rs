//! Mistral's own dialect of chat completions: typed content both ways, and thinking that rides
//! in it.

mod request;
mod stream;

pub(crate) use request::build;
pub(crate) use stream::Stream;
