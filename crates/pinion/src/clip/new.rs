//! `clip new`: writes a starter clip in one of four languages.

use std::path::Path;
use std::process::ExitCode;

use pinion_clip::alias;
use pinion_clip::starter::StarterClip;
use serde_json::json;

use crate::failure::Failure;
use crate::hub::caller::print;
use crate::verb::{Line, Verb};
use pinion_cli::tables;

pub(super) const VERB: Verb = Verb::new("pinion clip", &tables::clip::NEW, run);

fn run(line: &Line) -> Result<ExitCode, Failure> {
    let [name] = line.exactly()?;
    if name.contains('/') {
        return Err(line.wrong(format!(
            "{name:?} is not a name; use --path for the directory"
        )));
    }
    let name = alias::normalise(name)
        .ok_or_else(|| line.wrong(format!("{name:?} has no letter or digit for a name")))?;
    let language = line.value("--lang").unwrap_or("ts");
    let starter = StarterClip::in_language(language).ok_or_else(|| {
        line.wrong(format!(
            "--lang is ts, python, bash or rust, not {language:?}"
        ))
    })?;
    let directory = line.value("--path").unwrap_or(&name);
    starter.write(Path::new(directory), &name)?;
    let json = || {
        let files: Vec<&str> = starter.file_names().collect();
        json!({"name": name, "path": directory, "lang": starter.language, "files": files})
            .to_string()
    };
    let text = || {
        let build = starter.build_command.map_or(String::new(), |command| {
            format!("  (cd {directory} && {command})\n")
        });
        format!(
            "{directory} is a clip now. To try it:\n{build}  pinion clip add ./{directory}\n  pinion clip show {name}\n"
        )
    };
    print(line, json, text)
}
