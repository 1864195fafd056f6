//! Starter clips: small working clips to begin from, one per language.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use pinion_files::Replace;

use crate::{ClipError, Code};

/// The text in the files that stands for the clip's name.
const NAME: &str = "NAME";

/// A starter clip in one language.
#[derive(Debug)]
pub struct StarterClip {
    /// The language: `ts`, `python`, `bash` or `rust`.
    pub language: &'static str,
    /// A command to run in the clip's directory before the clip can be added.
    pub build_command: Option<&'static str>,
    files: &'static [StarterFile],
}

#[derive(Debug)]
struct StarterFile {
    name: &'static str,
    content: &'static str,
    is_executable: bool,
}

macro_rules! file {
    ($language:literal, $name:literal) => {
        file!($language, $name, $name)
    };
    ($language:literal, $name:literal, $template:literal) => {
        StarterFile {
            name: $name,
            content: include_str!(concat!("../templates/", $language, "/", $template)),
            is_executable: false,
        }
    };
}

const STARTERS: [StarterClip; 4] = [
    StarterClip {
        language: "ts",
        build_command: None,
        files: &[file!("ts", "clip.json"), file!("ts", "todo.mts")],
    },
    StarterClip {
        language: "python",
        build_command: None,
        files: &[file!("python", "clip.json"), file!("python", "counter.py")],
    },
    StarterClip {
        language: "bash",
        build_command: None,
        files: &[
            file!("bash", "clip.json"),
            StarterFile {
                is_executable: true,
                ..file!("bash", "greeter.sh")
            },
        ],
    },
    StarterClip {
        language: "rust",
        build_command: Some("cargo build --release && cp target/release/shout ."),
        files: &[
            file!("rust", "clip.json"),
            file!("rust", "Cargo.toml", "Cargo.toml.in"),
            file!("rust", "shout.rs"),
        ],
    },
];

impl StarterClip {
    /// Returns the starter clip in a language, which may have its usual other names, such as `py`.
    pub fn in_language(language: &str) -> Option<&'static Self> {
        let language = match language {
            "typescript" | "js" | "javascript" => "ts",
            "py" => "python",
            "sh" | "shell" => "bash",
            "rs" => "rust",
            other => other,
        };
        STARTERS.iter().find(|it| it.language == language)
    }

    /// Returns the names of the files.
    pub fn file_names(&self) -> impl Iterator<Item = &'static str> {
        self.files.iter().map(|file| file.name)
    }

    /// Writes the clip `name` to `directory`. Fails, and writes nothing, if the directory has any entry.
    pub fn write(&self, directory: &Path, name: &str) -> Result<(), ClipError> {
        let failed = |error: io::Error| ClipError::io(directory.display(), &error);
        let mut present = match fs::read_dir(directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            read => read.map_err(failed)?.next(),
        };
        if present.take().is_some() {
            let message = format!(
                "{} already exists and is not empty. Nothing was written.",
                directory.display()
            );
            return Err(ClipError::new(Code::AlreadyExists, message));
        }
        fs::create_dir_all(directory).map_err(failed)?;
        for file in self.files {
            let path = directory.join(file.name);
            let content = file.content.replace(NAME, name);
            pinion_files::replace(&path, content.as_bytes(), Replace::USER).map_err(failed)?;
            if file.is_executable {
                fs::set_permissions(&path, Permissions::from_mode(0o755)).map_err(failed)?;
            }
        }
        Ok(())
    }
}
