//! Decodes lines into commands.

use pinion_agent::{BranchSummary, Command, Delivery, ForkPosition, Navigation, Origin, Prompt};
use pinion_jsonl::{ErrorPosition, InputLine, javascript_error, json};
use pinion_message::{Block, ThinkingLevel};
use serde_json::{Map, Value};

use crate::commands::Name;
use crate::dialect::Dialect;
use crate::early;
use crate::response::Request;

/// The meaning of a line.
#[derive(Debug)]
pub(crate) enum Decoded {
    /// A command for the engine.
    Command(Request, Command),
    /// The user's choice in a dialog: the dialog's id and the other members. It gets no response.
    Choice(Option<Value>, Map<String, Value>),
    /// A prompt with attachments that must be converted first.
    WithAttachments(Request, Prompt, Vec<Value>),
    /// An invalid line, with the line that answers it.
    Rejected(Vec<u8>),
    /// An unknown line, in a dialect that does not answer such lines.
    Ignored,
}

/// Decodes one line of a client that uses `dialect`.
pub(crate) fn decode(line: &InputLine, dialect: Dialect) -> Decoded {
    if dialect == Dialect::Early {
        return early::decode(line);
    }
    match parse(line, dialect) {
        Ok(Value::Null) => unparsed("Cannot read properties of null (reading 'type')"),
        Ok(Value::Object(members)) => decode_object(members, dialect),
        Ok(_) => Decoded::Rejected(Request::default().failure("Unknown command: undefined")),
        Err(words) => unparsed(&words),
    }
}

/// Parses a line as JSON. The error is a sentence for the client.
pub(crate) fn parse(line: &InputLine, dialect: Dialect) -> Result<Value, String> {
    let bytes = match line {
        InputLine::Complete(bytes) => bytes,
        InputLine::TooLong { length } => {
            return Err(format!(
                "the line is {length} bytes long, over the limit of {} bytes; send less at once",
                pinion_jsonl::DEFAULT_LINE_LIMIT
            ));
        }
    };
    let text = std::str::from_utf8(bytes).map_err(|_| "the line is not valid UTF-8".to_owned())?;
    json::from_slice(bytes).map_err(|error| {
        if error.to_string().contains("recursion limit") {
            "the line is nested too deeply".to_owned()
        } else {
            let position = match dialect {
                Dialect::Early | Dialect::Classic => ErrorPosition::Offset,
                Dialect::Modern => ErrorPosition::LineAndColumn,
            };
            let error = javascript_error(text, position);
            error.unwrap_or_else(|| "the line cannot be read as JSON".to_owned())
        }
    })
}

fn unparsed(words: &str) -> Decoded {
    let request = Request {
        id: None,
        command: Some("parse".into()),
    };
    Decoded::Rejected(request.failure(&format!("Failed to parse command: {words}")))
}

fn decode_object(mut members: Map<String, Value>, dialect: Dialect) -> Decoded {
    let request = Request {
        id: members.remove("id"),
        command: members.remove("type"),
    };
    let name = match &request.command {
        Some(Value::String(name)) => name.clone(),
        Some(other) => {
            let words = format!("Unknown command: {}", json::to_string(other));
            return Decoded::Rejected(request.failure(&words));
        }
        None => return Decoded::Rejected(request.failure("Unknown command: undefined")),
    };
    if name == "extension_ui_response" {
        return Decoded::Choice(request.id, members);
    }
    let Some(known) = Name::from_word(&name) else {
        return Decoded::Rejected(request.failure(&format!("Unknown command: {name}")));
    };
    match command(known, &mut Members::new(members, dialect)) {
        Ok(command) => Decoded::Command(request, command),
        Err(words) => Decoded::Rejected(request.failure(&format!("{name}: {words}"))),
    }
}

/// The members of a command, which are removed as they are read.
struct Members {
    rest: Map<String, Value>,
    /// Words and switches that the client does not know how to write have the meaning that pi 1.x gives them.
    lenient: bool,
    /// The names of the members that were read, for a test.
    #[cfg(test)]
    read: std::collections::BTreeSet<String>,
}

fn command(name: Name, members: &mut Members) -> Result<Command, String> {
    Ok(match name {
        Name::Prompt => {
            let prompt = Prompt::new(members.text("message")?);
            Command::Prompt(Prompt {
                images: members.images()?,
                when_busy: members.delivery()?,
                ..prompt
            })
        }
        Name::Steer => queued(members, Delivery::Steer)?,
        Name::FollowUp => queued(members, Delivery::FollowUp)?,
        Name::Abort => Command::Abort,
        Name::AbortRetry => Command::AbortRetry,
        Name::AbortBash => Command::AbortBash,
        Name::ClearQueue => Command::ClearQueue,
        Name::NewSession => Command::NewSession {
            parent: members.filled_text("parentSession")?,
            prepare: None,
            origin: Origin::Client,
        },
        Name::GetState => Command::GetState,
        Name::GetMessages => Command::GetMessages,
        Name::SetModel => Command::SetModel {
            provider: members.text("provider")?,
            id: members.text("modelId")?,
        },
        Name::CycleModel => Command::CycleModel,
        Name::GetAvailableModels => Command::GetAvailableModels,
        Name::SetThinkingLevel => {
            let levels = ThinkingLevel::ALL.map(|level| (level.as_str(), level));
            let level = members.word("level", &levels, ThinkingLevel::Off)?;
            Command::SetThinkingLevel(Some(level))
        }
        Name::CycleThinkingLevel => Command::CycleThinkingLevel,
        Name::GetAvailableThinkingLevels => Command::GetThinkingLevels,
        Name::SetSteeringMode => Command::SetSteeringMode(Some(members.mode()?)),
        Name::SetFollowUpMode => Command::SetFollowUpMode(Some(members.mode()?)),
        Name::SetAutoCompaction => Command::SetAutoCompaction(members.switch("enabled")?),
        Name::SetAutoRetry => Command::SetAutoRetry(members.switch("enabled")?),
        Name::Compact => Command::Compact {
            instructions: members.optional_text("customInstructions")?,
        },
        Name::Bash => Command::Bash {
            command: members.text("command")?,
            exclude_from_context: members.optional_flag("excludeFromContext")?,
            follower: None,
        },
        Name::GetSessionStats => Command::GetStats,
        Name::ExportHtml => Command::ExportHtml {
            path: members.filled_text("outputPath")?,
        },
        Name::SwitchSession => Command::SwitchSession {
            path: members.text("sessionPath")?.into(),
            origin: Origin::Client,
        },
        Name::Fork => Command::Fork {
            entry_id: members.lenient_text("entryId"),
            position: ForkPosition::Before,
            origin: Origin::Client,
        },
        Name::Clone => Command::CloneSession,
        Name::GetForkMessages => Command::GetForkMessages,
        Name::GetLastAssistantText => Command::GetLastAssistantText,
        Name::SetSessionName => Command::SetName(members.text("name")?),
        Name::GetEntries => Command::GetEntries {
            since: members.optional_text("since")?,
        },
        Name::GetTree => Command::GetTree,
        Name::NavigateTree => Command::Navigate(navigation(members)?),
        Name::SetLabel => Command::SetLabel {
            entry_id: members.text("entryId")?,
            label: members.optional_text("label")?,
        },
        Name::GetCommands => Command::GetCommands,
    })
}

fn navigation(members: &mut Members) -> Result<Navigation, String> {
    let instructions = members.optional_text("customInstructions")?;
    let replaces = members.optional_flag("replaceInstructions")?;
    let summary = match (members.optional_flag("summarize")?, instructions) {
        (false, _) => None,
        (true, None) => Some(BranchSummary::Default),
        (true, Some(text)) if replaces => Some(BranchSummary::Replaced(text)),
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
    fn new(members: Map<String, Value>, dialect: Dialect) -> Self {
        Self {
            rest: members,
            lenient: dialect == Dialect::Modern,
            #[cfg(test)]
            read: std::collections::BTreeSet::new(),
        }
    }

    fn take(&mut self, name: &str) -> Option<Value> {
        #[cfg(test)]
        self.read.insert(name.to_owned());
        self.rest.remove(name)
    }

    fn text(&mut self, name: &str) -> Result<String, String> {
        self.optional_text(name)?
            .ok_or_else(|| format!("\"{name}\" is missing; it must be a string"))
    }

    fn optional_text(&mut self, name: &str) -> Result<Option<String>, String> {
        match self.take(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(format!("\"{name}\" must be a string, not {}", kind(&other))),
        }
    }

    /// Reads an optional text; an empty one counts as missing.
    fn filled_text(&mut self, name: &str) -> Result<Option<String>, String> {
        Ok(self.optional_text(name)?.filter(|text| !text.is_empty()))
    }

    /// Reads a text, or prints another value as JavaScript does.
    fn lenient_text(&mut self, name: &str) -> String {
        match self.take(name) {
            None => "undefined".to_owned(),
            Some(Value::String(text)) => text,
            Some(other) => json::to_string(&other),
        }
    }

    fn mode(&mut self) -> Result<String, String> {
        let modes = ["all", "one-at-a-time"].map(|mode| (mode, mode));
        self.word("mode", &modes, "one-at-a-time")
            .map(str::to_owned)
    }

    /// Reads one of a few words. A lenient client gets `otherwise` for every other value.
    fn word<T: Copy>(
        &mut self,
        name: &str,
        choices: &[(&str, T)],
        otherwise: T,
    ) -> Result<T, String> {
        let lenient = self.lenient;
        match self.choice(name, choices) {
            Err(_) if lenient => Ok(otherwise),
            read => read,
        }
    }

    /// Reads a boolean. A lenient client may send any value, which counts as JavaScript counts it.
    fn switch(&mut self, name: &str) -> Result<bool, String> {
        if self.lenient {
            return Ok(self.take(name).as_ref().is_some_and(is_truthy));
        }
        self.flag(name)
    }

    /// Reads one of a few words. Another word is an error that lists them, because a typo must not select a value.
    fn choice<T: Copy>(&mut self, name: &str, choices: &[(&str, T)]) -> Result<T, String> {
        let words = || {
            choices
                .iter()
                .map(|(word, _)| *word)
                .collect::<Vec<_>>()
                .join(", ")
        };
        match self.take(name) {
            Some(Value::String(text)) => choices
                .iter()
                .find(|(word, _)| *word == text)
                .map(|(_, choice)| *choice)
                .ok_or_else(|| format!("unknown {name} \"{text}\"; use {}", words())),
            None | Some(Value::Null) => Err(format!("\"{name}\" is missing; use {}", words())),
            Some(other) => Err(format!(
                "\"{name}\" must be one of {}, not {}",
                words(),
                kind(&other)
            )),
        }
    }

    fn flag(&mut self, name: &str) -> Result<bool, String> {
        match self.take(name) {
            Some(Value::Bool(value)) => Ok(value),
            None | Some(Value::Null) => {
                Err(format!("\"{name}\" is missing; it must be true or false"))
            }
            Some(other) => Err(format!(
                "\"{name}\" must be true or false, not {}",
                kind(&other)
            )),
        }
    }

    fn optional_flag(&mut self, name: &str) -> Result<bool, String> {
        match self.rest.get(name) {
            None | Some(Value::Null) => {
                self.take(name);
                Ok(false)
            }
            Some(_) => self.flag(name),
        }
    }

    fn delivery(&mut self) -> Result<Option<Delivery>, String> {
        const NAME: &str = "streamingBehavior";
        match self.rest.get(NAME) {
            None | Some(Value::Null) => {
                self.take(NAME);
                Ok(None)
            }
            Some(value) if self.lenient && !is_truthy(value) => {
                self.take(NAME);
                Ok(None)
            }
            Some(_) => {
                let choices = [("steer", Delivery::Steer), ("followUp", Delivery::FollowUp)];
                self.word(NAME, &choices, Delivery::Steer).map(Some)
            }
        }
    }

    fn images(&mut self) -> Result<Vec<Block>, String> {
        let images = match self.take("images") {
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

/// Reports whether JavaScript counts a value as true.
fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64().is_some_and(|number| number != 0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(_) | Value::Object(_) => true,
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

    fn rejected(line: &str) -> String {
        match decode(
            &InputLine::Complete(line.as_bytes().to_vec()),
            Dialect::Classic,
        ) {
            Decoded::Rejected(line) => String::from_utf8(line).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_invalid_line_gets_one_answer_with_the_reason() {
        for (line, words) in [
            (
                r#"{"id":1,"type":"prompt"}"#,
                r#"prompt: \"message\" is missing; it must be a string"#,
            ),
            (
                r#"{"id":1,"type":"prompt","message":5}"#,
                r#"prompt: \"message\" must be a string, not a number"#,
            ),
            (
                r#"{"id":1,"type":"set_thinking_level","level":"hgih"}"#,
                r#"unknown level \"hgih\"; use off, minimal, low, medium, high, xhigh"#,
            ),
            (
                r#"{"type":"set_thinking_level"}"#,
                r#"\"level\" is missing; use off"#,
            ),
            (
                r#"{"type":"set_steering_mode","mode":"sometimes"}"#,
                r#"unknown mode \"sometimes\"; use all, one-at-a-time"#,
            ),
            (
                r#"{"type":"set_follow_up_mode","mode":7}"#,
                "must be one of all",
            ),
            (r#"{"type":"set_auto_retry"}"#, r#"\"enabled\" is missing"#),
            (
                r#"{"type":"set_auto_compaction","enabled":"no"}"#,
                "must be true or false, not a string",
            ),
            (
                r#"{"type":"prompt","message":"x","streamingBehavior":"later"}"#,
                r#"unknown streamingBehavior \"later\"; use steer, followUp"#,
            ),
            (
                r#"{"type":"bash","command":"ls","excludeFromContext":"false"}"#,
                "must be true or false",
            ),
            (
                r#"{"type":"set_model","modelId":"x"}"#,
                r#"\"provider\" is missing"#,
            ),
            (r#"{"id":1,"type":"nope"}"#, "Unknown command: nope"),
            ("[1]", "Unknown command: undefined"),
            ("null", "Failed to parse command: Cannot read"),
        ] {
            assert!(rejected(line).contains(words), "{line}: {}", rejected(line));
        }
    }

    #[test]
    fn the_id_is_echoed_whatever_it_is() {
        assert!(rejected(r#"{"id":{"x":[1]},"type":"nope"}"#).starts_with(r#"{"id":{"x":[1]},"#));
        assert!(rejected(r#"{"id":null,"type":"nope"}"#).starts_with(r#"{"id":null,"#));
    }

    #[test]
    fn hostile_lines_are_rejected() {
        let deep = "[".repeat(100_000);
        assert!(rejected(&deep).contains("nested too deeply"));
        match decode(
            &InputLine::Complete(vec![b'"', 0xff, b'"']),
            Dialect::Classic,
        ) {
            Decoded::Rejected(line) => assert!(String::from_utf8(line).unwrap().contains("UTF-8")),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn modern_clients_may_send_words_that_do_not_exist() {
        let decoded = |line: &str| {
            let line = InputLine::Complete(line.as_bytes().to_vec());
            match decode(&line, Dialect::Modern) {
                Decoded::Command(_, command) => command,
                other => panic!("{other:?}"),
            }
        };
        for line in [
            r#"{"type":"set_steering_mode","mode":"sometimes"}"#,
            r#"{"type":"set_steering_mode"}"#,
        ] {
            let Command::SetSteeringMode(mode) = decoded(line) else {
                panic!("{line}");
            };
            assert_eq!(mode.as_deref(), Some("one-at-a-time"), "{line}");
        }
        let level = decoded(r#"{"type":"set_thinking_level","level":"ultra"}"#);
        let off = Command::SetThinkingLevel(Some(ThinkingLevel::Off));
        assert_eq!(format!("{level:?}"), format!("{off:?}"));
        for (value, expected) in [
            ("\"yes\"", true),
            ("0", false),
            ("null", false),
            ("{}", true),
        ] {
            let line = format!(r#"{{"type":"set_auto_retry","enabled":{value}}}"#);
            let switched = decoded(&line);
            let Command::SetAutoRetry(enabled) = switched else {
                panic!("{switched:?}");
            };
            assert_eq!(enabled, expected, "{value}");
        }
        let prompt = decoded(r#"{"type":"prompt","message":"m","streamingBehavior":"later"}"#);
        let Command::Prompt(prompt) = prompt else {
            panic!("{prompt:?}");
        };
        assert_eq!(prompt.when_busy, Some(Delivery::Steer));
    }

    #[test]
    fn every_command_is_decoded_as_described_in_the_table() {
        for name in Name::ALL.iter().copied() {
            let mut generator = schemars::SchemaGenerator::default();
            let described = name.members(&mut generator).to_value();
            let members: Map<String, Value> = described["properties"]
                .as_object()
                .into_iter()
                .flatten()
                .map(|(member, schema)| (member.clone(), example(schema, &generator)))
                .collect();
            let all = members.keys().cloned().collect();
            let mut members = Members::new(members, Dialect::Classic);
            let command = command(name, &mut members);
            assert!(command.is_ok(), "{name:?}: {command:?}");
            assert_eq!(
                members.read, all,
                "{name:?}: members read and members described"
            );
        }
    }

    /// A value of a described member.
    fn example(schema: &Value, generator: &schemars::SchemaGenerator) -> Value {
        if let Some(first) = schema["anyOf"].get(0) {
            return example(first, generator);
        }
        if let Some(reference) = schema["$ref"].as_str() {
            let name = reference.trim_start_matches("#/$defs/");
            return example(&generator.definitions()[name], generator);
        }
        let kind = match &schema["type"] {
            Value::Array(kinds) => &kinds[0],
            kind => kind,
        };
        match kind.as_str().unwrap() {
            "string" => schema["enum"].get(0).cloned().unwrap_or("x".into()),
            "boolean" => true.into(),
            "array" => Value::Array(Vec::new()),
            other => panic!("no example of {other}"),
        }
    }

    proptest! {
        #[test]
        fn never_panics(bytes in any::<Vec<u8>>()) {
            let _ = decode(&InputLine::Complete(bytes), Dialect::Classic);
        }

        #[test]
        fn commands_with_odd_members_never_panic(
            name in prop_oneof![Just("prompt"), Just("set_model"), Just("bash"), Just("fork"), Just("compact")],
            value in prop_oneof![Just("1"), Just("null"), Just("\"x\""), Just("[]"), Just("{}"), Just("true")],
            member in prop_oneof![Just("message"), Just("images"), Just("provider"), Just("command"), Just("entryId")],
        ) {
            let line = format!(r#"{{"type":"{name}","{member}":{value}}}"#);
            let _ = decode(&InputLine::Complete(line.into_bytes()), Dialect::Classic);
        }
    }
}
