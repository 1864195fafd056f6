//! Sources of clips as users type them on a command line, in the form that a hub expects.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{ClipError, Code};

/// The largest `clip.json` or `package.json` that is read for its name, in bytes.
const MANIFEST_LIMIT: u64 = 4 << 20;

/// A source as the user typed it.
#[derive(Debug, Clone, Copy)]
pub struct TypedSource<'a> {
    /// A path, `local/NAME`, `local/NAME:PATH`, or any other source.
    pub text: &'a str,
    /// The directory or archive of `local/NAME`, if it was given apart.
    pub path: Option<&'a str>,
    /// The registry of packages that name none, if one is chosen.
    pub registry: Option<&'a str>,
    /// The user's directory, for paths that begin with `~/`.
    pub home: &'a Path,
}

impl TypedSource<'_> {
    /// Returns the source in the hub's form: paths are absolute, packages include the address of their registry.
    ///
    /// An invalid source has the code `invalid_argument`, a file that does not exist `not_found`.
    pub fn resolve(&self) -> Result<String, ClipError> {
        let text = self.text;
        if let Some(name) = text.strip_prefix("local/") {
            return match (name.split_once(':'), self.path) {
                (Some((name, path)), _) => Ok(local(name, &self.absolute(path)?)),
                (None, Some(path)) => Ok(local(name, &self.absolute(path)?)),
                (None, None) => Err(ClipError::invalid(format!(
                    "{text} needs --path with its directory"
                ))),
            };
        }
        if self.path.is_some() {
            return Err(ClipError::invalid("--path needs a source local/NAME"));
        }
        if text.starts_with('@') {
            return Ok(match self.registry {
                Some(registry) => format!("registry:{}#{text}", registry.trim_end_matches('/')),
                None => text.to_owned(),
            });
        }
        let elsewhere = ["registry:", "npm/", "github/"];
        if elsewhere.iter().any(|prefix| text.starts_with(prefix)) {
            return Ok(text.to_owned());
        }
        let file = self.absolute(text)?;
        if !file.exists() {
            return Err(ClipError::new(
                Code::NotFound,
                format!(
                    "there is no {text}. A clip comes from ./DIRECTORY, ./ARCHIVE.tgz, @scope/name, npm/NAME, github/USER/REPOSITORY or registry:URL#@scope/name."
                ),
            ));
        }
        Ok(local(&name_of(&file), &file))
    }

    fn absolute(&self, path: &str) -> Result<PathBuf, ClipError> {
        let path = match path.strip_prefix("~/") {
            Some(rest) => self.home.join(rest),
            None => PathBuf::from(path),
        };
        path.canonicalize()
            .or_else(|_| std::path::absolute(&path))
            .map_err(|error| ClipError::io(path.display(), &error))
    }
}

fn local(name: &str, path: &Path) -> String {
    format!("local/{name}:{}", path.display())
}

/// Returns the name in a directory's `clip.json` or `package.json`, else the name of the directory or archive.
fn name_of(path: &Path) -> String {
    let declared = ["clip.json", "package.json"].iter().find_map(|file| {
        let text = pinion_files::read(&path.join(file), MANIFEST_LIMIT).ok()?;
        let manifest: Value = serde_json::from_slice(&text).ok()?;
        let name = manifest["name"].as_str()?;
        Some(name.rsplit('/').next()?.to_owned())
    });
    let file_name = || {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let endings = [".tar.gz", ".tgz"].iter();
        endings
            .fold(name.as_ref(), |name, end| {
                name.strip_suffix(end).unwrap_or(name)
            })
            .to_owned()
    };
    let name = declared
        .filter(|name| !name.is_empty())
        .unwrap_or_else(file_name);
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let name: String = name
        .chars()
        .map(|letter| if fits(letter) { letter } else { '-' })
        .collect();
    match name.trim_matches(['-', '.']) {
        "" => "clip".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(text: &str, path: Option<&str>) -> Result<String, ClipError> {
        let home = Path::new("/nowhere/home");
        let registry = Some("https://registry.example/");
        let typed = TypedSource {
            text,
            path,
            registry,
            home,
        };
        typed.resolve()
    }

    #[test]
    fn sources_get_the_form_of_the_hub() {
        for (text, path, expected) in [
            (
                "@me/todo@1.0.0",
                None,
                "registry:https://registry.example#@me/todo@1.0.0",
            ),
            ("npm/todo", None, "npm/todo"),
            ("local/todo", Some("/nowhere/x"), "local/todo:/nowhere/x"),
            ("local/todo:~/x", None, "local/todo:/nowhere/home/x"),
        ] {
            assert_eq!(resolve(text, path).unwrap(), expected);
        }
        assert_eq!(
            resolve("local/todo", None).unwrap_err().code,
            Code::InvalidArgument
        );
        assert_eq!(
            resolve("npm/todo", Some("/x")).unwrap_err().code,
            Code::InvalidArgument
        );
        assert_eq!(
            resolve("/nowhere/x", None).unwrap_err().code,
            Code::NotFound
        );
    }

    #[test]
    fn a_directory_is_named_by_its_manifest() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("My Clip.tgz");
        std::fs::create_dir(&directory).unwrap();
        let canonical = directory.canonicalize().unwrap();
        let text = directory.to_str().unwrap();
        let expected = format!("local/My-Clip:{}", canonical.display());
        assert_eq!(resolve(text, None).unwrap(), expected);
        std::fs::write(directory.join("clip.json"), r#"{"name":"@me/notes"}"#).unwrap();
        let expected = format!("local/notes:{}", canonical.display());
        assert_eq!(resolve(text, None).unwrap(), expected);
    }
}
