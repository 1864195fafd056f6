//! `fleet show`, `list` and `clean`: commands about past runs.

use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;

use pinion_fleet::{RunDir, RunStatus};
use pinion_tui::sanitise;

use super::arguments::Which;
use crate::commands::out;
use crate::failure::Failure;

pub(super) fn show(root: &Path, run: &str, json: bool) -> Result<ExitCode, Failure> {
    let directory = RunDir::find(root, run)?;
    let report = directory.report()?;
    if json {
        let text = serde_json::to_string_pretty(&report).unwrap_or_default();
        return out(&(text + "\n"));
    }
    if report.status == RunStatus::Killed {
        eprintln!(
            "Note: this run was killed; `pinion fleet resume {}` goes on with it.",
            super::name(root, &directory)
        );
    }
    let text = report.markdown();
    if std::io::stdout().is_terminal() {
        // Texts of children must not control the terminal.
        out(&sanitise(&text))
    } else {
        out(&text)
    }
}

pub(super) fn list(root: &Path, json: bool) -> Result<ExitCode, Failure> {
    let runs = RunDir::list(root);
    if runs.is_empty() {
        eprintln!("No runs yet. `pinion fleet run PLAN.yaml` makes one.");
    }
    let line = if json { RunDir::json_line } else { RunDir::row };
    out(&runs.iter().rev().filter_map(line).collect::<String>())
}

pub(super) fn clean(root: &Path, which: &Which) -> Result<ExitCode, Failure> {
    let runs = match which {
        Which::Named(names) => {
            let found = names.iter().map(|name| RunDir::find(root, name));
            found.collect::<Result<Vec<_>, _>>()?
        }
        Which::OlderThan(age) => RunDir::older_than(root, *age),
    };
    let mut spared = 0;
    let deleted = RunDir::delete_all(runs, |run| {
        eprintln!("{} is running and stays.", run.id());
        spared += 1;
    })?;
    eprintln!("{deleted} deleted.");
    Ok(ExitCode::from(u8::from(spared > 0)))
}
