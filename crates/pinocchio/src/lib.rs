//! Front: Pinocchio's chat protocol over the engine.
//!
//! Three pure steps: [`Translator`] turns the engine's events of a run into backend events of a chat, [`SessionStream`]
//! numbers them and derives the entities, and [`Front`] writes both as frames, or [`TextPrinter`] as text, JSON or
//! YAML. For input, [`decode`] parses a request and [`Binding`] decides whether it is accepted. The crate opens no
//! files, sockets or processes: the caller passes in stores and descriptors.

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
mod requests;
mod run_end;
mod stream;
mod text;
mod timeline;
mod timeline_messages;
mod translate;
mod turns;

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
pub use requests::{
    Activity, Binding, DoneStatus, ErrorCode, LINE_LIMIT, LINE_TOO_LONG, Refusal, Request,
    RequestKind, decode,
};
pub use run_end::{RunEnd, RunEndListener, RunEndTracker};
pub use stream::SessionStream;
pub use text::{Metadata, TextFormat, TextPrinter};
pub use timeline::{ShownEntity, Timeline};
pub use timeline_messages::timeline_messages;
pub use translate::{RunStart, Translator};
pub use turns::{
    Produced, Seed, TurnContext, context, displayed_prompt, final_turn, messages, seed_turn,
    with_prompt, with_prompt_and_images,
};
