//! Clips as tools of an agent: every command of a clip is a tool.
//!
//! The hub defines the clips and decides who may call them. A tool calls its clip through the [`ClipCaller`] that it was
//! built with: over the wire to a hub ([`of_hub`]), or directly through the hub of this process ([`offers`],
//! [`LocalClips`]).

mod local;
mod names;
mod output;
mod remote;
mod schema;
mod tool;

use std::sync::Arc;

use bytes::Bytes;
use pinion_clip::manifest::Command;
use pinion_hub::Answers;
use pinion_tools::Tool;

pub use self::local::{LocalClips, offers};
pub use self::remote::{HubAddress, of_hub};

/// Maximum number of clip tools: some providers accept at most 128 tools, and other tools need room.
pub const MAX_CLIP_TOOLS: usize = 100;

/// The connection between tools and their clips.
pub trait ClipCaller: Send + Sync {
    fn call(&self, clip: &str, command: &str, input: Bytes) -> Answers;
}

/// A clip that a model may use.
#[derive(Debug)]
pub struct ClipOffer {
    pub alias: String,
    /// The clip's commands. A clip without a list accepts every command.
    pub commands: Vec<Command>,
}

impl ClipOffer {
    /// Returns the number of tools that the clip needs; at least one.
    fn tools(&self) -> usize {
        self.commands.len().max(1)
    }
}

/// Returns the commands of these clips as tools.
pub fn tools(offers: Vec<ClipOffer>, caller: &Arc<dyn ClipCaller>) -> Vec<Arc<dyn Tool>> {
    let mut names = names::Names::default();
    let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
    for ClipOffer { alias, commands } in offers {
        let alias: Arc<str> = alias.into();
        if commands.is_empty() {
            let name = names.give(&alias, "call");
            let tool = tool::ClipTool::any(name, &alias, Arc::clone(caller));
            tools.push(Arc::new(tool));
        }
        for command in commands {
            let name = names.give(&alias, &command.name);
            let tool = tool::ClipTool::new(name, &alias, command, Arc::clone(caller));
            tools.push(Arc::new(tool));
        }
    }
    tools
}

/// Returns the clips that fit into `MAX_CLIP_TOOLS`, and the aliases of the others.
pub fn within_limit(offers: Vec<ClipOffer>) -> (Vec<ClipOffer>, Vec<String>) {
    let mut count = 0;
    let mut left_out = Vec::new();
    let mut kept = Vec::new();
    for offer in offers {
        if count + offer.tools() > MAX_CLIP_TOOLS {
            left_out.push(offer.alias);
        } else {
            count += offer.tools();
            kept.push(offer);
        }
    }
    (kept, left_out)
}
