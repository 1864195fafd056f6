//! What `open_session` asks for.

use pinion_message::ThinkingLevel;
use schemars::JsonSchema;
use serde_json::Value;

/// A session to open. What is not said is as it was on the command line.
#[derive(Debug, Default, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub struct Opening {
    /// Where it works.
    pub cwd: Option<String>,
    /// The path or the id of a session to go on with.
    pub session: Option<String>,
    /// Its name.
    pub name: Option<String>,
    /// The model, as `--model` takes it.
    pub model: Option<String>,
    /// How hard the model thinks.
    pub thinking_level: Option<ThinkingLevel>,
    /// Nothing is kept on disk.
    #[schemars(default)]
    pub no_session: bool,
}

impl Opening {
    /// Reads the members of the command; the error is for the client.
    pub(super) fn read(command: &Value) -> Result<Self, String> {
        let text = |name: &str| match &command[name] {
            Value::Null => Ok(None),
            Value::String(text) => Ok(Some(text.clone())),
            _ => Err(format!("open_session: \"{name}\" must be a string")),
        };
        let opening = Self {
            cwd: text("cwd")?,
            session: text("session")?,
            name: text("name")?,
            model: text("model")?,
            thinking_level: text("thinkingLevel")?.map(level).transpose()?,
            no_session: match &command["noSession"] {
                Value::Null => false,
                Value::Bool(no_session) => *no_session,
                _ => return Err("open_session: \"noSession\" must be true or false".into()),
            },
        };
        if opening.no_session && opening.session.is_some() {
            return Err(
                "open_session: \"session\" and \"noSession\" contradict each other; send one of them"
                    .into(),
            );
        }
        Ok(opening)
    }
}

fn level(text: String) -> Result<ThinkingLevel, String> {
    text.parse().map_err(|_| {
        let known: Vec<&str> = ThinkingLevel::ALL
            .iter()
            .map(|level| level.as_str())
            .collect();
        format!(
            "open_session: there is no thinking level \"{text}\"; use one of {}",
            known.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn mistakes_are_named() {
        for (command, words) in [
            (json!({"cwd": 1}), "\"cwd\" must be a string"),
            (
                json!({"thinkingLevel": "huge"}),
                "no thinking level \"huge\"",
            ),
            (
                json!({"noSession": "yes"}),
                "\"noSession\" must be true or false",
            ),
            (json!({"noSession": true, "session": "x"}), "contradict"),
        ] {
            let error = Opening::read(&command).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
        let opening = Opening::read(&json!({"thinkingLevel": "high", "session": null})).unwrap();
        assert_eq!(opening.thinking_level, Some(ThinkingLevel::High));
        assert_eq!(opening.session, None);
    }
}
