//! Keys with an old name or form. The conversion applies to the loaded values, never to the file.

use serde_json::{Map, Value};

/// Renames old keys; a present key overrides its old form.
pub(crate) fn migrate(layer: &mut Map<String, Value>) {
    if let Some(mode) = layer.shift_remove("queueMode") {
        layer.entry("steeringMode").or_insert(mode);
    }
    if let Some(Value::Bool(websockets)) = layer.get("websockets") {
        let transport = if *websockets { "websocket" } else { "sse" };
        layer.shift_remove("websockets");
        layer.entry("transport").or_insert(transport.into());
    }
    if let Some(Value::Object(_)) = layer.get("skills")
        && let Some(Value::Object(mut old)) = layer.shift_remove("skills")
    {
        if let Some(list @ Value::Array(_)) = old.shift_remove("customDirectories") {
            layer.insert("skills".into(), list);
        }
        if let Some(enabled) = old.shift_remove("enableSkillCommands") {
            layer.entry("enableSkillCommands").or_insert(enabled);
        }
    }
    if let Some(Value::Object(retry)) = layer.get_mut("retry")
        && let Some(delay) = retry.shift_remove("maxDelayMs")
    {
        let provider = retry
            .entry("provider")
            .or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(provider) = provider {
            provider.entry("maxRetryDelayMs").or_insert(delay);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn old_keys_become_present_ones() {
        for (old, new) in [
            (json!({"queueMode": "all"}), json!({"steeringMode": "all"})),
            (
                json!({"queueMode": "all", "steeringMode": "x"}),
                json!({"steeringMode": "x"}),
            ),
            (
                json!({"websockets": true}),
                json!({"transport": "websocket"}),
            ),
            (json!({"websockets": false}), json!({"transport": "sse"})),
            (
                json!({"websockets": true, "transport": "auto"}),
                json!({"transport": "auto"}),
            ),
            (
                json!({"skills": {"customDirectories": ["a"], "enableSkillCommands": false}}),
                json!({"skills": ["a"], "enableSkillCommands": false}),
            ),
            (json!({"skills": {}}), json!({})),
            (json!({"skills": ["b"]}), json!({"skills": ["b"]})),
            (
                json!({"retry": {"maxDelayMs": 5}}),
                json!({"retry": {"provider": {"maxRetryDelayMs": 5}}}),
            ),
            (
                json!({"retry": {"maxDelayMs": 5, "provider": {"maxRetryDelayMs": 6}}}),
                json!({"retry": {"provider": {"maxRetryDelayMs": 6}}}),
            ),
        ] {
            let Value::Object(mut layer) = old else {
                panic!("not an object")
            };
            migrate(&mut layer);
            assert_eq!(Value::Object(layer), new);
        }
    }
}
