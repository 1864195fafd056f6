//! The data of a conversation: messages and their blocks, usage and cost, models, tools.
//!
//! Plain data whose JSON form is pi's: member names and member order are those of pi's session
//! files and events. The crate has no I/O, no protocol and no behaviour beyond small arithmetic and
//! the masking of keys.

#![warn(missing_docs)]

mod image;
mod mask;
mod message;
mod model;
pub mod shape;
mod system;
mod thinking;
mod usage;

pub use image::image_type;
pub use mask::{Mask, MaskStream, is_secret_variable, mask_headers};
pub use message::{
    AssistantMessage, BashExecutionMessage, Block, BranchSummaryMessage, CompactionSummaryMessage,
    Content, CustomMessage, Message, NestedCall, NestedCallStatus, NestedCalls, StopReason,
    TextBlock, ThinkingBlock, ToolCall, ToolResultMessage, UserMessage,
};
pub use model::{CostTier, Model, ModelCost, ToolSpec};
pub use system::{DeclaredTool, RemovedTool, SystemMessage};
pub use thinking::{ThinkingLevel, UnknownThinkingLevel};
pub use usage::{Cost, Usage};

/// A secret; its value is never printed or serialised.
pub type Secret = secrecy::SecretString;

/// Milliseconds since the Unix epoch, as pi writes message timestamps.
pub type Millis = i64;

/// Returns the current time in milliseconds since the Unix epoch.
pub fn now_millis() -> Millis {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |elapsed| elapsed.as_millis() as Millis)
}
