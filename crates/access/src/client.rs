//! The client side: finds the addresses of hubs and registries, and the tokens for calls to them.
//!
//! Files are read only if no other user can read them, and a token is sent only to the hub or registry it belongs to.

mod addresses;
mod choice;
mod credentials;

use std::path::Path;

use pinion_status::{Code, Failure};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::disk::{self, Lock};
use crate::{Scope, Token};

pub use addresses::{HUB_VARIABLE, REGISTRY_VARIABLE, chosen_hub, chosen_registry};
pub use choice::{CLI_VARIABLE, ChosenToken, DAEMON_VARIABLE, Source, TokenQuery};
pub use credentials::{Credential, Credentials};

/// The name of the file under the root directory.
pub const CLIENT: &str = "client.json";

/// `client.json`: the hub and registry to use, and the user's account.
#[derive(Debug, Clone, Default)]
pub struct ClientConfig {
    /// The registry that packages come from.
    pub registry: Option<String>,
    /// The URL of the hub to call.
    pub hub: Option<String>,
    /// The token for that hub.
    pub hub_token: Option<Token>,
    /// The account that the token belongs to.
    pub user: Option<User>,
    other: Map<String, Value>,
}

/// An account on a hub.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// The name of the account.
    pub username: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
}

#[derive(Serialize, Deserialize)]
struct StoredFile {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    registry: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hub: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hub_token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    user: Option<User>,
    #[serde(flatten)]
    other: Map<String, Value>,
}

impl ClientConfig {
    /// Reads `client.json` under `root`; empty if there is no such file.
    pub fn load(root: &Path) -> Result<Self, Failure> {
        let path = root.join(CLIENT);
        let Some(content) = disk::read(&path)? else {
            return Ok(Self::default());
        };
        let stored: StoredFile =
            serde_json::from_slice(&content.bytes).map_err(|error| disk::damaged(&path, error))?;
        if stored.hub_token.is_some() {
            content.must_be_private(&path)?;
        }
        let filled = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
        Ok(Self {
            registry: filled(stored.registry),
            hub: filled(stored.hub),
            hub_token: stored.hub_token.as_deref().and_then(Token::given),
            user: stored.user,
            other: stored.other,
        })
    }

    /// Changes `client.json` under `root` while it is locked. Members of other programs stay.
    pub fn update(root: &Path, change: impl FnOnce(&mut Self)) -> Result<(), Failure> {
        let path = root.join(CLIENT);
        let _lock = Lock::of(&path)?;
        let mut config = Self::load(root)?;
        change(&mut config);
        let stored = StoredFile {
            registry: config.registry,
            hub: config.hub,
            hub_token: config.hub_token.map(|token| token.reveal().to_owned()),
            user: config.user,
            other: config.other,
        };
        write(&path, &stored)
    }
}

fn write(path: &Path, content: &impl Serialize) -> Result<(), Failure> {
    let mut bytes = serde_json::to_vec_pretty(content).map_err(|error| {
        let message = format!("{} cannot be written: {error}", path.display());
        Failure::new(Code::Internal, message)
    })?;
    bytes.push(b'\n');
    disk::replace(path, &bytes)?;
    Ok(())
}

/// Reports whether two URLs name the same server.
fn same_address(one: &str, other: &str) -> bool {
    let plain = |address: &str| address.trim().trim_end_matches('/').to_ascii_lowercase();
    plain(one) == plain(other)
}
