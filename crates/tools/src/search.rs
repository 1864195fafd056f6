//! Searches many files for a pattern: several at a time, with hits in a stable order.
//!
//! Files are searched in the order of the walk, in batches. A batch is searched in parallel and its
//! hits are put back in order. The search ends with the batch that has enough hits.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkMatch};
use ignore::overrides::OverrideBuilder;
use tokio_util::sync::CancellationToken;

use crate::truncate::MAX_BYTES;
use crate::{ToolError, node_error, path, walk};

/// The first batch is small, because many searches end soon.
const FIRST_BATCH: usize = 32;
const MAX_BATCH: usize = 1024;
const MAX_THREADS: usize = 8;
/// Bytes; a file with a longer line is left out.
const MAX_HEAP_BYTES: usize = 64 * 1024 * 1024;
/// Bytes of a line that are stored: more than is ever shown of it.
const MAX_LINE_BYTES: usize = 2048;
/// Bytes; larger files are not read again for the lines around a hit.
const MAX_CONTEXT_FILE_BYTES: u64 = 64 * 1024 * 1024;
/// Bytes of lines that are stored per file: several times what is ever shown of all files,
/// regardless of limit and context.
const MAX_STORED_BYTES: usize = 8 * MAX_BYTES;
/// Bytes a line takes beside its text.
const LINE_OVERHEAD: usize = 64;

/// The pattern and the files of a search.
#[derive(Debug)]
pub(crate) struct Search {
    pub root: PathBuf,
    pub matcher: RegexMatcher,
    pub glob: Option<String>,
    pub context: usize,
    pub limit: usize,
    pub cancel: CancellationToken,
}

/// A line that matches, and those around it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Hit {
    /// Relative to the searched directory.
    pub path: String,
    pub line: u64,
    /// Numbers and texts, without line ends.
    pub lines: Vec<(u64, String)>,
}

impl Search {
    /// The first hits, at most as many as the limit allows.
    pub fn run(&self) -> Result<Vec<Hit>, ToolError> {
        let root = pinion_files::locate(&self.root);
        let root = root.map_err(|error| walk::not_found(&error, &self.root))?;
        if !root.metadata.is_dir() {
            let readable = pinion_files::open(&self.root);
            readable.map_err(|error| node_error::at(&error, "open", &self.root))?;
            // A named file is searched even if it looks binary.
            return self.in_file(&self.root, &self.root, BinaryDetection::convert(0));
        }
        let mut wanted = OverrideBuilder::new(&root.path);
        if let Some(glob) = &self.glob {
            let added = wanted.add(glob);
            added.map_err(|error| ToolError(error.to_string()))?;
        }
        let wanted = wanted
            .build()
            .map_err(|error| ToolError(error.to_string()))?;
        let mut files = walk::files(&walk::builder(&root.path, wanted));
        let mut hits = Vec::new();
        let mut size = FIRST_BATCH;
        while hits.len() < self.limit {
            let batch: Vec<PathBuf> = files.by_ref().take(size).collect();
            if batch.is_empty() {
                break;
            }
            for found in self.in_batch(&root.path, &batch)? {
                hits.extend(found);
            }
            size = MAX_BATCH.min(size * 2);
        }
        hits.truncate(self.limit);
        Ok(hits)
    }

    fn in_batch(&self, root: &Path, batch: &[PathBuf]) -> Result<Vec<Vec<Hit>>, ToolError> {
        let next = AtomicUsize::new(0);
        let found = Mutex::new(Vec::new());
        let work = || {
            while let Some((index, path)) = {
                let index = next.fetch_add(1, Ordering::Relaxed);
                batch.get(index).map(|path| (index, path))
            } {
                let hits = self.in_file(root, path, BinaryDetection::quit(0))?;
                if !hits.is_empty() {
                    let mut found = found.lock().unwrap_or_else(|error| error.into_inner());
                    found.push((index, hits));
                }
            }
            Ok(())
        };
        let available = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = available.min(MAX_THREADS).min(batch.len() / 8);
        let finished: Result<Vec<()>, ToolError> = std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let own = work();
            let others = others.into_iter().map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|_| Err(ToolError("The search failed inside.".into())))
            });
            std::iter::once(own).chain(others).collect()
        });
        finished?;
        let mut found = found
            .into_inner()
            .unwrap_or_else(|error| error.into_inner());
        found.sort_by_key(|(index, _)| *index);
        Ok(found.into_iter().map(|(_, hits)| hits).collect())
    }

    /// Searches one file. A file that cannot be read has no hits.
    fn in_file(
        &self,
        root: &Path,
        path: &Path,
        binary: BinaryDetection,
    ) -> Result<Vec<Hit>, ToolError> {
        let mut lines = Lines::default();
        if let Ok(file) = pinion_files::open(path) {
            let reader = Interruptible {
                file,
                cancel: &self.cancel,
            };
            // An error does not invalidate the hits before it.
            let _ = self
                .searcher(binary)
                .search_reader(&self.matcher, reader, &mut lines);
        }
        if self.cancel.is_cancelled() {
            return Err(ToolError::aborted());
        }
        Ok(self.with_context(root, path, lines.found))
    }

    fn searcher(&self, binary: BinaryDetection) -> Searcher {
        SearcherBuilder::new()
            .line_number(true)
            .binary_detection(binary)
            .heap_limit(Some(MAX_HEAP_BYTES))
            .max_matches(Some(self.limit as u64))
            .build()
    }

    fn with_context(&self, root: &Path, file: &Path, found: Vec<(u64, String)>) -> Vec<Hit> {
        let path = path::relative(file, root);
        let hit = |line, lines| Hit {
            path: path.clone(),
            line,
            lines,
        };
        if self.context == 0 || found.is_empty() {
            return found
                .into_iter()
                .map(|(line, text)| hit(line, vec![(line, text)]))
                .collect();
        }
        let Ok(bytes) = pinion_files::read(file, MAX_CONTEXT_FILE_BYTES) else {
            let unreadable = |line| hit(line, vec![(line, "(unable to read file)".into())]);
            return found
                .into_iter()
                .map(|(line, _)| unreadable(line))
                .collect();
        };
        let all: Vec<&[u8]> = bytes.split(|&byte| byte == b'\n').collect();
        let mut stored = 0;
        let mut around = |line: u64| -> Vec<(u64, String)> {
            let index = line as usize - 1;
            let first = index.saturating_sub(self.context);
            let end = all
                .len()
                .min(index.saturating_add(self.context).saturating_add(1));
            let lines = (first..end).map(|index| (index as u64 + 1, plain(all[index])));
            lines
                .take_while(|(_, text)| {
                    stored += text.len() + LINE_OVERHEAD;
                    stored <= MAX_STORED_BYTES
                })
                .collect()
        };
        let hits = found.into_iter().map(|(line, _)| hit(line, around(line)));
        hits.take_while(|hit| !hit.lines.is_empty()).collect()
    }
}

/// A line without its end and without carriage returns, cut to its maximal length.
fn plain(line: &[u8]) -> String {
    let line = &line[..line.len().min(MAX_LINE_BYTES)];
    String::from_utf8_lossy(line).replace(['\r', '\n'], "")
}

/// Collects numbers and texts of lines.
#[derive(Default)]
struct Lines {
    found: Vec<(u64, String)>,
    stored: usize,
}

impl Sink for Lines {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, line: &SinkMatch<'_>) -> Result<bool, io::Error> {
        let text = plain(line.bytes());
        self.stored += text.len() + LINE_OVERHEAD;
        self.found.push((line.line_number().unwrap_or(1), text));
        Ok(self.stored <= MAX_STORED_BYTES)
    }
}

/// A file that ends when the search is cancelled.
struct Interruptible<'a> {
    file: std::fs::File,
    cancel: &'a CancellationToken,
}

impl Read for Interruptible<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cancel.is_cancelled() {
            return Err(io::ErrorKind::Other.into());
        }
        self.file.read(buffer)
    }
}
