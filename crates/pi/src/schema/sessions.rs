//! The schema of the additions of `--multi-session` to a dialect: three commands, their responses, the end of a
//! session, and the `sessionId` in every other line.

use schemars::JsonSchema;
use schemars::generate::{Contract, SchemaSettings};
use serde_json::{Value, json};

use super::fit;
use crate::multi_session::{Listing, OpenSession};

const SESSION_ID: &str = "The id of the session.";

/// Returns the schema of `--multi-session` as it is published in `docs/schemas`.
pub fn sessions_schema_text() -> String {
    format!("{:#}\n", schema())
}

fn schema() -> Value {
    let id = json!({ "description": SESSION_ID, "type": "string" });
    let mut open = type_schema::<OpenSession>(Contract::Deserialize);
    fit::put_first(&mut open, "type", json!({ "const": "open_session" }));
    let echoed = json!({ "description": "Echoed in the response; any JSON value." });
    fit::put_first_optional(&mut open, "id", echoed.clone());
    let command = |word: &str| {
        json!({
            "type": "object",
            "required": ["type"],
            "properties": { "id": echoed, "type": { "const": word } }
        })
    };
    let mut close = command("close_session");
    fit::put_last(&mut close, "sessionId", id.clone());
    let addressed = json!({
        "description": "A line of the dialect with the session that it belongs to. Without `sessionId` it must be \
            valid in the schema of the dialect.",
        "type": "object",
        "required": ["sessionId", "type"],
        "properties": { "sessionId": id, "type": { "type": "string" } }
    });
    let mut opened = super::success("open_session", None);
    fit::put_first(&mut opened, "sessionId", id.clone());
    let data = json!({
        "type": "object",
        "required": ["sessionId", "cwd"],
        "properties": {
            "sessionId": id,
            "sessionFile": { "description": "Missing for a session in memory.", "type": "string" },
            "cwd": { "description": "The working directory of the session.", "type": "string" }
        },
        "additionalProperties": false
    });
    fit::put_last(&mut opened, "data", data);
    let mut closed = super::success("close_session", None);
    fit::put_first(&mut closed, "sessionId", id.clone());
    let mut listed = super::success("list_sessions", None);
    let listing = type_schema::<Listing>(Contract::Serialize);
    fit::put_last(
        &mut listed,
        "data",
        json!({
            "type": "object",
            "required": ["sessions"],
            "properties": { "sessions": { "type": "array", "items": listing } },
            "additionalProperties": false
        }),
    );
    let ended = json!({
        "description": "The session ended without `close_session`. This is its last line.",
        "type": "object",
        "required": ["sessionId", "type", "reason"],
        "properties": {
            "sessionId": id,
            "type": { "const": "session_closed" },
            "reason": {
                "description": "`failed` if the session ended because of an internal error.",
                "enum": ["ended", "failed"]
            }
        },
        "additionalProperties": false
    });
    let own_commands = json!({
        "properties": { "command": { "enum": ["open_session", "close_session", "list_sessions"] } },
        "required": ["command"]
    });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:pinion:schema:pi-sessions",
        "title": "Lines of several sessions in one process",
        "description": "The additions of `pinion --mode rpc --multi-session` to the lines of a dialect. `$defs/input` describes \
            the lines of a client.",
        "oneOf": [
            fit::reference("OpenSessionResponse"),
            fit::reference("CloseSessionResponse"),
            fit::reference("ListSessionsResponse"),
            fit::reference("SessionClosedEvent"),
            fit::reference("UnaddressedFailure"),
            { "allOf": [fit::reference("addressed"), { "not": {
                "anyOf": [{ "properties": { "type": { "const": "session_closed" } } },
                          { "allOf": [own_commands, { "properties": { "success": { "const": true } } }] }]
            } }] }
        ],
        "$defs": {
            "input": {
                "description": "The lines of a client: one JSON object each.",
                "oneOf": [
                    fit::reference("OpenSessionCommand"),
                    fit::reference("CloseSessionCommand"),
                    fit::reference("ListSessionsCommand"),
                    { "allOf": [fit::reference("addressed"), { "properties": {
                        "type": { "not": { "enum": ["open_session", "close_session", "list_sessions"] } }
                    } }] }
                ]
            },
            "addressed": addressed,
            "OpenSessionCommand": open,
            "CloseSessionCommand": close,
            "ListSessionsCommand": command("list_sessions"),
            "OpenSessionResponse": opened,
            "CloseSessionResponse": closed,
            "ListSessionsResponse": listed,
            "SessionClosedEvent": ended,
            "UnaddressedFailure": {
                "description": "The answer to a line without the id of an open session.",
                "type": "object",
                "required": ["type", "success", "error"],
                "properties": {
                    "sessionId": false,
                    "id": true,
                    "type": { "const": "response" },
                    "command": true,
                    "success": { "const": false },
                    "error": { "type": "string", "minLength": 1 }
                }
            }
        }
    })
}

fn type_schema<T: JsonSchema>(contract: Contract) -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.contract = contract;
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let mut schema = settings
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value();
    fit::optional(&mut schema);
    schema
}
