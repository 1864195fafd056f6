//! `__complete KIND PREFIX`: values for the completions of shells, one per line.

use std::process::ExitCode;

use pinion_config::Dirs;
use pinion_llm::{Registry, RegistryOptions};

use super::{out, sessions};
use crate::failure::Failure;
use crate::{clip, fleet};

/// Prints the values of a kind that begin with a prefix. A shell shows no errors, so a failure prints nothing.
pub(crate) fn complete(arguments: &[String]) -> ExitCode {
    let [kind, prefix] = arguments else {
        return ExitCode::from(2);
    };
    let values = match kind.as_str() {
        "session" => sessions::ids(),
        "model" => models(),
        "clip" => clip::aliases(),
        "run" => fleet::run_ids(),
        _ => return ExitCode::from(2),
    };
    let Ok(values) = values else {
        return ExitCode::FAILURE;
    };
    let is_plain = |value: &&String| !value.contains(|c: char| c.is_whitespace() || c.is_control());
    let fitting = values.iter().filter(|value| value.starts_with(prefix));
    let text: String = fitting
        .filter(is_plain)
        .map(|value| format!("{value}\n"))
        .collect();
    out(&text).unwrap_or(ExitCode::FAILURE)
}

fn models() -> Result<Vec<String>, Failure> {
    let options = RegistryOptions {
        include_offline: true,
        ..RegistryOptions::default()
    };
    let (registry, _) = Registry::load(&Dirs::from_env()?.agent_dir, options);
    let models = registry.available();
    let names = models
        .iter()
        .map(|model| format!("{}/{}", model.provider, model.id));
    Ok(names.collect())
}
