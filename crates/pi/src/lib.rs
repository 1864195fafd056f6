//! The pi front: translates between pi's protocols and the engine.
//!
//! `decode` turns a line into a command, and [`Projection`] turns events and responses into lines. The RPC loop, json
//! mode and print mode combine them. The front holds no state of the session; the engine does.

mod answers;
mod classic;
mod command_output;
mod commands;
mod conversation;
mod decode;
mod dialect;
mod early;
mod feed_sink;
mod late_answers;
mod lines;
mod listener;
mod modern;
mod multi_session;
mod opencode;
mod outbox;
mod outgoing;
mod partial_answer;
mod partial_arguments;
mod projection;
mod prompt_images;
mod response;
mod rpc;
mod schema;
mod serving;
mod session_builder;
mod shapes;
mod single_shot;
mod wire;

pub use classic::Additions;
pub use conversation::{Outcome, converse};
pub use dialect::{CLASSIC_BEHAVIOUR, Dialect, DialectName, MODERN_BEHAVIOUR, UnknownDialect};
pub use feed_sink::FeedSink;
pub use listener::PiListener;
pub use multi_session::{MultiSessionRpc, OpenSession, OpenedSession, SessionHost};
pub use opencode::{OpencodeError, OpencodeLines};
pub use outbox::{Addressed, MultiSessionProjection, Outbox};
pub use outgoing::{CommandId, Out, Sink};
pub use projection::Projection;
pub use rpc::{Rpc, RpcEnd};
pub use schema::{schema_text, sessions_schema_text};
pub use serving::{OnEof, SETTLE_TIMEOUT, Serving, ServingEnd, stop_session};
pub use session_builder::{
    BuildingHost, BuiltSession, OpenIds, PreparedSession, RecordOutbox, SessionBuilder,
};
pub use single_shot::{PrintListener, Prompts, Settled, ask_all};
