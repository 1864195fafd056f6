//! Front: pi's protocols over the engine.
//!
//! Two pure halves around the engine: `decode` turns a line into a command, and
//! [`Projection`] turns events and responses into lines. The RPC loop, json mode and print mode put
//! them together. No truth of its own: everything it tells it was told by the engine.

mod answers;
mod arguments;
mod classic;
mod commands;
mod decode;
mod dialect;
mod early;
mod echo;
mod growing;
mod lane;
mod lines;
mod listener;
mod modern;
mod once;
mod outgoing;
mod parse_error;
mod projection;
mod response;
mod rpc;
mod schema;
mod several;
mod shapes;
mod wire;

pub use classic::Additions;
pub use dialect::{CLASSIC_BEHAVIOUR, Dialect, MODERN_BEHAVIOUR, UnknownDialect};
pub use lane::{Addressed, Outbox, Switchboard};
pub use listener::PiListener;
pub use once::{PrintListener, Prompts, Settled, ask_all};
pub use outgoing::{AskedId, Out, Sink};
pub use projection::Projection;
pub use rpc::{Participant, Rpc, RpcEnd};
pub use schema::{schema_text, sessions_schema_text};
pub use several::{Host, Opening, Several, Tenant};
