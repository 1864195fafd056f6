//! Decodes lines of the early dialect.

use pinion_agent::{Command, Delivery, Prompt};
use pinion_jsonl::InputLine;
use serde_json::{Map, Value};

use super::EarlyLine;
use super::commands::Name;
use crate::decode::{Decoded, parse};
use crate::dialect::Dialect;
use crate::response::Request;

/// Decodes one line. Unknown commands are ignored, as pi 0.13 does.
pub(crate) fn decode(line: &InputLine) -> Decoded {
    let mut members = match parse(line, Dialect::Early) {
        Ok(Value::Object(members)) => members,
        Ok(Value::Null) => return rejected("Cannot read properties of null (reading 'type')"),
        Ok(_) => return Decoded::Ignored,
        Err(words) => return rejected(&words),
    };
    let request = Request {
        id: None,
        command: members.remove("type"),
    };
    let word = request.command.as_ref().and_then(Value::as_str);
    let command = match word.and_then(Name::from_word) {
        Some(Name::Prompt) => return prompt(request, members),
        Some(Name::Abort) => Command::Abort,
        Some(Name::Compact) => Command::Compact {
            instructions: text(&mut members, "customInstructions"),
        },
        None => return Decoded::Ignored,
    };
    Decoded::Command(request, command)
}

fn prompt(request: Request, mut members: Map<String, Value>) -> Decoded {
    let Some(message) = text(&mut members, "message").filter(|message| !message.is_empty()) else {
        return Decoded::Ignored;
    };
    let prompt = Prompt {
        // The early dialect has no queues; a prompt during a run must not be lost.
        when_busy: Some(Delivery::FollowUp),
        ..Prompt::new(message)
    };
    match members.remove("attachments") {
        None | Some(Value::Null) => Decoded::Command(request, Command::Prompt(prompt)),
        Some(Value::Array(attachments)) if attachments.is_empty() => {
            Decoded::Command(request, Command::Prompt(prompt))
        }
        Some(Value::Array(attachments)) => Decoded::WithAttachments(request, prompt, attachments),
        Some(_) => rejected("prompt: \"attachments\" must be a list"),
    }
}

fn text(members: &mut Map<String, Value>, name: &str) -> Option<String> {
    match members.remove(name) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

fn rejected(error: &str) -> Decoded {
    Decoded::Rejected(EarlyLine::Error { error }.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(line: &str) -> Decoded {
        decode(&InputLine::Complete(line.as_bytes().to_vec()))
    }

    #[test]
    fn unknown_commands_are_ignored() {
        for line in [
            r#"{"type":"nope"}"#,
            r#"{"type":"get_state","id":1}"#,
            r#"{"type":"prompt"}"#,
            r#"{"type":"prompt","message":""}"#,
            r#"{"type":"prompt","message":7}"#,
            "[1]",
            "3",
        ] {
            assert!(matches!(read(line), Decoded::Ignored), "{line}");
        }
    }

    #[test]
    fn a_line_that_is_not_json_is_an_error_event_without_a_prefix() {
        match read("not json") {
            Decoded::Rejected(line) => assert_eq!(
                String::from_utf8(line).unwrap(),
                "{\"type\":\"error\",\"error\":\"Unexpected token 'o', \\\"not json\\\" is not valid JSON\"}\n"
            ),
            other => panic!("{other:?}"),
        }
    }

    proptest! {
        #[test]
        fn never_panics(bytes in any::<Vec<u8>>()) {
            let _ = decode(&InputLine::Complete(bytes));
        }
    }
}
