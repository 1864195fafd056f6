//! The file of a log, which is rotated once, and the format of its lines.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::{Level, ORIGINS, Origin};

/// The greatest length of a file, in bytes.
pub(super) const MAX_FILE: u64 = 1024 * 1024;
/// Bytes of an earlier file that are read back.
const READ_BACK: u64 = 256 * 1024;
const STAMP: &str = "%Y-%m-%dT%H:%M:%S%.3f%:z";

/// The file that lines are written to.
#[derive(Debug)]
pub(super) enum LogFile {
    None,
    Unopened(PathBuf),
    Open {
        path: PathBuf,
        file: File,
        length: u64,
    },
}

impl LogFile {
    /// Opens the file. If that fails, the log exists in memory only: a clip must not fail because of its log.
    pub(super) fn open(path: PathBuf) -> Self {
        if let Some(parent) = path.parent() {
            let _ = fs::create_dir_all(parent);
        }
        let mut options = OpenOptions::new();
        options.append(true).create(true).mode(0o600);
        match pinion_files::open_with(&mut options, &path) {
            Ok(file) => Self::Open {
                length: file.metadata().map_or(0, |metadata| metadata.len()),
                path,
                file,
            },
            Err(_) => Self::None,
        }
    }

    pub(super) fn write(&mut self, time: Timestamp, level: Level, origin: Origin, message: &str) {
        let Self::Open { path, file, length } = self else {
            return;
        };
        let line = print(time, level, origin, message);
        if *length > 0 && *length + line.len() as u64 > MAX_FILE {
            let old = rotated(path);
            let renamed = pinion_files::rename(path, &old);
            *self = match renamed {
                // A full file that cannot be renamed must not grow further.
                Err(error) if error.kind() != io::ErrorKind::NotFound => Self::None,
                _ => Self::open(path.clone()),
            };
            return self.write(time, level, origin, message);
        }
        if file.write_all(line.as_bytes()).is_ok() {
            *length += line.len() as u64;
        }
    }

    /// Reads both files, the older one first. Of a file that another program has made longer than [`MAX_FILE`], only
    /// the end is read.
    pub(super) fn texts(&self) -> Vec<String> {
        let Self::Open { path, .. } = self else {
            return Vec::new();
        };
        let files = [&rotated(path), path];
        let texts = files.map(|path| end_of(path, MAX_FILE).unwrap_or_default());
        texts.into()
    }
}

/// Returns the path of the rotated file.
fn rotated(path: &Path) -> PathBuf {
    let mut old = path.as_os_str().to_owned();
    old.push(".1");
    old.into()
}

/// Formats a line: `[time] line` for stderr, `[time] [origin level] line` for everything else.
pub(super) fn print(time: Timestamp, level: Level, origin: Origin, message: &str) -> String {
    let time = time.to_zoned(TimeZone::system()).strftime(STAMP);
    let message = message.replace('\n', "\\n");
    match origin {
        Origin::Stderr => format!("[{time}] {message}\n"),
        origin => format!("[{time}] [{} {}] {message}\n", origin.name(), level.name()),
    }
}

/// Parses a line of the file.
pub(super) fn parse(line: &str) -> Option<(Timestamp, Level, Origin, &str)> {
    let (time, message) = line.strip_prefix('[')?.split_once("] ")?;
    let time: Timestamp = time.parse().ok()?;
    let labelled = message.strip_prefix('[').and_then(|rest| {
        let (label, message) = rest.split_once("] ")?;
        let (origin, level) = label.split_once(' ')?;
        let origin = ORIGINS
            .into_iter()
            .find(|known| *known != Origin::Stderr && known.name() == origin)?;
        Some((time, Level::named(level)?, origin, message))
    });
    Some(labelled.unwrap_or((time, Level::of_line(message), Origin::Stderr, message)))
}

/// Reads the end of an earlier file.
pub(super) fn read_back(path: &Path) -> io::Result<String> {
    end_of(path, READ_BACK)
}

/// Returns the last `most` bytes of a file.
fn end_of(path: &Path, most: u64) -> io::Result<String> {
    let mut file = pinion_files::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(most)))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
