//! One-time moves from older layouts: `commands/` became `prompts/`, keys moved to `auth.json`.
//!
//! Every step is skipped if its target exists, so a start without old files takes only a few failed
//! look-ups.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use pinion_files::Replace;
use serde_json::{Map, Value, json};

use crate::{ConfigError, Dirs, Notice, ProjectTrust, Settings, SettingsFile, json_file};

/// Moves files from old locations, and reports each move and each failure. A project that is not
/// trusted stays as it is.
pub fn migrate(dirs: &Dirs, settings: &Settings, trust: ProjectTrust) -> Vec<Notice> {
    let mut notices = Vec::new();
    notices.extend(rename_commands(&dirs.agent_dir));
    // A repository could contain `.pi` as a link to a directory of the user.
    let is_directory =
        || fs::symlink_metadata(&dirs.project_dir).is_ok_and(|metadata| metadata.is_dir());
    if trust == ProjectTrust::Trusted && is_directory() {
        notices.extend(rename_commands(&dirs.project_dir));
    }
    notices.extend(move_credentials(dirs, settings));
    notices
}

fn rename_commands(directory: &Path) -> Option<Notice> {
    let old = directory.join("commands");
    let new = directory.join("prompts");
    // A link was made by the user and is not an old layout.
    if !fs::symlink_metadata(&old).is_ok_and(|metadata| metadata.is_dir())
        || fs::symlink_metadata(&new).is_ok()
    {
        return None;
    }
    Some(match fs::rename(&old, &new) {
        Ok(()) => Notice::about(&old, "migrated", "renamed to prompts, its new name"),
        Err(error) => {
            let message = format!("should be called prompts but could not be renamed ({error})");
            Notice::about(&old, "migration_failed", message)
        }
    })
}

fn move_credentials(dirs: &Dirs, settings: &Settings) -> Option<Notice> {
    let auth = dirs.agent_dir.join("auth.json");
    let oauth = dirs.agent_dir.join("oauth.json");
    // Only the user's own file: a project must not set keys.
    let keys = settings.get_global("apiKeys").and_then(Value::as_object);
    if (keys.is_none() && !oauth.is_file()) || fs::symlink_metadata(&auth).is_ok() {
        return None;
    }
    let mut notices = Vec::new();
    let tokens = json_file::read(&oauth, &mut notices);
    if let Some(broken) = notices.pop() {
        return Some(broken);
    }
    let credentials = credentials(tokens, keys);
    let outcome = write_private(&auth, &credentials).and_then(|()| {
        if oauth.is_file() {
            let done = dirs.agent_dir.join("oauth.json.migrated");
            pinion_files::rename(&oauth, &done).map_err(ConfigError::io("rename", &oauth))?;
        }
        if keys.is_some() {
            SettingsFile::global(dirs).update(&[("apiKeys", None)])?;
        }
        Ok(())
    });
    Some(match outcome {
        Ok(()) => {
            let names: Vec<&str> = credentials.keys().map(String::as_str).collect();
            let message = format!("credentials were moved here: {}", names.join(", "));
            Notice::about(&auth, "migrated", message)
        }
        Err(error) => {
            let message = format!("credentials could not be moved here completely: {error}");
            Notice::about(&auth, "migration_failed", message)
        }
    })
}

/// Tokens first: a user who has logged in wants that account.
fn credentials(
    tokens: Map<String, Value>,
    keys: Option<&Map<String, Value>>,
) -> Map<String, Value> {
    let mut credentials = Map::new();
    for (provider, token) in tokens {
        if let Value::Object(members) = token {
            let mut entry = Map::new();
            entry.insert("type".into(), "oauth".into());
            entry.extend(members);
            credentials.insert(provider, Value::Object(entry));
        }
    }
    for (provider, key) in keys.into_iter().flatten() {
        if key.is_string() {
            let entry = json!({"type": "api_key", "key": key});
            credentials.entry(provider.clone()).or_insert(entry);
        }
    }
    credentials
}

/// Writes a new file that only the user can read, under the lock that pi uses; never replaces one.
fn write_private(path: &Path, object: &Map<String, Value>) -> Result<(), ConfigError> {
    let parent = path.parent().unwrap_or(Path::new("/"));
    let failed = ConfigError::io("write", path);
    let made = pinion_files::create_private_directory(parent);
    made.map_err(ConfigError::io("create", parent))?;
    let _lock = json_file::lock(path)?;
    if fs::symlink_metadata(path).is_ok() {
        return Err(failed(ErrorKind::AlreadyExists.into()));
    }
    let written = serde_json::to_string_pretty(object)
        .map_err(io::Error::from)
        .and_then(|text| pinion_files::replace(path, text.as_bytes(), Replace::PRIVATE));
    written.map_err(failed)
}
