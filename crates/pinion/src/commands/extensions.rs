//! `extensions`: lists the extensions that a run here would load, their origins and what they register.

use std::process::ExitCode;

use pinion_config::{
    Dirs, Discovery, ExtensionEntry, ExtensionFlags, Settings, Trust, TrustFlag, find_extensions,
};
use pinion_extensions::{Extensions, ListedOutcome, Options, listed_json_line, listed_text};
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
    takes_words: false,
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
            listed_json_line(entry, outcome)
        } else {
            listed_text(entry, outcome)
        });
    }
    out(&text)?;
    let failed = |outcome: &ListedOutcome| matches!(outcome, Some(Err(_)));
    Ok(ExitCode::from(u8::from(outcomes.iter().any(failed))))
}

fn load(entries: &[ExtensionEntry], options: Options) -> Result<Vec<ListedOutcome>, Failure> {
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
    let outcomes = outcomes.map_err(Failure::failed)?;
    Ok(outcomes.into_iter().map(Some).collect())
}
