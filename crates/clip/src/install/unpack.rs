//! Unpacks archives, which are untrusted.

use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Component, Path, PathBuf};

use flate2::read::MultiGzDecoder;
use pinion_text::hex;
use sha1::Sha1;
use sha2::{Digest, Sha256};
use tar::EntryType;

use super::copy::{Budget, Links, write_file};
use crate::{ClipError, Code};

/// The largest archive, in bytes.
pub(crate) const MAX_ARCHIVE: u64 = 256 * 1024 * 1024;

/// Unpacks `archive` into `target`, which must exist and be empty. The checksum is SHA-256 in 64 hexadecimal digits or
/// SHA-1 in 40. An archive without a checksum is a local file of the user or was verified by npm.
pub(super) fn archive(
    archive: &Path,
    checksum: Option<&str>,
    target: &Path,
) -> Result<(), ClipError> {
    let io_error = |error: io::Error| ClipError::io(archive.display(), &error);
    let mut file = pinion_files::open(archive).map_err(io_error)?;
    if file.metadata().map_err(io_error)?.len() > MAX_ARCHIVE {
        let message = format!("{} is larger than 256 MiB", archive.display());
        return Err(ClipError::new(Code::ResourceExhausted, message));
    }
    if let Some(expected) = checksum {
        verify(&mut file, expected.trim(), archive)?;
    }
    let file = pinion_files::open(archive).map_err(io_error)?;
    unpack(MultiGzDecoder::new(BufReader::new(file)), target)
}

fn verify(file: &mut File, expected: &str, archive: &Path) -> Result<(), ClipError> {
    let is_hex = expected.bytes().all(|byte| byte.is_ascii_hexdigit());
    let found = match (expected.len(), is_hex) {
        (64, true) => digest::<Sha256>(file),
        (40, true) => digest::<Sha1>(file),
        _ => {
            return Err(ClipError::invalid(
                "the package has no checksum that can be checked: 64 hexadecimal digits of SHA-256 or 40 of SHA-1",
            ));
        }
    };
    let found = found.map_err(|error| ClipError::io(archive.display(), &error))?;
    if !found.eq_ignore_ascii_case(expected) {
        return Err(ClipError::new(
            Code::FailedPrecondition,
            format!(
                "the package is damaged or was changed: its checksum is {found}, not {expected}"
            ),
        ));
    }
    Ok(())
}

fn digest<D: Digest>(file: &mut File) -> io::Result<String> {
    let mut digest = D::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            count => digest.update(&buffer[..count]),
        }
    }
    Ok(hex::encode(&digest.finalize()))
}

fn unpack(stream: impl Read, target: &Path) -> Result<(), ClipError> {
    let io_error =
        |error: io::Error| ClipError::invalid(format!("the package cannot be unpacked: {error}"));
    let mut budget = Budget::default();
    let mut links = Links::new(target);
    // Headers and skipped entries count too, because an archive may consist of nothing else.
    let mut tar = tar::Archive::new(stream.take(super::MAX_BYTES * 2));
    for entry in tar.entries().map_err(io_error)? {
        let entry = entry.map_err(io_error)?;
        let kind = entry.header().entry_type();
        if kind == EntryType::XGlobalHeader {
            continue;
        }
        budget.entry()?;
        let path = entry.path().map_err(io_error)?.into_owned();
        let relative = inside(&path)?;
        if relative.as_os_str().is_empty() {
            continue;
        }
        let place = target.join(&relative);
        match kind {
            EntryType::Directory => fs::create_dir_all(&place).map_err(io_error)?,
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                if let Some(parent) = place.parent() {
                    fs::create_dir_all(parent).map_err(io_error)?;
                }
                let mode = entry.header().mode().unwrap_or(0o644);
                let limit = budget.left() + 1;
                let count = write_file(&place, entry, limit, mode).map_err(io_error)?;
                budget.bytes(count)?;
            }
            EntryType::Symlink => {
                let to = entry.link_name().map_err(io_error)?.unwrap_or_default();
                if let Some(parent) = place.parent() {
                    fs::create_dir_all(parent).map_err(io_error)?;
                }
                links.add(relative, to.into_owned())?;
            }
            other => {
                return Err(ClipError::invalid(format!(
                    "the package has an entry of an unsupported kind ({other:?}): \"{}\"",
                    path.display()
                )));
            }
        }
    }
    links.make()
}

/// Returns the path of an entry without a leading `./` and `package/`. A path that leads out of the package is
/// rejected.
fn inside(path: &Path) -> Result<PathBuf, ClipError> {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::Normal(name) => names.push(name),
            _ => {
                return Err(ClipError::invalid(format!(
                    "the package has an entry that leads out of it: \"{}\"",
                    path.display()
                )));
            }
        }
    }
    let start = usize::from(names.first().is_some_and(|name| *name == "package"));
    Ok(names[start..].iter().collect())
}
