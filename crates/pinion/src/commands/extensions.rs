//! `extensions`: lists the extensions that a run here would load, their origins and what they register.

use std::fmt::Write;
use std::process::ExitCode;

use pinion_config::{
    Dirs, Discovery, ExtensionEntry, ExtensionFlags, Settings, Trust, TrustFlag, find_extensions,
};
use pinion_extensions::{ExtensionReport, Extensions, Options};
use serde_json::{Value, json};

use super::out;
use crate::extensions::options;
use crate::failure::Failure;
use crate::runtime;
use crate::verb::{Entry, Group, Line, Verb};
use pinion_cli::tables;

const LIST: Verb = Verb::new(
    "pinion extensions",
    &tables::commands::EXTENSIONS_LIST,
    |line| {
        let [] = line.exactly()?;
        list(&Wanted::of(line)?)
    },
);

pub(super) const GROUP: Group = Group {
    above: "pinion",
    command: &tables::commands::EXTENSIONS,
    entries: &[Entry::One(&LIST)],
};

struct Wanted {
    flags: ExtensionFlags,
    trust: TrustFlag,
    json: bool,
    no_load: bool,
}

impl Wanted {
    fn of(line: &Line) -> Result<Self, Failure> {
        Ok(Self {
            flags: ExtensionFlags {
                extensions: line.values("--extension").map(str::to_owned).collect(),
                discovery: if line.has("--no-extensions") {
                    Discovery::Off
                } else {
                    Discovery::On
                },
            },
            trust: super::trust_flag(line),
            json: line.has("--json"),
            no_load: line.has("--no-load"),
        })
    }
}

/// The result for one extension.
enum Outcome {
    /// The extension was not loaded, only found.
    Found,
    Loaded(Box<ExtensionReport>),
    Failed(String),
}

fn list(wanted: &Wanted) -> Result<ExitCode, Failure> {
    let dirs = Dirs::from_env()?;
    let (trust, mut notices) = Trust::decide(&dirs, wanted.trust);
    let (settings, odd) = Settings::load(&dirs, trust);
    notices.extend(odd);
    let found = find_extensions(&dirs, &settings, &wanted.flags, trust);
    notices.extend(found.notices);
    for notice in notices {
        eprintln!("Warning: {notice}");
    }
    if found.entries.is_empty() && !wanted.json {
        eprintln!("No extensions. See `pinion extensions --help` for where they are looked for.");
    }
    let outcomes = match wanted.no_load || found.entries.is_empty() {
        true => found.entries.iter().map(|_| Outcome::Found).collect(),
        false => load(&found.entries, options(&settings, &dirs))?,
    };
    let mut text = String::new();
    for (entry, outcome) in found.entries.iter().zip(&outcomes) {
        match wanted.json {
            true => text.push_str(&json_line(entry, outcome)),
            false => text.push_str(&paragraph(entry, outcome)),
        }
    }
    out(&text)?;
    let failed = |outcome: &Outcome| matches!(outcome, Outcome::Failed(_));
    Ok(ExitCode::from(u8::from(outcomes.iter().any(failed))))
}

/// Loads the extensions as a run would, but continues after one that fails.
fn load(entries: &[ExtensionEntry], options: Options) -> Result<Vec<Outcome>, Failure> {
    let to_load = entries
        .iter()
        .map(|entry| pinion_extensions::ExtensionEntry {
            path: entry.path.clone(),
            source_info: json!(entry.source_info),
        });
    let options = Options {
        lenient: true,
        ..options
    };
    let runtime = runtime::build()?;
    let loaded = runtime.block_on(Extensions::load(to_load.collect(), options));
    let loaded = loaded.map_err(|failure| Failure::failed(format!("Error: {failure}")))?;
    let reports = loaded.report();
    let problems = loaded.problems();
    let outcome = |entry: &ExtensionEntry| {
        let path = entry.path.display().to_string();
        let problem = problems.iter().find(|problem| problem.path == path);
        let report = reports.iter().find(|report| report.path == path);
        match (problem, report) {
            (Some(problem), _) => Outcome::Failed(problem.message.clone()),
            (None, Some(report)) => Outcome::Loaded(Box::new(report.clone())),
            (None, None) => Outcome::Failed("it was not loaded".to_owned()),
        }
    };
    let outcomes = entries.iter().map(outcome).collect();
    drop(loaded);
    // A script that still waits for something must not delay the exit of the process.
    runtime.shutdown_background();
    Ok(outcomes)
}

fn paragraph(entry: &ExtensionEntry, outcome: &Outcome) -> String {
    let info = &entry.source_info;
    let mut text = format!(
        "{}\n  from: {} ({})\n",
        entry.path.display(),
        info.source,
        info.scope
    );
    let mut line = |word: &str, what: &str| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {word}: {what}");
    };
    match outcome {
        Outcome::Found => {}
        Outcome::Failed(error) => line("error", error),
        Outcome::Loaded(report) => {
            let slashed = |names: &[String], mark: &str| -> Vec<String> {
                names.iter().map(|name| format!("{mark}{name}")).collect()
            };
            for (word, names) in [
                ("tools", report.tools.clone()),
                ("commands", slashed(&report.commands, "/")),
                ("flags", slashed(&report.flags, "--")),
                ("events", report.events.clone()),
                ("providers", report.providers.clone()),
                ("shortcuts", report.shortcuts.clone()),
                ("renderers", report.renderers.clone()),
                ("modules", report.modules.clone()),
            ] {
                if !names.is_empty() {
                    line(word, &names.join(", "));
                }
            }
            line(
                "loaded in",
                &format!("{:.1} ms", report.load_time.as_secs_f64() * 1000.0),
            );
        }
    }
    text
}

fn json_line(entry: &ExtensionEntry, outcome: &Outcome) -> String {
    let mut value = match outcome {
        Outcome::Loaded(report) => json!(report),
        Outcome::Found => json!({"path": entry.path.display().to_string()}),
        Outcome::Failed(error) => {
            json!({"path": entry.path.display().to_string(), "error": error})
        }
    };
    if let Value::Object(members) = &mut value {
        members.insert("sourceInfo".to_owned(), json!(entry.source_info));
    }
    pinion_jsonl::json::to_string(&value) + "\n"
}
