//! The commands that start with `/`: those of the agent itself, templates, skills and those of extensions.

use serde_json::{Value, json};

/// A command that the agent handles itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OwnCommand {
    Compact(Option<String>),
    Name(String),
    Session,
    Export(Option<String>),
    AutoCompact(Option<bool>),
}

/// Name, description and hint of the commands of the agent.
const OWN: [(&str, &str, Option<&str>); 5] = [
    (
        "compact",
        "Summarise the conversation",
        Some("what to keep"),
    ),
    ("name", "Name the session", Some("name")),
    ("session", "Tokens, messages, cost, file", None),
    ("export", "Write the session as HTML", Some("file")),
    (
        "autocompact",
        "Summarise by itself when the context is nearly full",
        Some("on or off"),
    ),
];

impl OwnCommand {
    /// Reads a prompt; `None` if it is another one. A wrong argument of `autocompact` reads as none.
    pub fn read(text: &str) -> Option<Self> {
        let (name, argument) = match text
            .trim_end()
            .strip_prefix('/')?
            .split_once(char::is_whitespace)
        {
            Some((name, argument)) => (name, argument.trim()),
            None => (text.trim_end().strip_prefix('/')?, ""),
        };
        let argument_text = (!argument.is_empty()).then(|| argument.to_owned());
        Some(match name {
            "compact" => Self::Compact(argument_text),
            "name" => Self::Name(argument.to_owned()),
            "session" if argument.is_empty() => Self::Session,
            "export" => Self::Export(argument_text),
            "autocompact" => Self::AutoCompact(match argument {
                "on" => Some(true),
                "off" => Some(false),
                _ => None,
            }),
            _ => return None,
        })
    }
}

/// Returns the list for the client: the agent's own commands, and `others` of the engine without their names.
pub(crate) fn list(others: &Value) -> Value {
    let own = OWN.iter().map(|(name, description, hint)| {
        let mut command = json!({"name": name, "description": description});
        if let Some(hint) = hint {
            command["input"] = json!({ "hint": hint });
        }
        command
    });
    let mut list: Vec<Value> = own.collect();
    for command in others.as_array().into_iter().flatten() {
        let Some(name) = command["name"].as_str() else {
            continue;
        };
        if list.iter().any(|known| known["name"] == name) {
            continue;
        }
        let description = command["description"].as_str().unwrap_or_default();
        list.push(json!({"name": name, "description": description}));
    }
    Value::Array(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_commands_are_read_and_others_are_not() {
        let text = |text: &str| Some(text.to_owned());
        for (prompt, command) in [
            ("/compact", Some(OwnCommand::Compact(None))),
            (
                "/compact keep the plan\n",
                Some(OwnCommand::Compact(text("keep the plan"))),
            ),
            ("/name  My work ", Some(OwnCommand::Name("My work".into()))),
            ("/session", Some(OwnCommand::Session)),
            (
                "/export a b.html",
                Some(OwnCommand::Export(text("a b.html"))),
            ),
            (
                "/autocompact off",
                Some(OwnCommand::AutoCompact(Some(false))),
            ),
            ("/autocompact maybe", Some(OwnCommand::AutoCompact(None))),
            ("/compacted", None),
            ("compact", None),
            ("/", None),
        ] {
            assert_eq!(OwnCommand::read(prompt), command, "{prompt:?}");
        }
    }

    #[test]
    fn a_name_that_is_taken_twice_goes_to_the_agent() {
        let others = json!([{"name": "name", "description": "x"}, {"name": "review", "description": "Review"}]);
        let list = list(&others);
        let names: Vec<&str> = list
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|command| command["name"].as_str())
            .collect();
        assert_eq!(
            names,
            [
                "compact",
                "name",
                "session",
                "export",
                "autocompact",
                "review"
            ]
        );
        assert_eq!(list[1]["description"], "Name the session");
    }
}
