//! The other side: where programs that call hubs and registries find the tokens they show.
//!
//! Files are read only where nobody else can read them, and a token is given only to the hub or registry it is for.

mod choice;
mod credentials;

use std::path::Path;

use pinion_status::{Code, Failure};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::disk::{self, Lock};
use crate::{Scope, Token};

pub use choice::{CLI_VARIABLE, Chosen, DAEMON_VARIABLE, Source, Wanted};
pub use credentials::{Credential, Credentials};

/// The name of the file under the root directory.
pub const CLIENT: &str = "client.json";

/// `client.json`: which hub and registry to use, and as whom.
#[derive(Debug, Clone, Default)]
pub struct ClientConfig {
    /// The registry packages come from.
    pub registry: Option<String>,
    /// The hub to call.
    pub hub: Option<String>,
    /// The token for that hub.
    pub hub_token: Option<Token>,
    /// Who that token is.
    pub user: Option<User>,
    other: Map<String, Value>,
}

/// Who somebody is on a hub.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// The name of the account.
    pub username: String,
    /// Its scope.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
}

#[derive(Serialize, Deserialize)]
struct Stored {
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
    /// What `client.json` under `root` says; nothing if it is not there.
    pub fn load(root: &Path) -> Result<Self, Failure> {
        let path = root.join(CLIENT);
        let Some(content) = disk::read(&path)? else {
            return Ok(Self::default());
        };
        let stored: Stored =
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

    /// Changes `client.json` under `root` while nobody else does. What others keep in it stays.
    pub fn update(root: &Path, change: impl FnOnce(&mut Self)) -> Result<(), Failure> {
        let path = root.join(CLIENT);
        let _lock = Lock::of(&path)?;
        let mut config = Self::load(root)?;
        change(&mut config);
        let stored = Stored {
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

/// Whether two addresses name the same place.
fn same_address(one: &str, other: &str) -> bool {
    let plain = |address: &str| address.trim().trim_end_matches('/').to_ascii_lowercase();
    plain(one) == plain(other)
}
