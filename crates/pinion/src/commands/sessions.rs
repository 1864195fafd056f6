//! `sessions`: lists, shows and exports stored sessions.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use pinion_config::{Dirs, Settings, Trust, TrustFlag};
use pinion_message::{Block, Message};
use pinion_session::{SessionInfo, Store};
use serde_json::json;

use super::{export, out};
use crate::failure::Failure;
use crate::verb::{Entry, Group, Verb};
use pinion_cli::tables;

const LIST: Verb = Verb::new(
    "pinion sessions",
    &tables::commands::SESSIONS_LIST,
    |line| {
        let [] = line.exactly()?;
        let scope = if line.has("--all") {
            Scope::All
        } else {
            Scope::Project
        };
        let shape = if line.has("--json") {
            Shape::Json
        } else {
            Shape::Table
        };
        list(scope, shape)
    },
);

const SHOW: Verb = Verb::new(
    "pinion sessions",
    &tables::commands::SESSIONS_SHOW,
    |line| {
        let [session] = line.exactly()?;
        show(session)
    },
);

const EXPORT: Verb = Verb::new(
    "pinion sessions",
    &tables::commands::SESSIONS_EXPORT,
    |line| {
        let (session, output) = line.one_or_two()?;
        export_page(session, output.map(str::to_owned))
    },
);

pub(super) const GROUP: Group = Group {
    above: "pinion",
    command: &tables::commands::SESSIONS,
    entries: &[Entry::One(&LIST), Entry::One(&SHOW), Entry::One(&EXPORT)],
};

enum Scope {
    Project,
    All,
}

enum Shape {
    Table,
    Json,
}

struct Places {
    root: PathBuf,
    project: PathBuf,
}

fn places() -> Result<Places, Failure> {
    let dirs = Dirs::from_env()?;
    let (trust, _) = Trust::decide(&dirs, TrustFlag::Unset);
    let (settings, _) = Settings::load(&dirs, trust);
    let project = dirs
        .session_dir(None, &settings)
        .unwrap_or_else(|| pinion_session::project_directory(&dirs.agent_dir, &dirs.cwd));
    Ok(Places {
        root: dirs.agent_dir.join("sessions"),
        project,
    })
}

fn list(scope: Scope, shape: Shape) -> Result<ExitCode, Failure> {
    let places = places()?;
    let sessions = match scope {
        Scope::Project => pinion_session::list(&places.project),
        Scope::All => all_sessions(&places.root),
    };
    match shape {
        Shape::Json => out(&sessions
            .iter()
            .map(|info| json_line(info) + "\n")
            .collect::<String>()),
        Shape::Table => {
            if sessions.is_empty() {
                eprintln!("No sessions here yet. Use --all for those of other directories.");
            }
            out(&sessions.iter().map(table_line).collect::<String>())
        }
    }
}

/// Returns the ids of the sessions of this directory.
pub(super) fn ids() -> Result<Vec<String>, Failure> {
    let sessions = pinion_session::list(&places()?.project);
    Ok(sessions.into_iter().map(|info| info.id).collect())
}

/// Returns the sessions of all directories, the last used ones first.
pub(crate) fn all_sessions(root: &std::path::Path) -> Vec<SessionInfo> {
    let directories = std::fs::read_dir(root).into_iter().flatten().flatten();
    let mut sessions: Vec<SessionInfo> = directories
        .flat_map(|entry| pinion_session::list(&entry.path()))
        .collect();
    sessions.sort_by_key(|info| std::cmp::Reverse(info.modified));
    sessions
}

fn json_line(info: &SessionInfo) -> String {
    pinion_jsonl::json::to_string(&json!({
        "path": info.path,
        "id": info.id,
        "cwd": info.cwd,
        "name": info.name,
        "created": info.created,
        "modified": info.modified,
        "messageCount": info.message_count,
        "firstMessage": info.first_message,
    }))
}

fn table_line(info: &SessionInfo) -> String {
    let id: String = info.id.chars().take(8).collect();
    let title = info.name.as_deref().unwrap_or(&info.first_message);
    let title: String = title
        .lines()
        .next()
        .unwrap_or_default()
        .chars()
        .take(72)
        .collect();
    format!("{id}  {:>5} messages  {title}\n", info.message_count)
}

fn find(argument: &str) -> Result<PathBuf, Failure> {
    let places = places()?;
    pinion_session::find(&places.root, &places.project, argument)
        .map(pinion_session::FoundSession::into_path)
        .map_err(|error| Failure::failed(error.to_string()))
}

fn export_page(argument: &str, output: Option<String>) -> Result<ExitCode, Failure> {
    let target = export::write_page(&find(argument)?, output)?;
    out(&format!("Exported to: {target}\n"))
}

fn show(argument: &str) -> Result<ExitCode, Failure> {
    let path = find(argument)?;
    let opened = Store::open_read_only(&path, std::path::Path::new("/"))
        .map_err(|error| Failure::failed(format!("Error: {error}")))?;
    for notice in &opened.notices {
        eprintln!("Warning: {notice}");
    }
    let mut text = String::new();
    for message in opened.store.context().messages {
        describe(&message, &mut text);
    }
    out(&text)
}

fn describe(message: &Message, text: &mut String) {
    let mut part = |who: &str, what: &str| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{who}: {}\n", what.trim_end());
    };
    match message {
        Message::User(user) => part("user", &user.content.joined_text("\n")),
        Message::Custom(custom) => part(&custom.custom_type, &custom.content.joined_text("\n")),
        Message::Assistant(answer) => {
            for block in &answer.content {
                match block {
                    Block::Text(block) => part("assistant", &block.text),
                    Block::ToolCall(call) => {
                        part(&format!("call {}", call.name), &call.arguments.to_string());
                    }
                    Block::Thinking(_) | Block::Image { .. } => {}
                }
            }
            if let Some(error) = &answer.error_message {
                part("error", error);
            }
        }
        Message::ToolResult(result) => {
            let texts: Vec<&str> = result.content.iter().filter_map(Block::as_text).collect();
            part(&format!("result {}", result.tool_name), &texts.join("\n"));
        }
        Message::BashExecution(bash) => part(&format!("$ {}", bash.command), &bash.output),
        Message::CompactionSummary(summary) => part("summary", &summary.summary),
        Message::BranchSummary(summary) => part("branch summary", &summary.summary),
    }
}
