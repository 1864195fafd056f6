//! The file a log goes to, rotated once, and its lines.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::{Level, ORIGINS, Origin};

/// A file is not made longer than this.
pub(super) const MAX_FILE: u64 = 1024 * 1024;
/// How much of an earlier file is read back.
const READ_BACK: u64 = 256 * 1024;
const STAMP: &str = "%Y-%m-%dT%H:%M:%S%.3f%:z";

/// Where lines are kept for later.
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
    /// A log that cannot be written is kept in memory only: a clip does not fail for it.
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
                // A full file that stays must not grow without end.
                Err(error) if error.kind() != io::ErrorKind::NotFound => Self::None,
                _ => Self::open(path.clone()),
            };
            return self.write(time, level, origin, message);
        }
        if file.write_all(line.as_bytes()).is_ok() {
            *length += line.len() as u64;
        }
    }

    /// All that is in the files, the older one first; of files that somebody else has made longer, the end.
    pub(super) fn texts(&self) -> Vec<String> {
        let Self::Open { path, .. } = self else {
            return Vec::new();
        };
        let files = [&rotated(path), path];
        let texts = files.map(|path| end_of(path, MAX_FILE).unwrap_or_default());
        texts.into()
    }
}

/// Where a file goes that is long enough.
fn rotated(path: &Path) -> PathBuf {
    let mut old = path.as_os_str().to_owned();
    old.push(".1");
    old.into()
}

/// `[time] line` for error output, `[time] [origin level] line` for the rest.
pub(super) fn print(time: Timestamp, level: Level, origin: Origin, message: &str) -> String {
    let time = time.to_zoned(TimeZone::system()).strftime(STAMP);
    let message = message.replace('\n', "\\n");
    match origin {
        Origin::Stderr => format!("[{time}] {message}\n"),
        origin => format!("[{time}] [{} {}] {message}\n", origin.name(), level.name()),
    }
}

/// Understands a line of the file.
pub(super) fn parse(line: &str) -> Option<(Timestamp, Level, Origin, &str)> {
    let (time, message) = line.strip_prefix('[')?.split_once("] ")?;
    let time: Timestamp = time.parse().ok()?;
    let said = message.strip_prefix('[').and_then(|rest| {
        let (label, message) = rest.split_once("] ")?;
        let (origin, level) = label.split_once(' ')?;
        let origin = ORIGINS
            .into_iter()
            .find(|known| *known != Origin::Stderr && known.name() == origin)?;
        Some((time, Level::named(level)?, origin, message))
    });
    Some(said.unwrap_or((time, Level::of_line(message), Origin::Stderr, message)))
}

/// What is remembered of an earlier file.
pub(super) fn read_back(path: &Path) -> io::Result<String> {
    end_of(path, READ_BACK)
}

/// The last bytes of a file.
fn end_of(path: &Path, most: u64) -> io::Result<String> {
    let mut file = pinion_files::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(most)))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
