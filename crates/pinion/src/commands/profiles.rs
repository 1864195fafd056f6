//! `profiles`: lists profiles, shows the settings of one, and explains the settings of a run here.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;

use pinion_config::{Dirs, Trust, TrustFlag};
use pinion_llm::{Registry as Models, RegistryOptions};
use pinion_profiles::{
    Chosen, Profile, ProfileError, ProfileRequest, Registry, Resolved, Unnamed, engine, resolve,
    to_yaml,
};
use pinion_text::columns;
use serde_json::{Map, Value, json};

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
    engine: Result<Chosen, ProfileError>,
}

fn look(wanted: &Wanted) -> Result<Looked, Failure> {
    let dirs = Dirs::from_env()?;
    let (trust, notices) = Trust::load(&dirs);
    for notice in &notices {
        eprintln!("Warning: {notice}");
    }
    surroundings::with(&dirs, &trust, wanted.trust, |surroundings| {
        let resolved = resolve(surroundings, &wanted.asked)
            .map_err(|error| Failure::failed(format!("Error: {error}")))?;
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
        let engine = engine(&resolved, &models, surroundings, unnamed, SystemTime::now());
        Ok(Looked { resolved, engine })
    })
}

fn list(wanted: &Wanted) -> Result<ExitCode, Failure> {
    let Looked { resolved, .. } = look(wanted)?;
    let library = &resolved.library;
    let rows = library.registries().flat_map(|registry| {
        registry
            .profiles
            .values()
            .map(move |profile| (registry, profile))
    });
    let rows: Vec<Value> = rows
        .map(|(registry, profile)| row(&resolved, registry, profile))
        .collect();
    if wanted.as_json() {
        let lines = rows
            .iter()
            .map(|row| pinion_jsonl::json::to_string(row) + "\n");
        return out(&lines.collect::<String>());
    }
    if rows.is_empty() {
        eprintln!("No profiles. See `pinion profiles --help` for where they are looked for.");
    }
    out(&table(&rows))
}

fn row(resolved: &Resolved, registry: &Registry, profile: &Profile) -> Value {
    let chosen = resolved
        .profile
        .as_ref()
        .is_some_and(|chosen| chosen.registry == registry.slug && chosen.slug == profile.slug);
    let default = registry
        .default_profile()
        .is_some_and(|default| default.slug == profile.slug);
    let assembled = resolved.library.assemble(registry, profile);
    let setting = |name: &str| match &assembled {
        Ok(whole) => whole.settings.get(&["chat", name]).cloned(),
        Err(_) => None,
    };
    let stack = profile
        .stack
        .iter()
        .map(|entry| match &entry.registry_slug {
            Some(registry) => format!("{registry}/{}", entry.profile_slug),
            None => entry.profile_slug.to_string(),
        });
    let mut row = Map::new();
    let mut set = |name: &str, value: Value| row.insert(name.to_owned(), value);
    set("registry", json!(registry.slug.as_str()));
    set("profile", json!(profile.slug.as_str()));
    set("active", json!(chosen));
    set("default", json!(default));
    set("displayName", json!(profile.display_name));
    set("description", json!(profile.description));
    set("engine", json!(setting("engine")));
    set("apiType", json!(setting("api_type")));
    set("stack", json!(stack.collect::<Vec<_>>()));
    set("source", json!(registry.origin));
    if let Err(error) = &assembled {
        set("error", json!(error.to_string()));
    }
    Value::Object(row)
}

fn table(rows: &[Value]) -> String {
    let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
    let mark = |row: &Value| match (&row["active"], &row["default"]) {
        (Value::Bool(true), _) => "*".to_owned(),
        (_, Value::Bool(true)) => "d".to_owned(),
        _ => String::new(),
    };
    let mut cells = vec![["", "registry", "profile", "engine", "api", "name"].map(str::to_owned)];
    cells.extend(rows.iter().map(|row| {
        [
            mark(row),
            text(row, "registry"),
            text(row, "profile"),
            text(row, "engine"),
            text(row, "apiType"),
            text(row, "displayName"),
        ]
    }));
    if rows.is_empty() {
        return String::new();
    }
    columns(&cells)
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
    let Looked { resolved, .. } = look(&wanted)?;
    let mut shown = Map::new();
    if let Some(profile) = &resolved.profile {
        let lineage: Vec<String> = profile.lineage.iter().map(ToString::to_string).collect();
        shown.insert("registry".to_owned(), json!(profile.registry.as_str()));
        shown.insert("profile".to_owned(), json!(profile.slug.as_str()));
        shown.insert("display_name".to_owned(), json!(profile.display_name));
        shown.insert("source".to_owned(), json!(profile.origin));
        shown.insert("lineage".to_owned(), json!(lineage));
        shown.insert("profile_settings".to_owned(), profile.settings.masked());
        if !profile.extensions.is_empty() {
            shown.insert("extensions".to_owned(), profile.extensions.masked());
        }
    } else {
        shown.insert("profile".to_owned(), Value::Null);
    }
    shown.insert("inference_settings".to_owned(), resolved.settings.masked());
    print(&wanted, Value::Object(shown))
}

/// Prints the documents and steps that lead to the settings and the model of a run here.
fn debug(wanted: &Wanted) -> Result<ExitCode, Failure> {
    let Looked { resolved, engine } = look(wanted)?;
    let documents = resolved.config.documents.iter();
    let documents: Vec<Value> = documents
        .map(|(place, state)| json!({"path": place.path, "state": state.as_str()}))
        .collect();
    let sources = resolved.library.sources.iter();
    let sources: Vec<String> = sources.map(ToString::to_string).collect();
    let profile = resolved.profile.as_ref().map(|profile| {
        let lineage: Vec<String> = profile.lineage.iter().map(ToString::to_string).collect();
        json!({
            "registry": profile.registry.as_str(),
            "profile": profile.slug.as_str(),
            "source": profile.origin,
            "lineage": lineage,
        })
    });
    let engine = match &engine {
        Ok(chosen) => json!({
            "provider": chosen.model.provider,
            "model": chosen.model.id,
            "api": chosen.model.api,
            "baseUrl": chosen.model.base_url,
            "thinking": chosen.thinking,
            "notices": chosen.notices.iter().map(ToString::to_string).collect::<Vec<_>>(),
        }),
        Err(error) => json!({"code": error.code(), "error": error.to_string()}),
    };
    let masked = resolved.settings.masked();
    let mut settings = Map::new();
    for (path, _) in resolved.settings.tree().leaves() {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        let value = path.iter().try_fold(&masked, |value, name| value.get(name));
        let origin = resolved.origin(&path);
        settings.insert(path.join("."), json!({"value": value, "from": origin}));
    }
    print(
        wanted,
        json!({
            "documents": documents,
            "registries": sources,
            "profile": profile,
            "engine": engine,
            "settings": settings,
        }),
    )
}

/// Prints YAML for people, one line of JSON for programs.
fn print(wanted: &Wanted, value: Value) -> Result<ExitCode, Failure> {
    out(&match wanted.as_json() {
        true => pinion_jsonl::json::to_string(&value) + "\n",
        false => to_yaml(&value),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_marks_what_is_in_use() {
        let rows = [
            json!({"registry": "config-inline", "profile": "fast", "active": true, "default": true,
                "engine": "gpt-4o", "apiType": "openai", "displayName": "Quick"}),
            json!({"registry": "team", "profile": "base", "active": false, "default": true,
                "engine": null, "apiType": null, "displayName": null}),
        ];
        assert_eq!(
            table(&rows),
            "   registry       profile  engine  api     name\n\
             *  config-inline  fast     gpt-4o  openai  Quick\n\
             d  team           base\n"
        );
        assert_eq!(table(&[]), "");
    }
}
