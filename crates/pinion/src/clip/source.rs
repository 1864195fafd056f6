//! Converts the source of a clip on the command line to the form that the hub expects.

use std::path::{Path, PathBuf};

use pinion_access::client::ClientConfig;
use serde_json::Value;

use crate::failure::Failure;
use crate::hub::{failed, place};
use crate::verb::Line;

/// The environment variable that names a registry.
const REGISTRY: &str = "PINIX_REGISTRY";

/// Returns the source in the hub's form: paths are absolute, packages include the address of their registry.
pub(super) fn resolve(line: &Line, typed: &str) -> Result<String, Failure> {
    let path = line.value("--path");
    if let Some(name) = typed.strip_prefix("local/") {
        return match (name.split_once(':'), path) {
            (Some((name, path)), _) => Ok(local(name, &absolute(path)?)),
            (None, Some(path)) => Ok(local(name, &absolute(path)?)),
            (None, None) => Err(line.wrong(&format!("{typed} needs --path with its directory"))),
        };
    }
    if path.is_some() {
        return Err(line.wrong("--path goes with local/NAME"));
    }
    if typed.starts_with('@') {
        return Ok(match registry(line)? {
            Some(registry) => format!("registry:{}#{typed}", registry.trim_end_matches('/')),
            None => typed.to_owned(),
        });
    }
    let elsewhere = ["registry:", "npm/", "github/"];
    if elsewhere.iter().any(|prefix| typed.starts_with(prefix)) {
        return Ok(typed.to_owned());
    }
    let file = absolute(typed)?;
    if !file.exists() {
        return Err(Failure::failed(format!(
            "Error: there is no {typed}. A clip comes from ./DIRECTORY, ./ARCHIVE.tgz, @scope/name, npm/NAME, github/USER/REPOSITORY or registry:URL#@scope/name."
        )));
    }
    Ok(local(&name_of(&file), &file))
}

/// Returns the registry from the flag, the environment or `client.json`.
pub(super) fn registry(line: &Line) -> Result<Option<String>, Failure> {
    let set = || {
        std::env::var(REGISTRY)
            .ok()
            .filter(|it| !it.trim().is_empty())
    };
    match line.value("--registry").map(str::to_owned).or_else(set) {
        Some(registry) => Ok(Some(registry)),
        None => Ok(ClientConfig::load(&place::root(line)?)
            .map_err(failed)?
            .registry),
    }
}

fn local(name: &str, path: &Path) -> String {
    format!("local/{name}:{}", path.display())
}

fn absolute(path: &str) -> Result<PathBuf, Failure> {
    let path = match path.strip_prefix("~/") {
        Some(rest) => pinion_config::Dirs::from_env()?.home.join(rest),
        None => PathBuf::from(path),
    };
    Ok(path
        .canonicalize()
        .or_else(|_| std::path::absolute(&path))?)
}

/// Returns the name in a directory's `clip.json` or `package.json`, else the name of the directory or archive.
fn name_of(path: &Path) -> String {
    let said = ["clip.json", "package.json"].iter().find_map(|file| {
        let text = pinion_files::read(&path.join(file), 4 << 20).ok()?;
        let read: Value = serde_json::from_slice(&text).ok()?;
        let name = read["name"].as_str()?;
        Some(name.rsplit('/').next()?.to_owned())
    });
    let file = || {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let ends = [".tar.gz", ".tgz"].iter();
        ends.fold(name.as_ref(), |name, end| {
            name.strip_suffix(end).unwrap_or(name)
        })
        .to_owned()
    };
    let letters = |name: String| -> String {
        let fits = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
        name.chars()
            .map(|letter| if fits(letter) { letter } else { '-' })
            .collect()
    };
    let name = letters(said.filter(|name| !name.is_empty()).unwrap_or_else(file));
    match name.trim_matches(['-', '.']) {
        "" => "clip".to_owned(),
        name => name.to_owned(),
    }
}
