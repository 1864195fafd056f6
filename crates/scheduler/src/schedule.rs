//! One schedule: what is called, when, and for whom.

use pinion_access::{Principal, Scope};
use serde::{Deserialize, Serialize};

use crate::ALIAS;

/// A call by the clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Schedule {
    pub id: String,
    pub clip: String,
    pub command: String,
    /// When.
    pub cron: String,
    /// The input as JSON text; empty for none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub input: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    pub enabled: bool,
    /// Who added it; nobody in particular is who owns the hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}

impl Schedule {
    /// The id of a schedule that a clip declares.
    pub fn declared_id(alias: &str, command: &str) -> String {
        format!("clip:{alias}:{command}")
    }

    /// Whether a clip declared it.
    pub fn is_declared(&self) -> bool {
        self.id.starts_with("clip:")
    }

    /// Whether `caller` may know of it. Those that clips declare are as visible as their clip, which is for the hub to say.
    pub fn belongs_to(&self, caller: &Principal) -> bool {
        match caller {
            Principal::Super => true,
            Principal::Hub { scope, .. } => self.owner.as_deref() == Some(scope.as_str()),
            Principal::Clip { owner, .. } => {
                self.owner.as_deref() == owner.as_ref().map(Scope::as_str)
            }
            Principal::Guest | Principal::Anonymous => false,
        }
    }

    /// Who calls when it is due.
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
            // A scope that cannot be read sees nothing.
            Some(Err(_)) => Principal::Anonymous,
        }
    }
}

/// In whose name `caller` adds a schedule; `None` if it may not.
pub(crate) fn owner_of(caller: &Principal) -> Option<Option<String>> {
    let name = |scope: &Scope| scope.as_str().to_owned();
    match caller {
        Principal::Super => Some(None),
        Principal::Hub { scope, .. } => Some(Some(name(scope))),
        Principal::Clip { owner, .. } => owner.as_ref().map(|scope| Some(name(scope))),
        Principal::Guest | Principal::Anonymous => None,
    }
}
