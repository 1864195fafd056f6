//! Mistral's dialect of chat completions: typed content in requests and answers, which includes
//! thinking.

mod request;
mod stream;

pub(crate) use request::build;
pub(crate) use stream::Stream;
