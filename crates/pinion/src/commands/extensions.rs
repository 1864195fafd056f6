//! `extensions`: lists the extensions that a run here would load, their origins and what they register.

use std::process::ExitCode;

use pinion_config::{
    Dirs, Discovery, ExtensionEntry, ExtensionFlags, Settings, Trust, TrustFlag, find_extensions,
};
use pinion_extensions::{ExtensionReport, Extensions, Options};
use serde_json::json;

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
    let outcomes = if wanted.no_load || found.entries.is_empty() {
        found.entries.iter().map(|_| None).collect()
    } else {
        load(&found.entries, options(&settings, &dirs))?
    };
    let mut text = String::new();
    for (entry, outcome) in found.entries.iter().zip(&outcomes) {
        text.push_str(&if wanted.json {
            json_line(entry, outcome)
        } else {
            paragraph(entry, outcome)
        });
    }
    out(&text)?;
    let failed = |outcome: &Outcome| matches!(outcome, Some(Err(_)));
    Ok(ExitCode::from(u8::from(outcomes.iter().any(failed))))
}

/// The report of an extension, or the reason why it was not loaded; `None` with `--no-load`.
type Outcome = Option<Result<ExtensionReport, String>>;

fn load(entries: &[ExtensionEntry], options: Options) -> Result<Vec<Outcome>, Failure> {
    let entries = entries
        .iter()
        .map(|entry| pinion_extensions::ExtensionEntry {
            path: entry.path.clone(),
            source_info: json!(entry.source_info),
        });
    let runtime = runtime::build()?;
    let outcomes = runtime.block_on(Extensions::inspect(entries.collect(), options));
    // A script that still waits for something must not delay the exit of the process.
    runtime.shutdown_background();
    let outcomes = outcomes.map_err(|failure| Failure::failed(format!("Error: {failure}")))?;
    Ok(outcomes.into_iter().map(Some).collect())
}

fn paragraph(entry: &ExtensionEntry, outcome: &Outcome) -> String {
    let info = &entry.source_info;
    let registered = match outcome {
        None => String::new(),
        Some(Err(error)) => format!("  error: {error}\n"),
        Some(Ok(report)) => report.text(),
    };
    format!(
        "{}\n  from: {} ({})\n{registered}",
        entry.path.display(),
        info.source,
        info.scope
    )
}

fn json_line(entry: &ExtensionEntry, outcome: &Outcome) -> String {
    let path = entry.path.display().to_string();
    let mut value = match outcome {
        Some(Ok(report)) => json!(report),
        None => json!({"path": path}),
        Some(Err(error)) => json!({"path": path, "error": error}),
    };
    value["sourceInfo"] = json!(entry.source_info);
    pinion_jsonl::json::to_string(&value) + "\n"
}
