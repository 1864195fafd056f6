//! The options of a session: approvals, model and thinking level; approvals also in the older form of modes.

use std::sync::Arc;

use pinion_approval::Mode;
use pinion_message::{Model, ThinkingLevel};
use serde_json::{Value, json};

/// The current values.
#[derive(Debug, Clone)]
pub(crate) struct Choices {
    pub mode: Mode,
    pub model: Option<Arc<Model>>,
    pub level: ThinkingLevel,
    /// The models to choose from.
    pub models: Vec<Arc<Model>>,
}

/// Returns the value of a model.
pub(crate) fn value_of(model: &Model) -> String {
    format!("{}/{}", model.provider, model.id)
}

fn name_of(mode: Mode) -> &'static str {
    match mode {
        Mode::Ask => "Ask",
        Mode::Auto => "Auto",
        Mode::Deny => "Read only",
    }
}

fn description_of(mode: Mode) -> &'static str {
    match mode {
        Mode::Ask => "Asks before a call that no rule allows",
        Mode::Auto => "Makes every call that no rule denies",
        Mode::Deny => "Makes only calls that a rule allows",
    }
}

/// Returns the modes in the older form.
pub(crate) fn modes(current: Mode) -> Value {
    let mode = |mode: Mode| json!({"id": mode.name(), "name": name_of(mode)});
    json!({"currentModeId": current.name(), "availableModes": Mode::ALL.map(mode)})
}

/// Returns all options.
pub(crate) fn options(choices: &Choices) -> Value {
    let mode = |mode: Mode| json!({"value": mode.name(), "name": name_of(mode), "description": description_of(mode)});
    let mut options = vec![json!({
        "id": "mode",
        "name": "Approvals",
        "description": "Which tool calls are asked about",
        "category": "mode",
        "type": "select",
        "currentValue": choices.mode.name(),
        "options": Mode::ALL.map(mode),
    })];
    if let Some(model) = &choices.model {
        options.push(json!({
            "id": "model",
            "name": "Model",
            "category": "model",
            "type": "select",
            "currentValue": value_of(model),
            "options": groups(model, &choices.models),
        }));
        let levels = model.thinking_levels();
        if levels.len() > 1 {
            let level = |level: &ThinkingLevel| json!({"value": level.as_str(), "name": level_name(*level)});
            options.push(json!({
                "id": "thinking",
                "name": "Thinking",
                "category": "thought_level",
                "type": "select",
                "currentValue": choices.level.as_str(),
                "options": levels.iter().map(level).collect::<Vec<_>>(),
            }));
        }
    }
    Value::Array(options)
}

/// Returns the models by provider, the current one among them.
fn groups(current: &Arc<Model>, models: &[Arc<Model>]) -> Vec<Value> {
    let mut groups: Vec<(&str, Vec<Value>)> = Vec::new();
    let is_current = |model: &&Arc<Model>| value_of(model) == value_of(current);
    let missing = (!models.iter().any(|model| is_current(&model))).then_some(current);
    for model in missing.into_iter().chain(models) {
        let option = json!({"value": value_of(model), "name": model.name});
        match groups
            .iter_mut()
            .find(|(provider, _)| *provider == model.provider)
        {
            Some((_, options)) => options.push(option),
            None => groups.push((&model.provider, vec![option])),
        }
    }
    let group = |(provider, options): (&str, Vec<Value>)| json!({"group": provider, "name": provider, "options": options});
    groups.into_iter().map(group).collect()
}

fn level_name(level: ThinkingLevel) -> String {
    let word = level.as_str();
    let mut letters = word.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
}
