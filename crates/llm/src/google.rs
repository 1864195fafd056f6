//! Google's Generative Language API, and Vertex AI with an API key: writes requests and reads
//! response streams.

mod contents;
mod request;
mod stream;
mod thinking;

pub(crate) use request::{Host, build};
pub(crate) use stream::Stream;
