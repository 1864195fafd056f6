//! Lines as commands.

use pinion_agent::{BranchSummary, Command, Delivery, ForkPosition, Navigation, Origin, Prompt};
use pinion_jsonl::{Line, json};
use pinion_message::Block;
use serde_json::{Map, Value};

use crate::dialect::Dialect;
use crate::early;
use crate::parse_error;
use crate::response::Asked;

/// What a line asks for.
#[derive(Debug)]
pub(crate) enum Decoded {
    /// Something for the engine.
    Command(Asked, Command),
    /// What the user chose in a dialog: the dialog's id and everything else. Not answered.
    Choice(Option<Value>, Map<String, Value>),
    /// A prompt with attachments that have to be read first.
    Attached(Asked, Prompt, Vec<Value>),
    /// A mistake, with the one line that answers it.
    Refused(Vec<u8>),
    /// Nothing that is known, in a dialect that says nothing to it.
    Ignored,
}

/// Reads one line of a client that speaks `dialect`.
pub(crate) fn decode(line: &Line, dialect: Dialect) -> Decoded {
    if dialect == Dialect::Early {
        return early::decode(line);
    }
    match parse(line) {
        Ok(Value::Null) => unparsed("Cannot read properties of null (reading 'type')"),
        Ok(Value::Object(members)) => decode_object(members),
        Ok(_) => Decoded::Refused(Asked::default().failure("Unknown command: undefined")),
        Err(words) => unparsed(&words),
    }
}

/// The value of a line, or what is wrong with it.
pub(crate) fn parse(line: &Line) -> Result<Value, String> {
    let bytes = match line {
        Line::Complete(bytes) => bytes,
        Line::TooLong { length } => {
            return Err(format!(
                "the line is {length} bytes long, over the limit of {} bytes; send less at once",
                pinion_jsonl::DEFAULT_LINE_LIMIT
            ));
        }
    };
    let text = std::str::from_utf8(bytes).map_err(|_| "the line is not valid UTF-8".to_owned())?;
    json::from_slice(bytes).map_err(
        |error| match error.to_string().contains("recursion limit") {
            true => "the line is nested too deeply".to_owned(),
            false => parse_error::describe(text),
        },
    )
}

fn unparsed(words: &str) -> Decoded {
    let asked = Asked {
        id: None,
        command: Some("parse".into()),
    };
    Decoded::Refused(asked.failure(&format!("Failed to parse command: {words}")))
}

fn decode_object(mut members: Map<String, Value>) -> Decoded {
    let asked = Asked {
        id: members.remove("id"),
        command: members.remove("type"),
    };
    let name = match &asked.command {
        Some(Value::String(name)) => name.clone(),
        Some(other) => {
            let words = format!("Unknown command: {}", json::to_string(other));
            return Decoded::Refused(asked.failure(&words));
        }
        None => return Decoded::Refused(asked.failure("Unknown command: undefined")),
    };
    if name == "extension_ui_response" {
        return Decoded::Choice(asked.id, members);
    }
    match command(&name, &mut Members(members)) {
        Ok(Some(command)) => Decoded::Command(asked, command),
        Ok(None) => Decoded::Refused(asked.failure(&format!("Unknown command: {name}"))),
        Err(words) => Decoded::Refused(asked.failure(&format!("{name}: {words}"))),
    }
}

/// The members of a command, taken one by one.
struct Members(Map<String, Value>);

fn command(name: &str, members: &mut Members) -> Result<Option<Command>, String> {
    Ok(Some(match name {
        "prompt" => {
            let prompt = Prompt::new(members.text("message")?);
            Command::Prompt(Prompt {
                images: members.images()?,
                when_busy: members.delivery(),
                ..prompt
            })
        }
        "steer" => queued(members, Delivery::Steer)?,
        "follow_up" => queued(members, Delivery::FollowUp)?,
        "abort" => Command::Abort,
        "abort_retry" => Command::AbortRetry,
        "abort_bash" => Command::AbortBash,
        "clear_queue" => Command::ClearQueue,
        "new_session" => Command::NewSession {
            parent: members.optional_text("parentSession")?,
            prepare: None,
            origin: Origin::Client,
        },
        "get_state" => Command::GetState,
        "get_messages" => Command::GetMessages,
        "set_model" => Command::SetModel {
            provider: members.lenient_text("provider"),
            id: members.lenient_text("modelId"),
        },
        "cycle_model" => Command::CycleModel,
        "get_available_models" => Command::GetAvailableModels,
        "set_thinking_level" => {
            let level = members.optional_text("level").ok().flatten();
            Command::SetThinkingLevel(level.and_then(|level| level.parse().ok()))
        }
        "cycle_thinking_level" => Command::CycleThinkingLevel,
        "get_available_thinking_levels" => Command::GetThinkingLevels,
        "set_steering_mode" => Command::SetSteeringMode(members.mode()),
        "set_follow_up_mode" => Command::SetFollowUpMode(members.mode()),
        "set_auto_compaction" => Command::SetAutoCompaction(members.truthy("enabled")),
        "set_auto_retry" => Command::SetAutoRetry(members.truthy("enabled")),
        "compact" => Command::Compact {
            instructions: members.optional_text("customInstructions")?,
        },
        "bash" => Command::Bash {
            command: members.text("command")?,
            exclude_from_context: members.truthy("excludeFromContext"),
        },
        "get_session_stats" => Command::GetStats,
        "export_html" => Command::ExportHtml {
            path: members.optional_text("outputPath")?,
        },
        "switch_session" => Command::SwitchSession {
            path: members.text("sessionPath")?.into(),
            origin: Origin::Client,
        },
        "fork" => Command::Fork {
            entry_id: members.lenient_text("entryId"),
            position: ForkPosition::Before,
            origin: Origin::Client,
        },
        "clone" => Command::CloneSession,
        "get_fork_messages" => Command::GetForkMessages,
        "get_last_assistant_text" => Command::GetLastAssistantText,
        "set_session_name" => Command::SetName(members.text("name")?),
        "get_entries" => Command::GetEntries {
            since: members.optional_text("since")?,
        },
        "get_tree" => Command::GetTree,
        "navigate_tree" => Command::Navigate(navigation(members)?),
        "set_label" => Command::SetLabel {
            entry_id: members.text("entryId")?,
            label: members.optional_text("label")?,
        },
        "get_commands" => Command::GetCommands,
        _ => return Ok(None),
    }))
}

fn navigation(members: &mut Members) -> Result<Navigation, String> {
    let instructions = members.optional_text("customInstructions")?;
    let summary = match (members.truthy("summarize"), instructions) {
        (false, _) => None,
        (true, None) => Some(BranchSummary::Default),
        (true, Some(text)) if members.truthy("replaceInstructions") => {
            Some(BranchSummary::Replaced(text))
        }
        (true, Some(text)) => Some(BranchSummary::Focused(text)),
    };
    let label = members.optional_text("label")?;
    Ok(Navigation {
        target_id: members.text("targetId")?,
        summary,
        label,
    })
}

fn queued(members: &mut Members, delivery: Delivery) -> Result<Command, String> {
    let text = members.text("message")?;
    Ok(Command::Queue {
        text,
        images: members.images()?,
        delivery,
    })
}

impl Members {
    fn text(&mut self, name: &str) -> Result<String, String> {
        self.optional_text(name)?
            .ok_or_else(|| format!("\"{name}\" is missing; it must be a string"))
    }

    fn optional_text(&mut self, name: &str) -> Result<Option<String>, String> {
        match self.0.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(format!("\"{name}\" must be a string, not {}", kind(&other))),
        }
    }

    /// The text, or the word JavaScript prints for what is there instead.
    fn lenient_text(&mut self, name: &str) -> String {
        match self.0.remove(name) {
            None => "undefined".to_owned(),
            Some(Value::String(text)) => text,
            Some(other) => json::to_string(&other),
        }
    }

    /// A queue mode: any text is kept, as pi does; whatever it does not know delivers all at once.
    fn mode(&mut self) -> Option<String> {
        self.optional_text("mode").ok().flatten()
    }

    fn truthy(&mut self, name: &str) -> bool {
        match self.0.remove(name) {
            None | Some(Value::Null) => false,
            Some(Value::Bool(value)) => value,
            Some(Value::Number(number)) => number.as_f64().is_some_and(|number| number != 0.0),
            Some(Value::String(text)) => !text.is_empty(),
            Some(Value::Array(_) | Value::Object(_)) => true,
        }
    }

    fn delivery(&mut self) -> Option<Delivery> {
        match self.0.remove("streamingBehavior") {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) if text == "followUp" => Some(Delivery::FollowUp),
            Some(_) => Some(Delivery::Steer),
        }
    }

    fn images(&mut self) -> Result<Vec<Block>, String> {
        let images = match self.0.remove("images") {
            None | Some(Value::Null) => return Ok(Vec::new()),
            Some(Value::Array(images)) => images,
            Some(other) => return Err(format!("\"images\" must be a list, not {}", kind(&other))),
        };
        images
            .into_iter()
            .enumerate()
            .map(|(at, image)| decode_image(at, image))
            .collect()
    }
}

fn decode_image(at: usize, image: Value) -> Result<Block, String> {
    match serde_json::from_value(image) {
        Ok(block @ (Block::Image { .. } | Block::Text(_))) => Ok(block),
        _ => Err(format!(
            "images[{at}] must be {{\"type\":\"image\",\"data\":<base64>,\"mimeType\":…}}"
        )),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn refused(line: &str) -> String {
        match decode(&Line::Complete(line.as_bytes().to_vec()), Dialect::Classic) {
            Decoded::Refused(line) => String::from_utf8(line).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_wrong_line_gets_one_answer_that_says_what_is_wrong() {
        for (line, words) in [
            (
                r#"{"id":1,"type":"prompt"}"#,
                r#"prompt: \"message\" is missing; it must be a string"#,
            ),
            (
                r#"{"id":1,"type":"prompt","message":5}"#,
                r#"prompt: \"message\" must be a string, not a number"#,
            ),
            (r#"{"id":1,"type":"nope"}"#, "Unknown command: nope"),
            ("[1]", "Unknown command: undefined"),
            ("null", "Failed to parse command: Cannot read"),
        ] {
            assert!(refused(line).contains(words), "{line}: {}", refused(line));
        }
    }

    #[test]
    fn the_id_is_echoed_whatever_it_is() {
        assert!(refused(r#"{"id":{"x":[1]},"type":"nope"}"#).starts_with(r#"{"id":{"x":[1]},"#));
        assert!(refused(r#"{"id":null,"type":"nope"}"#).starts_with(r#"{"id":null,"#));
    }

    #[test]
    fn hostile_lines_are_refused() {
        let deep = "[".repeat(100_000);
        assert!(refused(&deep).contains("nested too deeply"));
        match decode(&Line::Complete(vec![b'"', 0xff, b'"']), Dialect::Classic) {
            Decoded::Refused(line) => assert!(String::from_utf8(line).unwrap().contains("UTF-8")),
            other => panic!("{other:?}"),
        }
    }

    proptest! {
        #[test]
        fn never_panics(bytes in any::<Vec<u8>>()) {
            let _ = decode(&Line::Complete(bytes), Dialect::Classic);
        }

        #[test]
        fn commands_with_odd_members_never_panic(
            name in prop_oneof![Just("prompt"), Just("set_model"), Just("bash"), Just("fork"), Just("compact")],
            value in prop_oneof![Just("1"), Just("null"), Just("\"x\""), Just("[]"), Just("{}"), Just("true")],
            member in prop_oneof![Just("message"), Just("images"), Just("provider"), Just("command"), Just("entryId")],
        ) {
            let line = format!(r#"{{"type":"{name}","{member}":{value}}}"#);
            let _ = decode(&Line::Complete(line.into_bytes()), Dialect::Classic);
        }
    }
}
