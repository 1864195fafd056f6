//! Reads large intact files without parsing their messages or holding them in memory.
//!
//! Every writer puts the links of an entry at the head of its line. For a large file only that head is parsed, and the
//! messages stay in the file until they are needed. At the first sign of damage this reader gives up, and the caller
//! reads the whole file. A damaged message with an intact head is not noticed here; a background thread looks for it
//! later.

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
use crate::stored_line::StoredLine;
use crate::tree::Tree;
use crate::{Header, Notice, session_file};

/// Size in bytes from which a file is large. Smaller files are parsed too fast for a user to notice.
const LARGE_FILE: u64 = 256 * 1024;
/// Bytes to read at once; longer lines are read as a whole.
const CHUNK_SIZE: usize = 256 * 1024;
/// Byte limit of a line: twice the limit for a line of a client.
const LINE_LIMIT: usize = 128 << 20;
/// Limit on the entries that are held in memory.
const ENTRY_LIMIT: usize = 1 << 20;
/// Limit on the entries for which memory is reserved in advance, because the size of a file may be misleading.
const CAPACITY_LIMIT: u64 = 1 << 16;
/// Delay of the background check, which leaves the processors to the caller that opened the file.
const VERIFY_DELAY: Duration = Duration::from_millis(500);

/// A large file without visible damage.
pub(crate) struct IntactFile {
    pub header: Header,
    pub tree: Tree,
    pub tail: Tail,
    pub length: u64,
}

/// Reads a large file; `None` if it is small, of an old version, or unusual in any way.
pub(crate) fn read(file: &Arc<File>) -> Option<IntactFile> {
    let length = file.metadata().ok()?.len();
    if length < LARGE_FILE {
        return None;
    }
    let mut reading = FastReader {
        file,
        header: None,
        tree: Tree::with_capacity((length / 1024).min(CAPACITY_LIMIT) as usize),
        number: 0,
        last: (0, 0),
    };
    let tail = reading.read_lines().ok()??;
    // The last line may be incomplete, so it is parsed as a whole.
    let (at, size) = reading.last;
    let last = StoredLine {
        source: Arc::clone(file),
        at,
        length: u32::try_from(size).ok()?,
    };
    record(reading.number, &last.read().ok()?, None)?;
    let FastReader { header, tree, .. } = reading;
    let linked = tree.broken_links().next().is_none();
    linked.then_some(IntactFile {
        header: header?,
        tree,
        tail,
        length,
    })
}

struct FastReader<'a> {
    file: &'a Arc<File>,
    header: Option<Header>,
    tree: Tree,
    number: usize,
    /// Offset and length of the last line.
    last: (u64, usize),
}

impl FastReader<'_> {
    /// Reads all lines; `None` if one is unusual.
    fn read_lines(&mut self) -> io::Result<Option<Tail>> {
        let mut buffer = vec![0; CHUNK_SIZE];
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

    /// Reads the lines of a chunk that begins at `at`.
    fn lines(&mut self, chunk: &[u8], at: u64) -> Option<()> {
        std::str::from_utf8(chunk).ok()?;
        let unfinished = (!chunk.ends_with(b"\n")).then_some(chunk.len());
        let mut start = 0;
        for end in memchr_iter(b'\n', chunk).chain(unfinished) {
            self.number += 1;
            if start < end {
                self.last = (at + start as u64, end - start);
                self.line(&chunk[start..end])?;
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

    fn stored(&self, head: LineHead<'_>) -> Entry {
        let (at, length) = self.last;
        // Nearly all entries are children of the previous one: share its id instead of copying it.
        let previous = self.tree.last_id();
        let parent = head.parent.map(|parent| match previous {
            Some(previous) if *previous == *parent => previous.clone(),
            _ => EntryId::from(parent),
        });
        let body = match u32::try_from(length) {
            Ok(length) => Body::Stored(StoredLine {
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
struct LineHead<'a> {
    id: &'a str,
    parent: Option<&'a str>,
    role: Role,
}

fn head(line: &[u8]) -> Option<LineHead<'_>> {
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
    usual.then_some(LineHead { id, parent, role })
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

/// The notices of a background check of a file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Verification(Arc<Mutex<Vec<Notice>>>);

impl Verification {
    /// Checks the first `length` bytes of `file` in the background.
    pub(crate) fn start(file: Arc<File>, length: u64, path: PathBuf) -> Self {
        let verification = Self::default();
        let found = verification.clone();
        let work = move || {
            std::thread::sleep(VERIFY_DELAY);
            let Ok(content) = session_file::read_all(&file, &path) else {
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
        // Without a thread, a damaged message is still reported when it is read.
        drop(thread.spawn(work));
        verification
    }

    /// Returns the notices since the last call.
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
    fn a_fast_read_of_an_intact_file_equals_a_full_scan() {
        let mut lines = large(3000);
        lines.insert(
            900,
            r#"{"type":"custom","customType":"c","id":"x","parentId":"00000003","timestamp":"t"}"#
                .into(),
        );
        // Longer than a chunk.
        lines[1000] = lines[1000].replace("text", &"long ".repeat(CHUNK_SIZE / 40));
        let file = file(&lines);
        let quick = read(&file).unwrap();
        let content = session_file::read_all(&file, Path::new("")).unwrap();
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
    fn visible_damage_is_left_to_a_full_scan() {
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
    fn a_damaged_message_with_an_intact_head_is_found_in_the_background() {
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
