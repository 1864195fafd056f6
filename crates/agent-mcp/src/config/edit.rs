//! Changes entries of an `mcp.json`. Its other members stay as they are.

use std::path::Path;

use pinion_config::{ConfigError, update_json_file};
use serde_json::{Map, Value, json};

/// Adds a server, creating the file if it is absent. Returns `true` if it replaced an entry of the same name.
pub fn add_server(file: &Path, name: &str, entry: Value) -> Result<bool, ConfigError> {
    let mut replaced = false;
    change_servers(file, |servers| {
        replaced = servers.insert(name.to_owned(), entry).is_some();
    })?;
    Ok(replaced)
}

/// Removes a server. Returns `false` if the file has no such entry.
pub fn remove_server(file: &Path, name: &str) -> Result<bool, ConfigError> {
    if file.symlink_metadata().is_err() {
        return Ok(false);
    }
    let mut removed = false;
    change_servers(file, |servers| {
        removed = servers.shift_remove(name).is_some();
    })?;
    Ok(removed)
}

fn change_servers(
    file: &Path,
    change: impl FnOnce(&mut Map<String, Value>),
) -> Result<(), ConfigError> {
    update_json_file(file, |object| {
        let servers = object.entry("mcpServers").or_insert_with(|| json!({}));
        if !servers.is_object() {
            *servers = json!({});
        }
        if let Some(servers) = servers.as_object_mut() {
            change(servers);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_members_stay() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("agent/mcp.json");
        assert!(!remove_server(&file, "a").unwrap());
        assert!(!add_server(&file, "a", json!({"command": "x"})).unwrap());
        assert!(add_server(&file, "a", json!({"command": "y"})).unwrap());
        let text = r#"{"autoEnableCodemode": false, "mcpServers": {"b": {"command": "z"}}}"#;
        std::fs::write(&file, text).unwrap();
        add_server(&file, "a", json!({"command": "x"})).unwrap();
        assert!(remove_server(&file, "b").unwrap());
        assert!(!remove_server(&file, "b").unwrap());
        let read: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let expected = json!({"autoEnableCodemode": false, "mcpServers": {"a": {"command": "x"}}});
        assert_eq!(read, expected);
    }
}
