//! Unpacks the archives that npm makes, without npm.

use std::fs;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use tar::{Archive, EntryType};

/// The largest unpacked size in bytes; it stops archives that expand without end.
const LARGEST: u64 = 1 << 30;

/// Reports whether a file has the name of an archive.
pub(super) fn is_archive(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy());
    name.is_some_and(|name| {
        [".tgz", ".tar.gz", ".tar"]
            .iter()
            .any(|end| name.ends_with(end))
    })
}

/// Unpacks an archive into `directory` and returns the one directory in it. Only files and directories are unpacked,
/// because a package needs no links or devices; a path outside `directory` is an error.
pub(super) fn unpack(archive: &Path, directory: &Path) -> io::Result<PathBuf> {
    let file = BufReader::new(pinion_files::open(archive)?);
    let reader: Box<dyn Read> = if archive.extension().is_some_and(|end| end == "tar") {
        Box::new(file)
    } else {
        Box::new(GzDecoder::new(file))
    };
    fs::create_dir_all(directory)?;
    let mut archive = Archive::new(reader.take(LARGEST));
    archive.set_preserve_permissions(false);
    archive.set_preserve_mtime(false);
    for entry in archive.entries()? {
        let mut entry = entry?;
        let kind = entry.header().entry_type();
        if matches!(
            kind,
            EntryType::Regular | EntryType::Continuous | EntryType::Directory
        ) && !entry.unpack_in(directory)?
        {
            let path = entry.path()?.display().to_string();
            let message = format!("{path} would be written outside of the package");
            return Err(io::Error::other(message));
        }
    }
    let mut entries: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(directory)? {
        entries.push(entry?.path());
    }
    match entries.as_slice() {
        [only] if only.is_dir() => Ok(only.clone()),
        _ => Err(io::Error::other(
            "a package's archive holds one directory, as `npm pack` makes it",
        )),
    }
}
