//! Prints a command instead of running it: its schema, its values, and new files made from it.

use serde_json::{Map, Value as Json, json};

use crate::built_in::BuiltIn;
use crate::command::Command;
use crate::decode;
use crate::error::CommandError;
use crate::field::FieldType;
use crate::parsed::{Parsed, Source};

impl Command {
    /// Returns a JSON schema of the command's own fields.
    pub fn schema(&self) -> Json {
        let properties: Map<String, Json> = self
            .fields()
            .map(|field| (field.name.clone(), field.schema()))
            .collect();
        let required: Vec<&str> = self
            .fields()
            .filter(|field| field.required)
            .map(|field| field.name.as_str())
            .collect();
        let mut schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": self.name,
            "type": "object",
            "properties": properties,
        });
        if !self.short.is_empty() {
            schema["description"] = json!(self.short);
        }
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        schema
    }

    /// Returns the output of `--print-parsed-fields`: every field and option with its value and source, as YAML.
    pub fn parsed_fields(&self, parsed: &Parsed, built_ins: &[BuiltIn]) -> String {
        let mut groups: Vec<(&str, Map<String, Json>)> = vec![("command", Map::new())];
        for field in self.fields() {
            if let Some(value) = parsed.values.get(&field.name) {
                let source = parsed
                    .sources
                    .get(&field.name)
                    .copied()
                    .unwrap_or(Source::Default);
                groups[0]
                    .1
                    .insert(field.name.clone(), entry(field.shown(value), source));
            }
        }
        for option in built_ins {
            let Some(slot) = parsed.builtin.slots.get(option.name) else {
                continue;
            };
            let name = option.group.name();
            if groups.last().is_none_or(|(last, _)| *last != name) {
                groups.push((name, Map::new()));
            }
            let shown = match slot.kind {
                FieldType::Secret => json!("***"),
                _ => slot.value.to_json(),
            };
            if let Some((_, entries)) = groups.last_mut() {
                entries.insert(option.name.to_owned(), entry(shown, slot.source));
            }
        }
        let document: Map<String, Json> = groups
            .into_iter()
            .filter(|(_, entries)| !entries.is_empty())
            .map(|(name, entries)| (name.to_owned(), Json::Object(entries)))
            .collect();
        serde_saphyr::to_string(&document).unwrap_or_default()
    }

    /// Returns the output of `--create-alias`: an alias file with the given values. `path` is the command's name.
    pub fn alias_file(&self, name: &str, path: &[String], parsed: &Parsed) -> String {
        let mut flags = Map::new();
        let mut arguments = Vec::new();
        for field in self.fields() {
            let (Some(value), Some(source)) = (
                parsed.values.get(&field.name),
                parsed.sources.get(&field.name),
            ) else {
                continue;
            };
            // Contents of files and secrets are not copied into another file.
            if field.kind.reads_files() || field.kind == FieldType::Secret {
                continue;
            }
            let texts = || match value.to_json() {
                Json::Array(items) => items.iter().map(plain).collect::<Vec<_>>(),
                other => vec![plain(&other)],
            };
            match source {
                Source::CommandLine | Source::Alias => {
                    flags.insert(field.name.clone(), json!(texts().join(",")));
                }
                Source::Argument => arguments.extend(texts()),
                _ => {}
            }
        }
        let mut document = json!({ "name": name, "aliasFor": path.join(" ") });
        document["flags"] = Json::Object(flags);
        if !arguments.is_empty() {
            document["arguments"] = json!(arguments);
        }
        serde_saphyr::to_string(&document).unwrap_or_default()
    }

    /// Returns the output of `--create-command`: this command under another name, with the given values as defaults.
    pub fn command_file(&self, name: &str, parsed: &Parsed) -> Result<String, CommandError> {
        let mut document: Json = crate::yaml::from_str(&self.origin.text)
            .map_err(|error| decode::malformed(&self.origin, &error))?;
        document["name"] = json!(name);
        for list in ["flags", "arguments"] {
            let Some(Json::Array(fields)) = document.get_mut(list) else {
                continue;
            };
            for field in fields {
                let Some(known) = self
                    .fields()
                    .find(|known| field["name"] == json!(known.name))
                else {
                    continue;
                };
                let given = parsed
                    .sources
                    .get(&known.name)
                    .is_some_and(|s| *s != Source::Default);
                if given
                    && !known.kind.reads_files()
                    && known.kind != FieldType::Secret
                    && let Some(value) = parsed.values.get(&known.name)
                {
                    field["default"] = value.to_json();
                    field["required"] = json!(false);
                }
            }
        }
        Ok(serde_saphyr::to_string(&document).unwrap_or_default())
    }
}

fn entry(value: Json, source: Source) -> Json {
    json!({ "value": value, "source": source.name() })
}

fn plain(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}
