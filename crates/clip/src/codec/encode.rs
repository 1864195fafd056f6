//! Encodes the lines that clips are sent, each with its LF.

use serde::Serialize;
use serde_json::value::RawValue;

use super::{Dialect, Request};
use crate::ClipError;
use crate::cross_calls::Listing;
use crate::data::DataAnswer;

/// Serializes `value` to one line.
fn line(value: &impl Serialize) -> Vec<u8> {
    let mut line = Vec::with_capacity(128);
    // Serializing strings, numbers and raw JSON into memory cannot fail.
    let _ = serde_json::to_writer(&mut line, value);
    flatten(&mut line);
    line.push(b'\n');
    line
}

/// Replaces the line breaks of raw JSON with spaces. JSON strings contain no raw line breaks, so this does not change
/// values.
fn flatten(line: &mut [u8]) {
    for byte in line {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
}

/// Encodes a call. It is the same in both dialects. `traceparent` is the span of the call, if traces are on; clips
/// ignore members that they do not know.
pub fn invoke(id: &str, command: &str, input: &RawValue, traceparent: Option<&str>) -> Vec<u8> {
    #[derive(Serialize)]
    struct Invoke<'a> {
        r#type: &'static str,
        id: &'a str,
        command: &'a str,
        input: &'a RawValue,
        #[serde(skip_serializing_if = "Option::is_none")]
        traceparent: Option<&'a str>,
    }
    line(&Invoke {
        r#type: "invoke",
        id,
        command: command.trim(),
        input,
        traceparent,
    })
}

/// Encodes the answer to `register`.
pub fn registered(alias: &str) -> Vec<u8> {
    #[derive(Serialize)]
    struct Registered<'a> {
        r#type: &'static str,
        alias: &'a str,
    }
    line(&Registered {
        r#type: "registered",
        alias,
    })
}

/// Encodes the cancellation of a call, for direct clips only: the register dialect has no such line.
pub fn cancel(id: &str, reason: &str) -> Vec<u8> {
    #[derive(Serialize)]
    struct Cancel<'a> {
        r#type: &'static str,
        id: &'a str,
        reason: &'a str,
    }
    line(&Cancel {
        r#type: "cancel",
        id,
        reason,
    })
}

#[derive(Serialize)]
struct Answer<'a, T> {
    r#type: &'static str,
    id: &'a RawValue,
    #[serde(flatten)]
    rest: T,
}

/// Encodes the output of another clip.
pub fn answer_output(dialect: Dialect, request: &Request, output: &RawValue) -> Vec<u8> {
    #[derive(Serialize)]
    struct Output<'a> {
        r#type: &'static str,
        id: &'a RawValue,
        output: &'a RawValue,
    }
    line(&Output {
        r#type: match dialect {
            Dialect::Register => "result",
            Dialect::Direct => "invoke_clip_response",
        },
        id: &request.0,
        output,
    })
}

#[derive(Serialize)]
struct Structured<'a> {
    code: &'a str,
    message: &'a str,
}

#[derive(Serialize)]
struct Text<'a> {
    r#type: &'static str,
    id: &'a RawValue,
    error: &'a str,
}

#[derive(Serialize)]
struct Object<'a> {
    r#type: &'static str,
    id: &'a RawValue,
    error: Structured<'a>,
}

/// Encodes the failure of a call to another clip. The SDK can only read a text; direct clips also get the code.
pub fn answer_error(dialect: Dialect, request: &Request, error: &ClipError) -> Vec<u8> {
    match dialect {
        Dialect::Register => answer_list_error(request, error),
        Dialect::Direct => line(&Object {
            r#type: "invoke_clip_response",
            id: &request.0,
            error: Structured {
                code: error.code.upper(),
                message: &error.message,
            },
        }),
    }
}

/// Encodes the list of clips.
pub fn answer_list(request: &Request, clips: &[Listing]) -> Vec<u8> {
    #[derive(Serialize)]
    struct Clips<'a> {
        clips: &'a [Listing],
    }
    line(&Answer {
        r#type: "list_clips_result",
        id: &request.0,
        rest: Clips { clips },
    })
}

/// Encodes the failure to list clips.
pub fn answer_list_error(request: &Request, error: &ClipError) -> Vec<u8> {
    line(&Text {
        r#type: "error",
        id: &request.0,
        error: &error.message,
    })
}

/// Encodes the answer to a data request. A failure is an object in both dialects, because the SDK understands nothing
/// else here.
pub fn answer_data(request: &Request, answer: &Result<DataAnswer, ClipError>) -> Vec<u8> {
    match answer {
        Ok(answer) => line(&Answer {
            r#type: "data_result",
            id: &request.0,
            rest: answer,
        }),
        Err(error) => line(&Object {
            r#type: "data_result",
            id: &request.0,
            error: Structured {
                code: error.code.as_str(),
                message: &error.message,
            },
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Code;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.into()).unwrap()
    }

    fn read(line: &[u8]) -> Value {
        assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        serde_json::from_slice(line.strip_suffix(b"\n").unwrap()).unwrap()
    }

    #[test]
    fn every_answer_is_in_the_dialect_of_the_asker() {
        let request = Request(raw("\"c1\""));
        let error = ClipError::new(Code::NotFound, "Clip 'ghost' not found");
        let output = raw("{\"n\":\n 12345678901234567890}");
        assert_eq!(
            answer_output(Dialect::Register, &request, &output),
            b"{\"type\":\"result\",\"id\":\"c1\",\"output\":{\"n\":  12345678901234567890}}\n"
        );
        assert_eq!(
            read(&answer_output(Dialect::Direct, &request, &output))["type"],
            "invoke_clip_response"
        );
        assert_eq!(
            read(&answer_error(Dialect::Register, &request, &error)),
            json!({"type": "error", "id": "c1", "error": "Clip 'ghost' not found"})
        );
        assert_eq!(
            read(&answer_error(Dialect::Direct, &request, &error)),
            json!({"type": "invoke_clip_response", "id": "c1", "error": {"code": "NOT_FOUND", "message": "Clip 'ghost' not found"}})
        );
        assert_eq!(
            read(&answer_data(&request, &Err(error))),
            json!({"type": "data_result", "id": "c1", "error": {"code": "not_found", "message": "Clip 'ghost' not found"}})
        );
        let read_file = Ok(DataAnswer::Content(bytes::Bytes::from_static(b"hello")));
        assert_eq!(
            read(&answer_data(&Request(raw("7")), &read_file)),
            json!({"type": "data_result", "id": 7, "content": "aGVsbG8="})
        );
        assert_eq!(
            read(&registered("todo")),
            json!({"type": "registered", "alias": "todo"})
        );
        assert_eq!(
            read(&cancel("1", "deadline")),
            json!({"type": "cancel", "id": "1", "reason": "deadline"})
        );
        assert_eq!(
            read(&answer_list(&request, &[])),
            json!({"type": "list_clips_result", "id": "c1", "clips": []})
        );
    }

    proptest! {
        #[test]
        fn a_call_is_encoded_as_one_line(id in any::<String>(), command in any::<String>(), text in any::<String>()) {
            let pretty = serde_json::to_string_pretty(&json!({"text": text, "list": [1, 2]})).unwrap();
            let line = invoke(&id, &command, &raw(&pretty), None);
            prop_assert_eq!(memchr_count(&line), 1);
            let read: Value = serde_json::from_slice(&line).unwrap();
            prop_assert_eq!(read, json!({"type": "invoke", "id": id, "command": command.trim(), "input": {"text": text, "list": [1, 2]}}));
        }
    }

    fn memchr_count(line: &[u8]) -> usize {
        line.iter().filter(|byte| **byte == b'\n').count()
    }
}
