//! Reads the forms in which clips and package files write a manifest.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{Command, Dependency, InputChecks, Manifest, Schedule, schema};

pub(super) fn read(value: &Value) -> Manifest {
    let text = |key: &str| string(value.get(key));
    let entities = object(value.get("entities")).map(|(name, entity)| {
        let entity = match entity {
            Value::String(text) => text.clone(),
            schema => schema.to_string(),
        };
        (name.clone(), entity)
    });
    Manifest {
        name: text("name"),
        package: text("package"),
        version: text("version"),
        domain: text("domain"),
        description: text("description"),
        commands: commands(value.get("commands")),
        groups: object(value.get("groups"))
            .map(|(name, group)| (name.clone(), text_or(group, "description")))
            .collect(),
        dependencies: dependencies(value.get("dependencies")),
        patterns: array(value.get("patterns"))
            .filter_map(|pattern| pattern.as_str().map(str::to_owned))
            .collect(),
        entities: entities.collect(),
        has_web: value.get("has_web").and_then(Value::as_bool) == Some(true)
            || value.get("hasWeb").and_then(Value::as_bool) == Some(true),
        schedules: array(value.get("schedules")).map(schedule).collect(),
        checks: InputChecks::default(),
    }
}

fn commands(value: Option<&Value>) -> Vec<Command> {
    match value {
        Some(Value::Array(list)) => list
            .iter()
            .map(|entry| match entry {
                Value::String(name) => Command {
                    name: name.clone(),
                    ..Command::default()
                },
                entry => {
                    let keys = ["name", "command", "id"];
                    let names = keys.iter().map(|key| string(entry.get(key)));
                    let name = names.into_iter().find(|name| !name.trim().is_empty());
                    command(name.unwrap_or_default(), entry)
                }
            })
            .collect(),
        Some(Value::Object(map)) => map
            .iter()
            .map(|(name, entry)| command(name.clone(), entry))
            .collect(),
        _ => Vec::new(),
    }
}

fn command(name: String, entry: &Value) -> Command {
    Command {
        name,
        description: text_or(entry, "description"),
        input: schema::text(entry.get("input")),
        output: schema::text(entry.get("output")),
    }
}

fn dependencies(value: Option<&Value>) -> BTreeMap<String, Dependency> {
    if let Some(Value::Array(slots)) = value {
        let slots = slots.iter().filter_map(Value::as_str);
        return slots
            .map(|slot| (slot.to_owned(), Dependency::default()))
            .collect();
    }
    let entries = object(value).map(|(slot, dependency)| {
        let dependency = Dependency {
            package: text_or(dependency, "package"),
            version: string(dependency.get("version")),
        };
        (slot.clone(), dependency)
    });
    entries.collect()
}

fn schedule(value: &Value) -> Schedule {
    Schedule {
        command: string(value.get("command")),
        cron: string(value.get("cron")),
        input: match value.get("input") {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(input) => input.to_string(),
        },
        description: string(value.get("description")),
    }
}

pub(crate) fn string(value: Option<&Value>) -> String {
    value
        .and_then(Value::as_str)
        .map(|text| text.trim().to_owned())
        .unwrap_or_default()
}

/// Returns a text itself, or the text under `key` of an object.
fn text_or(value: &Value, key: &str) -> String {
    match value {
        Value::String(text) => text.trim().to_owned(),
        value => string(value.get(key)),
    }
}

fn object(value: Option<&Value>) -> impl Iterator<Item = (&String, &Value)> {
    value
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(Map::iter)
}

fn array(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    value
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
        .iter()
}
