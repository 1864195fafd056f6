//! Google's Generative Language API, and Vertex AI with an API key: how a request is written and
//! how its stream is read.

mod contents;
mod request;
mod stream;
mod thinking;

pub(crate) use request::{Host, build};
pub(crate) use stream::Stream;
