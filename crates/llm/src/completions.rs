//! The OpenAI Chat Completions API, as OpenAI and everyone who imitates it speak it: how a request
//! is written, what thinking is called where, and how the stream is read.

mod messages;
mod params;
mod request;
mod stream;

pub(crate) use request::build;
pub(crate) use stream::Stream;
