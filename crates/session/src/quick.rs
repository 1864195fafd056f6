//! Large healthy files, read without looking inside the messages and without keeping them.
//!
//! Every writer puts the links of an entry at the head of its line. For files too large to parse in
//! passing, that head is all that is read here, and the messages stay in the file until they are wanted.
//! At the first sign of trouble nothing is concluded and the file is read thoroughly instead. What
//! remains unseen, a broken message with an intact head, is looked for later on a thread of its own.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use memchr::{memchr, memchr_iter, memrchr};

use crate::entry::{Body, Entry, EntryId, EntryKind, Role};
use crate::header::VERSION;
use crate::open::report;
use crate::scan::{self, Tail, record};
use crate::stored::Stored;
use crate::tree::Tree;
use crate::{Header, Notice, disk};

/// Smaller files are parsed in less time than it takes to notice.
const LARGE: u64 = 256 * 1024;
/// How much is read at once; longer lines are read whole.
const PIECE: usize = 256 * 1024;
/// A longer line is not one of a session: what a client may send in one line is half of this.
const LINE_LIMIT: usize = 128 << 20;
/// More entries than this are not kept in memory.
const ENTRY_LIMIT: usize = 1 << 20;
/// Room for entries that is made in advance, whatever size the file claims to have.
const ROOM: u64 = 1 << 16;
/// The background reading leaves the processors to whoever opened the file, for a while.
const PAUSE: Duration = Duration::from_millis(500);

/// A large file in which nothing seems wrong.
pub(crate) struct Healthy {
    pub header: Header,
    pub tree: Tree,
    pub tail: Tail,
    pub length: u64,
}

/// Reads a large file; `None` if it is small, of an old version, or anything is unusual.
pub(crate) fn read(file: &Arc<File>) -> Option<Healthy> {
    let length = file.metadata().ok()?.len();
    if length < LARGE {
        return None;
    }
    let mut reading = Reading {
        file,
        header: None,
        tree: Tree::with_capacity((length / 1024).min(ROOM) as usize),
        number: 0,
        last: (0, 0),
    };
    let tail = reading.pieces().ok()??;
    // The last line may have been cut: a look at its head is not enough.
    let (at, size) = reading.last;
    let last = Stored {
        source: Arc::clone(file),
        at,
        length: u32::try_from(size).ok()?,
    };
    record(reading.number, &last.read().ok()?, None)?;
    let Reading { header, tree, .. } = reading;
    let linked = tree.broken_links().next().is_none();
    linked.then_some(Healthy {
        header: header?,
        tree,
        tail,
        length,
    })
}

struct Reading<'a> {
    file: &'a Arc<File>,
    header: Option<Header>,
    tree: Tree,
    number: usize,
    /// Where the last line is.
    last: (u64, usize),
}

impl Reading<'_> {
    /// Reads all lines; `None` if one is unusual.
    fn pieces(&mut self) -> io::Result<Option<Tail>> {
        let mut buffer = vec![0; PIECE];
        let (mut at, mut filled) = (0, 0);
        loop {
            if filled == buffer.len() {
                if filled >= LINE_LIMIT {
                    return Ok(None);
                }
                buffer.resize(buffer.len() * 2, 0);
            }
            let count = self
                .file
                .read_at(&mut buffer[filled..], at + filled as u64)?;
            let end = if count == 0 {
                filled
            } else {
                let fresh = memrchr(b'\n', &buffer[filled..filled + count]);
                filled += count;
                match fresh {
                    Some(newline) => filled - count + newline + 1,
                    None => continue,
                }
            };
            if self.lines(&buffer[..end], at).is_none() {
                return Ok(None);
            }
            if count == 0 {
                let missing = end > 0;
                return Ok(Some(if missing {
                    Tail::MissingNewline
                } else {
                    Tail::Clean
                }));
            }
            buffer.copy_within(end..filled, 0);
            at += end as u64;
            filled -= end;
        }
    }

    /// Reads the lines of a piece that begins at `at`.
    fn lines(&mut self, piece: &[u8], at: u64) -> Option<()> {
        std::str::from_utf8(piece).ok()?;
        let unfinished = (!piece.ends_with(b"\n")).then_some(piece.len());
        let mut start = 0;
        for end in memchr_iter(b'\n', piece).chain(unfinished) {
            self.number += 1;
            if start < end {
                self.last = (at + start as u64, end - start);
                self.line(&piece[start..end])?;
            }
            start = end + 1;
        }
        Some(())
    }

    fn line(&mut self, line: &[u8]) -> Option<()> {
        let entry = match head(line) {
            Some(head) if self.header.is_some() => self.stored(head),
            _ => {
                let found = record(self.number, &Bytes::copy_from_slice(line), None)?;
                if self.header.is_none() {
                    let header = Header::parse(&found.line)?;
                    self.header = Some(header).filter(|header| header.version >= VERSION);
                    return self.header.is_some().then_some(());
                }
                found.into_entry()?
            }
        };
        self.tree.push(entry);
        (self.tree.entries().len() <= ENTRY_LIMIT).then_some(())
    }

    fn stored(&self, head: Head<'_>) -> Entry {
        let (at, length) = self.last;
        // Nearly all entries follow the one before them: share its id instead of copying it.
        let previous = self.tree.last_id();
        let parent = head.parent.map(|parent| match previous {
            Some(previous) if *previous == *parent => previous.clone(),
            _ => EntryId::from(parent),
        });
        let body = match u32::try_from(length) {
            Ok(length) => Body::Stored(Stored {
                source: Arc::clone(self.file),
                at,
                length,
            }),
            Err(_) => Body::Line(Bytes::new()),
        };
        Entry {
            id: EntryId::from(head.id),
            parent,
            kind: EntryKind::Message(head.role),
            body,
        }
    }
}

/// The head of a message line written in the usual order.
struct Head<'a> {
    id: &'a str,
    parent: Option<&'a str>,
    role: Role,
}

fn head(line: &[u8]) -> Option<Head<'_>> {
    let rest = line.strip_prefix(br#"{"type":"message","id":""#)?;
    let (id, rest) = word(rest)?;
    let rest = rest.strip_prefix(br#","parentId":"#)?;
    let (parent, rest) = match rest.strip_prefix(b"null") {
        Some(rest) => (None, rest),
        None => {
            let (parent, rest) = word(rest.strip_prefix(b"\"")?)?;
            (Some(parent), rest)
        }
    };
    let (_, rest) = word(rest.strip_prefix(br#","timestamp":""#)?)?;
    let (role, _) = word(rest.strip_prefix(br#","message":{"role":""#)?)?;
    let role = Role::of(role);
    let usual = role != Role::Other && line.ends_with(b"}}") && u32::try_from(line.len()).is_ok();
    usual.then_some(Head { id, parent, role })
}

/// A short plain string and what follows its closing quote.
fn word(text: &[u8]) -> Option<(&str, &[u8])> {
    let end = memchr(b'"', &text[..text.len().min(80)])?;
    let word = std::str::from_utf8(&text[..end]).ok()?;
    let plain = !word.is_empty()
        && word
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    plain.then_some((word, &text[end + 1..]))
}

/// What a thorough reading of a file has found so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Verification(Arc<Mutex<Vec<Notice>>>);

impl Verification {
    /// Reads the first `length` bytes of `file` thoroughly in the background.
    pub(crate) fn start(file: Arc<File>, length: u64, path: PathBuf) -> Self {
        let verification = Self::default();
        let found = verification.clone();
        let work = move || {
            std::thread::sleep(PAUSE);
            let Ok(content) = disk::read_all(&file, &path) else {
                return;
            };
            let length = usize::try_from(length)
                .unwrap_or(usize::MAX)
                .min(content.len());
            let mut notices = Vec::new();
            report(&scan::scan(&content.slice(..length)), &path, &mut notices);
            found
                .0
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .append(&mut notices);
        };
        let thread = std::thread::Builder::new().name("session-verify".to_owned());
        // Without a thread a broken message is still found when it is read.
        drop(thread.spawn(work));
        verification
    }

    /// What was found since the last time.
    pub(crate) fn take(&self) -> Vec<Notice> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::path::Path;

    const HEADER: &str = r#"{"type":"session","version":3,"id":"s","timestamp":"t","cwd":"/"}"#;

    fn large(lines: usize) -> Vec<String> {
        let mut text = vec![HEADER.to_owned()];
        for at in 0..lines {
            let parent = if at == 0 {
                "null".to_owned()
            } else {
                format!("\"{:08x}\"", at - 1)
            };
            let role = ["user", "assistant", "toolResult"][at % 3];
            let content = "text \\\" é".repeat(20 + at % 7);
            text.push(format!(
                r#"{{"type":"message","id":"{at:08x}","parentId":{parent},"timestamp":"2026-01-01T00:00:00.000Z","message":{{"role":"{role}","toolCallId":"c","content":"{content}"}}}}"#
            ));
        }
        text
    }

    fn file(lines: &[String]) -> Arc<File> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all((lines.join("\n") + "\n").as_bytes())
            .unwrap();
        Arc::new(file)
    }

    #[test]
    fn a_healthy_file_is_read_alike_quickly_and_thoroughly() {
        let mut lines = large(3000);
        lines.insert(
            900,
            r#"{"type":"custom","customType":"c","id":"x","parentId":"00000003","timestamp":"t"}"#
                .into(),
        );
        // Longer than a piece.
        lines[1000] = lines[1000].replace("text", &"long ".repeat(PIECE / 40));
        let file = file(&lines);
        let quick = read(&file).unwrap();
        let content = disk::read_all(&file, Path::new("")).unwrap();
        let thorough = scan::scan(&content);
        assert_eq!(quick.length, content.len() as u64);
        assert_eq!((quick.tail, thorough.damage.len()), (Tail::Clean, 0));
        assert_eq!(quick.tree.entries().len(), thorough.records.len() - 1);
        for (entry, record) in quick.tree.entries().iter().zip(&thorough.records[1..]) {
            assert_eq!(Some(&entry.id), record.id.as_ref());
            assert_eq!(entry.parent, record.parent);
            assert_eq!(crate::scan::RecordKind::Entry(entry.kind), record.kind);
            assert_eq!(entry.json(), &record.line[..]);
        }
    }

    #[test]
    fn trouble_anybody_can_see_is_left_to_a_thorough_reading() {
        let broken: [fn(&mut Vec<String>); 7] = [
            |lines| lines[1500].truncate(200),
            |lines| lines[1500] = "garbage".into(),
            |lines| drop(lines.remove(1500)),
            |lines| {
                let torn = lines[1500][..150].to_owned();
                lines[1501].insert_str(0, &torn);
                lines.remove(1500);
            },
            |lines| {
                let length = lines[2999].len();
                lines.last_mut().unwrap().truncate(length - 9);
            },
            |lines| lines[0] = lines[0].replace("3", "2"),
            |lines| lines[0] = "{}".into(),
        ];
        for (at, breaks) in broken.into_iter().enumerate() {
            let mut lines = large(3000);
            breaks(&mut lines);
            assert!(read(&file(&lines)).is_none(), "case {at}");
        }
        assert!(
            read(&file(&large(10))).is_none(),
            "small files are always read thoroughly"
        );
    }

    #[test]
    fn a_broken_message_with_a_good_head_is_found_in_the_background() {
        let mut lines = large(3000);
        lines[1500] = lines[1500].replace(r#""content":""#, r#""content":"#);
        let file = file(&lines);
        let quick = read(&file).unwrap();
        assert_eq!(quick.tree.entries()[1499].message(), None);
        let verification = Verification::start(file, quick.length, PathBuf::from("/s.jsonl"));
        let mut found = Vec::new();
        while found.is_empty() {
            std::thread::sleep(Duration::from_millis(5));
            found = verification.take();
        }
        assert_eq!(found[0].code, "session_damaged");
        assert!(
            found[0].message.contains("line 1501"),
            "{}",
            found[0].message
        );
    }
}
