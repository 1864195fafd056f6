//! Converts files of old versions to the current version, in memory.
//!
//! Version 1 is a plain list: each entry gets an id and a parent. Version 2 calls custom messages hook messages.
//! Entries that have an id retain it in spite of the version in the header. Lines that are unreadable or need no change
//! are copied.

use std::collections::HashSet;

use memchr::memmem;
use serde_json::{Map, Value};

use crate::entry::EntryId;
use crate::header::{Header, VERSION};
use crate::json;
use crate::scan::{DamageKind, Record, RecordKind, Scan, Tail};

/// The age of a file's format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FormatAge {
    /// The file needs no conversion.
    Current,
    /// The file is a list of version 1, or has names of version 2, and must be converted.
    Old,
    /// The version in the header does not match the entries, or is unknown. The file is used without conversion.
    Unclear,
}

/// Determines the age of a file from its header and its entries together, because one damaged byte in a header must not
/// cause a rewrite of the whole file.
pub(crate) fn age(header: &Header, scan: &Scan) -> FormatAge {
    let mut entries = scan
        .records
        .iter()
        .filter(|record| record.kind != RecordKind::Header);
    match header.version {
        VERSION.. => FormatAge::Current,
        2 if entries.any(has_old_name) => FormatAge::Old,
        2 => FormatAge::Current,
        1 if entries.clone().next().is_some() && entries.all(|record| record.id.is_none()) => {
            FormatAge::Old
        }
        _ => FormatAge::Unclear,
    }
}

fn has_old_name(record: &Record) -> bool {
    memmem::find(&record.line, b"hookMessage").is_some()
}

/// Converts the whole file to the current version.
pub(crate) fn migrate(file: &[u8], scan: &Scan) -> Vec<u8> {
    let mut out = Vec::with_capacity(file.len() + file.len() / 4);
    let ids = ids(&scan.records);
    let lost = scan
        .damage
        .iter()
        .filter(|damage| damage.kind == DamageKind::Lost);
    let mut lost = lost.peekable();
    let mut previous = None;
    for (at, record) in scan.records.iter().enumerate() {
        while let Some(lost) = lost.next_if(|lost| lost.number < record.number) {
            out.extend_from_slice(&file[lost.range.clone()]);
            out.push(b'\n');
        }
        match changed(record, at, &ids, previous) {
            Some(object) => out.extend_from_slice(&json::line(&object)),
            None => out.extend_from_slice(&record.line),
        }
        out.push(b'\n');
        if record.kind != RecordKind::Header {
            previous = Some(&ids[at]);
        }
    }
    if let Tail::Torn(from) = scan.tail {
        out.extend_from_slice(&file[from..]);
    }
    out
}

/// Converts a record to the current version; `None` if it needs no change.
fn changed(
    record: &Record,
    at: usize,
    ids: &[EntryId],
    previous: Option<&EntryId>,
) -> Option<Map<String, Value>> {
    if at > 0 && record.id.is_some() && !has_old_name(record) {
        return None;
    }
    let mut object: Map<String, Value> = json::from_slice(&record.line)?;
    if at == 0 {
        object.insert("version".to_owned(), VERSION.into());
    } else if record.kind != RecordKind::Header {
        if record.id.is_none() {
            let parent = previous.map(|id| id.as_str());
            object.insert("id".to_owned(), ids[at].as_str().into());
            object.insert("parentId".to_owned(), parent.into());
            name_kept_entry(&mut object, ids);
        }
        rename_hook_message(&mut object);
    }
    Some(object)
}

/// Replaces the index of the first kept entry in a version 1 compaction by an id. The index counts records; the header
/// is 0.
fn name_kept_entry(object: &mut Map<String, Value>, ids: &[EntryId]) {
    let Some(index) = object.shift_remove("firstKeptEntryIndex") else {
        return;
    };
    let index = index.as_u64().and_then(|index| usize::try_from(index).ok());
    if let Some(id) = index
        .filter(|&index| index > 0)
        .and_then(|index| ids.get(index))
    {
        object.insert("firstKeptEntryId".to_owned(), id.as_str().into());
    }
}

/// Returns the id of each record, random if it has none.
fn ids(records: &[Record]) -> Vec<EntryId> {
    let mut taken: HashSet<EntryId> = records.iter().filter_map(|r| r.id.clone()).collect();
    let mut fresh = || {
        loop {
            let id = EntryId::random();
            if taken.insert(id.clone()) {
                return id;
            }
        }
    };
    records
        .iter()
        .map(|record| record.id.clone().unwrap_or_else(&mut fresh))
        .collect()
}

fn rename_hook_message(object: &mut Map<String, Value>) {
    if object.get("type").and_then(Value::as_str) != Some("message") {
        return;
    }
    let role = object
        .get_mut("message")
        .and_then(|message| message.get_mut("role"));
    if let Some(role) = role
        && role.as_str() == Some("hookMessage")
    {
        *role = "custom".into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan;
    use bytes::Bytes;

    fn migrated(text: &str) -> Vec<Value> {
        let file = Bytes::from(text.to_owned());
        let out = migrate(&file, &scan::scan(&file));
        String::from_utf8(out)
            .unwrap()
            .lines()
            .map(|l| serde_json::from_str(l).unwrap())
            .collect()
    }

    #[test]
    fn a_list_becomes_a_chain_and_indexes_become_ids() {
        let lines = migrated(concat!(
            r#"{"type":"session","id":"s","timestamp":"t","cwd":"/","provider":"p"}"#,
            "\n",
            r#"{"type":"message","timestamp":"t","message":{"role":"user","content":"a"}}"#,
            "\n",
            r#"{"type":"message","timestamp":"t","message":{"role":"hookMessage","content":"b"}}"#,
            "\n",
            r#"{"type":"compaction","timestamp":"t","summary":"s","firstKeptEntryIndex":2,"tokensBefore":1}"#,
            "\n",
            r#"{"type":"compaction","timestamp":"t","summary":"s","firstKeptEntryIndex":0,"tokensBefore":1}"#,
        ));
        assert_eq!(
            (&lines[0]["version"], &lines[0]["provider"]),
            (&3.into(), &"p".into())
        );
        assert_eq!(lines[1]["parentId"], Value::Null);
        assert_eq!(lines[2]["parentId"], lines[1]["id"]);
        assert_eq!(lines[2]["message"]["role"], "custom");
        assert_eq!(lines[3]["firstKeptEntryId"], lines[2]["id"]);
        assert_eq!(lines[4].get("firstKeptEntryId"), None);
        assert_eq!(lines[4].get("firstKeptEntryIndex"), None);
    }

    #[test]
    fn version_two_keeps_its_ids() {
        let lines = migrated(concat!(
            r#"{"type":"session","version":2,"id":"s","timestamp":"t","cwd":"/"}"#,
            "\n",
            r#"{"type":"message","id":"a","parentId":null,"timestamp":"t","message":{"role":"hookMessage","content":"b"}}"#,
        ));
        assert_eq!(
            (&lines[0]["version"], &lines[1]["id"]),
            (&3.into(), &"a".into())
        );
        assert_eq!(lines[1]["message"]["role"], "custom");
    }
}
