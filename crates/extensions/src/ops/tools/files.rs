//! Directories, small files and session files.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rquickjs::prelude::Func;
use rquickjs::{Ctx, Object, Result};
use serde_json::{Map, Value, json};

use super::super::bytes::MAX_BYTES;
use super::super::fs::open_file;
use super::super::syscall_error::SyscallError;
use crate::script::Host;

pub(super) fn install<'js>(tools: &Object<'js>, host: &Host) -> Result<()> {
    let services = Arc::clone(host.services());
    tools.set(
        "workingDirectory",
        Func::from(move || shown(&services.working_directory())),
    )?;
    let services = Arc::clone(host.services());
    tools.set(
        "agentDirectory",
        Func::from(move || shown(&services.agent_directory())),
    )?;
    tools.set(
        "programDirectory",
        Func::from(|| {
            let program = std::env::current_exe().ok();
            program
                .as_deref()
                .and_then(Path::parent)
                .map_or_else(|| "/".to_owned(), shown)
        }),
    )?;
    tools.set("environment", Func::from(environment))?;
    tools.set("shellPath", Func::from(shell_path))?;
    tools.set("uuid", Func::from(|| uuid::Uuid::now_v7().to_string()))?;
    tools.set(
        "resolve",
        Func::from(|path: String, cwd: String| {
            shown(&pinion_tools::resolve_path(&path, Path::new(&cwd)))
        }),
    )?;
    tools.set(
        "resolveExisting",
        Func::from(|path: String, cwd: String| {
            shown(&pinion_tools::resolve_existing_path(&path, Path::new(&cwd)))
        }),
    )?;
    install_files(tools)?;
    install_sessions(tools, host)
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Returns every variable of this process, as JSON.
fn environment() -> String {
    let all: Map<String, Value> = std::env::vars_os()
        .map(|(name, value)| {
            (
                name.to_string_lossy().into_owned(),
                value.to_string_lossy().into_owned().into(),
            )
        })
        .collect();
    Value::Object(all).to_string()
}

fn shell_path(custom: String) -> String {
    let usual = ["/bin/bash", "/usr/bin/bash"];
    let found = usual.into_iter().find(|path| Path::new(path).exists());
    match custom.as_str() {
        "" => found.unwrap_or("sh").to_owned(),
        _ => custom,
    }
}

fn install_files<'js>(tools: &Object<'js>) -> Result<()> {
    tools.set(
        "readText",
        Func::from(|ctx: Ctx<'js>, path: String| {
            match pinion_files::read(Path::new(&path), MAX_BYTES as u64) {
                Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::NotFound
                            | io::ErrorKind::NotADirectory
                            | io::ErrorKind::IsADirectory
                    ) =>
                {
                    Ok(None)
                }
                Err(error) => Err(SyscallError::new(error, "open").at(path).throw(&ctx)),
            }
        }),
    )?;
    let write = |ctx: &Ctx<'_>, path: &str, text: &str, flags: i32, mode: u32| {
        let written = Path::new(path)
            .parent()
            .map_or(Ok(()), fs::create_dir_all)
            .and_then(|()| open_file(path, flags | libc::O_WRONLY | libc::O_CREAT, mode))
            .and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|error| SyscallError::new(error, "open").at(path).throw(ctx))
    };
    tools.set(
        "writeText",
        Func::from(move |ctx: Ctx<'js>, path: String, text: String| {
            write(&ctx, &path, &text, libc::O_TRUNC, 0o666)
        }),
    )?;
    tools.set(
        "appendText",
        Func::from(move |ctx: Ctx<'js>, path: String, text: String| {
            write(&ctx, &path, &text, libc::O_APPEND, 0o666)
        }),
    )?;
    // For files that only the user may read.
    tools.set(
        "writeSecret",
        Func::from(move |ctx: Ctx<'js>, path: String, text: String| {
            write(&ctx, &path, &text, libc::O_TRUNC, 0o600)
        }),
    )?;
    tools.set(
        "temporaryFile",
        Func::from(|prefix: String, suffix: String| {
            let name = format!("{prefix}-{}{suffix}", uuid::Uuid::new_v4().simple());
            shown(&std::env::temp_dir().join(name))
        }),
    )?;
    tools.set(
        "listDirectory",
        Func::from(|path: String| list(Path::new(&path)).to_string()),
    )?;
    Ok(())
}

/// Returns the entries of a directory, sorted by name; none if it does not exist.
fn list(directory: &Path) -> Value {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut found: Vec<(String, &str)> = entries
        .filter_map(|entry| {
            let kind = match fs::metadata(entry.path()) {
                Ok(metadata) if metadata.is_dir() => "directory",
                Ok(_) => "file",
                Err(_) => return None,
            };
            Some((entry.file_name().to_string_lossy().into_owned(), kind))
        })
        .collect();
    found.sort();
    found
        .into_iter()
        .map(|(name, kind)| json!({ "name": name, "kind": kind }))
        .collect()
}

fn install_sessions<'js>(tools: &Object<'js>, host: &Host) -> Result<()> {
    let services = Arc::clone(host.services());
    tools.set(
        "sessionDirectory",
        Func::from(move |cwd: String| {
            shown(&pinion_session::project_directory(
                &services.agent_directory(),
                Path::new(&cwd),
            ))
        }),
    )?;
    let services = Arc::clone(host.services());
    tools.set(
        "sessionDirectories",
        Func::from(move || {
            let root = services.agent_directory().join("sessions");
            let entries = fs::read_dir(root).into_iter().flatten().flatten();
            let mut paths: Vec<PathBuf> = entries
                .map(|entry| entry.path())
                .filter(|path| path.is_dir())
                .collect();
            paths.sort();
            json!(paths).to_string()
        }),
    )?;
    tools.set(
        "recentSession",
        Func::from(|directory: String| {
            pinion_session::most_recent(Path::new(&directory)).map(|path| shown(&path))
        }),
    )?;
    tools.set(
        "sessions",
        Func::from(|directory: String| {
            let sessions = pinion_session::list(Path::new(&directory))
                .into_iter()
                .map(|info| {
                    let text = pinion_session::all_text(&info.path).unwrap_or_default();
                    let mut value = json!(info);
                    value["allMessagesText"] = text.into();
                    value
                });
            sessions.collect::<Value>().to_string()
        }),
    )?;
    Ok(())
}
