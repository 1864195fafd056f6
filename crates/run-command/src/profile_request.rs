//! The profile, registries and settings that a command and its command line request.

use std::collections::BTreeMap;

use pinion_commands::{BuiltInValues, Command, Source, templates};
use pinion_profiles::{Factories, ProfileRequest};
use serde_json::Value;

pub(crate) fn profile_request(command: &Command, values: &BuiltInValues) -> ProfileRequest {
    let text = |name: &str| {
        let given = values.source(name) == Some(Source::CommandLine);
        values.optional(name).filter(|_| given).map(str::to_owned)
    };
    let mut options = BTreeMap::new();
    for name in pinion_profiles::options().filter_map(|key| key.option) {
        let given = matches!(
            values.source(name),
            Some(Source::CommandLine | Source::Alias)
        );
        if let Some(value) = values.value(name).filter(|_| given) {
            options.insert(name.to_owned(), json(value));
        }
    }
    let registries = values.list("profile-registries");
    ProfileRequest {
        profile: text("profile"),
        registries: (values.source("profile-registries") == Some(Source::CommandLine))
            .then_some(registries),
        config_file: text("config-file").map(Into::into),
        factories: command.factories.clone().map(|settings| Factories {
            settings,
            file: command.origin.path.clone(),
        }),
        options,
    }
}

fn json(value: &templates::Value) -> Value {
    match value {
        templates::Value::Bool(is) => Value::Bool(*is),
        templates::Value::Int(number) => Value::from(*number),
        templates::Value::Float(number) => Value::from(*number),
        templates::Value::List(items) => items.iter().map(json).collect(),
        templates::Value::Map(members) => members
            .iter()
            .map(|(name, value)| (name.clone(), json(value)))
            .collect(),
        other => Value::String(templates::printed(other)),
    }
}
