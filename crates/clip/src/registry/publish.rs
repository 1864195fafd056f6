//! Prepares a package for publishing: its metadata and its archive.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Map, Value, json};
use tar::{EntryType, Header};

use crate::manifest::Manifest;
use crate::package::{Package, json_object};
use crate::source::{PackageName, checked_version};
use crate::{ClipError, Code};

/// Never part of a package: the history, installed dependencies, the user's bindings, and the list of ignored files.
const LEFT_OUT: [&str; 4] = [".git", "node_modules", "bindings.json", ".pinixignore"];
/// The longest archive that is published, in bytes.
const MAX_ARCHIVE: usize = 64 * 1024 * 1024;

/// A version of a package that is ready to be published.
#[derive(Debug, Clone)]
pub struct Publication {
    /// The package's description for the registry.
    pub metadata: Value,
    /// The gzipped tar archive.
    pub archive: Bytes,
    /// The tag that will refer to this version; `latest` if `None`.
    pub tag: Option<String>,
}

impl Publication {
    /// Packs the directory of a package. `manifest` is the manifest that the clip registered.
    pub(crate) fn new(
        package: &Package,
        manifest: &Manifest,
        tag: Option<&str>,
    ) -> Result<Self, ClipError> {
        let metadata = metadata(package, manifest)?;
        let tag = tag.map(checked_version).transpose()?;
        let archive = pack(&package.directory)?;
        if archive.len() > MAX_ARCHIVE {
            let message = "the package is larger than 64 MiB; leave files out with .pinixignore";
            return Err(ClipError::new(Code::ResourceExhausted, message));
        }
        Ok(Self {
            metadata,
            archive: archive.into(),
            tag,
        })
    }

    pub(super) fn text(&self, key: &str) -> String {
        let text = self.metadata.get(key).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    }

    /// Returns the content type and the body of the request.
    pub(super) fn multipart(&self) -> Result<(String, Bytes), ClipError> {
        let boundary = format!("pinion-{}", uuid::Uuid::new_v4());
        let mut body = Vec::with_capacity(self.archive.len() + 4096);
        let mut part = |header: &str, content: &[u8]| {
            let start = format!("--{boundary}\r\nContent-Disposition: form-data; {header}\r\n\r\n");
            body.extend_from_slice(start.as_bytes());
            body.extend_from_slice(content);
            body.extend_from_slice(b"\r\n");
        };
        part("name=\"metadata\"", self.metadata.to_string().as_bytes());
        if let Some(tag) = &self.tag {
            part("name=\"tag\"", tag.as_bytes());
        }
        let header = "name=\"tarball\"; filename=\"package.tgz\"\r\nContent-Type: application/gzip";
        part(header, &self.archive);
        body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
        let content_type = format!("multipart/form-data; boundary={boundary}");
        Ok((content_type, body.into()))
    }
}

fn metadata(package: &Package, manifest: &Manifest) -> Result<Value, ClipError> {
    let name: PackageName = manifest.package.parse()?;
    let incomplete = |what: &str| {
        ClipError::new(
            Code::FailedPrecondition,
            format!("{name} cannot be published without {what}"),
        )
    };
    if manifest.version.is_empty() {
        return Err(incomplete("a version"));
    }
    checked_version(&manifest.version)?;
    if manifest.description.is_empty() {
        return Err(incomplete("a description"));
    }
    if manifest.commands.is_empty() {
        return Err(incomplete("any command"));
    }
    refuse_local_dependencies(manifest)?;
    let mut metadata = Map::new();
    let mut put = |key: &str, value: Value| {
        metadata.insert(key.to_owned(), value);
    };
    put("name", name.to_string().into());
    put("version", manifest.version.clone().into());
    put(
        "type",
        if package.is_edge { "edge-clip" } else { "clip" }.into(),
    );
    put("description", manifest.description.clone().into());
    put("domain", manifest.domain.clone().into());
    put("runtime", package.runtime.name().into());
    put("main", package.main.clone().into());
    put("web", package.web.clone().into());
    let files = json_object(&package.directory.join("clip.json"))?.unwrap_or_default();
    for key in ["author", "license", "repository"] {
        if let Some(value) = files.get(key) {
            put(key, value.clone());
        }
    }
    put("commands", json!(manifest.commands));
    put("dependencies", json!(manifest.dependencies));
    put("patterns", json!(manifest.patterns));
    Ok(Value::Object(metadata))
}

/// Fails if a package depends on a package that exists on one machine only.
pub(crate) fn refuse_local_dependencies(manifest: &Manifest) -> Result<(), ClipError> {
    let mut packages = manifest.dependencies.values();
    match packages.find(|dependency| dependency.package.starts_with("local/")) {
        Some(local) => Err(ClipError::new(
            Code::FailedPrecondition,
            format!(
                "{} depends on {}, which exists on one machine only; a package of a registry must not",
                manifest.package, local.package
            ),
        )),
        None => Ok(()),
    }
}

/// Packs a directory without its ignored files, always in the same order.
fn pack(directory: &Path) -> Result<Vec<u8>, ClipError> {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    let ignored = Ignored::read(directory)?;
    let mut pending = vec![PathBuf::new()];
    while let Some(relative) = pending.pop() {
        let place = directory.join(&relative);
        let io_error = |error: io::Error| ClipError::io(place.display(), &error);
        let metadata = fs::symlink_metadata(&place).map_err(io_error)?;
        if metadata.is_dir() {
            let mut names = Vec::new();
            for entry in fs::read_dir(&place).map_err(io_error)? {
                names.push(relative.join(entry.map_err(io_error)?.file_name()));
            }
            names.retain(|name| !ignored.has(name));
            names.sort_by(|left, right| right.cmp(left));
            pending.extend(names);
            continue;
        }
        let mut header = Header::new_gnu();
        let is_program = !metadata.permissions().readonly() && is_executable(&metadata);
        header.set_mode(if is_program { 0o755 } else { 0o644 });
        let name = Path::new("package").join(&relative);
        if metadata.is_symlink() {
            let to = fs::read_link(&place).map_err(io_error)?;
            header.set_entry_type(EntryType::Symlink);
            header.set_size(0);
            tar.append_link(&mut header, name, to).map_err(io_error)?;
        } else if metadata.is_file() {
            header.set_size(metadata.len());
            let file = pinion_files::open(&place).map_err(io_error)?;
            tar.append_data(&mut header, name, file).map_err(io_error)?;
        }
    }
    let packed = tar.into_inner().and_then(GzEncoder::finish);
    packed.map_err(|error| ClipError::io(directory.display(), &error))
}

fn is_executable(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o100 != 0
}

/// The files that are left out of a package.
struct Ignored {
    patterns: Vec<String>,
    /// The sources of web pages, which are left out if the pages were built.
    sources: Option<PathBuf>,
}

impl Ignored {
    fn read(directory: &Path) -> Result<Self, ClipError> {
        let path = directory.join(".pinixignore");
        let text = match pinion_files::read_text(&path, 1 << 20) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(ClipError::io(path.display(), &error)),
        };
        let lines = text.lines().map(str::trim);
        let patterns = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        let built = directory.join("web/dist").is_dir();
        Ok(Self {
            patterns: patterns
                .map(|pattern| pattern.trim_matches('/').to_owned())
                .collect(),
            sources: built.then(|| PathBuf::from("web/src")),
        })
    }

    /// Matches each pattern against the first name of a path and against the whole path.
    fn has(&self, relative: &Path) -> bool {
        let name = relative.file_name().unwrap_or_default();
        if LEFT_OUT.iter().any(|left_out| name == *left_out)
            || self.sources.as_deref() == Some(relative)
        {
            return true;
        }
        let whole = relative.to_string_lossy();
        let top = whole.split('/').next().unwrap_or_default();
        let mut patterns = self.patterns.iter();
        patterns.any(|pattern| matches(pattern, top) || matches(pattern, &whole))
    }
}

/// Matches `text` against a pattern: `*` matches any characters but `/`, `**` any characters, `?` one character but
/// `/`.
fn matches(pattern: &str, text: &str) -> bool {
    let mut letters = pattern.chars();
    match letters.next() {
        None => text.is_empty(),
        Some('*') => {
            let rest = letters.as_str();
            let (rest, crosses) = match rest.strip_prefix('*') {
                Some(rest) => (rest, true),
                None => (rest, false),
            };
            let ends = text
                .char_indices()
                .map(|(index, letter)| (index, Some(letter)));
            for (index, letter) in ends.chain([(text.len(), None)]) {
                if matches(rest, &text[index..]) {
                    return true;
                }
                if letter == Some('/') && !crosses {
                    return false;
                }
            }
            false
        }
        Some(wanted) => {
            let mut left = text.chars();
            let fits = |letter: char| wanted == letter || wanted == '?' && letter != '/';
            left.next().is_some_and(fits) && matches(letters.as_str(), left.as_str())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_names_and_paths() {
        for (pattern, text) in [
            ("*.log", "a.log"),
            ("test*", "tests"),
            ("a/*.ts", "a/b.ts"),
            ("a/**", "a/b/c.ts"),
            ("**/x", "a/b/x"),
            ("?.ts", "a.ts"),
            ("", ""),
            ("*", "anything"),
        ] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [
            ("*.log", "a/b.log"),
            ("a/*.ts", "a/b/c.ts"),
            ("?", ""),
            ("?", "/"),
            ("a", "ab"),
            ("a*b", "ac"),
        ] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn ignored_files_are_not_packed() {
        let place = tempfile::tempdir().unwrap();
        for name in [
            "clip.json",
            "run.sh",
            ".git/HEAD",
            "node_modules/x/index.js",
            "lib/node_modules/y.js",
            "bindings.json",
            "src/bindings.json",
            "tests/a.txt",
            "notes.log",
            "lib/deep.log",
            "web/dist/index.html",
            "web/src/app.ts",
            "docs/a/secret.md",
        ] {
            let path = place.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, name).unwrap();
        }
        let ignored = "# what stays\n*.log\n\n/tests/\ndocs/**/secret.md\n";
        fs::write(place.path().join(".pinixignore"), ignored).unwrap();
        let packed = pack(place.path()).unwrap();
        assert_eq!(packed, pack(place.path()).unwrap(), "twice the same");
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(&packed[..]));
        let names: Vec<String> = archive
            .entries()
            .unwrap()
            .map(|entry| entry.unwrap().path().unwrap().display().to_string())
            .collect();
        assert_eq!(
            names,
            [
                "package/clip.json",
                "package/lib/deep.log",
                "package/run.sh",
                "package/web/dist/index.html"
            ]
        );
    }
}
