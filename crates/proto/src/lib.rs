//! The protobuf messages of our protocols as plain Rust types, and their canonical JSON form.
//!
//! The types are made at build time from the declarations in `/proto` (see `build/`). Encoding appends to a byte
//! vector and builds nothing in between; decoding reads strictly, or as protobuf's own readers do when they are told
//! to discard what they do not know. There is no binary form here, because none of the protocols uses it, and no I/O.
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
mod codec;
mod error;
mod integer;
mod message;
mod read;
mod skip;
mod structure;
mod text;
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
    pub(crate) use crate::message::{Fields, Message, Name};
    pub(crate) use crate::read::Reader;
    pub(crate) use crate::write;

    include!(concat!(env!("OUT_DIR"), "/messages.rs"));
}

pub use any::{Any, TYPE_URL, Unknown, any};
pub use codec::Enum;
pub use error::{DecodeError, Problem};
pub use generated::{Payload, chat, frontend_tools, rpc, sessionstream, widgets};
pub use message::{Message, Strictness};
pub use structure::{Struct, Value};
pub use text::{Text, around_gap};

/// The declarations as a compiled `FileDescriptorSet`, for programs that read them by reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
