//! Clips as tools of an agent: every command of a clip is a tool.
//!
//! What a clip is and who may call it is the hub's business. A call goes the [`Way`] it was given: over the wire to a
//! hub ([`of_hub`]), or straight through the hub this program is ([`offers`], [`Inside`]).

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

/// The most commands a model is told of: some providers take no more tools than 128, and other tools want room.
pub(crate) const MOST_TOOLS: usize = 100;

/// What the command line says about clips.
#[derive(Debug, Default, Clone)]
pub(crate) struct ClipFlags {
    /// The clips whose commands are tools; `None` is all of them, if a hub is named.
    pub clips: Option<Vec<String>>,
    /// The address of the hub.
    pub hub: Option<String>,
}

impl ClipFlags {
    /// Whether any clip is wanted.
    pub fn is_given(&self) -> bool {
        self.hub.is_some() || self.clips.is_some()
    }
}

/// The way to clips.
pub(crate) trait Way: Send + Sync {
    /// Calls a command; dropping the answer cancels the call.
    fn call(&self, clip: &str, command: &str, input: Bytes) -> Answers;
}

/// A clip a model may use.
#[derive(Debug)]
pub(crate) struct Offer {
    pub alias: String,
    /// What it can do; without any it takes every command.
    pub commands: Vec<Command>,
}

impl Offer {
    /// How many tools it makes.
    fn tools(&self) -> usize {
        self.commands.len().max(1)
    }
}

/// The commands of these clips as tools.
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

/// As many of these clips as models can be told of, and the names of those that are left out.
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
