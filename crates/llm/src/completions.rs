//! The OpenAI Chat Completions API, as OpenAI and the servers that imitate it implement it: writes
//! requests, with each server's own members for thinking, and reads response streams.

mod messages;
mod params;
mod request;
mod stream;

pub(crate) use request::build;
pub(crate) use stream::Stream;
