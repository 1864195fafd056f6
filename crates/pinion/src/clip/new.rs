//! `clip new`: writes a starter clip in one of four languages.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::ExitCode;

use pinion_clip::alias;
use pinion_files::Replace;
use serde_json::json;

use crate::commands::out;
use crate::failure::Failure;
use crate::hub::caller::Shape;
use crate::verb::{Line, Verb};
use pinion_cli::tables;

pub(super) const VERB: Verb = Verb::new("pinion clip", &tables::clip::NEW, run);

struct File {
    path: &'static str,
    content: &'static str,
    /// The file is executable.
    runs: bool,
}

const fn text(path: &'static str, content: &'static str) -> File {
    let runs = false;
    File {
        path,
        content,
        runs,
    }
}

/// The files of a new clip in one language. `NAME` stands for the clip's name.
struct Template {
    language: &'static str,
    files: &'static [File],
    /// A command to run before the clip can be added.
    first: Option<&'static str>,
}

const TEMPLATES: [Template; 4] = [
    Template {
        language: "ts",
        files: &[
            text(
                "clip.json",
                include_str!("../../templates/clip/ts/clip.json"),
            ),
            text("todo.mts", include_str!("../../templates/clip/ts/todo.mts")),
        ],
        first: None,
    },
    Template {
        language: "python",
        files: &[
            text(
                "clip.json",
                include_str!("../../templates/clip/python/clip.json"),
            ),
            text(
                "counter.py",
                include_str!("../../templates/clip/python/counter.py"),
            ),
        ],
        first: None,
    },
    Template {
        language: "bash",
        files: &[
            text(
                "clip.json",
                include_str!("../../templates/clip/bash/clip.json"),
            ),
            File {
                path: "greeter.sh",
                content: include_str!("../../templates/clip/bash/greeter.sh"),
                runs: true,
            },
        ],
        first: None,
    },
    Template {
        language: "rust",
        files: &[
            text(
                "clip.json",
                include_str!("../../templates/clip/rust/clip.json"),
            ),
            text(
                "Cargo.toml",
                include_str!("../../templates/clip/rust/Cargo.toml.in"),
            ),
            text(
                "shout.rs",
                include_str!("../../templates/clip/rust/shout.rs"),
            ),
        ],
        first: Some("cargo build --release && cp target/release/shout ."),
    },
];

fn run(line: &Line) -> Result<ExitCode, Failure> {
    let [name] = line.exactly()?;
    if name.contains('/') {
        return Err(line.wrong(&format!(
            "{name:?} is no name; the directory is for --path to say"
        )));
    }
    let Some(name) = alias::normalise(name) else {
        return Err(line.wrong(&format!(
            "{name:?} has no letter or digit a name could be made of"
        )));
    };
    let language = match line.value("--lang").unwrap_or("ts") {
        "typescript" | "js" | "javascript" => "ts",
        "py" => "python",
        "sh" | "shell" => "bash",
        "rs" => "rust",
        other => other,
    };
    let template = TEMPLATES.iter().find(|it| it.language == language);
    let template = template.ok_or_else(|| {
        line.wrong(&format!(
            "--lang is ts, python, bash or rust, not {language:?}"
        ))
    })?;
    let directory = line.value("--path").unwrap_or(&name);
    write(Path::new(directory), template, &name)?;
    if Shape::of(line) == Shape::Json {
        let files: Vec<&str> = template.files.iter().map(|file| file.path).collect();
        let told = json!({"name": name, "path": directory, "lang": language, "files": files});
        return out(&format!("{told}\n"));
    }
    let first = template.first.map_or(String::new(), |first| {
        format!("  (cd {directory} && {first})\n")
    });
    out(&format!(
        "{directory} is a clip now. To try it:\n{first}  pinion clip add ./{directory}\n  pinion clip show {name}\n"
    ))
}

fn write(directory: &Path, template: &Template, name: &str) -> Result<(), Failure> {
    let failed =
        |error: std::io::Error| Failure::failed(format!("Error: {}: {error}", directory.display()));
    let mut present = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        read => read.map_err(failed)?.next(),
    };
    if present.take().is_some() {
        return Err(Failure::failed(format!(
            "Error: {} is there already and not empty. Nothing was written.",
            directory.display()
        )));
    }
    std::fs::create_dir_all(directory).map_err(failed)?;
    for file in template.files {
        let path = directory.join(file.path);
        let content = file.content.replace("NAME", name);
        pinion_files::replace(&path, content.as_bytes(), Replace::USER).map_err(failed)?;
        if file.runs {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))
                .map_err(failed)?;
        }
    }
    Ok(())
}
