//! The protobuf messages of pinion's protocols as plain Rust types, with their canonical JSON form and, for the messages
//! of hubs, the binary form.
//!
//! The types are generated at build time from the declarations in `/proto` (see `build/`). Encoding appends to a byte
//! vector and builds nothing in between. Decoding is strict, or discards undeclared data as protobuf's own readers do
//! on request. Only the messages of hubs have a binary form ([`Binary`]), because no peer sends the others in it.
//! The crate has no I/O.
//!
//! ```
//! use pinion_proto::rpc::{RpcLine, UiEventFrame, rpc_line::Frame};
//! use pinion_proto::{Message, Strictness, any, chat::ChatTextPatch};
//!
//! let patch = ChatTextPatch { text: "Hi".into(), ..ChatTextPatch::default() };
//! let event = UiEventFrame { ordinal: 7, name: "ChatTextPatch".into(), payload: any(patch) };
//! let line = RpcLine { version: 1, frame: Some(Frame::UiEvent(event)), ..RpcLine::default() };
//! let json = line.to_json();
//! assert_eq!(
//!     json,
//!     r#"{"version":1,"uiEvent":{"ordinal":"7","name":"ChatTextPatch","payload":{"@type":"type.googleapis.com/pinocchio.chatapp.v1.ChatTextPatch","text":"Hi"}}}"#
//! );
//! assert_eq!(RpcLine::decode_json(json.as_bytes(), Strictness::Strict), Ok(line));
//! ```

mod any;
mod base64;
mod codec;
mod error;
mod first_invoke;
mod input;
mod integer;
mod message;
mod part;
mod read;
mod skip;
mod structure;
mod text;
mod wire;
mod write;

#[allow(
    clippy::large_enum_variant,
    clippy::match_single_binding,
    reason = "payloads stand behind a shared pointer; messages without fields match on nothing"
)]
mod generated {
    pub(crate) use crate::any::Unknown;
    pub(crate) use crate::codec::{Codec, Enum};
    pub(crate) use crate::error::DecodeError;
    pub(crate) use crate::input::Input;
    pub(crate) use crate::message::{Fields, Message, Name};
    pub(crate) use crate::part::{measure, put, take};
    pub(crate) use crate::read::Reader;
    pub(crate) use crate::wire::{Binary, Output, Parts, WireValue};
    pub(crate) use crate::write;

    include!(concat!(env!("OUT_DIR"), "/messages.rs"));
}

pub use any::{Any, TYPE_URL, Unknown, any};
pub use codec::Enum;
pub use error::{DecodeError, Problem};
pub use first_invoke::FirstInvoke;
pub use generated::{Payload, chat, cluster, frontend_tools, hub, rpc, sessionstream, widgets};
pub use message::{Message, Strictness};
pub use structure::{Struct, Value};
pub use text::{Text, around_gap};
pub use wire::Binary;

/// The declarations of all messages except the hub's as a compiled `FileDescriptorSet`, for
/// programs that use reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// The declarations of [`hub`] in the same form.
pub const HUB_DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/hub.bin"));
