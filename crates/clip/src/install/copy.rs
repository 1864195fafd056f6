//! Copies the directory of a package.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::{MAX_BYTES, MAX_ENTRIES};
use crate::bindings;
use crate::{ClipError, Code};

/// Excluded from packages: the history, and the dependencies that are installed anew.
const LEFT_OUT: [&str; 2] = [".git", "node_modules"];

/// Counts the files and bytes of a package and fails at the limits.
#[derive(Debug, Default)]
pub(super) struct Budget {
    entries: usize,
    bytes: u64,
}

impl Budget {
    pub(super) fn entry(&mut self) -> Result<(), ClipError> {
        self.entries += 1;
        if self.entries > MAX_ENTRIES {
            let message = format!("the package has more than {MAX_ENTRIES} files");
            return Err(ClipError::new(Code::ResourceExhausted, message));
        }
        Ok(())
    }

    /// Returns how many more bytes the package may have.
    pub(super) fn left(&self) -> u64 {
        MAX_BYTES - self.bytes
    }

    pub(super) fn bytes(&mut self, count: u64) -> Result<(), ClipError> {
        if count > self.left() {
            let message = "the package has more than 512 MiB";
            return Err(ClipError::new(Code::ResourceExhausted, message));
        }
        self.bytes += count;
        Ok(())
    }
}

/// Copies `source` into `target`, which must exist and be empty.
pub(super) fn directory(source: &Path, target: &Path) -> Result<(), ClipError> {
    let mut budget = Budget::default();
    let mut links = Links::new(target);
    let mut directories = vec![PathBuf::new()];
    while let Some(relative) = directories.pop() {
        let from = source.join(&relative);
        let io_error = |error: io::Error| ClipError::io(from.display(), &error);
        for entry in fs::read_dir(&from).map_err(io_error)? {
            let entry = entry.map_err(io_error)?;
            let name = entry.file_name();
            if LEFT_OUT.iter().any(|left_out| name == *left_out) {
                continue;
            }
            budget.entry()?;
            let relative = relative.join(&name);
            let kind = entry.file_type().map_err(io_error)?;
            if kind.is_dir() {
                fs::create_dir(target.join(&relative)).map_err(io_error)?;
                directories.push(relative);
            } else if kind.is_symlink() {
                links.add(relative, fs::read_link(entry.path()).map_err(io_error)?)?;
            } else if kind.is_file() {
                let file = pinion_files::open(&entry.path()).map_err(io_error)?;
                let mode = file.metadata().map_err(io_error)?.permissions().mode();
                let limit = budget.left() + 1;
                let copied = write_file(&target.join(&relative), file, limit, mode);
                budget.bytes(copied.map_err(io_error)?)?;
            }
            // Sockets and pipes are skipped, because they are not part of a program.
        }
    }
    links.make()
}

/// Writes at most `limit` bytes and returns their number.
pub(super) fn write_file(
    path: &Path,
    source: impl io::Read,
    limit: u64,
    mode: u32,
) -> io::Result<u64> {
    let mut file = pinion_files::create_or_empty(path, 0o600)?;
    let count = io::copy(&mut source.take(limit), &mut file)?;
    // Permissions to read, write and run are copied, the set-id and sticky bits are not. Files of bindings hold
    // secrets.
    let mode = match path.file_name() {
        Some(name) if name == bindings::FILE => 0o600,
        _ => mode & 0o777 | 0o600,
    };
    file.set_permissions(fs::Permissions::from_mode(mode))?;
    Ok(count)
}

/// The links of a package. They are created last, so that nothing is written through one, and must lead to something
/// inside the package.
#[derive(Debug)]
pub(super) struct Links<'a> {
    target: &'a Path,
    links: Vec<(PathBuf, PathBuf)>,
}

impl<'a> Links<'a> {
    pub(super) fn new(target: &'a Path) -> Self {
        Self {
            target,
            links: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, at: PathBuf, to: PathBuf) -> Result<(), ClipError> {
        if to.is_absolute() {
            return Err(leads_out(&at));
        }
        self.links.push((at, to));
        Ok(())
    }

    pub(super) fn make(self) -> Result<(), ClipError> {
        for (at, to) in &self.links {
            let path = self.target.join(at);
            symlink(to, &path).map_err(|error| {
                ClipError::invalid(format!(
                    "the package cannot be unpacked: {}: {error}",
                    at.display()
                ))
            })?;
        }
        let root = self.target.canonicalize();
        let root = root.map_err(|error| ClipError::io(self.target.display(), &error))?;
        for (at, _) in &self.links {
            let target = self.target.join(at).canonicalize();
            if !target.is_ok_and(|target| target.starts_with(&root)) {
                return Err(leads_out(at));
            }
        }
        Ok(())
    }
}

fn leads_out(at: &Path) -> ClipError {
    ClipError::invalid(format!(
        "the package has a link that leads out of it or to a missing file: \"{}\"",
        at.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_are_written() {
        let dir = tempfile::tempdir().unwrap();
        let device = dir.path().join("device");
        symlink("/dev/null", &device).unwrap();
        let error = write_file(&device, &b"x"[..], 9, 0o644).unwrap_err();
        assert_eq!(error.to_string(), "is a device, not a regular file");
        let file = dir.path().join("file");
        fs::write(&file, "longer").unwrap();
        assert_eq!(write_file(&file, &b"new"[..], 9, 0o755).unwrap(), 3);
        assert_eq!(fs::read(&file).unwrap(), b"new");
        let mode = file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o755);
    }

    #[test]
    fn a_package_has_limits() {
        let mut budget = Budget::default();
        budget.bytes(MAX_BYTES).unwrap();
        assert_eq!(budget.left(), 0);
        assert_eq!(budget.bytes(1).unwrap_err().code, Code::ResourceExhausted);
        for _ in 0..MAX_ENTRIES {
            budget.entry().unwrap();
        }
        assert_eq!(budget.entry().unwrap_err().code, Code::ResourceExhausted);
    }
}
