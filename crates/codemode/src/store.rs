//! Values that scripts keep in the session, as `custom` entries of the type `codemode-store` on the current branch.

use std::collections::BTreeMap;

use pinion_agent::SessionApi;
use pinion_session::Entry;
use serde_json::{Map, Value, json};

/// The type of the entries.
const ENTRY_TYPE: &str = "codemode-store";
/// The longest value, in characters of JSON.
const MAX_VALUE_LENGTH: usize = 262_144;
/// The longest values together, in characters of JSON.
const MAX_STORE_LENGTH: usize = 1_048_576;

/// The values of one script. Its changes are saved when it has completed.
pub(crate) struct Store {
    session: Option<SessionApi>,
    /// JSON texts by key; read from the session on first use.
    values: Option<BTreeMap<String, String>>,
    changes: BTreeMap<String, Option<String>>,
}

impl Store {
    pub fn new(session: Option<SessionApi>) -> Self {
        Self {
            session,
            values: None,
            changes: BTreeMap::new(),
        }
    }

    /// Returns a value as JSON. Blocks on the session when it is called first.
    pub fn get(&mut self, key: &str) -> Option<String> {
        self.values().get(key).cloned()
    }

    /// Sets a value, or removes it.
    pub fn set(&mut self, key: String, json: Option<String>) -> Result<(), String> {
        let length = json.as_ref().map_or(0, String::len);
        if length > MAX_VALUE_LENGTH {
            return Err(format!(
                "store(): a value may have at most {MAX_VALUE_LENGTH} characters of JSON"
            ));
        }
        let values = self.values();
        let others = values.iter().filter(|(known, _)| **known != key);
        let total: usize = others.map(|(key, json)| key.len() + json.len()).sum();
        if json.is_some() && total + key.len() + length > MAX_STORE_LENGTH {
            return Err(format!(
                "store(): all values may have at most {MAX_STORE_LENGTH} characters of JSON"
            ));
        }
        match &json {
            Some(json) => values.insert(key.clone(), json.clone()),
            None => values.remove(&key),
        };
        self.changes.insert(key, json);
        Ok(())
    }

    /// Saves the changes in the session. Blocks on it.
    pub fn save(&mut self) -> Result<(), String> {
        let changes = std::mem::take(&mut self.changes);
        let Some(session) = self.session.as_ref().filter(|_| !changes.is_empty()) else {
            return Ok(());
        };
        let mut set = Map::new();
        let mut delete = Vec::new();
        for (key, json) in changes {
            match json.and_then(|json| serde_json::from_str(&json).ok()) {
                Some(value) => drop(set.insert(key, value)),
                None => delete.push(key),
            }
        }
        let data = json!({"set": set, "delete": delete});
        let saved = session.append_custom(ENTRY_TYPE.to_owned(), Some(data));
        let saved = saved.map(drop);
        saved.map_err(|error| format!("Error: the stored values could not be saved: {error}"))
    }

    fn values(&mut self) -> &mut BTreeMap<String, String> {
        let session = &self.session;
        self.values.get_or_insert_with(|| {
            let entries = session.as_ref().and_then(|session| {
                let branch = session.read(|store| {
                    let entries = store.path().into_iter();
                    entries.filter_map(Entry::value).collect::<Vec<_>>()
                });
                branch.ok()
            });
            replayed(&entries.unwrap_or_default())
        })
    }
}

/// Applies the entries of a branch in their order.
fn replayed(entries: &[Value]) -> BTreeMap<String, String> {
    let mut values = BTreeMap::new();
    let stores = entries
        .iter()
        .filter(|entry| entry["type"] == "custom" && entry["customType"] == ENTRY_TYPE);
    for entry in stores {
        for key in entry["data"]["delete"].as_array().into_iter().flatten() {
            values.remove(key.as_str().unwrap_or_default());
        }
        for (key, value) in entry["data"]["set"].as_object().into_iter().flatten() {
            values.insert(key.clone(), value.to_string());
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_applied_in_order() {
        let entry = |data: Value| json!({"type": "custom", "customType": ENTRY_TYPE, "data": data});
        let entries = [
            entry(json!({"set": {"a": 1, "b": [2]}, "delete": []})),
            json!({"type": "custom", "customType": "other", "data": {"set": {"c": 1}}}),
            entry(json!({"set": {"b": "x"}, "delete": ["a"]})),
            entry(json!(5)),
        ];
        let values = replayed(&entries);
        let expected = BTreeMap::from([("b".to_owned(), "\"x\"".to_owned())]);
        assert_eq!(values, expected);
    }

    #[test]
    fn values_are_bounded() {
        let mut store = Store::new(None);
        store.set("a".into(), Some("1".into())).unwrap();
        assert_eq!(store.get("a").as_deref(), Some("1"));
        store.set("a".into(), None).unwrap();
        assert_eq!(store.get("a"), None);
        let large = "9".repeat(MAX_VALUE_LENGTH);
        for key in ["1", "2", "3"] {
            store.set(key.into(), Some(large.clone())).unwrap();
        }
        assert!(store.set("4".into(), Some(large.clone())).is_err());
        assert!(store.set("5".into(), Some(large + "9")).is_err());
        store.save().unwrap();
    }
}
