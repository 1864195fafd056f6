//! The client's side of the pipe: reads as fast as it can, counts, and keeps of each line only what
//! is needed to know what it is. An update's line is half a megabyte; its delta is ten bytes.

use std::fs::File;
use std::io::{self, Read};
use std::time::Duration;

use crate::os;

/// Where an update says what was added; in front of it is less than this many bytes.
const FRONT: usize = 160;
const UPDATE: &[u8] = br#"{"type":"message_update""#;
const DELTA: &[u8] = br#""delta":""#;

/// A line that has been read to its end.
#[derive(Debug)]
pub struct Line<'a> {
    /// All of it, except for updates, which are kept up to the end of their delta.
    pub head: &'a [u8],
    /// Its length with the LF.
    pub length: usize,
}

impl Line<'_> {
    /// Whether it repeats the growing answer.
    pub fn is_update(&self) -> bool {
        self.head.starts_with(UPDATE)
    }

    /// Whether it is an event of this type.
    pub fn is(&self, kind: &str) -> bool {
        let rest = self.head.strip_prefix(br#"{"type":""#);
        rest.and_then(|rest| rest.strip_prefix(kind.as_bytes()))
            .is_some_and(|rest| rest.first() == Some(&b'"'))
    }

    /// Whether it answers the command with this id.
    pub fn answers(&self, id: &str) -> bool {
        let front = &self.head[..self.head.len().min(FRONT)];
        contains(front, br#""type":"response""#)
            && contains(front, format!(r#""id":"{id}""#).as_bytes())
    }

    /// The text an update added. The benchmarks' texts need no escapes.
    pub fn delta(&self) -> Option<&[u8]> {
        delta_of(self.head)
    }
}

/// The text an update added, in the part of its line that is kept.
pub fn delta_of(head: &[u8]) -> Option<&[u8]> {
    let front = &head[..head.len().min(FRONT)];
    let start = front.windows(DELTA.len()).position(|part| part == DELTA)? + DELTA.len();
    let end = os::find(&head[start..], b'"')?;
    Some(&head[start..start + end])
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// What one look at the pipe brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pumped {
    /// Some bytes.
    Bytes,
    /// Nothing in that time.
    Nothing,
    /// The other side has closed the pipe.
    Closed,
}

/// Reads lines from a pipe.
#[derive(Debug)]
pub struct Lines {
    pipe: File,
    buffer: Vec<u8>,
    head: Head,
    /// Bytes read so far.
    pub bytes: u64,
}

impl Lines {
    /// Lines from `pipe`.
    pub fn new(pipe: File) -> Self {
        Self {
            pipe,
            buffer: vec![0; 1 << 20],
            head: Head::default(),
            bytes: 0,
        }
    }

    /// Reads once, waiting at most so long, and shows every line that became complete.
    pub fn pump(&mut self, wait: Duration, see: &mut dyn FnMut(&Line<'_>)) -> io::Result<Pumped> {
        if !os::readable(&self.pipe, wait)? {
            return Ok(Pumped::Nothing);
        }
        let count = self.pipe.read(&mut self.buffer)?;
        if count == 0 {
            return Ok(Pumped::Closed);
        }
        self.bytes += count as u64;
        let mut rest = &self.buffer[..count];
        while let Some(end) = os::find(rest, b'\n') {
            self.head.take(&rest[..end]);
            see(&Line {
                head: &self.head.kept,
                length: self.head.length + 1,
            });
            self.head.clear();
            rest = &rest[end + 1..];
        }
        self.head.take(rest);
        Ok(Pumped::Bytes)
    }
}

/// The part of the current line that is kept.
#[derive(Debug, Default)]
struct Head {
    kept: Vec<u8>,
    length: usize,
    /// Nothing more of this line is needed.
    enough: bool,
}

impl Head {
    fn take(&mut self, mut piece: &[u8]) {
        self.length += piece.len();
        while !self.enough && !piece.is_empty() {
            let undecided = self.kept.len() < FRONT;
            let count = if undecided {
                piece.len().min(FRONT - self.kept.len())
            } else if self.kept.starts_with(UPDATE) {
                piece.len().min(4096)
            } else {
                piece.len()
            };
            self.kept.extend_from_slice(&piece[..count]);
            piece = &piece[count..];
            if self.kept.len() >= FRONT && self.kept.starts_with(UPDATE) {
                let front = &self.kept[..FRONT];
                self.enough = !contains(front, DELTA) || delta_of(&self.kept).is_some();
            }
        }
    }

    fn clear(&mut self) {
        self.kept.clear();
        self.length = 0;
        self.enough = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::OwnedFd;

    /// What comes out when `text` is written in pieces of `size` bytes.
    fn read(text: &str, size: usize) -> Vec<(String, usize)> {
        let (reader, mut writer) = io::pipe().unwrap();
        let mut lines = Lines::new(File::from(OwnedFd::from(reader)));
        let mut seen = Vec::new();
        for piece in text.as_bytes().chunks(size) {
            writer.write_all(piece).unwrap();
            let mut see = |line: &Line<'_>| {
                let text = line.delta().map_or_else(
                    || String::from_utf8_lossy(line.head).into_owned(),
                    |delta| String::from_utf8_lossy(delta).into_owned(),
                );
                seen.push((text, line.length));
            };
            assert_eq!(
                lines.pump(Duration::from_secs(5), &mut see).unwrap(),
                Pumped::Bytes
            );
        }
        seen
    }

    #[test]
    fn updates_keep_their_delta_and_other_lines_everything() {
        let delta = "d".repeat(9000);
        let padding = "p".repeat(30_000);
        let update = format!(
            r#"{{"type":"message_update","assistantMessageEvent":{{"type":"text_delta","contentIndex":0,"delta":"{delta}","partial":"{padding}"}}}}"#
        );
        let other = format!(r#"{{"type":"agent_end","messages":"{padding}"}}"#);
        let text = format!("{update}\n{other}\n");
        let expected = vec![(delta, update.len() + 1), (other.clone(), other.len() + 1)];
        for size in [50, 1777, 60_000] {
            assert_eq!(read(&text, size), expected, "in pieces of {size}");
        }
    }

    #[test]
    fn answers_and_events_are_told_apart() {
        let line = Line {
            head: br#"{"id":"s1","type":"response","command":"x"}"#,
            length: 0,
        };
        assert!(line.answers("s1") && !line.answers("s") && !line.is("response"));
        let line = Line {
            head: br#"{"type":"agent_end","messages":[]}"#,
            length: 0,
        };
        assert!(line.is("agent_end") && !line.is("agent") && !line.answers("s1"));
    }
}
