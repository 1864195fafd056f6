//! Flags that give an agent the commands of clips. The hub and its token are chosen as for the other commands.

use std::sync::Arc;

use pinion_access::client::{CLI_VARIABLE, Source, TokenQuery};
use pinion_clip_tools::HubAddress;
use pinion_tools::Tool;

use crate::failure::Failure;
use crate::hub::seat::{Holder, pid_file};
use crate::hub::{caller, failed, place};

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
    let hub = locate(flags.hub.as_deref())?;
    let tools = pinion_clip_tools::of_hub(&hub, flags.clips.as_deref()).await;
    tools.map_err(|message| Failure::failed(format!("Error: {message}")))
}

/// Returns the hub at `named`, or the hub that commands call.
fn locate(named: Option<&str>) -> Result<HubAddress, Failure> {
    let root = place::named_or_usual(None)?;
    let holder = Holder::at(&pid_file(&root));
    let url = caller::address(named, &root, holder.as_ref())?;
    let wanted = TokenQuery {
        root: &root,
        flag: None,
        variable: CLI_VARIABLE,
        hub: &url,
        local_hub: holder.as_ref().map(|holder| holder.url.as_str()),
    };
    let chosen = wanted.choose(|name| std::env::var(name).ok());
    let chosen = chosen.map_err(failed)?;
    let token_source = match chosen.as_ref().map(|chosen| chosen.source) {
        Some(Source::Variable(name)) => name.to_owned(),
        Some(Source::LocalFile) => root.join("local.token").display().to_string(),
        Some(Source::ClientFile) => root.join("client.json").display().to_string(),
        Some(Source::Flag) | None => "nowhere".to_owned(),
    };
    Ok(HubAddress {
        url,
        token: chosen.map(|chosen| chosen.token.reveal().to_owned()),
        token_source,
    })
}
