//! Reads the files that describe a clip and its start: `clip.json` and `package.json`.

use std::io;
use std::path::{Component, Path, PathBuf};

use serde_json::{Map, Value};

use crate::manifest::Manifest;
use crate::{ClipError, Code};

/// The longest package file, in bytes.
const MAX_FILE: u64 = 4 * 1024 * 1024;

/// The program that runs a clip's entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runtime {
    /// `bun run ENTRY --ipc`; `node` where there is no bun.
    Bun,
    /// `node ENTRY --ipc`.
    Node,
    /// `python3 ENTRY --ipc`.
    Python,
    /// `ENTRY --ipc`: the entry is executable.
    Exec,
}

impl Runtime {
    /// Returns the name in `clip.json`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bun => "bun",
            Self::Node => "node",
            Self::Python => "python",
            Self::Exec => "exec",
        }
    }

    fn parse(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "" | "bun" => Some(Self::Bun),
            "node" => Some(Self::Node),
            "python" | "python3" => Some(Self::Python),
            "exec" => Some(Self::Exec),
            _ => None,
        }
    }
}

/// The dialect that a clip declares in `clip.json`; see [`crate::codec::Dialect`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeclaredDialect {
    /// `"ipc": "register"`: it registers first.
    Register,
    /// `"ipc": "direct"`: it answers calls and never registers.
    Direct,
}

/// The contents of a clip's directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    pub directory: PathBuf,
    /// The manifest according to the files; its `name` is that of the package.
    pub manifest: Manifest,
    pub runtime: Runtime,
    /// The program, relative to the directory, if the files name one.
    pub main: Option<String>,
    /// The directory of the web pages, relative to the directory.
    pub web: String,
    /// The declared dialect, if any.
    pub ipc: Option<DeclaredDialect>,
    /// The clip runs elsewhere; only its description is stored here.
    pub is_edge: bool,
    /// There is a `package.json`.
    pub has_package_json: bool,
    /// `package.json` lists npm packages as dependencies.
    pub wants_packages: bool,
}

impl Package {
    /// Reads the files in `directory`. Either may be missing; a field of `clip.json` overrides that of `package.json`.
    pub fn read(directory: &Path) -> Result<Self, ClipError> {
        let clip = json_object(&directory.join("clip.json"))?;
        let node = json_object(&directory.join("package.json"))?;
        let (has_package_json, has_clip_json) = (node.is_some(), clip.is_some());
        let clip = Value::Object(clip.unwrap_or_default());
        let node = Value::Object(node.unwrap_or_default());
        let text = |value: &Value, key: &str| {
            let text = value.get(key).and_then(Value::as_str).map(str::trim);
            text.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let is_edge =
            has_clip_json && clip.get("type").and_then(Value::as_str) == Some("edge-clip");
        // For a clip that runs elsewhere, the installation stored the manifest of the registry under this key.
        let described = clip
            .get("pinix")
            .filter(|value| is_edge && value.is_object());
        let mut manifest = Manifest::read(described.unwrap_or(&clip));
        if described.is_some() {
            manifest.name = text(&clip, "name").unwrap_or_default();
            manifest.version = text(&clip, "version").unwrap_or_default();
        }
        for (field, key) in [
            (&mut manifest.name, "name"),
            (&mut manifest.version, "version"),
            (&mut manifest.description, "description"),
        ] {
            if field.is_empty() {
                *field = text(&node, key).unwrap_or_default();
            }
        }
        if manifest.package.is_empty() {
            manifest.package.clone_from(&manifest.name);
        }
        let runtime = text(&clip, "runtime").unwrap_or_default();
        let runtime = Runtime::parse(&runtime).ok_or_else(|| {
            ClipError::invalid(format!(
                "unknown runtime \"{runtime}\" in clip.json; use bun, node, python or exec"
            ))
        })?;
        let ipc = match text(&clip, "ipc").as_deref() {
            None => None,
            Some("register") => Some(DeclaredDialect::Register),
            Some("direct") => Some(DeclaredDialect::Direct),
            Some(other) => {
                return Err(ClipError::invalid(format!(
                    "unknown value \"{other}\" of \"ipc\" in clip.json; use \"register\" or \"direct\""
                )));
            }
        };
        let web = text(&clip, "web").unwrap_or_else(|| "web".into());
        // Never the whole package, because it contains more than pages.
        let web = match crate::data::path::clean(&web) {
            Ok(web) if !web.is_empty() => web,
            _ => "web".into(),
        };
        manifest.has_web |= directory.join(&web).is_dir();
        let dependencies = node.get("dependencies").and_then(Value::as_object);
        Ok(Self {
            directory: directory.to_owned(),
            runtime,
            main: text(&clip, "main")
                .or_else(|| text(&node, "main"))
                .or_else(|| bin(&node)),
            web,
            ipc,
            is_edge,
            has_package_json,
            wants_packages: dependencies.is_some_and(|dependencies| !dependencies.is_empty()),
            manifest,
        })
    }

    /// Returns the program to run: `main` if it is a file, else `index.ts`.
    pub fn entry(&self) -> Result<PathBuf, ClipError> {
        let main = self.main.iter().map(String::as_str);
        let names = main.filter(|name| is_inside(name)).chain(["index.ts"]);
        let mut candidates = names.map(|name| self.directory.join(name));
        candidates
            .find(|candidate| candidate.is_file())
            .ok_or_else(|| {
                let main = self.main.as_deref().unwrap_or("index.ts");
                let directory = self.directory.display();
                let message = format!("{directory} has no program: there is no file {main}. Name it as \"main\" in clip.json");
                ClipError::new(Code::FailedPrecondition, message)
            })
    }
}

/// Reports whether a relative path contains neither `..` nor a root. Links are not resolved.
fn is_inside(path: &str) -> bool {
    let mut components = Path::new(path).components();
    components.all(|component| matches!(component, Component::Normal(_) | Component::CurDir))
}

fn bin(package: &Value) -> Option<String> {
    match package.get("bin")? {
        Value::String(path) => Some(path.trim().to_owned()),
        Value::Object(programs) => Some(programs.values().next()?.as_str()?.trim().to_owned()),
        _ => None,
    }
}

pub(crate) fn json_object(path: &Path) -> Result<Option<Map<String, Value>>, ClipError> {
    let text = match pinion_files::read(path, MAX_FILE) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
            let message = format!("{} is longer than 4 MiB", path.display());
            return Err(ClipError::new(Code::ResourceExhausted, message));
        }
        Err(error) => return Err(ClipError::io(path.display(), &error)),
    };
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&text);
    match serde_json::from_slice(text) {
        Ok(object) => Ok(Some(object)),
        Err(error) => Err(ClipError::invalid(format!(
            "{} is not a JSON object: {error}",
            path.display()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn directory(files: &[(&str, &str)]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        directory
    }

    #[test]
    fn clip_json_beats_package_json_field_by_field() {
        let place = directory(&[
            (
                "clip.json",
                r#"{"name":"@me/todo","runtime":"exec","main":"run.sh","ipc":"direct","commands":{"list":{}},"dependencies":{"db":"@me/db"}}"#,
            ),
            (
                "package.json",
                "\u{feff}{\"name\":\"other\",\"version\":\"1.2.3\",\"description\":\"Tasks\",\"main\":\"a.js\",\"dependencies\":{\"left-pad\":\"1\"}}",
            ),
            ("run.sh", ""),
            ("web/dist/index.html", ""),
        ]);
        let package = Package::read(place.path()).unwrap();
        assert_eq!(
            (
                package.manifest.name.as_str(),
                package.manifest.version.as_str()
            ),
            ("@me/todo", "1.2.3")
        );
        assert_eq!(package.manifest.description, "Tasks");
        assert_eq!(
            (package.runtime, package.ipc),
            (Runtime::Exec, Some(DeclaredDialect::Direct))
        );
        assert_eq!(package.entry().unwrap(), place.path().join("run.sh"));
        assert_eq!(
            package.manifest.dependencies.keys().collect::<Vec<_>>(),
            ["db"],
            "npm's dependencies are no slots"
        );
        assert!(package.wants_packages && package.manifest.has_web);
        assert_eq!(package.web, "web");
    }

    #[test]
    fn the_entry_is_main_then_bin_then_index() {
        let place = directory(&[
            ("package.json", r#"{"bin":{"x":"cli.js","y":"z.js"}}"#),
            ("cli.js", ""),
            ("index.ts", ""),
        ]);
        let package = Package::read(place.path()).unwrap();
        assert_eq!(package.entry().unwrap(), place.path().join("cli.js"));
        fs::remove_file(place.path().join("cli.js")).unwrap();
        assert_eq!(package.entry().unwrap(), place.path().join("index.ts"));
        fs::remove_file(place.path().join("index.ts")).unwrap();
        assert_eq!(package.entry().unwrap_err().code, Code::FailedPrecondition);
    }

    #[test]
    fn nothing_outside_the_directory_is_run() {
        for main in ["/bin/sh", "../../../../../../bin/sh", "a/../../x"] {
            let text = serde_json::json!({"runtime": "exec", "main": main}).to_string();
            let place = directory(&[("clip.json", &text)]);
            assert!(
                Package::read(place.path()).unwrap().entry().is_err(),
                "{main}"
            );
        }
    }

    #[test]
    fn invalid_package_files_have_different_errors() {
        for text in ["", "[]", "{", r#"{"runtime":"cobol"}"#, r#"{"ipc":"x"}"#] {
            let place = directory(&[("clip.json", text)]);
            let error = Package::read(place.path()).unwrap_err();
            assert_eq!(error.code, Code::InvalidArgument, "{text}");
            assert!(error.message.contains("clip.json"), "{}", error.message);
        }
        let empty = Package::read(directory(&[]).path()).unwrap();
        assert_eq!(
            (empty.runtime, empty.manifest.has_web),
            (Runtime::Bun, false)
        );
    }
}
