//! The schema of what `--multi-session` adds to a dialect: three commands, their answers, the end of a session, and the
//! `sessionId` that every other line carries.

use schemars::JsonSchema;
use schemars::generate::{Contract, SchemaSettings};
use serde_json::{Value, json};

use super::fit;
use crate::several::{Listing, Opening};

const SESSION_ID: &str = "What the client calls the session.";

/// The schema of several sessions as it is published in `docs/schemas`.
pub fn sessions_schema_text() -> String {
    format!("{:#}\n", schema())
}

fn schema() -> Value {
    let id = json!({ "description": SESSION_ID, "type": "string" });
    let mut open = type_schema::<Opening>(Contract::Deserialize);
    fit::put_first(&mut open, "type", json!({ "const": "open_session" }));
    let echoed = json!({ "description": "Echoed in the response, whatever it is." });
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
        "description": "A line of the dialect, with the session it belongs to. Without `sessionId` it must fit the \
            schema of the dialect.",
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
            "sessionFile": { "description": "Missing if nothing is kept on disk.", "type": "string" },
            "cwd": { "description": "Where it works.", "type": "string" }
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
        "description": "A session is over, whoever ended it; its last line.",
        "type": "object",
        "required": ["sessionId", "type", "reason"],
        "properties": {
            "sessionId": id,
            "type": { "const": "session_closed" },
            "reason": {
                "description": "`failed` if it did not end in order.",
                "enum": ["ended", "failed"]
            }
        },
        "additionalProperties": false
    });
    let ours = json!({
        "properties": { "command": { "enum": ["open_session", "close_session", "list_sessions"] } },
        "required": ["command"]
    });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:pinion:schema:pi-sessions",
        "title": "Lines of several sessions in one process",
        "description": "What `pinion --mode rpc --multi-session` adds to the lines of a dialect. `$defs/input` is what a \
            client writes.",
        "oneOf": [
            fit::reference("OpenSessionResponse"),
            fit::reference("CloseSessionResponse"),
            fit::reference("ListSessionsResponse"),
            fit::reference("SessionClosedEvent"),
            fit::reference("UnaddressedFailure"),
            { "allOf": [fit::reference("addressed"), { "not": {
                "anyOf": [{ "properties": { "type": { "const": "session_closed" } } },
                          { "allOf": [ours, { "properties": { "success": { "const": true } } }] }]
            } }] }
        ],
        "$defs": {
            "input": {
                "description": "What a client writes: one JSON object per line.",
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
                "description": "A line that names no session that is open.",
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
