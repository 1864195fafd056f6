//! Lines that stay in their file until somebody wants to read them.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;

use crate::entry::{Body, Entry};

/// A line in a file that only ever grows. The file is kept open, so the line stays readable when the
/// file is moved or removed.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub(crate) source: Arc<File>,
    pub(crate) at: u64,
    pub(crate) length: u32,
}

impl Stored {
    /// Reads the line.
    pub(crate) fn read(&self) -> io::Result<Bytes> {
        let mut line = vec![0; self.length as usize];
        self.source.read_exact_at(&mut line, self.at)?;
        whole(&line)?;
        Ok(Bytes::from(line))
    }

    fn end(&self) -> u64 {
        self.at + u64::from(self.length)
    }
}

/// Somebody may have written over the file; what is there now need not be a line.
fn whole(line: &[u8]) -> io::Result<()> {
    if line.starts_with(b"{") && line.ends_with(b"}") {
        Ok(())
    } else {
        Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the session file was written over",
        ))
    }
}

/// The line of an entry, for somebody who goes through many.
pub(crate) enum Found<'a> {
    /// The entry has it, or what it is made from.
    Kept,
    /// It was read from the file just now.
    Read(&'a [u8]),
    /// It cannot be read any more.
    Lost,
}

/// Goes through entries in order. What was left in the file is read in large pieces.
pub(crate) fn go_through<'a>(
    entries: impl IntoIterator<Item = &'a Entry>,
    mut see: impl FnMut(&'a Entry, Found<'_>),
) {
    /// Lines that are thought of at once.
    const MANY: usize = 1024;
    let mut buffer = Vec::new();
    let mut entries = entries.into_iter().peekable();
    let mut run: Vec<(&Entry, &Stored)> = Vec::new();
    while let Some(entry) = entries.next() {
        let Body::Stored(stored) = &entry.body else {
            see(entry, Found::Kept);
            continue;
        };
        run.push((entry, stored));
        let goes_on = entries
            .peek()
            .is_some_and(|next| matches!(next.body, Body::Stored(_)));
        if !goes_on || run.len() == MANY {
            see_stored(&run, &mut buffer, &mut see);
            run.clear();
        }
    }
}

fn see_stored<'a>(
    mut run: &[(&'a Entry, &Stored)],
    buffer: &mut Vec<u8>,
    see: &mut impl FnMut(&'a Entry, Found<'_>),
) {
    while let Some((first, _)) = run.first() {
        let mut seen = 0;
        let read = read_some(run.iter().map(|(_, stored)| *stored), buffer, |line| {
            see(run[seen].0, Found::Read(line));
            seen += 1;
        });
        if read.is_err() {
            see(first, Found::Lost);
            seen = 1;
        }
        run = &run[seen..];
    }
}

/// How much is read at once.
const SPAN: u64 = 512 * 1024;
/// What is read for nothing rather than asked for separately.
const GAP: u64 = 4096;

/// Reads lines that mostly lie one after the other, in one large piece.
///
/// Takes as many lines from the front of `lines` as the piece holds and calls `each` for them in order.
/// Nothing is called for a piece that cannot be read.
fn read_some<'a>(
    lines: impl Iterator<Item = &'a Stored> + Clone,
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
        let near = line.at >= end && line.at - end <= GAP && line.end() - first.at <= SPAN;
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
