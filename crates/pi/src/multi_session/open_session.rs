//! The members of `open_session`.

use pinion_message::ThinkingLevel;
use schemars::JsonSchema;
use serde_json::Value;

/// A session to open. Missing members have the value of the command line.
#[derive(Debug, Default, Clone, PartialEq, Eq, JsonSchema)]
// `Opening` is the published title of the schema.
#[schemars(rename = "Opening", rename_all = "camelCase")]
pub struct OpenSession {
    /// The working directory of the session.
    pub cwd: Option<String>,
    /// The path or the id of a session to continue.
    pub session: Option<String>,
    /// The name of the session.
    pub name: Option<String>,
    /// The model, in the form of `--model`.
    pub model: Option<String>,
    /// The thinking level.
    pub thinking_level: Option<ThinkingLevel>,
    /// Hold the session in memory only.
    #[schemars(default)]
    pub no_session: bool,
}

impl OpenSession {
    /// Reads the members of the command. The error is a sentence for the client.
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
            "open_session: unknown thinking level \"{text}\"; use one of {}",
            known.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn errors_name_the_member() {
        for (command, words) in [
            (json!({"cwd": 1}), "\"cwd\" must be a string"),
            (
                json!({"thinkingLevel": "huge"}),
                "unknown thinking level \"huge\"",
            ),
            (
                json!({"noSession": "yes"}),
                "\"noSession\" must be true or false",
            ),
            (json!({"noSession": true, "session": "x"}), "contradict"),
        ] {
            let error = OpenSession::read(&command).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
        let opening =
            OpenSession::read(&json!({"thinkingLevel": "high", "session": null})).unwrap();
        assert_eq!(opening.thinking_level, Some(ThinkingLevel::High));
        assert_eq!(opening.session, None);
    }
}
