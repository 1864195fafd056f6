//! Lines that stay in the session file until they are needed.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;

use crate::entry::{Body, Entry};

/// The position of a line in an append-only file. The file stays open, so the line is readable after the file was moved
/// or removed.
#[derive(Debug, Clone)]
pub(crate) struct StoredLine {
    pub(crate) source: Arc<File>,
    pub(crate) at: u64,
    pub(crate) length: u32,
}

impl StoredLine {
    /// Reads the line.
    pub(crate) fn read(&self) -> io::Result<Bytes> {
        let mut line = vec![0; self.length as usize];
        self.source.read_exact_at(&mut line, self.at)?;
        check_line(&line)?;
        Ok(Bytes::from(line))
    }

    fn end(&self) -> u64 {
        self.at + u64::from(self.length)
    }
}

/// Checks that the bytes are a line: another program may have overwritten the file.
fn check_line(line: &[u8]) -> io::Result<()> {
    if line.starts_with(b"{") && line.ends_with(b"}") {
        Ok(())
    } else {
        Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "another program has overwritten the session file",
        ))
    }
}

/// The place of an entry's line, for [`for_each_line`].
pub(crate) enum LineSource<'a> {
    /// The entry holds its line, or the message to make it from.
    InMemory,
    /// The line, read from the file.
    Read(&'a [u8]),
    /// The line cannot be read any more.
    Lost,
}

/// Calls `visit` for each entry in order. Lines in the file are read in large chunks.
pub(crate) fn for_each_line<'a>(
    entries: impl IntoIterator<Item = &'a Entry>,
    mut visit: impl FnMut(&'a Entry, LineSource<'_>),
) {
    /// Limit on the lines that are collected before they are read.
    const BATCH: usize = 1024;
    let mut buffer = Vec::new();
    let mut entries = entries.into_iter().peekable();
    let mut run: Vec<(&Entry, &StoredLine)> = Vec::new();
    while let Some(entry) = entries.next() {
        let Body::Stored(stored) = &entry.body else {
            visit(entry, LineSource::InMemory);
            continue;
        };
        run.push((entry, stored));
        let next_is_stored = entries
            .peek()
            .is_some_and(|next| matches!(next.body, Body::Stored(_)));
        if !next_is_stored || run.len() == BATCH {
            visit_stored(&run, &mut buffer, &mut visit);
            run.clear();
        }
    }
}

fn visit_stored<'a>(
    mut run: &[(&'a Entry, &StoredLine)],
    buffer: &mut Vec<u8>,
    visit: &mut impl FnMut(&'a Entry, LineSource<'_>),
) {
    while let Some((first, _)) = run.first() {
        let mut seen = 0;
        let read = read_chunk(run.iter().map(|(_, stored)| *stored), buffer, |line| {
            visit(run[seen].0, LineSource::Read(line));
            seen += 1;
        });
        if read.is_err() {
            visit(first, LineSource::Lost);
            seen = 1;
        }
        run = &run[seen..];
    }
}

/// Bytes to read at once.
const READ_SIZE: u64 = 512 * 1024;
/// Bytes between two lines that are read and ignored, because a second read takes longer.
const GAP_LIMIT: u64 = 4096;

/// Reads adjacent lines in one chunk.
///
/// Takes as many lines from the front of `lines` as the chunk holds and calls `each` for them in order. Does not call
/// `each` if the chunk cannot be read.
fn read_chunk<'a>(
    lines: impl Iterator<Item = &'a StoredLine> + Clone,
    buffer: &mut Vec<u8>,
    mut each: impl FnMut(&[u8]),
) -> io::Result<()> {
    let mut ahead = lines.clone();
    let Some(first) = ahead.next() else {
        return Ok(());
    };
    let mut end = first.end();
    let mut count = 1;
    for line in ahead {
        let near =
            line.at >= end && line.at - end <= GAP_LIMIT && line.end() - first.at <= READ_SIZE;
        if !near || !Arc::ptr_eq(&line.source, &first.source) {
            break;
        }
        end = line.end();
        count += 1;
    }
    let length = usize::try_from(end - first.at).map_err(io::Error::other)?;
    if buffer.len() < length {
        buffer.resize(length, 0);
    }
    first
        .source
        .read_exact_at(&mut buffer[..length], first.at)?;
    for line in lines.take(count) {
        let start = (line.at - first.at) as usize;
        each(&buffer[start..start + line.length as usize]);
    }
    Ok(())
}
