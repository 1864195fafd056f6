//! The control bucket in memory, as the feed brings it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use pinion_proto::hub::ClipRegistration;

use crate::names::ProcessId;
use crate::store::{Change, KeyState};
use crate::values::{HubValue, Manifest, ProviderValue, RouteValue, Value};

/// A key with its last change.
#[derive(Debug, Clone)]
pub struct Entry {
    pub revision: u64,
    pub state: KeyState,
    pub departure: Option<String>,
}

/// Every key that was seen, marks of removal included.
#[derive(Debug, Default)]
pub struct Mirror {
    entries: BTreeMap<String, Entry>,
    manifests: HashMap<String, Arc<ClipRegistration>>,
}

/// The subject of a change, by the form of its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    Hub(ProcessId),
    Route(String),
    Manifest(String),
    Token(String),
    Other,
}

impl Subject {
    pub fn of(key: &str) -> Self {
        let subject = key.split_once('.').and_then(|(kind, rest)| match kind {
            "hub" => Some(Self::Hub(ProcessId::parse(rest)?)),
            "a" => Some(Self::Route(rest.to_owned())),
            "m" => Some(Self::Manifest(rest.to_owned())),
            "t" => Some(Self::Token(rest.to_owned())),
            _ => None,
        });
        subject.unwrap_or(Self::Other)
    }
}

impl Mirror {
    /// Applies a change. Returns what it is about.
    pub fn apply(&mut self, change: Change) -> Subject {
        let subject = Subject::of(&change.key);
        if let Subject::Manifest(hash) = &subject {
            match &change.state {
                KeyState::Value(value) => {
                    if let Some(manifest) = Manifest::read(value) {
                        self.manifests.insert(hash.clone(), Arc::new(manifest));
                    }
                }
                KeyState::Removed | KeyState::Expired => {
                    self.manifests.remove(hash);
                }
            }
        }
        let state = match (&subject, change.state) {
            // Decoded already; the bytes would be in memory twice.
            (Subject::Manifest(_), KeyState::Value(_)) => KeyState::Value(Bytes::new()),
            (_, state) => state,
        };
        let entry = Entry {
            revision: change.revision,
            state,
            departure: change.departure,
        };
        self.entries.insert(change.key, entry);
        subject
    }

    pub fn clear(&mut self) {
        self.entries.clear();
        self.manifests.clear();
    }

    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries.get(key)
    }

    fn value<T: Value>(&self, key: &str) -> Option<T> {
        match &self.entries.get(key)?.state {
            KeyState::Value(value) => T::read(value),
            KeyState::Removed | KeyState::Expired => None,
        }
    }

    pub fn hub(&self, id: &ProcessId) -> Option<HubValue> {
        self.value(&hub_key(id))
    }

    pub fn route(&self, alias: &str) -> Option<RouteValue> {
        self.value(&route_key(alias))
    }

    pub fn manifest(&self, hash: &str) -> Option<Arc<ClipRegistration>> {
        self.manifests.get(hash).cloned()
    }

    /// Returns the values of all keys that begin with `prefix`, with the rest of each key.
    fn values<T: Value>(&self, prefix: &'static str) -> impl Iterator<Item = (&str, T)> {
        let keys = self.entries.range(prefix.to_owned()..);
        let keys = keys.take_while(move |(key, _)| key.starts_with(prefix));
        keys.filter_map(move |(key, entry)| match &entry.state {
            KeyState::Value(value) => Some((key.strip_prefix(prefix)?, T::read(value)?)),
            KeyState::Removed | KeyState::Expired => None,
        })
    }

    pub fn hubs(&self) -> impl Iterator<Item = (&str, HubValue)> {
        self.values("hub.")
    }

    pub fn routes(&self) -> impl Iterator<Item = (&str, RouteValue)> {
        self.values("a.")
    }

    pub fn providers(&self) -> impl Iterator<Item = (&str, ProviderValue)> {
        self.values("p.")
    }

    /// Returns the records of the tokens of the cluster. Those that cannot be read are left out: they are not accepted.
    pub fn tokens(&self) -> Vec<pinion_access::Record> {
        let keys = self.entries.range("t.".to_owned()..);
        let keys = keys.take_while(|(key, _)| key.starts_with("t."));
        let records = keys.filter_map(|(key, entry)| match &entry.state {
            KeyState::Value(value) => {
                let record = pinion_access::Record::from_shared(value)?;
                (key.strip_prefix("t.") == Some(record.id.as_str())).then_some(record)
            }
            KeyState::Removed | KeyState::Expired => None,
        });
        records.collect()
    }

    /// Returns the aliases of routes whose holder is `hub`.
    pub fn aliases_of(&self, hub: &str) -> Vec<String> {
        let theirs = self.routes().filter(|(_, route)| route.hub == hub);
        theirs.map(|(alias, _)| alias.to_owned()).collect()
    }
}

pub fn hub_key(id: &ProcessId) -> String {
    format!("hub.{id}")
}

pub fn route_key(alias: &str) -> String {
    format!("a.{alias}")
}

pub fn provider_key(name: &str) -> String {
    format!("p.{}", crate::names::hashed(name))
}

pub fn token_key(id: &str) -> String {
    format!("t.{id}")
}

pub fn manifest_key(hash: &str) -> String {
    format!("m.{hash}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(key: &str, revision: u64, state: KeyState) -> Change {
        Change {
            key: key.to_owned(),
            revision,
            state,
            departure: None,
        }
    }

    #[test]
    fn a_removed_key_leaves_its_number() {
        let mut mirror = Mirror::default();
        let value = r#"{"v":1,"hub":"h1","provider":"p","guarded":false,"web":false,"manifest":"x","state":"running","since":0}"#;
        let made = change("a.todo", 4, KeyState::Value(value.into()));
        assert_eq!(mirror.apply(made), Subject::Route("todo".into()));
        assert_eq!(mirror.route("todo").unwrap().hub, "h1");
        assert_eq!(mirror.aliases_of("h1"), ["todo"]);
        mirror.apply(change("a.todo", 5, KeyState::Removed));
        assert_eq!(mirror.route("todo"), None);
        assert_eq!(mirror.entry("a.todo").unwrap().revision, 5);
        assert_eq!(
            mirror.apply(change("x", 6, KeyState::Removed)),
            Subject::Other
        );
        assert_eq!(Subject::of("hub.nonsense"), Subject::Other);
    }
}
