//! Divides a session file into lines and finds damage, without parsing messages.
//!
//! It does not access the disk, and it does not decide what to do about damage.

use std::ops::Range;

use bytes::Bytes;
use memchr::{memchr_iter, memmem};
use serde::Deserialize;

use crate::decode::Text;
use crate::entry::{Body, Entry, EntryId, EntryKind};
use crate::json;

/// The lines and the damage of a file.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    pub records: Vec<Record>,
    pub damage: Vec<Damage>,
    pub tail: Tail,
}

/// A line that is a JSON object.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub number: usize,
    pub line: Bytes,
    pub kind: RecordKind,
    pub id: Option<EntryId>,
    pub parent: Option<EntryId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordKind {
    Header,
    Entry(EntryKind),
}

/// A damaged line.
#[derive(Debug)]
pub(crate) struct Damage {
    pub number: usize,
    pub range: Range<usize>,
    pub kind: DamageKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DamageKind {
    /// No part of the line is usable.
    Lost,
    /// The links are readable, the content is not.
    LinksOnly,
    /// An incomplete line followed by a complete one without a newline between; the complete one is used.
    Glued,
    /// Bytes that are not UTF-8 were replaced.
    Characters,
}

/// The end of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Tail {
    /// The file ends with a newline, or is empty.
    #[default]
    Clean,
    /// The file ends with a complete line without a newline.
    MissingNewline,
    /// The file ends with unreadable bytes from this offset on.
    Torn(usize),
}

#[derive(Deserialize)]
struct LinkMembers<'a> {
    #[serde(borrow)]
    r#type: Text<'a>,
    #[serde(borrow, default)]
    id: Option<Text<'a>>,
    #[serde(borrow, default, rename = "parentId")]
    parent: Option<Text<'a>>,
    #[serde(borrow, default)]
    message: Option<RoleMember<'a>>,
}

#[derive(Deserialize)]
struct RoleMember<'a> {
    #[serde(borrow, default)]
    role: Option<Text<'a>>,
}

/// Finds the lines of `file`.
pub(crate) fn scan(file: &Bytes) -> Scan {
    let mut scan = Scan::default();
    let clean_text = std::str::from_utf8(file).is_ok();
    let mut start = bom_length(file);
    let mut number = 0;
    for end in memchr_iter(b'\n', file).chain(std::iter::once(file.len())) {
        number += 1;
        if start < end {
            scan.line(file, start..end, number, clean_text);
        }
        start = end + 1;
    }
    scan.find_tail(file);
    scan
}

fn bom_length(file: &[u8]) -> usize {
    if file.starts_with("\u{feff}".as_bytes()) {
        3
    } else {
        0
    }
}

impl Scan {
    fn line(&mut self, file: &Bytes, range: Range<usize>, number: usize, clean_text: bool) {
        let line = file.slice(range.clone());
        let line = line.slice_ref(line.trim_ascii());
        if line.is_empty() {
            return;
        }
        let previous = self.records.last().and_then(|record| record.id.clone());
        let repaired = (!clean_text && std::str::from_utf8(&line).is_err())
            .then(|| Bytes::from(String::from_utf8_lossy(&line).into_owned()));
        let text = repaired.clone().unwrap_or_else(|| line.clone());
        if let Some(record) = record(number, &text, previous.as_ref()) {
            self.records.push(record);
            if repaired.is_some() {
                self.damage.push(Damage {
                    number,
                    range,
                    kind: DamageKind::Characters,
                });
            }
            return;
        }
        let links = links(&text).map(|(id, parent)| Record {
            number,
            line: text.clone(),
            kind: RecordKind::Entry(EntryKind::Damaged),
            id: Some(id),
            parent,
        });
        let glued = glued(&text).and_then(|line| record(number, &line, previous.as_ref()));
        let kind = match (&links, &glued) {
            (_, Some(_)) => DamageKind::Glued,
            (Some(_), None) => DamageKind::LinksOnly,
            (None, None) => DamageKind::Lost,
        };
        self.records.extend(links);
        self.records.extend(glued);
        self.damage.push(Damage {
            number,
            range,
            kind,
        });
    }

    /// Separates unusable lines at the end from the rest. Damage before them stays in place.
    fn find_tail(&mut self, file: &[u8]) {
        let mut torn = None;
        while let Some(last) = self.damage.last() {
            let unusable = matches!(last.kind, DamageKind::Lost | DamageKind::LinksOnly);
            let record_after = self
                .records
                .iter()
                .rev()
                .find(|record| record.kind != RecordKind::Entry(EntryKind::Damaged))
                .is_some_and(|record| record.number >= last.number);
            if !unusable || record_after {
                break;
            }
            torn = Some(last.range.start);
            let number = last.number;
            self.records.retain(|record| record.number != number);
            self.damage.pop();
        }
        self.tail = match torn {
            Some(from) => Tail::Torn(from),
            None if file.last().is_some_and(|&byte| byte != b'\n') => Tail::MissingNewline,
            None => Tail::Clean,
        };
    }
}

/// Parses a line as an object; `None` if it is not one.
pub(crate) fn record(number: usize, line: &Bytes, previous: Option<&EntryId>) -> Option<Record> {
    let Ok(peek) = serde_json::from_slice::<LinkMembers<'_>>(line) else {
        return unusual_record(number, line);
    };
    let r#type = &*peek.r#type.0;
    let kind = if r#type == "session" {
        RecordKind::Header
    } else {
        let role = peek
            .message
            .as_ref()
            .and_then(|message| message.role.as_ref());
        RecordKind::Entry(EntryKind::of(r#type, role.map(|role| &*role.0)))
    };
    // Most entries are children of the previous one: share its id instead of copying it.
    let parent = peek.parent.map(|parent| match previous {
        Some(previous) if *previous == *parent.0 => previous.clone(),
        _ => EntryId::from(&*parent.0),
    });
    let id = peek.id.map(|id| EntryId::from(&*id.0));
    Some(Record {
        number,
        line: line.clone(),
        kind,
        id,
        parent,
    })
}

/// Parses an object whose members have unusual types, which is slower.
fn unusual_record(number: usize, line: &Bytes) -> Option<Record> {
    let value: serde_json::Value = json::from_slice(line)?;
    let object = value.as_object()?;
    let text = |name: &str| object.get(name).and_then(|value| value.as_str());
    let kind = match text("type") {
        Some("session") => RecordKind::Header,
        Some(r#type) => {
            let role = object
                .get("message")
                .and_then(|message| message.get("role")?.as_str());
            RecordKind::Entry(EntryKind::of(r#type, role))
        }
        None => RecordKind::Entry(EntryKind::Unknown),
    };
    Some(Record {
        number,
        line: line.clone(),
        kind,
        id: text("id").map(EntryId::from),
        parent: text("parentId").map(EntryId::from),
    })
}

/// Finds the links at the head of a damaged line.
fn links(line: &[u8]) -> Option<(EntryId, Option<EntryId>)> {
    let head = std::str::from_utf8(&line[..line.len().min(400)])
        .unwrap_or_else(|error| std::str::from_utf8(&line[..error.valid_up_to()]).unwrap_or(""));
    let (_, rest) = head
        .strip_prefix(r#"{"type":""#)?
        .split_once(r#"","id":""#)?;
    let (id, rest) = rest.split_once(r#"","parentId":"#)?;
    let plain = |text: &str| !text.is_empty() && !text.contains(['"', '\\', '{', '}']);
    if !plain(id) {
        return None;
    }
    if rest.starts_with("null,") {
        return Some((EntryId::from(id), None));
    }
    let (parent, _) = rest.strip_prefix('"')?.split_once("\",")?;
    plain(parent).then(|| (EntryId::from(id), Some(EntryId::from(parent))))
}

/// Finds a complete entry at the end of a line that begins with an incomplete one.
///
/// A writer that appends to a torn file without checking its end leaves such a line.
fn glued(line: &Bytes) -> Option<Bytes> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    #[allow(dead_code)]
    struct Whole<'a> {
        #[serde(borrow)]
        id: Text<'a>,
        #[serde(borrow)]
        parent_id: Option<Text<'a>>,
        #[serde(borrow)]
        timestamp: Text<'a>,
    }
    const ATTEMPT_LIMIT: usize = 64;
    memmem::find_iter(line, br#"{"type":""#)
        .filter(|&at| at > 0)
        .take(ATTEMPT_LIMIT)
        .map(|at| line.slice(at..))
        .find(|rest| serde_json::from_slice::<Whole<'_>>(rest).is_ok())
}

impl Record {
    /// Converts the record into an entry; `None` for headers and for objects without an id.
    pub(crate) fn into_entry(self) -> Option<Entry> {
        let RecordKind::Entry(kind) = self.kind else {
            return None;
        };
        Some(Entry {
            id: self.id?,
            parent: self.parent,
            kind,
            body: Body::Line(self.line),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Role;

    const HEADER: &str = r#"{"type":"session","version":3,"id":"s","timestamp":"t","cwd":"/"}"#;
    const USER: &str = r#"{"type":"message","id":"aaaa0001","parentId":null,"timestamp":"t","message":{"role":"user","content":"hi"}}"#;
    const LABEL: &str =
        r#"{"type":"label","id":"aaaa0002","parentId":"aaaa0001","timestamp":"t","targetId":"x"}"#;

    fn scan_text(text: impl Into<Vec<u8>>) -> Scan {
        scan(&Bytes::from(text.into()))
    }

    #[test]
    fn a_clean_file_has_its_lines_and_no_damage() {
        let scan = scan_text(format!("{HEADER}\n\n{USER}\r\n{LABEL}\n"));
        let kinds: Vec<_> = scan.records.iter().map(|record| record.kind).collect();
        assert_eq!(
            kinds,
            [
                RecordKind::Header,
                RecordKind::Entry(EntryKind::Message(Role::User)),
                RecordKind::Entry(EntryKind::Label)
            ]
        );
        assert!(scan.damage.is_empty());
        assert_eq!(scan.tail, Tail::Clean);
        assert_eq!(scan.records[2].parent.as_deref(), Some("aaaa0001"));
    }

    #[test]
    fn an_incomplete_last_line_is_torn_and_a_complete_one_is_not() {
        let text = format!("{HEADER}\n{USER}");
        assert_eq!(scan_text(text.clone()).tail, Tail::MissingNewline);
        let torn = scan_text(text[..text.len() - 1].to_owned());
        assert_eq!(torn.tail, Tail::Torn(HEADER.len() + 1));
        assert_eq!((torn.records.len(), torn.damage.len()), (1, 0));
    }

    #[test]
    fn damage_in_the_middle_keeps_the_links_of_its_line() {
        let broken = USER.replace(r#""hi""#, "hi");
        let scan = scan_text(format!("{HEADER}\n{broken}\n{LABEL}\n"));
        assert_eq!(scan.damage[0].kind, DamageKind::LinksOnly);
        assert_eq!((scan.damage[0].number, scan.records.len()), (2, 3));
        assert_eq!(scan.records[1].id.as_deref(), Some("aaaa0001"));
    }

    #[test]
    fn a_line_glued_to_a_torn_one_is_found() {
        let scan = scan_text(format!("{HEADER}\n{}{LABEL}\n", &USER[..20]));
        assert_eq!(scan.damage[0].kind, DamageKind::Glued);
        assert_eq!(scan.records[1].id.as_deref(), Some("aaaa0002"));
    }

    #[test]
    fn bytes_that_are_not_utf8_are_replaced_and_the_line_is_used() {
        let mut text = format!("{HEADER}\n{USER}\n").into_bytes();
        let at = memmem::find(&text, b"hi").unwrap();
        text[at] = 0xff;
        let scan = scan_text(text);
        assert_eq!(scan.damage[0].kind, DamageKind::Characters);
        assert!(
            std::str::from_utf8(&scan.records[1].line)
                .unwrap()
                .contains("\u{fffd}i")
        );
    }
}
