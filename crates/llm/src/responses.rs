//! The OpenAI Responses API: writes requests and reads response streams.

mod azure;
mod codex;
mod items;
mod request;
mod stream;

pub(crate) use codex::{build_codex, codex_failure};
pub(crate) use request::{Flavour, build};
pub(crate) use stream::Stream;
