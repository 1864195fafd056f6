//! The OpenAI Responses API: how a request is written and how its stream is read.

mod azure;
mod items;
mod request;
mod stream;

pub(crate) use request::{Flavour, build};
pub(crate) use stream::Stream;
