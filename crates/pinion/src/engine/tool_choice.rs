//! The tools that the flags and the settings select.

use pinion_agent::ToolFilter;
use pinion_config::Settings;
use serde_json::Value;

use super::DEFAULT_TOOLS;
use crate::cli::Flags;
use crate::failure::Failure;

/// The selected tools.
pub(super) struct ToolChoice {
    /// The built-in tools that are active at the start.
    pub active: Vec<String>,
    pub filter: ToolFilter,
}

impl ToolChoice {
    /// Reads the flags, which change or replace the default tools, and the setting `defaultTools`.
    pub fn of(flags: &Flags, settings: &Settings) -> Result<Self, Failure> {
        let mut filter = ToolFilter {
            only: None,
            without: flags.exclude_tools.clone(),
        };
        let mut active: Vec<String> = if flags.no_tools || flags.no_builtin_tools {
            Vec::new()
        } else {
            DEFAULT_TOOLS.iter().map(ToString::to_string).collect()
        };
        if flags.no_tools {
            filter.only = Some(Vec::new());
        } else if let Some(Value::Array(names)) = settings.get("defaultTools") {
            let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
            match changes(&names).map_err(|_| mixed("defaultTools in settings.json"))? {
                Some(changes) => apply(&changes, &mut active, &mut filter.without),
                None => active = names.iter().map(ToString::to_string).collect(),
            }
        }
        if let Some(names) = &flags.tools {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            match changes(&names).map_err(|_| mixed("--tools"))? {
                Some(changes) => {
                    filter.only = None;
                    apply(&changes, &mut active, &mut filter.without);
                }
                None => {
                    active = names.iter().map(ToString::to_string).collect();
                    filter.only = Some(active.clone());
                }
            }
        }
        active.retain(|name| !filter.without.contains(name));
        Ok(Self { active, filter })
    }
}

/// Returns the name of a tool without the `+` or `-` of a change.
pub(super) fn plain_name(entry: &str) -> &str {
    entry.strip_prefix(['+', '-']).unwrap_or(entry)
}

/// Plain names and changes exclude each other.
struct MixedNames;

fn mixed(place: &str) -> Failure {
    Failure::usage(format!(
        "{place}: names, and names with + or -, exclude each other; write all with + or -, or none"
    ))
}

/// Returns the changes if all entries begin with `+` or `-`; `None` if none does.
fn changes<'a>(entries: &[&'a str]) -> Result<Option<Vec<(bool, &'a str)>>, MixedNames> {
    let changes: Vec<(bool, &str)> = entries
        .iter()
        .filter(|entry| entry.starts_with(['+', '-']))
        .map(|entry| (entry.starts_with('+'), plain_name(entry)))
        .collect();
    match changes.len() {
        0 => Ok(None),
        count if count == entries.len() => Ok(Some(changes)),
        _ => Err(MixedNames),
    }
}

fn apply(changes: &[(bool, &str)], active: &mut Vec<String>, without: &mut Vec<String>) {
    for (is_added, name) in changes {
        if *is_added {
            without.retain(|known| known != name);
            if !active.iter().any(|known| known == name) {
                active.push((*name).to_owned());
            }
        } else {
            without.push((*name).to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_and_names_exclude_each_other() {
        let applied = |entries: &[&str]| {
            let mut active = vec!["read".to_owned(), "bash".to_owned()];
            let mut without = Vec::new();
            let changes = changes(entries).ok()??;
            apply(&changes, &mut active, &mut without);
            active.retain(|name| !without.contains(name));
            Some(active)
        };
        assert_eq!(applied(&["+grep", "-bash"]).unwrap(), ["read", "grep"]);
        assert_eq!(applied(&["+read"]).unwrap(), ["read", "bash"]);
        assert_eq!(applied(&["read", "+grep"]), None);
        assert_eq!(applied(&["read"]), None);
    }
}
