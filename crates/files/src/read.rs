//! Reads regular files up to a limit.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// Reads a regular file of at most `limit` bytes.
///
/// A larger file is an error of kind `FileTooLarge`, and at most `limit` + 1 bytes of it were read.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_file(crate::open(path)?, limit)
}

/// Like [`read`], for a file that the user named on the command line: it may be a FIFO, see [`crate::open_named`].
pub fn read_named(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_file(crate::open_named(path)?, limit)
}

fn read_file(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let size = file.metadata()?.len();
    if size > limit {
        return Err(too_large(limit));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default() + 1);
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    // FIFOs and files of procfs report a size of 0, and any file may grow while it is read.
    if bytes.len() as u64 > limit {
        return Err(too_large(limit));
    }
    Ok(bytes)
}

/// Like [`read`], with `None` for a file that does not exist.
pub fn read_if_present(path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    match read(path, limit) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Like [`read`], for a file that must be UTF-8.
pub fn read_text(path: &Path, limit: u64) -> io::Result<String> {
    String::from_utf8(read(path, limit)?)
        .map_err(|_| io::Error::new(ErrorKind::InvalidData, "is not UTF-8"))
}

fn too_large(limit: u64) -> io::Error {
    let limit = match limit {
        limit if limit >= 1 << 20 => format!("{} MiB", limit >> 20),
        limit if limit >= 1 << 10 => format!("{} KiB", limit >> 10),
        limit => format!("{limit} bytes"),
    };
    io::Error::new(
        ErrorKind::FileTooLarge,
        format!("is larger than the limit of {limit}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_counts_bytes_and_not_the_reported_size() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, "abc").unwrap();
        assert_eq!(read(&path, 3).unwrap(), b"abc");
        assert_eq!(read(&path, 2).unwrap_err().kind(), ErrorKind::FileTooLarge);
        let procfs = Path::new("/proc/cpuinfo");
        assert_eq!(
            read(procfs, 10).unwrap_err().kind(),
            ErrorKind::FileTooLarge
        );

        // A sparse file of 10 TB: refused before anything is allocated.
        std::fs::File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(10 << 40)
            .unwrap();
        let error = read(&path, 1 << 20).unwrap_err();
        assert_eq!(error.to_string(), "is larger than the limit of 1 MiB");
    }

    #[test]
    fn a_missing_file_is_none() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read_if_present(&dir.path().join("none"), 1).unwrap(), None);
        assert!(read_if_present(dir.path(), 1).is_err());
        let path = dir.path().join("latin1");
        std::fs::write(&path, b"\xe9").unwrap();
        assert_eq!(read_text(&path, 9).unwrap_err().to_string(), "is not UTF-8");
    }
}
