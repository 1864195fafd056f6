//! Front: Pinocchio's chat protocol over the engine.
//!
//! Three pure steps: [`Translator`] turns the engine's events of a run into backend events of a chat, [`SessionStream`]
//! numbers them and keeps the entities that follow from them, and [`Front`] prints both as frames, or
//! [`TextPrinter`] as text, JSON or YAML. On the way in, [`decode`] reads a request and [`Binding`] says
//! whether it may be served. No files, no sockets, no processes: stores and descriptors are handed in.

mod events;
mod family;
mod frames;
mod front;
mod ids;
mod listener;
mod message;
mod outgoing;
mod patch;
mod plugins;
mod recall;
mod requests;
mod stream;
mod text;
mod timeline;
mod translate;
mod turns;
mod verdict;

pub(crate) mod pb {
    pub use pinion_proto::Text;
    pub use pinion_proto::chat::*;
    pub use pinion_proto::frontend_tools::*;
    pub use pinion_proto::widgets::*;
}

pub use events::ChatEvent;
pub use frames::{Address, EventFrame, Frames};
pub use front::{Front, FrontOptions};
pub use ids::{is_usable_root, new_id, new_root};
pub use listener::ChatListener;
pub use message::Undecodable;
pub use outgoing::{ActiveRun, Closing, Control, Out, Surface, Terminal};
pub use patch::{Patch, PatchKind, PatchMode, PatchStream, SegmentFacts};
pub use pinion_proto::Text;
pub use recall::recalled;
pub use requests::{
    Activity, Binding, Code, DoneStatus, LINE_LIMIT, LINE_TOO_LONG, Refusal, Request, RequestKind,
    decode,
};
pub use stream::SessionStream;
pub use text::{Metadata, TextFormat, TextPrinter};
pub use timeline::{Shown, Timeline};
pub use translate::{RunStart, Translator};
pub use turns::{
    Context, Produced, Seed, context, displayed_prompt, final_turn, messages, seed_turn,
    with_prompt, with_prompt_and_images,
};
pub use verdict::{Judge, RunEnd, Verdict};
