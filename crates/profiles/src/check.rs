//! Checks inference settings against the table and converts each value to its type.

use pinion_yaml::{Entry, Node, NodeKind, Problem};
use serde_json::{Map, Number, Value};

use crate::keys::{FREE_SECTIONS, KEYS, Key, SECTIONS, SettingKind};
use crate::tree::Tree;
use pinion_text::nearest;

/// The treatment of unknown settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unknown {
    /// They are errors.
    Refused,
    /// They are stored and reported.
    Kept,
}

/// The results of a check.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub problems: Vec<Problem>,
    /// Unknown settings that were stored.
    pub remarks: Vec<Problem>,
}

impl Findings {
    fn unknown(&mut self, unknown: Unknown, problem: Problem) {
        match unknown {
            Unknown::Refused => self.problems.push(problem),
            Unknown::Kept => self.remarks.push(problem),
        }
    }
}

/// Returns the settings of a node; invalid ones are left out and added to `findings`.
pub(crate) fn settings(node: &Node, unknown: Unknown, findings: &mut Findings) -> Tree {
    let mut checked = Map::new();
    let sections = match node.members("inference_settings") {
        Ok(sections) => sections,
        Err(problem) => {
            findings.problems.push(problem);
            return Tree::default();
        }
    };
    for entry in sections {
        let name = entry.key.as_str();
        let value = match name {
            "api" => api(entry, unknown, findings),
            "api_keys" => {
                findings.problems.push(
                    entry
                        .at
                        .problem("keys belong under `api`: write api.api_keys.<provider>-api-key"),
                );
                continue;
            }
            name if FREE_SECTIONS.contains(&name) => entry.value.to_value(),
            name if SECTIONS.contains(&name) => members(&[name], &entry.value, unknown, findings),
            _ => {
                let words = describe_unknown("inference_settings", name, SECTIONS.into_iter());
                findings.unknown(unknown, entry.at.problem(words));
                entry.value.to_value()
            }
        };
        if !value.is_null() {
            checked.insert(entry.key.clone(), value);
        }
    }
    Tree::new(checked)
}

/// Checks one section, or a mapping inside one.
fn members(at: &[&str], node: &Node, unknown: Unknown, findings: &mut Findings) -> Value {
    let entries = match node.members(&at.join(".")) {
        Ok(entries) => entries,
        Err(problem) => {
            findings.problems.push(problem);
            return Value::Null;
        }
    };
    let mut checked = Map::new();
    for entry in entries {
        let mut path = at.to_vec();
        path.push(&entry.key);
        let below = |key: &&Key| key.path.len() > path.len() && key.path.starts_with(&path);
        let value = if let Some(key) = KEYS.iter().find(|key| key.path == path) {
            match coerce(&path.join("."), key.kind, &entry.value) {
                Ok(value) => value,
                Err(problem) => {
                    findings.problems.push(problem);
                    continue;
                }
            }
        } else if KEYS.iter().any(|key| below(&key)) {
            members(&path, &entry.value, unknown, findings)
        } else {
            let known = KEYS.iter().filter(|key| key.path.starts_with(at));
            let known = known.filter_map(|key| key.path.get(at.len()).copied());
            let words = describe_unknown(&at.join("."), &entry.key, known);
            findings.unknown(unknown, entry.at.problem(words));
            entry.value.to_value()
        };
        if !value.is_null() {
            checked.insert(entry.key.clone(), value);
        }
    }
    Value::Object(checked)
}

/// Checks keys, base URLs and network permissions, by provider.
fn api(entry: &Entry, unknown: Unknown, findings: &mut Findings) -> Value {
    const PARTS: [(&str, &str, SettingKind); 4] = [
        ("api_keys", "-api-key", SettingKind::Secret),
        ("base_urls", "-base-url", SettingKind::Text),
        ("allow_http", "", SettingKind::Switch),
        ("allow_local_networks", "", SettingKind::Switch),
    ];
    let entries = match entry.value.members("api") {
        Ok(entries) => entries,
        Err(problem) => {
            findings.problems.push(problem);
            return Value::Null;
        }
    };
    let mut checked = Map::new();
    for part in entries {
        let Some((name, ending, kind)) = PARTS.iter().find(|(name, ..)| *name == part.key) else {
            let names = PARTS.iter().map(|(name, ..)| *name);
            let words = describe_unknown("api", &part.key, names);
            findings.unknown(unknown, part.at.problem(words));
            continue;
        };
        let providers = match part.value.members(&format!("api.{name}")) {
            Ok(providers) => providers,
            Err(problem) => {
                findings.problems.push(problem);
                continue;
            }
        };
        let mut values = Map::new();
        for provider in providers {
            if !provider.key.ends_with(ending) {
                let words = format!(
                    "api.{name} has no \"{}\"; write <provider>{ending}, as in openai{ending}",
                    provider.key
                );
                findings.unknown(unknown, provider.at.problem(words));
            }
            let path = format!("api.{name}.{}", provider.key);
            match coerce(&path, *kind, &provider.value) {
                Ok(Value::Null) => {}
                Ok(value) => {
                    values.insert(provider.key.clone(), value);
                }
                Err(problem) => findings.problems.push(problem),
            }
        }
        checked.insert(part.key.clone(), Value::Object(values));
    }
    Value::Object(checked)
}

/// Describes an unknown `name` in `within`, with the name that was probably meant.
pub(crate) fn describe_unknown<'a>(
    within: &str,
    name: &str,
    known: impl Iterator<Item = &'a str>,
) -> String {
    match nearest(name, known) {
        Some(nearest) => format!("{within} has no \"{name}\"; did you mean {nearest}?"),
        None => format!("{within} has no \"{name}\""),
    }
}

/// Converts a value to its type; null stays null and means that the setting is absent.
pub(crate) fn coerce(what: &str, kind: SettingKind, node: &Node) -> Result<Value, Problem> {
    if matches!(node.kind, NodeKind::Null) {
        return Ok(Value::Null);
    }
    let text = match &node.kind {
        NodeKind::Text(text) => Some(text.trim()),
        _ => None,
    };
    match kind {
        SettingKind::Text | SettingKind::Secret => node.text(what).map(Value::String),
        SettingKind::Integer => whole(node)
            .map(Value::from)
            .ok_or_else(|| node.not(what, "a whole number")),
        SettingKind::Number => match &node.kind {
            NodeKind::Number(number) => Ok(Value::Number(number.clone())),
            _ => text
                .and_then(|text| text.parse().ok())
                .and_then(Number::from_f64)
                .map(Value::Number)
                .ok_or_else(|| node.not(what, "a number")),
        },
        SettingKind::Switch => match (&node.kind, text.map(str::to_ascii_lowercase).as_deref()) {
            (NodeKind::Bool(yes), _) => Ok(Value::Bool(*yes)),
            (_, Some("true" | "on" | "yes" | "1")) => Ok(Value::Bool(true)),
            (_, Some("false" | "off" | "no" | "0")) => Ok(Value::Bool(false)),
            _ => Err(node.not(what, "true or false")),
        },
        SettingKind::Texts => match &node.kind {
            NodeKind::List(items) => {
                let texts = items.iter().map(|item| item.text(what).map(Value::String));
                texts.collect::<Result<_, _>>().map(Value::Array)
            }
            _ => Ok(Value::Array(vec![Value::String(node.text(what)?)])),
        },
        SettingKind::Integers => {
            let mut values = Map::new();
            for entry in node.members(what)? {
                let Some(number) = whole(&entry.value) else {
                    return Err(entry.value.not(what, "a mapping to whole numbers"));
                };
                values.insert(entry.key.clone(), number.into());
            }
            Ok(Value::Object(values))
        }
        SettingKind::Choice(choices) => {
            let word = node.text(what)?.trim().to_owned();
            if choices.contains(&word.as_str()) {
                Ok(Value::String(word))
            } else {
                Err(node.at.problem(format!(
                    "{what} must be one of {}, and this is \"{word}\"",
                    choices.join(", ")
                )))
            }
        }
        SettingKind::Free => Ok(node.to_value()),
    }
}

fn whole(node: &Node) -> Option<i64> {
    match &node.kind {
        NodeKind::Number(number) => number.as_i64().or_else(|| {
            let float = number.as_f64()?;
            (float.fract() == 0.0 && float.abs() < 9e15).then_some(float as i64)
        }),
        NodeKind::Text(text) => text.trim().parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use pinion_yaml::parse;

    fn checked(text: &str, unknown: Unknown) -> (Value, Findings) {
        let mut findings = Findings::default();
        let tree = settings(&parse(text).unwrap(), unknown, &mut findings);
        (tree.to_value(), findings)
    }

    #[test]
    fn values_become_what_they_must_be() {
        let (value, findings) = checked(
            "chat: {engine: 4, temperature: 1, max_response_tokens: 10.0, stop: x, structured_output_strict: off}\nopenai: {logit_bias: {5: -100}, stream-include-usage: true}\napi: {api_keys: {openai-api-key: 12}, allow_http: {openai: yes}}\nmodel_info: {cost: {input: 1.5}, input: [text], metadata: {a: [1]}}\nclient:\nollama: {num_ctx: 5}\n",
            Unknown::Refused,
        );
        assert!(findings.problems.is_empty(), "{findings:?}");
        assert_eq!(
            value,
            json!({
                "chat": {"engine": "4", "temperature": 1, "max_response_tokens": 10, "stop": ["x"], "structured_output_strict": false},
                "openai": {"logit_bias": {"5": -100}, "stream-include-usage": true},
                "api": {"api_keys": {"openai-api-key": "12"}, "allow_http": {"openai": true}},
                "model_info": {"cost": {"input": 1.5}, "input": ["text"], "metadata": {"a": [1]}},
                "client": {},
                "ollama": {"num_ctx": 5},
            })
        );
    }

    #[test]
    fn every_mistake_has_its_line_and_advice() {
        let text = "chat:\n  temperature: hot\n  engin: x\n  cache_type: cloud\nweather: {}\napi_keys: {}\napi:\n  api_keys: {openai: k}\n  keys: {}\n  base_urls: 5\nmodel_info:\n  cost: {inputs: 1}\n  context_window: 1.5\n";
        let (_, findings) = checked(text, Unknown::Refused);
        let told: Vec<String> = findings.problems.iter().map(ToString::to_string).collect();
        for (told, expected) in told.iter().zip([
            "2:16: chat.temperature must be a number, and this is text",
            "3:3: chat has no \"engin\"; did you mean engine?",
            "4:15: chat.cache_type must be one of none, memory, disk, and this is \"cloud\"",
            "5:1: inference_settings has no \"weather\"",
            "6:1: keys belong under `api`: write api.api_keys.<provider>-api-key",
            "8:14: api.api_keys has no \"openai\"; write <provider>-api-key, as in openai-api-key",
            "9:3: api has no \"keys\"",
            "10:14: api.base_urls must be a mapping, and this is a number",
            "12:10: model_info.cost has no \"inputs\"; did you mean input?",
            "13:19: model_info.context_window must be a whole number, and this is a number",
        ]) {
            assert_eq!(told, expected);
        }
        assert_eq!(told.len(), 10, "{told:?}");
        let (value, findings) = checked("weather: {a: 1}\nchat: {engin: x}\n", Unknown::Kept);
        assert_eq!(findings.remarks.len(), 2);
        assert!(findings.problems.is_empty());
        assert_eq!(value, json!({"weather": {"a": 1}, "chat": {"engin": "x"}}));
    }
}
