//! The files that the summarised part read and changed.

use std::collections::BTreeSet;
use std::sync::Arc;

use pinion_message::Message;
use serde_json::{Value, json};

/// Paths as the model gave them.
#[derive(Debug, Default)]
pub(super) struct TouchedFiles {
    read: BTreeSet<String>,
    written: BTreeSet<String>,
    edited: BTreeSet<String>,
}

impl TouchedFiles {
    /// Adds the files named in the calls of `messages`.
    pub fn add_messages(&mut self, messages: &[Arc<Message>]) {
        let answers = messages.iter().filter_map(|message| message.as_assistant());
        for call in answers.flat_map(|answer| answer.tool_calls()) {
            let Some(path) = call.arguments.get("path").and_then(Value::as_str) else {
                continue;
            };
            match call.name.as_str() {
                "read" => self.read.insert(path.to_owned()),
                "write" => self.written.insert(path.to_owned()),
                "edit" => self.edited.insert(path.to_owned()),
                _ => continue,
            };
        }
    }

    /// Adds the files in the details of an earlier compaction.
    pub fn add_details(&mut self, details: Option<&Value>) {
        let add = |member: &str, into: &mut BTreeSet<String>| {
            let paths = details
                .and_then(|details| details.get(member))
                .and_then(Value::as_array);
            let paths = paths.into_iter().flatten().filter_map(Value::as_str);
            into.extend(paths.map(str::to_owned));
        };
        add("readFiles", &mut self.read);
        add("modifiedFiles", &mut self.edited);
    }

    /// Returns the `details` of a compaction entry.
    pub fn details(&self) -> Value {
        json!({ "readFiles": self.only_read(), "modifiedFiles": self.modified() })
    }

    /// Returns the files by operation, in the form that hooks receive.
    pub fn operations(&self) -> Value {
        json!({
            "read": sorted(&self.read),
            "written": sorted(&self.written),
            "edited": sorted(&self.edited),
        })
    }

    /// Returns the lists for the end of a summary.
    pub fn listing(&self) -> String {
        let mut text = String::new();
        for (tag, paths) in [
            ("read-files", self.only_read()),
            ("modified-files", self.modified()),
        ] {
            if !paths.is_empty() {
                text.push_str(&format!("\n\n<{tag}>\n{}\n</{tag}>", paths.join("\n")));
            }
        }
        text
    }

    fn modified(&self) -> Vec<String> {
        sorted(self.written.union(&self.edited))
    }

    fn only_read(&self) -> Vec<String> {
        let changed = |path: &&String| self.written.contains(*path) || self.edited.contains(*path);
        sorted(self.read.iter().filter(|path| !changed(path)))
    }
}

/// Sorts as JavaScript does: by UTF-16 units.
fn sorted<'a>(paths: impl IntoIterator<Item = &'a String>) -> Vec<String> {
    let mut paths: Vec<String> = paths.into_iter().cloned().collect();
    paths.sort_by(|left, right| left.encode_utf16().cmp(right.encode_utf16()));
    paths
}
