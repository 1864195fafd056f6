//! The client's side of the pipe: reads as fast as it can, counts, and stores only the part of each line that
//! identifies it. An update's line is half a megabyte; its delta is ten bytes.

use std::fs::File;
use std::io::{self, Read};
use std::time::Duration;

use crate::os;

/// Bytes within which an update's delta begins; the modern dialect has the usage before it.
const DELTA_LIMIT: usize = 512;
const UPDATE: &[u8] = br#"{"type":"message_update""#;
const DELTA: &[u8] = br#""delta":""#;

/// A complete line.
#[derive(Debug)]
pub struct Line<'a> {
    /// The whole line; updates are stored up to the end of their delta.
    pub head: &'a [u8],
    /// The length including the LF.
    pub length: usize,
}

impl Line<'_> {
    /// Reports whether the line repeats the partial answer.
    pub fn is_update(&self) -> bool {
        self.head.starts_with(UPDATE)
    }

    /// Reports whether the line is an event of this type.
    pub fn is(&self, kind: &str) -> bool {
        let rest = self.head.strip_prefix(br#"{"type":""#);
        rest.and_then(|rest| rest.strip_prefix(kind.as_bytes()))
            .is_some_and(|rest| rest.first() == Some(&b'"'))
    }

    /// Reports whether the line answers the command with this id.
    pub fn answers(&self, id: &str) -> bool {
        let front = &self.head[..self.head.len().min(DELTA_LIMIT)];
        contains(front, br#""type":"response""#)
            && contains(front, format!(r#""id":"{id}""#).as_bytes())
    }

    /// Returns the text that an update added. The texts of the benchmarks need no escapes.
    pub fn delta(&self) -> Option<&[u8]> {
        delta_of(self.head)
    }
}

/// Returns the text that an update added, from the stored part of its line.
pub fn delta_of(head: &[u8]) -> Option<&[u8]> {
    let front = &head[..head.len().min(DELTA_LIMIT)];
    let start = front.windows(DELTA.len()).position(|part| part == DELTA)? + DELTA.len();
    let end = os::find(&head[start..], b'"')?;
    Some(&head[start..start + end])
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// The result of one read from the pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pumped {
    /// Bytes were read.
    Bytes,
    /// The time is over.
    Nothing,
    /// The program has closed the pipe.
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
    pub fn new(pipe: File) -> Self {
        Self {
            pipe,
            buffer: vec![0; 1 << 20],
            head: Head::default(),
            bytes: 0,
        }
    }

    /// Reads once, waiting at most `wait`, and passes every complete line to `see`.
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

/// The stored part of the current line.
#[derive(Debug, Default)]
struct Head {
    kept: Vec<u8>,
    length: usize,
    /// The rest of this line is not needed.
    enough: bool,
}

impl Head {
    fn take(&mut self, mut piece: &[u8]) {
        self.length += piece.len();
        while !self.enough && !piece.is_empty() {
            let undecided = self.kept.len() < DELTA_LIMIT;
            let count = if undecided {
                piece.len().min(DELTA_LIMIT - self.kept.len())
            } else if self.kept.starts_with(UPDATE) {
                piece.len().min(4096)
            } else {
                piece.len()
            };
            self.kept.extend_from_slice(&piece[..count]);
            piece = &piece[count..];
            if self.kept.len() >= DELTA_LIMIT && self.kept.starts_with(UPDATE) {
                let front = &self.kept[..DELTA_LIMIT];
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

    /// Returns the lines that are read when `text` is written in pieces of `size` bytes.
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
