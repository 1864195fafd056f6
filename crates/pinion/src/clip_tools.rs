//! Clips as tools of an agent: every command of a clip is a tool.
//!
//! The hub defines the clips and decides who may call them. A call takes the [`Way`] that the tool was built with: over
//! the wire to a hub ([`of_hub`]), or directly through the hub of this process ([`offers`], [`Inside`]).

mod inside;
mod locate;
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

pub(crate) use self::inside::{Inside, offers};
pub(crate) use self::remote::of_hub;

/// Maximum number of clip tools: some providers accept at most 128 tools, and other tools need room.
pub(crate) const MOST_TOOLS: usize = 100;

/// The flags for clips.
#[derive(Debug, Default, Clone)]
pub(crate) struct ClipFlags {
    /// The clips whose commands are tools; with `None`, all clips of `hub`, if that is set.
    pub clips: Option<Vec<String>>,
    /// The address of the hub.
    pub hub: Option<String>,
}

impl ClipFlags {
    /// Reports whether the command line asks for clips.
    pub fn is_given(&self) -> bool {
        self.hub.is_some() || self.clips.is_some()
    }
}

/// A way to call clips.
pub(crate) trait Way: Send + Sync {
    fn call(&self, clip: &str, command: &str, input: Bytes) -> Answers;
}

/// A clip that a model may use.
#[derive(Debug)]
pub(crate) struct Offer {
    pub alias: String,
    /// The clip's commands. A clip without a list accepts every command.
    pub commands: Vec<Command>,
}

impl Offer {
    /// Returns the number of tools that the clip needs; at least one.
    fn tools(&self) -> usize {
        self.commands.len().max(1)
    }
}

/// Returns the commands of these clips as tools.
pub(crate) fn tools(offers: Vec<Offer>, way: &Arc<dyn Way>) -> Vec<Arc<dyn Tool>> {
    let mut names = names::Names::default();
    let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
    for Offer { alias, commands } in offers {
        let alias: Arc<str> = alias.into();
        if commands.is_empty() {
            let name = names.give(&alias, "call");
            let tool = tool::ClipTool::any(name, &alias, Arc::clone(way));
            tools.push(Arc::new(tool));
        }
        for command in commands {
            let name = names.give(&alias, &command.name);
            let tool = tool::ClipTool::new(name, &alias, command, Arc::clone(way));
            tools.push(Arc::new(tool));
        }
    }
    tools
}

/// Returns the clips that fit into `MOST_TOOLS`, and the aliases of the others.
pub(crate) fn within_reason(offers: Vec<Offer>) -> (Vec<Offer>, Vec<String>) {
    let mut count = 0;
    let mut left_out = Vec::new();
    let mut kept = Vec::new();
    for offer in offers {
        if count + offer.tools() > MOST_TOOLS {
            left_out.push(offer.alias);
        } else {
            count += offer.tools();
            kept.push(offer);
        }
    }
    (kept, left_out)
}
