//! Settings as they were written: nested members that merge, with keys that are never shown.

use std::fmt;

use serde_json::{Map, Value};

/// The replacement of a secret.
pub(crate) const MASKED: &str = "***";

/// Nested members of a document. They may hold keys, which printing masks.
#[derive(Clone, Default, PartialEq)]
pub struct Tree(Map<String, Value>);

impl Tree {
    pub(crate) fn new(members: Map<String, Value>) -> Self {
        Self(members)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the value at a path. It may be a key; do not print it.
    pub fn get(&self, path: &[&str]) -> Option<&Value> {
        let (last, parents) = path.split_last()?;
        let mut members = &self.0;
        for parent in parents {
            members = members.get(*parent)?.as_object()?;
        }
        members.get(*last).filter(|value| !value.is_null())
    }

    pub(crate) fn set(&mut self, path: &[&str], value: Value) {
        let Some((last, parents)) = path.split_last() else {
            return;
        };
        let mut members = &mut self.0;
        for parent in parents {
            let inner = members
                .entry((*parent).to_owned())
                .or_insert_with(|| Value::Object(Map::new()));
            if !inner.is_object() {
                *inner = Value::Object(Map::new());
            }
            match inner {
                Value::Object(inner) => members = inner,
                _ => return,
            }
        }
        members.insert((*last).to_owned(), value);
    }

    /// Merges `over` onto this tree: mappings are merged, other values, lists too, are replaced.
    /// The prices of a model belong together and are replaced as a whole.
    pub fn overlay(&mut self, over: &Self) {
        merge(&mut self.0, &over.0, &mut Vec::new());
    }

    /// Returns every value that is not a mapping, with its path, in order.
    pub fn leaves(&self) -> Vec<(Vec<String>, &Value)> {
        let mut leaves = Vec::new();
        collect(&self.0, &mut Vec::new(), &mut leaves);
        leaves
    }

    /// Returns the tree with keys masked.
    pub fn masked(&self) -> Value {
        let mut value = Value::Object(self.0.clone());
        mask(&mut value);
        value
    }

    /// Returns the tree with its keys; never print it.
    pub(crate) fn to_value(&self) -> Value {
        Value::Object(self.0.clone())
    }
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.masked())
    }
}

fn merge<'a>(below: &mut Map<String, Value>, over: &'a Map<String, Value>, at: &mut Vec<&'a str>) {
    for (name, value) in over {
        at.push(name);
        let whole = matches!(at.as_slice(), ["model_info", "cost"]);
        match (below.get_mut(name), value) {
            (Some(Value::Object(inner)), Value::Object(over)) if !whole => merge(inner, over, at),
            _ => {
                below.insert(name.clone(), value.clone());
            }
        }
        at.pop();
    }
}

fn collect<'a>(
    members: &'a Map<String, Value>,
    at: &mut Vec<String>,
    leaves: &mut Vec<(Vec<String>, &'a Value)>,
) {
    for (name, value) in members {
        at.push(name.clone());
        match value {
            Value::Object(inner) => collect(inner, at, leaves),
            value => leaves.push((at.clone(), value)),
        }
        at.pop();
    }
}

/// Masks values with secret names, and the part of a URL before its `@`.
pub(crate) fn mask(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                if is_secret_name(name) {
                    mask_all(value)
                } else {
                    mask(value)
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(mask),
        Value::String(text) => {
            if let Some(masked) = without_user(text) {
                *text = masked;
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('-', "_");
    const NAMES: [&str; 6] = [
        "api_key",
        "api_keys",
        "token",
        "secret",
        "password",
        "authorization",
    ];
    NAMES
        .iter()
        .any(|secret| name == *secret || name.ends_with(&format!("_{secret}")))
}

fn mask_all(value: &mut Value) {
    match value {
        Value::Object(members) => members.values_mut().for_each(mask_all),
        Value::Array(items) => items.iter_mut().for_each(mask_all),
        Value::Null => {}
        Value::String(text) if text.is_empty() => {}
        other => *other = MASKED.into(),
    }
}

/// Returns the URL without user and password; `None` if it has none.
pub(crate) fn without_user(text: &str) -> Option<String> {
    let (scheme, rest) = text.split_once("://")?;
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    let (user, _) = authority.rsplit_once('@')?;
    Some(format!("{scheme}://{MASKED}@{}", &rest[user.len() + 1..]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    pub(crate) fn tree(value: Value) -> Tree {
        match value {
            Value::Object(members) => Tree::new(members),
            _ => Tree::default(),
        }
    }

    #[test]
    fn mappings_merge_and_lists_and_prices_are_replaced() {
        let mut below = tree(json!({
            "chat": {"stop": ["a", "b"], "engine": "x"},
            "model_info": {"id": "m", "cost": {"input": 1, "output": 2}},
        }));
        below.overlay(&tree(json!({
            "chat": {"stop": ["c"], "top_p": 0.5},
            "model_info": {"cost": {"input": 3}},
        })));
        assert_eq!(
            below.to_value(),
            json!({
                "chat": {"stop": ["c"], "engine": "x", "top_p": 0.5},
                "model_info": {"id": "m", "cost": {"input": 3}},
            })
        );
    }

    #[test]
    fn keys_are_never_shown() {
        let planted = tree(json!({
            "api": {"api_keys": {"openai-api-key": "sk-planted", "x": 5}, "base_urls": {"a-base-url": "https://me:planted@host/v1"}},
            "client": {"proxy_url": "http://planted@proxy:1"},
            "embeddings": {"api_key": "planted", "deep": [{"voyage-api-key": "planted"}]},
            "pinocchio.oauth@v1": {"access_token": "planted", "refresh_token": "planted", "expires_at": "2030"},
        }));
        let shown = format!("{planted:?}");
        assert!(!shown.contains("planted"), "{shown}");
        assert_eq!(
            planted.masked()["api"]["base_urls"]["a-base-url"],
            json!("https://***@host/v1")
        );
        assert_eq!(planted.masked()["api"]["api_keys"]["x"], json!("***"));
    }

    #[test]
    fn a_path_is_set_and_found() {
        let mut made = Tree::default();
        made.set(&["api", "api_keys", "openai-api-key"], json!("k"));
        assert_eq!(
            made.get(&["api", "api_keys", "openai-api-key"]),
            Some(&json!("k"))
        );
        assert_eq!(made.get(&["api", "nothing"]), None);
        assert_eq!(made.leaves().len(), 1);
    }
}
