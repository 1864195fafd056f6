//! The session tree as nested JSON.
//!
//! A conversation is a chain of entries, so the tree is as deep as the session is long. It is printed with a stack of
//! open nodes instead of recursion.

use std::collections::{HashMap, HashSet};

use pinion_jsonl::json;
use pinion_session::{Entry, Store};
use serde_json::value::RawValue;

/// Limit on the damaged entries in a row that are skipped to find the parent of the entry after them.
const DAMAGED_IN_A_ROW: usize = 1000;

/// One step of the printing.
enum Step<'a> {
    Open {
        entry: &'a Entry,
        line: Box<RawValue>,
        first: bool,
    },
    Close(&'a Entry),
}

/// An entry with its line.
type Shown<'a> = (&'a Entry, Box<RawValue>);

/// Prints `[{"entry":…,"children":[…],"label":…,"labelTimestamp":…}]`, the roots with everything below them.
///
/// A damaged entry is left out; its children become children of its parent.
pub(crate) fn print(store: &Store) -> Box<RawValue> {
    let shown: Vec<Shown<'_>> = store
        .entries()
        .filter_map(|entry| Some((entry, entry.shown()?)))
        .collect();
    let known: HashSet<&str> = shown.iter().map(|(entry, _)| entry.id().as_str()).collect();
    let mut children: HashMap<Option<&str>, Vec<Shown<'_>>> = HashMap::new();
    for (entry, line) in shown {
        let parent = parent(store, entry, &known);
        children.entry(parent).or_default().push((entry, line));
    }
    let mut out = b"[".to_vec();
    let mut steps = opened(children.remove(&None));
    while let Some(step) = steps.pop() {
        match step {
            Step::Open { entry, line, first } => {
                if !first {
                    out.push(b',');
                }
                out.extend_from_slice(b"{\"entry\":");
                out.extend_from_slice(line.get().as_bytes());
                out.extend_from_slice(b",\"children\":[");
                steps.push(Step::Close(entry));
                steps.extend(opened(children.remove(&Some(entry.id().as_str()))));
            }
            Step::Close(entry) => {
                out.push(b']');
                if let Some(label) = store.label(entry.id()) {
                    out.extend_from_slice(b",\"label\":");
                    json::append(&mut out, label);
                    if let Some(at) = store.label_time(entry.id()) {
                        out.extend_from_slice(b",\"labelTimestamp\":");
                        json::append(&mut out, &at);
                    }
                }
                out.push(b'}');
            }
        }
    }
    out.push(b']');
    let text = String::from_utf8(out).unwrap_or_default();
    RawValue::from_string(text).unwrap_or_default()
}

/// Returns the id of the nearest ancestor of `entry` that is in `known`.
fn parent<'a>(store: &'a Store, entry: &'a Entry, known: &HashSet<&str>) -> Option<&'a str> {
    std::iter::successors(entry.parent_id(), |id| store.entry(id)?.parent_id())
        .take(DAMAGED_IN_A_ROW)
        .map(|id| id.as_str())
        .find(|id| known.contains(id))
}

/// Returns the steps that print `entries` as a stack with the first entry on top.
fn opened(entries: Option<Vec<Shown<'_>>>) -> Vec<Step<'_>> {
    let entries = entries.unwrap_or_default().into_iter().enumerate();
    let mut steps: Vec<Step<'_>> = entries
        .map(|(at, (entry, line))| Step::Open {
            entry,
            line,
            first: at == 0,
        })
        .collect();
    steps.reverse();
    steps
}
