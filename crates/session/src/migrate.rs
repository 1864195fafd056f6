//! Old file versions, brought up to date in memory.
//!
//! Version 1 was a plain list: entries get ids and a parent each. Version 2 called custom messages
//! hook messages. Lines that cannot be read keep their bytes and their place.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::entry::EntryId;
use crate::header::VERSION;
use crate::json;
use crate::scan::{DamageKind, Record, RecordKind, Scan, Tail};

/// The whole file in the current version.
pub(crate) fn migrate(file: &[u8], scan: &Scan, version: u32) -> Vec<u8> {
    let mut out = Vec::with_capacity(file.len() + file.len() / 4);
    let ids = fresh_ids(scan.records.len());
    let lost = scan
        .damage
        .iter()
        .filter(|damage| damage.kind == DamageKind::Lost);
    let mut lost = lost.peekable();
    let mut previous = Value::Null;
    for (at, record) in scan.records.iter().enumerate() {
        while let Some(lost) = lost.next_if(|lost| lost.number < record.number) {
            out.extend_from_slice(&file[lost.range.clone()]);
            out.push(b'\n');
        }
        match json::from_slice::<Map<String, Value>>(&record.line) {
            Some(mut object) => {
                if at == 0 {
                    object.insert("version".to_owned(), VERSION.into());
                } else {
                    if version < 2 && record.kind != RecordKind::Header {
                        add_links(&mut object, &ids[at], &mut previous, |index| {
                            kept_id(&scan.records, &ids, index)
                        });
                    }
                    rename_hook_message(&mut object);
                }
                out.extend_from_slice(&json::line(&object));
            }
            None => out.extend_from_slice(&record.line),
        }
        out.push(b'\n');
    }
    if let Tail::Torn(from) = scan.tail {
        out.extend_from_slice(&file[from..]);
    }
    out
}

fn fresh_ids(count: usize) -> Vec<EntryId> {
    let mut taken = HashSet::with_capacity(count);
    let mut fresh = || {
        loop {
            let id = EntryId::random();
            if taken.insert(id.clone()) {
                return id;
            }
        }
    };
    (0..count).map(|_| fresh()).collect()
}

/// The id of the record a version 1 compaction points at, unless that is the header.
fn kept_id(records: &[Record], ids: &[EntryId], index: u64) -> Option<EntryId> {
    let index = usize::try_from(index).ok()?;
    (records.get(index)?.kind != RecordKind::Header).then(|| ids[index].clone())
}

fn add_links(
    object: &mut Map<String, Value>,
    id: &EntryId,
    previous: &mut Value,
    kept: impl FnOnce(u64) -> Option<EntryId>,
) {
    let id = Value::from(id.as_str());
    object.insert("id".to_owned(), id.clone());
    object.insert("parentId".to_owned(), std::mem::replace(previous, id));
    if let Some(index) = object.shift_remove("firstKeptEntryIndex")
        && let Some(kept) = index.as_u64().and_then(kept)
    {
        object.insert("firstKeptEntryId".to_owned(), kept.as_str().into());
    }
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

    fn migrated(text: &str, version: u32) -> Vec<Value> {
        let file = Bytes::from(text.to_owned());
        let out = migrate(&file, &scan::scan(&file), version);
        String::from_utf8(out)
            .unwrap()
            .lines()
            .map(|l| serde_json::from_str(l).unwrap())
            .collect()
    }

    #[test]
    fn a_list_becomes_a_chain_and_indexes_become_ids() {
        let lines = migrated(
            concat!(
                r#"{"type":"session","id":"s","timestamp":"t","cwd":"/","provider":"p"}"#,
                "\n",
                r#"{"type":"message","timestamp":"t","message":{"role":"user","content":"a"}}"#,
                "\n",
                r#"{"type":"message","timestamp":"t","message":{"role":"hookMessage","content":"b"}}"#,
                "\n",
                r#"{"type":"compaction","timestamp":"t","summary":"s","firstKeptEntryIndex":2,"tokensBefore":1}"#,
                "\n",
                r#"{"type":"compaction","timestamp":"t","summary":"s","firstKeptEntryIndex":0,"tokensBefore":1}"#,
            ),
            1,
        );
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
        let lines = migrated(
            concat!(
                r#"{"type":"session","version":2,"id":"s","timestamp":"t","cwd":"/"}"#,
                "\n",
                r#"{"type":"message","id":"a","parentId":null,"timestamp":"t","message":{"role":"hookMessage","content":"b"}}"#,
            ),
            2,
        );
        assert_eq!(
            (&lines[0]["version"], &lines[1]["id"]),
            (&3.into(), &"a".into())
        );
        assert_eq!(lines[1]["message"]["role"], "custom");
    }
}
