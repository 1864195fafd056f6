//! Profiles and settings as JSON, and as a table for people.

use serde_json::{Map, Value, json};

use crate::{Chosen, Profile, ProfileError, Registry, Resolved};

/// Returns one row for each profile of the library.
pub fn profile_rows(resolved: &Resolved) -> Vec<Value> {
    let registries = resolved.library.registries();
    let rows = registries.flat_map(|registry| {
        let profiles = registry.profiles.values();
        profiles.map(move |profile| row(resolved, registry, profile))
    });
    rows.collect()
}

fn row(resolved: &Resolved, registry: &Registry, profile: &Profile) -> Value {
    let is_active = resolved
        .profile
        .as_ref()
        .is_some_and(|chosen| chosen.registry == registry.slug && chosen.slug == profile.slug);
    let is_default = registry
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
    let mut row = json!({
        "registry": registry.slug.as_str(),
        "profile": profile.slug.as_str(),
        "active": is_active,
        "default": is_default,
        "displayName": profile.display_name,
        "description": profile.description,
        "engine": setting("engine"),
        "apiType": setting("api_type"),
        "stack": stack.collect::<Vec<_>>(),
        "source": registry.origin,
    });
    if let Err(error) = &assembled {
        row["error"] = json!(error.to_string());
    }
    row
}

/// Returns rows in columns; `*` marks the active profile, `d` the default one of another registry.
pub fn profile_table(rows: &[Value]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut cells = vec![["", "registry", "profile", "engine", "api", "name"]];
    cells.extend(rows.iter().map(|row| {
        let text = |name: &str| row[name].as_str().unwrap_or_default();
        let mark = match (&row["active"], &row["default"]) {
            (Value::Bool(true), _) => "*",
            (_, Value::Bool(true)) => "d",
            _ => "",
        };
        [
            mark,
            text("registry"),
            text("profile"),
            text("engine"),
            text("apiType"),
            text("displayName"),
        ]
    }));
    pinion_text::columns(&cells)
}

/// Returns the chosen profile with all it stacks on, and the settings of a run. Secrets are masked.
pub fn settings_report(resolved: &Resolved) -> Value {
    let mut report = Map::new();
    match &resolved.profile {
        Some(profile) => {
            let lineage: Vec<String> = profile.lineage.iter().map(ToString::to_string).collect();
            report.insert("registry".to_owned(), json!(profile.registry.as_str()));
            report.insert("profile".to_owned(), json!(profile.slug.as_str()));
            report.insert("display_name".to_owned(), json!(profile.display_name));
            report.insert("source".to_owned(), json!(profile.origin));
            report.insert("lineage".to_owned(), json!(lineage));
            report.insert("profile_settings".to_owned(), profile.settings.masked());
            if !profile.extensions.is_empty() {
                report.insert("extensions".to_owned(), profile.extensions.masked());
            }
        }
        None => {
            report.insert("profile".to_owned(), Value::Null);
        }
    }
    report.insert("inference_settings".to_owned(), resolved.settings.masked());
    Value::Object(report)
}

/// Returns the documents and steps that lead to the settings of a run and to the model of `chosen`. Secrets are masked.
pub fn debug_report(resolved: &Resolved, chosen: &Result<Chosen, ProfileError>) -> Value {
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
    let engine = match chosen {
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
    json!({
        "documents": documents,
        "registries": sources,
        "profile": profile,
        "engine": engine,
        "settings": settings,
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
            profile_table(&rows),
            "   registry       profile  engine  api     name\n\
             *  config-inline  fast     gpt-4o  openai  Quick\n\
             d  team           base\n"
        );
        assert_eq!(profile_table(&[]), "");
    }
}
