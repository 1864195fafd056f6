//! The session tree as nested JSON.
//!
//! A conversation is a chain as long as it lasted, so the tree is as deep as the session is long:
//! it is printed with a list of open nodes instead of by recursion.

use std::collections::{HashMap, HashSet};

use pinion_jsonl::json;
use pinion_session::{Entry, Store};
use serde_json::value::RawValue;

/// What is still to be printed.
enum Step<'a> {
    Open { entry: &'a Entry, first: bool },
    Close(&'a Entry),
}

/// `[{"entry":…,"children":[…],"label":…}]`: the roots with everything below them.
pub(crate) fn print(store: &Store) -> Box<RawValue> {
    let entries: Vec<&Entry> = store.entries().collect();
    let known: HashSet<&str> = entries.iter().map(|entry| entry.id().as_str()).collect();
    let mut children: HashMap<Option<&str>, Vec<&Entry>> = HashMap::new();
    for entry in &entries {
        let parent = entry.parent_id().map(|id| id.as_str());
        let parent = parent.filter(|id| known.contains(id));
        children.entry(parent).or_default().push(entry);
    }
    let mut out = b"[".to_vec();
    let mut steps = opened(children.remove(&None));
    while let Some(step) = steps.pop() {
        match step {
            Step::Open { entry, first } => {
                if !first {
                    out.push(b',');
                }
                out.extend_from_slice(b"{\"entry\":");
                out.extend_from_slice(&entry.json());
                out.extend_from_slice(b",\"children\":[");
                steps.push(Step::Close(entry));
                steps.extend(opened(children.remove(&Some(entry.id().as_str()))));
            }
            Step::Close(entry) => {
                out.push(b']');
                if let Some(label) = store.label(entry.id()) {
                    out.extend_from_slice(b",\"label\":");
                    json::append(&mut out, label);
                }
                out.push(b'}');
            }
        }
    }
    out.push(b']');
    let text = String::from_utf8_lossy(&out).into_owned();
    RawValue::from_string(text).unwrap_or_default()
}

/// The steps that print `entries`, the first one on top.
fn opened(entries: Option<Vec<&Entry>>) -> Vec<Step<'_>> {
    let entries = entries.unwrap_or_default().into_iter().enumerate();
    let mut steps: Vec<Step<'_>> = entries
        .map(|(at, entry)| Step::Open {
            entry,
            first: at == 0,
        })
        .collect();
    steps.reverse();
    steps
}
