//! Lines that stay in their file until somebody wants to read them.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;

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

/// How much is read at once.
const SPAN: u64 = 512 * 1024;
/// What is read for nothing rather than asked for separately.
const GAP: u64 = 4096;

/// Reads lines that mostly lie one after the other, in few large pieces.
///
/// Takes as many lines from the front of `lines` as one piece holds, calls `each` for them in order, and
/// says how many they were. Nothing is called for a piece that cannot be read.
pub(crate) fn read_some(
    lines: &[&Stored],
    buffer: &mut Vec<u8>,
    mut each: impl FnMut(&[u8]),
) -> io::Result<usize> {
    let Some(first) = lines.first() else {
        return Ok(0);
    };
    let mut end = first.end();
    let mut count = 1;
    for line in &lines[1..] {
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
    for line in &lines[..count] {
        let start = (line.at - first.at) as usize;
        each(&buffer[start..start + line.length as usize]);
    }
    Ok(count)
}
