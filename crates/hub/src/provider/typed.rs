//! The typed dialect: JSON objects with a `type` and inline payloads. It means the same as the schema's messages, and
//! only this module translates between the two.

use std::collections::HashMap;

use bytes::Bytes;
use pinion_proto::hub::hub_message::Payload as ToProvider;
use pinion_proto::hub::{InvokeCommand, InvokeInput, ProviderHello};
use pinion_status::{Code, Failure};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::incoming::{self, AnswerPart, FromProvider, LogLine};
use super::registration::Registration;

/// A registered clip and the alias it was granted.
#[derive(Debug, Serialize)]
pub(super) struct Granted {
    pub(super) package: String,
    pub(super) suggested: String,
    pub(super) alias: String,
}

/// The members of a JSON object, unparsed.
type Members<'a> = HashMap<String, &'a RawValue>;

/// Returns the `type` of a message; `None` if the message is not of this dialect.
pub(super) fn kind(message: &[u8]) -> Result<Option<String>, Failure> {
    let members = members(message)?;
    Ok(members
        .get("type")
        .and_then(|kind| serde_json::from_str(kind.get()).ok()))
}

fn members(message: &[u8]) -> Result<Members<'_>, Failure> {
    serde_json::from_slice(message)
        .map_err(|error| Failure::invalid(format!("the message is not a JSON object: {error}")))
}

pub(super) fn read(message: &Bytes) -> Result<FromProvider, Failure> {
    let members = members(message)?;
    let text = |key: &str| -> String {
        let value = members.get(key).map(|value| value.get());
        let value = value.and_then(|value| serde_json::from_str::<String>(value).ok());
        value.unwrap_or_default()
    };
    let value = |key: &str| -> Value {
        let value = members.get(key).map(|value| value.get());
        let value = value.and_then(|value| serde_json::from_str(value).ok());
        value.unwrap_or_default()
    };
    // An inline payload is a slice of the message it arrived in.
    let payload = |key: &str| match members.get(key).map(|value| value.get().trim()) {
        None => Bytes::new(),
        Some(text) => message.slice_ref(text.as_bytes()),
    };
    let part = |output, error, done| {
        FromProvider::Part(AnswerPart {
            id: text("requestId").into(),
            output,
            error,
            done,
        })
    };
    Ok(match text("type").as_str() {
        "RegisterClips" => FromProvider::Clips {
            provider: Some(text("providerName").trim().to_owned()).filter(|it| !it.is_empty()),
            clips: Ok(value("clips")
                .as_array()
                .map(|clips| clips.iter().map(Registration::read).collect())
                .unwrap_or_default()),
            manages: value("runtime") == Value::Bool(true),
        },
        "UnregisterClips" => FromProvider::Removed(match value("aliases") {
            Value::Array(names) => names
                .iter()
                .filter_map(|name| name.as_str().map(str::to_owned))
                .collect(),
            Value::String(name) => vec![name],
            _ => Vec::new(),
        }),
        "InvokeResponse" => match failure(&value("error")) {
            None => part(payload("output"), None, true),
            error => part(Bytes::new(), error, true),
        },
        "InvokeStreamChunk" => match failure(&value("error")) {
            None => part(payload("chunk"), None, false),
            error => part(Bytes::new(), error, true),
        },
        "InvokeStreamEnd" => part(Bytes::new(), failure(&value("error")), true),
        "Heartbeat" => FromProvider::Heartbeat,
        "Log" => FromProvider::Log(LogLine {
            clip: match text("alias").trim() {
                "" => text("package"),
                alias => alias.to_owned(),
            },
            level: text("level"),
            message: text("message"),
            request: text("requestId"),
            time: incoming::time_of(&value("timestampUnixMs")),
        }),
        _ => FromProvider::Nothing,
    })
}

/// Reads a failure, which is a text or an object with a code.
fn failure(error: &Value) -> Option<Failure> {
    let text = |key: &str| error.get(key).and_then(Value::as_str).unwrap_or_default();
    match error {
        Value::Null | Value::Bool(false) => None,
        Value::String(message) => Some(Failure::new(Code::Internal, message.clone())),
        _ => Some(Failure::new(
            Code::parse(text("code")),
            text("message").to_owned(),
        )),
    }
}

/// Encodes a message; `None` if this dialect has no such message.
pub(super) fn write(message: &ToProvider) -> Option<Bytes> {
    let object = match message {
        ToProvider::InvokeCommand(command) => return Some(invoke(command)),
        ToProvider::InvokeInput(input) => return Some(feed(input)),
        ToProvider::InvokeCancel(cancel) => serde_json::json!({
            "type": "InvokeCancel", "requestId": *cancel.request_id, "reason": *cancel.reason,
        }),
        ToProvider::Pong(beat) => serde_json::json!({
            "type": "Heartbeat", "pong": {"sentAtUnixMs": beat.sent_at_unix_ms.to_string()},
        }),
        ToProvider::ProviderHello(hello) => return Some(self::hello(hello)),
        _ => return None,
    };
    Some(object.to_string().into())
}

/// Encodes the first message in a form that both dialects can read.
pub(super) fn hello(hello: &ProviderHello) -> Bytes {
    let object = serde_json::json!({
        "type": "ProviderHello",
        "sessionId": *hello.session_id,
        "providerHello": {
            "sessionId": *hello.session_id,
            "heartbeatIntervalMs": hello.heartbeat_interval_ms.to_string(),
            "heartbeatTimeoutMs": hello.heartbeat_timeout_ms.to_string(),
            "hubVersion": *hello.hub_version,
        },
    });
    object.to_string().into()
}

/// Encodes the granted aliases.
pub(super) fn registered(clips: &[Granted]) -> Bytes {
    let object = serde_json::json!({"type": "ClipsRegistered", "clips": clips});
    object.to_string().into()
}

/// Encodes the refusal of a registration, after which the stream ends.
pub(super) fn refused(message: &str) -> Bytes {
    let object = serde_json::json!({
        "type": "ClipsRegistered", "accepted": false, "message": message, "clips": [],
    });
    object.to_string().into()
}

/// Encodes the request to install a package.
pub(super) fn install(id: &str, package: &str, version: &str, alias: &str, secret: &str) -> Bytes {
    let mut object = serde_json::json!({
        "type": "RuntimeInstall", "requestId": id, "package": package, "version": version, "alias": alias,
    });
    if !secret.is_empty() {
        object["clipToken"] = secret.into();
    }
    object.to_string().into()
}

/// Encodes the request to remove a clip.
pub(super) fn uninstall(id: &str, alias: &str, purge: bool) -> Bytes {
    let object = serde_json::json!({
        "type": "RuntimeUninstall", "requestId": id, "alias": alias, "purge": purge,
    });
    object.to_string().into()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InvokeRequest<'a> {
    r#type: &'static str,
    request_id: &'a str,
    alias: &'a str,
    command: &'a str,
    input: &'a RawValue,
    #[serde(skip_serializing_if = "str::is_empty")]
    clip_token: &'a str,
    #[serde(skip_serializing_if = "is_zero")]
    timeout_ms: i64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    open_input: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MoreInput<'a> {
    r#type: &'static str,
    request_id: &'a str,
    data: &'a RawValue,
    done: bool,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

fn invoke(command: &InvokeCommand) -> Bytes {
    let input = inline(&command.input, "{}");
    let request = InvokeRequest {
        r#type: "InvokeRequest",
        request_id: &command.request_id,
        alias: &command.clip_name,
        command: &command.command,
        input: &input,
        clip_token: &command.clip_token,
        timeout_ms: command.timeout_ms,
        open_input: command.open_input,
    };
    serde_json::to_vec(&request).unwrap_or_default().into()
}

fn feed(input: &InvokeInput) -> Bytes {
    let data = inline(&input.data, "null");
    let more = MoreInput {
        r#type: "InvokeInput",
        request_id: &input.request_id,
        data: &data,
        done: input.done,
    };
    serde_json::to_vec(&more).unwrap_or_default().into()
}

/// Converts a payload for use inside a message; bytes that are not JSON become a JSON string.
fn inline(payload: &[u8], empty: &'static str) -> Box<RawValue> {
    let text = String::from_utf8_lossy(payload);
    let text = match text.trim() {
        "" => empty,
        text => text,
    };
    let raw = RawValue::from_string(text.to_owned());
    raw.or_else(|_| serde_json::value::to_raw_value(text))
        .unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// Splits a source into package and version, which runtimes receive separately.
pub(super) fn package_of(source: &str) -> (&str, &str) {
    let package = match source.strip_prefix("registry:") {
        Some(rest) => rest.rsplit_once('#').map_or(rest, |(_, package)| package),
        None => source,
    };
    let name_at = package.find('/').map_or(0, |slash| slash + 1);
    let Some(scoped) = package.strip_prefix('@') else {
        return (package, "");
    };
    match scoped
        .get(name_at.saturating_sub(1)..)
        .and_then(|name| name.find(['@', ':']))
    {
        Some(at) => (&package[..name_at + at], &package[name_at + at + 1..]),
        None => (package, ""),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TYPES: [&str; 8] = [
        "RegisterClips",
        "UnregisterClips",
        "InvokeResponse",
        "InvokeStreamChunk",
        "InvokeStreamEnd",
        "Heartbeat",
        "Log",
        "Unknown",
    ];

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "\\PC{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-zA-Z]{1,9}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_rejected(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let bytes = Bytes::from(bytes);
            let _ = kind(&bytes);
            let _ = read(&bytes);
        }

        #[test]
        fn members_of_any_form_are_accepted(
            kind in prop::sample::select(&TYPES[..]),
            members in prop::collection::vec(value(), 9),
        ) {
            let keys = [
                "requestId", "output", "chunk", "error", "clips", "aliases", "alias", "level", "providerName",
            ];
            let mut message = serde_json::json!({ "type": kind });
            for (key, member) in keys.iter().zip(&members) {
                message[*key] = member.clone();
            }
            let read_back = read(&message.to_string().into());
            prop_assert!(read_back.is_ok());
            // An output is passed on unchanged.
            if let (Ok(FromProvider::Part(part)), true) = (read_back, kind == "InvokeStreamChunk")
                && part.error.is_none()
            {
                let chunk: Value = serde_json::from_slice(&part.output).unwrap();
                prop_assert_eq!(&chunk, &members[2]);
            }
        }

        #[test]
        fn sources_keep_all_their_parts(source in "(@[a-z]{1,5}/)?[a-z@:/#.0-9]{0,12}") {
            let (package, version) = package_of(&source);
            prop_assert!(package.len() + version.len() <= source.len());
        }
    }

    #[test]
    fn sources_are_split_into_package_and_version() {
        for (source, package, version) in [
            ("@acme/todo", "@acme/todo", ""),
            ("@acme/todo@0.3.0", "@acme/todo", "0.3.0"),
            ("@acme/todo:beta", "@acme/todo", "beta"),
            (
                "registry:https://r.example:80/x#@acme/todo@1",
                "@acme/todo",
                "1",
            ),
            ("local/todo:/home/me/todo", "local/todo:/home/me/todo", ""),
            ("github/me/todo#main", "github/me/todo#main", ""),
            ("@", "@", ""),
        ] {
            assert_eq!(package_of(source), (package, version), "{source}");
        }
    }

    #[test]
    fn payloads_are_slices_and_failures_have_two_forms() {
        let message = Bytes::from_static(
            br#"{"type":"InvokeResponse","requestId":"r1","output": {"a": [1, 2]} }"#,
        );
        let Ok(FromProvider::Part(part)) = read(&message) else {
            panic!("no part")
        };
        assert_eq!((&*part.id, part.done), ("r1", true));
        assert_eq!(part.output, br#"{"a": [1, 2]}"#[..]);
        assert!(message.as_ptr_range().contains(&part.output.as_ptr()));
        for (text, code, words) in [
            (r#""boom""#, Code::Internal, "boom"),
            (
                r#"{"code":"NOT_FOUND","message":"gone"}"#,
                Code::NotFound,
                "gone",
            ),
            (r#"{"message":"plain"}"#, Code::Internal, "plain"),
        ] {
            let message = format!(r#"{{"type":"InvokeResponse","requestId":"r1","error":{text}}}"#);
            let Ok(FromProvider::Part(part)) = read(&message.into()) else {
                panic!("no part")
            };
            assert_eq!(part.error, Some(Failure::new(code, words)), "{text}");
        }
    }

    #[test]
    fn inputs_that_are_not_json_become_strings() {
        let command = InvokeCommand {
            input: Bytes::from_static(b"plain \xff"),
            ..InvokeCommand::default()
        };
        let written: Value = serde_json::from_slice(&invoke(&command)).unwrap();
        assert_eq!(written["input"], "plain \u{fffd}");
    }
}
