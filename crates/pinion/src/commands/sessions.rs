//! `sessions`: lists, shows and exports stored sessions.

use std::path::PathBuf;
use std::process::ExitCode;

use pinion_config::{Dirs, Settings, Trust, TrustFlag};
use pinion_session::{SessionInfo, Store, list_all, plain_text};

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
    takes_words: false,
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
        Scope::All => list_all(&places.root),
    };
    match shape {
        Shape::Json => out(&sessions
            .iter()
            .map(SessionInfo::json_line)
            .collect::<String>()),
        Shape::Table => {
            if sessions.is_empty() {
                eprintln!("No sessions here yet. Use --all for those of other directories.");
            }
            out(&sessions.iter().map(SessionInfo::row).collect::<String>())
        }
    }
}

/// Returns the ids of the sessions of this directory.
pub(super) fn ids() -> Result<Vec<String>, Failure> {
    let sessions = pinion_session::list(&places()?.project);
    Ok(sessions.into_iter().map(|info| info.id).collect())
}

fn find(argument: &str) -> Result<PathBuf, Failure> {
    let places = places()?;
    let found = pinion_session::find(&places.root, &places.project, argument)?;
    Ok(found.into_path())
}

fn export_page(argument: &str, output: Option<String>) -> Result<ExitCode, Failure> {
    let target = export::write_page(&find(argument)?, output)?;
    out(&format!("Exported to: {target}\n"))
}

fn show(argument: &str) -> Result<ExitCode, Failure> {
    let path = find(argument)?;
    let opened = Store::open_read_only(&path, std::path::Path::new("/"))?;
    for notice in &opened.notices {
        eprintln!("Warning: {notice}");
    }
    let messages = opened.store.context().messages;
    out(&plain_text(messages.iter().map(|message| &**message)))
}
