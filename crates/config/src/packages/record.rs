//! Records packages in the `packages` list of a settings file.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::source::{PackageSource, SourceKind};
use crate::{ConfigError, Dirs, Scope, json_file};

/// Adds a package to the settings, or replaces the source in the entry of the same package, whose
/// filters stay. Returns the text that was written.
pub fn record_package(
    dirs: &Dirs,
    scope: Scope,
    source: &PackageSource,
) -> Result<String, ConfigError> {
    let text = settings_text(dirs, scope, source)?;
    edit(dirs, scope, |entries, is_same| {
        let written = Value::String(text.clone());
        match entries.iter_mut().find(|entry| is_same(entry, source)) {
            Some(Value::Object(members)) => {
                members.insert("source".to_owned(), written);
            }
            Some(entry) => *entry = written,
            None => entries.push(written),
        }
    })?;
    Ok(text)
}

/// Removes a package from the settings. Returns its source as it was written there, if it was
/// there.
pub fn remove_package(
    dirs: &Dirs,
    scope: Scope,
    source: &PackageSource,
) -> Result<Option<String>, ConfigError> {
    let mut found = None;
    edit(dirs, scope, |entries, is_same| {
        entries.retain(|entry| {
            let same = is_same(entry, source);
            if same {
                found = source_of(entry).map(str::to_owned);
            }
            !same
        });
    })?;
    Ok(found)
}

type IsSame<'a> = &'a dyn Fn(&Value, &PackageSource) -> bool;

fn edit(
    dirs: &Dirs,
    scope: Scope,
    change: impl FnOnce(&mut Vec<Value>, IsSame<'_>),
) -> Result<(), ConfigError> {
    let (file, base) = settings_location(dirs, scope);
    let is_same = |entry: &Value, source: &PackageSource| {
        let entry = source_of(entry);
        let entry = entry.and_then(|text| PackageSource::parse(text, base, &dirs.home).ok());
        entry.is_some_and(|entry| entry.identity() == source.identity())
    };
    let mut misfit = false;
    json_file::update(&file, |object| {
        let mut entries = match object.get("packages") {
            Some(Value::Array(entries)) => entries.clone(),
            None | Some(Value::Null) => Vec::new(),
            Some(_) => {
                misfit = true;
                return;
            }
        };
        let before = entries.clone();
        change(&mut entries, &is_same);
        if entries != before {
            object.insert("packages".to_owned(), Value::Array(entries));
        }
    })?;
    if misfit {
        return Err(ConfigError::WrongType {
            path: file,
            key: "packages",
            expected: "a list",
        });
    }
    Ok(())
}

fn source_of(entry: &Value) -> Option<&str> {
    entry.as_str().or_else(|| entry.get("source")?.as_str())
}

/// The settings file of a scope, and the directory of its relative paths.
fn settings_location(dirs: &Dirs, scope: Scope) -> (PathBuf, &Path) {
    match scope {
        Scope::Project => (dirs.project_settings(), &dirs.project_dir),
        Scope::User | Scope::Temporary => (dirs.global_settings(), &dirs.agent_dir),
    }
}

/// The text of a source for the settings file: a path is absolute, or relative to `.pi` if it is in
/// the project, so that the project can be moved and shared.
fn settings_text(dirs: &Dirs, scope: Scope, source: &PackageSource) -> Result<String, ConfigError> {
    let SourceKind::Local(path) = source.kind() else {
        return Ok(source.text().to_owned());
    };
    let inside = path
        .strip_prefix(&dirs.project_dir)
        .map(|inside| Path::new(".").join(inside))
        .or_else(|_| {
            let inside = path.strip_prefix(&dirs.cwd);
            inside.map(|inside| Path::new("..").join(inside))
        });
    let written = match (scope, inside) {
        (Scope::Project, Ok(inside)) => inside,
        _ => path.clone(),
    };
    match written.to_str() {
        Some(text) => Ok(text.to_owned()),
        None => Err(ConfigError::PathNotText { path: written }),
    }
}
