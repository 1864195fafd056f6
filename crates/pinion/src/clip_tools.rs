//! Flags that give an agent the commands of clips. The hub and its token are chosen as for the other commands.

use std::sync::Arc;

use pinion_clip_tools::HubAddress;
use pinion_hub_client::HubTarget;
use pinion_tools::Tool;

use crate::failure::Failure;
use crate::hub::{environment, root_dir_named};

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

/// Returns the commands of the clips that the flags name, as tools.
pub(crate) async fn of_hub(flags: &ClipFlags) -> Result<Vec<Arc<dyn Tool>>, Failure> {
    let root = root_dir_named(None)?;
    let target = HubTarget::choose(&root, flags.hub.as_deref(), None, environment)?;
    let hub = HubAddress {
        token_source: target.token_source(&root),
        target,
    };
    let tools = pinion_clip_tools::of_hub(hub, flags.clips.as_deref()).await;
    tools.map_err(Failure::failed)
}
