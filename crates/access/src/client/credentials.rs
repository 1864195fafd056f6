//! `credentials.json`: tokens for registries.

use std::collections::BTreeMap;
use std::path::Path;

use pinion_status::Failure;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{same_address, write};
use crate::Token;
use crate::disk::{self, Lock};

/// The name of the file under the root directory.
const CREDENTIALS: &str = "credentials.json";

/// The user's accounts at registries.
#[derive(Debug, Clone, Default)]
pub struct Credentials {
    registries: BTreeMap<String, Credential>,
    other: Map<String, Value>,
}

/// The user's account at one registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// The token to send.
    pub token: Token,
    /// The name of the account.
    pub username: String,
}

#[derive(Serialize, Deserialize)]
struct StoredFile {
    #[serde(default)]
    registries: BTreeMap<String, StoredCredential>,
    #[serde(flatten)]
    other: Map<String, Value>,
}

#[derive(Serialize, Deserialize)]
struct StoredCredential {
    token: String,
    #[serde(default)]
    username: String,
}

impl Credentials {
    /// Reads `credentials.json` under `root`; empty if there is no such file.
    pub fn load(root: &Path) -> Result<Self, Failure> {
        let path = root.join(CREDENTIALS);
        let Some(content) = disk::read_private(&path)? else {
            return Ok(Self::default());
        };
        let stored: StoredFile =
            serde_json::from_slice(&content.bytes).map_err(|error| disk::damaged(&path, error))?;
        let credentials = stored
            .registries
            .into_iter()
            .filter_map(|(registry, stored)| {
                let token = Token::given(&stored.token)?;
                let username = stored.username;
                Some((registry, Credential { token, username }))
            });
        Ok(Self {
            registries: credentials.collect(),
            other: stored.other,
        })
    }

    /// Returns the account at `registry`.
    pub fn get(&self, registry: &str) -> Option<&Credential> {
        let mut known = self.registries.iter();
        let found = known.find(|(address, _)| same_address(address, registry));
        found.map(|(_, credential)| credential)
    }

    /// Returns the registries with an account.
    pub fn registries(&self) -> impl Iterator<Item = &str> {
        self.registries.keys().map(String::as_str)
    }

    /// Stores the account at `registry` in the file under `root`, or removes it.
    pub fn set(root: &Path, registry: &str, credential: Option<Credential>) -> Result<(), Failure> {
        let path = root.join(CREDENTIALS);
        let _lock = Lock::of(&path)?;
        let mut known = Self::load(root)?;
        known
            .registries
            .retain(|address, _| !same_address(address, registry));
        if let Some(credential) = credential {
            let address = registry.trim().trim_end_matches('/').to_owned();
            known.registries.insert(address, credential);
        }
        let registries = known.registries.into_iter().map(|(registry, credential)| {
            let token = credential.token.reveal().to_owned();
            let username = credential.username;
            (registry, StoredCredential { token, username })
        });
        let stored = StoredFile {
            registries: registries.collect(),
            other: known.other,
        };
        write(&path, &stored)
    }
}
