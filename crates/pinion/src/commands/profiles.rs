//! `profiles`: lists profiles, shows the settings of one, and explains the settings of a run here.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;

use pinion_config::{Dirs, Trust, TrustFlag};
use pinion_llm::{Registry as Models, RegistryOptions};
use pinion_profiles::{
    Chosen, ProfileError, ProfileRequest, Resolved, Unnamed, debug_report, engine, profile_rows,
    profile_table, resolve, settings_report, to_yaml,
};
use serde_json::Value;

use super::out;
use crate::failure::Failure;
use crate::surroundings;
use crate::verb::{Entry, Group, Line, Verb};
use pinion_cli::tables;

const LIST: Verb = Verb::new(
    "pinion profiles",
    &tables::commands::PROFILES_LIST,
    |line| {
        let [] = line.exactly()?;
        list(&Wanted::of(line, None)?)
    },
);

const SHOW: Verb = Verb::new(
    "pinion profiles",
    &tables::commands::PROFILES_SHOW,
    |line| show(&Wanted::of(line, line.at_most_one()?)?),
);

const DEBUG: Verb = Verb::new(
    "pinion profiles",
    &tables::commands::PROFILES_DEBUG,
    |line| {
        let [] = line.exactly()?;
        debug(&Wanted::of(line, None)?)
    },
);

pub(super) const GROUP: Group = Group {
    above: "pinion",
    command: &tables::commands::PROFILES,
    entries: &[Entry::One(&LIST), Entry::One(&SHOW), Entry::One(&DEBUG)],
    takes_words: false,
};

struct Wanted {
    name: Option<String>,
    asked: ProfileRequest,
    trust: TrustFlag,
    json: bool,
}

impl Wanted {
    fn of(line: &Line, name: Option<&str>) -> Result<Self, Failure> {
        let text = |flag| line.value(flag).map(str::to_owned);
        let registries: Vec<String> = line
            .values("--profile-registries")
            .map(str::to_owned)
            .collect();
        Ok(Self {
            name: name.map(str::to_owned),
            asked: ProfileRequest {
                profile: text("--profile"),
                config_file: text("--config-file").map(PathBuf::from),
                registries: Some(registries).filter(|sources| !sources.is_empty()),
                ..ProfileRequest::default()
            },
            trust: super::trust_flag(line),
            json: line.has("--json"),
        })
    }

    /// Reports whether to print JSON: with `--json`, and if standard output is not a terminal.
    fn as_json(&self) -> bool {
        self.json || !std::io::stdout().is_terminal()
    }
}

/// The settings of a run here, and the model it would use.
struct Looked {
    resolved: Resolved,
    chosen: Result<Chosen, ProfileError>,
}

fn look(wanted: &Wanted) -> Result<Looked, Failure> {
    let dirs = Dirs::from_env()?;
    let (trust, notices) = Trust::load(&dirs);
    for notice in &notices {
        eprintln!("Warning: {notice}");
    }
    surroundings::with(&dirs, &trust, wanted.trust, |surroundings| {
        let resolved = resolve(surroundings, &wanted.asked)?;
        for notice in &resolved.notices {
            eprintln!("Warning: {notice}");
        }
        let options = RegistryOptions {
            include_offline: true,
            ..RegistryOptions::default()
        };
        let (models, notices) = Models::load(&dirs.agent_dir, options);
        for notice in &notices {
            eprintln!("Warning: {notice}");
        }
        let unnamed = Unnamed {
            saved: None,
            demo: true,
        };
        let chosen = engine(&resolved, &models, surroundings, unnamed, SystemTime::now());
        Ok(Looked { resolved, chosen })
    })
}

fn list(wanted: &Wanted) -> Result<ExitCode, Failure> {
    let rows = profile_rows(&look(wanted)?.resolved);
    if wanted.as_json() {
        let lines = rows
            .iter()
            .map(|row| pinion_jsonl::json::to_string(row) + "\n");
        return out(&lines.collect::<String>());
    }
    if rows.is_empty() {
        eprintln!("No profiles. See `pinion profiles --help` for where they are looked for.");
    }
    out(&profile_table(&rows))
}

/// Prints one profile with all it stacks on; without a name, the settings of a run here.
fn show(wanted: &Wanted) -> Result<ExitCode, Failure> {
    let asked = ProfileRequest {
        profile: wanted.name.clone().or(wanted.asked.profile.clone()),
        ..wanted.asked.clone()
    };
    let wanted = Wanted {
        asked,
        name: None,
        ..*wanted
    };
    let settings = settings_report(&look(&wanted)?.resolved);
    print(&wanted, &settings)
}

/// Prints the documents and steps that lead to the settings and the model of a run here.
fn debug(wanted: &Wanted) -> Result<ExitCode, Failure> {
    let looked = look(wanted)?;
    print(wanted, &debug_report(&looked.resolved, &looked.chosen))
}

/// Prints YAML for people, one line of JSON for programs.
fn print(wanted: &Wanted, value: &Value) -> Result<ExitCode, Failure> {
    if wanted.as_json() {
        out(&(pinion_jsonl::json::to_string(value) + "\n"))
    } else {
        out(&to_yaml(value))
    }
}
