//! A registry in a directory: an index, with archives beside it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use pinion_files::Replace;
use pinion_text::hex;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::address::INDEX;
use super::{Publication, Release};
use crate::source::PackageName;
use crate::{ClipError, Code, files};

/// Reads the index of a directory.
pub(super) fn index(directory: &Path) -> Result<Value, ClipError> {
    let path = directory.join(INDEX);
    let text = files::read_if_present(&path)
        .and_then(|text| text.ok_or_else(|| Errno::ENOENT.into()))
        .map_err(|error| ClipError::io(path.display(), &error))?;
    parse(&path, &text)
}

fn parse(path: &Path, text: &[u8]) -> Result<Value, ClipError> {
    serde_json::from_slice(text).map_err(|error| {
        let message = format!("{} is not JSON: {error}", path.display());
        ClipError::new(Code::FailedPrecondition, message)
    })
}

/// Returns the path of the archive of a version. It must lie beneath the directory.
pub(super) fn archive(directory: &Path, release: &Release) -> Result<PathBuf, ClipError> {
    let path = directory.join(&release.tarball);
    let io_error = |error: io::Error| ClipError::io(path.display(), &error);
    let root = directory.canonicalize().map_err(io_error)?;
    let found = path.canonicalize().map_err(io_error)?;
    if !found.starts_with(&root) || !found.is_file() {
        let message = format!(
            "the index of {} names an archive outside of the directory: \"{}\"",
            directory.display(),
            release.tarball
        );
        return Err(ClipError::new(Code::FailedPrecondition, message));
    }
    Ok(found)
}

/// Adds a version: first its archive, then its entry in the index.
pub(super) fn publish(
    directory: &Path,
    package: &PackageName,
    publication: &Publication,
) -> Result<(), ClipError> {
    let version = publication.text("version");
    change(directory, |index| {
        let entry = package_entry(index, package);
        if entry["versions"].get(&version).is_some() {
            return Err(ClipError::new(
                Code::AlreadyExists,
                format!(
                    "version {version} of {package} is already published and cannot be changed; publish another version"
                ),
            ));
        }
        let file = format!("{}-{}-{version}.tgz", package.scope, package.name);
        let place = directory.join(&file);
        pinion_files::replace(&place, &publication.archive, Replace::USER)
            .map_err(|error| ClipError::io(place.display(), &error))?;
        for key in ["type", "description", "domain"] {
            entry[key] = publication.text(key).into();
        }
        let tag = publication.tag.as_deref().unwrap_or("latest");
        entry["dist-tags"][tag] = version.clone().into();
        entry["versions"][&version] = json!({
            "dist": {
                "tarball": file,
                "shasum": hex::encode(&Sha256::digest(&publication.archive)),
                "size": publication.archive.len(),
            },
            "pinix": publication.metadata,
        });
        Ok(())
    })
}

/// Sets the version that a tag refers to.
pub(super) fn tag(
    directory: &Path,
    package: &PackageName,
    tag: &str,
    version: &str,
) -> Result<(), ClipError> {
    change(directory, |index| {
        let entry = package_entry(index, package);
        if entry["versions"].get(version).is_none() {
            let message = format!("{package} has no version \"{version}\"");
            return Err(ClipError::new(Code::NotFound, message));
        }
        entry["dist-tags"][tag] = version.into();
        Ok(())
    })
}

fn package_entry<'a>(index: &'a mut Value, package: &PackageName) -> &'a mut Value {
    let entry = &mut index["packages"][package.to_string()];
    if !entry.is_object() {
        *entry = Value::Object(Map::new());
    }
    for key in ["dist-tags", "versions"] {
        if !entry[key].is_object() {
            entry[key] = Value::Object(Map::new());
        }
    }
    entry
}

/// Changes the index under a lock. An index that is not valid is left unchanged.
fn change(
    directory: &Path,
    change: impl FnOnce(&mut Value) -> Result<(), ClipError>,
) -> Result<(), ClipError> {
    let path = directory.join(INDEX);
    let io_error = |error: io::Error| ClipError::io(path.display(), &error);
    fs::create_dir_all(directory).map_err(io_error)?;
    let lock = directory.join("index.json.lock");
    let _lock = files::lock(&lock).map_err(|error| ClipError::io(lock.display(), &error))?;
    let mut index = match files::read_if_present(&path) {
        Ok(Some(text)) => parse(&path, &text)?,
        Ok(None) => json!({"packages": {}}),
        Err(error) => return Err(io_error(error)),
    };
    let shape = index.as_object().map(|index| index.get("packages"));
    if !shape.is_some_and(|packages| packages.is_none_or(Value::is_object)) {
        let message = format!("{} is not an index of packages", path.display());
        return Err(ClipError::new(Code::FailedPrecondition, message));
    }
    change(&mut index)?;
    files::replace_for_all(&path, &index).map_err(io_error)
}
