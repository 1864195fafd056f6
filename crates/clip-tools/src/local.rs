//! Calls of clips directly through the hub of this process, with the permissions of the agent's caller.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use pinion_access::Principal;
use pinion_clip::CallError;
use pinion_hub::{Answers, Hub, HubCall, failed};
use pinion_status::{Code, Failure};

use super::{ClipCaller, ClipOffer};

/// Calls clips on behalf of a caller.
#[derive(Debug)]
pub struct LocalClips {
    hub: Weak<Hub>,
    caller: Principal,
    /// The clips that may be called; `None` for all that the caller sees.
    only: Option<Vec<String>>,
}

impl LocalClips {
    pub fn new(hub: Weak<Hub>, caller: Principal, only: Option<Vec<String>>) -> Self {
        Self { hub, caller, only }
    }
}

impl ClipCaller for LocalClips {
    fn call(&self, clip: &str, command: &str, input: Bytes) -> Answers {
        let refused = |failure| failed(CallError::Unanswered(failure));
        let Some(hub) = self.hub.upgrade() else {
            return refused(Failure::new(Code::Unavailable, "the hub is shutting down"));
        };
        let allowed = |only: &Vec<String>| only.iter().any(|alias| alias == clip);
        if !self.only.as_ref().is_none_or(allowed) {
            return refused(Failure::no_clip(clip));
        }
        hub.invoke(clip, HubCall::new(self.caller.clone(), command, input))
    }
}

/// Returns the clips that `caller` sees and `wanted` names by alias or package; all but `own` if `wanted` is empty.
/// Clips in `first` come first.
pub fn offers(
    hub: &Arc<Hub>,
    caller: &Principal,
    own: &str,
    wanted: &[String],
    first: &[String],
) -> Vec<ClipOffer> {
    let mut found = Vec::new();
    for route in hub.visible(caller) {
        let manifest = route.endpoint.snapshot().manifest;
        let is = |names: &[String]| {
            let short = manifest.package.rsplit('/').next();
            let mut names = names.iter().map(|name| name.trim());
            names.any(|name| name == route.alias || name == manifest.package || Some(name) == short)
        };
        let is_wanted = if wanted.is_empty() {
            route.alias != own
        } else {
            is(wanted)
        };
        if is_wanted {
            let offer = ClipOffer {
                alias: route.alias.clone(),
                commands: manifest.commands.clone(),
            };
            found.push((!is(first), offer));
        }
    }
    found.sort_by_key(|(later, _)| *later);
    found.into_iter().map(|(_, offer)| offer).collect()
}
