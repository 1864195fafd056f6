//! The OpenAI Responses API: writes requests and reads response streams.

mod azure;
mod items;
mod request;
mod stream;

pub(crate) use request::{Flavour, build};
pub(crate) use stream::Stream;
