//! Reads text files of unknown origin: regular files only, up to a size limit, also with invalid
//! bytes.

use std::io;
use std::path::Path;

/// Bytes; more than any prompt, skill or settings file needs. A larger file is a mistake or an
/// attack.
pub(crate) const MAX_TEXT_BYTES: u64 = 8 * 1024 * 1024;

/// Reads a text file; invalid UTF-8 becomes U+FFFD and a byte order mark is dropped.
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    let mut bytes = pinion_files::read(path, MAX_TEXT_BYTES)?;
    if bytes.starts_with(b"\xEF\xBB\xBF") {
        bytes.drain(..3);
    }
    Ok(text_from(bytes))
}

/// Bytes as text; invalid UTF-8 becomes U+FFFD.
pub(crate) fn text_from(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Like [`read_text`], but a file that does not exist is `None`.
pub(crate) fn read_text_if_present(path: &Path) -> io::Result<Option<String>> {
    match read_text(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reports whether the file does not exist, as opposed to being unreadable.
pub(crate) fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;

    #[test]
    fn devices_directories_and_huge_files_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        assert!(read_text(Path::new("/dev/zero")).is_err());
        assert!(read_text(dir.path()).is_err());
        let huge = dir.path().join("huge");
        File::create(&huge)
            .unwrap()
            .set_len(MAX_TEXT_BYTES + 1)
            .unwrap();
        assert!(read_text(&huge).is_err());
    }

    #[test]
    fn bad_bytes_and_byte_order_marks_are_tolerated() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        fs::write(&file, b"\xEF\xBB\xBFa\xFFb").unwrap();
        assert_eq!(read_text(&file).unwrap(), "a\u{FFFD}b");
        assert_eq!(
            read_text_if_present(&dir.path().join("none")).unwrap(),
            None
        );
    }
}
