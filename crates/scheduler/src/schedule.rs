//! One schedule: its call, its times and its owner.

use pinion_access::{Principal, Scope};
use serde::{Deserialize, Serialize};

use crate::ALIAS;

/// A scheduled call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Schedule {
    pub id: String,
    pub clip: String,
    pub command: String,
    /// The cron line.
    pub cron: String,
    /// The input as JSON text; empty for none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub input: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    pub enabled: bool,
    /// The scope of the user who added it; `None` for the owner of the hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}

impl Schedule {
    /// Returns the id of a schedule that a clip declares.
    pub fn declared_id(alias: &str, command: &str) -> String {
        format!("clip:{alias}:{command}")
    }

    /// Reports whether a clip declared it.
    pub fn is_declared(&self) -> bool {
        self.id.starts_with("clip:")
    }

    /// Reports whether `caller` may see it. Schedules that clips declare are as visible as their
    /// clip, which the hub decides.
    pub fn belongs_to(&self, caller: &Principal) -> bool {
        match caller {
            Principal::Super => true,
            Principal::Hub { scope, .. } => self.owner.as_deref() == Some(scope.as_str()),
            Principal::Clip { owner, .. } => {
                self.owner.as_deref() == owner.as_ref().map(Scope::as_str)
            }
            Principal::Metrics | Principal::Guest | Principal::Anonymous => false,
        }
    }

    /// Returns the principal of the scheduled call.
    pub fn caller(&self) -> Principal {
        match self.owner.as_deref().map(str::parse) {
            None if self.is_declared() => Principal::Clip {
                alias: self.clip.as_str().into(),
                owner: None,
            },
            None => Principal::Super,
            Some(Ok(scope)) => Principal::Clip {
                alias: ALIAS.into(),
                owner: Some(scope),
            },
            // A scope that cannot be parsed sees nothing.
            Some(Err(_)) => Principal::Anonymous,
        }
    }
}

/// Returns the owner of schedules that `caller` adds; `None` if it may not add any.
pub(crate) fn owner_of(caller: &Principal) -> Option<Option<String>> {
    let name = |scope: &Scope| scope.as_str().to_owned();
    match caller {
        Principal::Super => Some(None),
        Principal::Hub { scope, .. } => Some(Some(name(scope))),
        Principal::Clip { owner, .. } => owner.as_ref().map(|scope| Some(name(scope))),
        Principal::Metrics | Principal::Guest | Principal::Anonymous => None,
    }
}
