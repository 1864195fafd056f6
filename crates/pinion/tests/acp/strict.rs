//! A strict check of the lines of the agent: every member is known and has its type, and sessions are named first.

use std::collections::{BTreeMap, BTreeSet};

use libtest_mimic::{Failed, Trial};
use serde_json::{Value, json};

/// The members of an object: `name`, `name?` if it may be absent, and the name of its type.
type Members = &'static [(&'static str, &'static str)];

/// The types. `string`, `integer`, `number`, `boolean` and `any` are those of JSON; `[T]` is a list, `A|null` may be null.
const TYPES: &[(&str, Members)] = &[
    (
        "Implementation",
        &[
            ("name", "string"),
            ("title?", "string|null"),
            ("version", "string"),
        ],
    ),
    (
        "Initialize",
        &[
            ("protocolVersion", "integer"),
            ("agentCapabilities?", "any"),
            ("authMethods?", "[AuthMethod]"),
            ("agentInfo?", "Implementation"),
            ("_meta?", "any"),
        ],
    ),
    (
        "AuthMethod",
        &[
            ("id", "string"),
            ("name", "string"),
            ("description?", "string|null"),
            ("type?", "string"),
            ("args?", "[string]"),
            ("env?", "any"),
            ("_meta?", "any"),
        ],
    ),
    (
        "Opened",
        &[
            ("sessionId?", "string"),
            ("modes?", "Modes"),
            ("configOptions?", "[ConfigOption]"),
        ],
    ),
    ("Options", &[("configOptions", "[ConfigOption]")]),
    (
        "Modes",
        &[("currentModeId", "string"), ("availableModes", "[Mode]")],
    ),
    (
        "Mode",
        &[
            ("id", "string"),
            ("name", "string"),
            ("description?", "string|null"),
        ],
    ),
    (
        "ConfigOption",
        &[
            ("id", "string"),
            ("name", "string"),
            ("description?", "string|null"),
            ("category?", "string|null"),
            ("type", "string"),
            ("currentValue", "string"),
            ("options", "[any]"),
        ],
    ),
    (
        "Prompted",
        &[("stopReason", "stop reason"), ("usage?", "any")],
    ),
    (
        "Listed",
        &[
            ("sessions", "[SessionInfo]"),
            ("nextCursor?", "string|null"),
        ],
    ),
    (
        "SessionInfo",
        &[
            ("sessionId", "string"),
            ("cwd", "string"),
            ("title?", "string|null"),
            ("updatedAt?", "string|null"),
        ],
    ),
    ("Steered", &[("outcome", "string"), ("reason?", "string")]),
    ("Titled", &[("title", "string")]),
    ("Empty", &[]),
    (
        "Error",
        &[("code", "integer"), ("message", "string"), ("data?", "any")],
    ),
    ("Update", &[("sessionId", "string"), ("update", "update")]),
    ("user_message_chunk", CHUNK),
    ("agent_message_chunk", CHUNK),
    ("agent_thought_chunk", CHUNK),
    (
        "tool_call",
        &[
            ("toolCallId", "string"),
            ("title", "string"),
            ("name?", "string|null"),
            ("kind?", "kind"),
            ("status?", "status"),
            ("content?", "[CallContent]"),
            ("locations?", "[Location]"),
            ("rawInput?", "any"),
            ("rawOutput?", "any"),
            ("_meta?", "any"),
        ],
    ),
    ("tool_call_update", CALL_UPDATE),
    ("ToolCallUpdate", CALL_UPDATE),
    (
        "available_commands_update",
        &[("availableCommands", "[Command]")],
    ),
    (
        "Command",
        &[
            ("name", "string"),
            ("description", "string"),
            ("input?", "Hint"),
        ],
    ),
    ("Hint", &[("hint", "string")]),
    ("current_mode_update", &[("currentModeId", "string")]),
    (
        "config_option_update",
        &[("configOptions", "[ConfigOption]")],
    ),
    (
        "session_info_update",
        &[("title?", "string|null"), ("updatedAt?", "string|null")],
    ),
    (
        "usage_update",
        &[("used", "integer"), ("size", "integer"), ("cost?", "Cost")],
    ),
    ("Cost", &[("amount", "number"), ("currency", "string")]),
    (
        "notice",
        &[
            ("severity", "string"),
            ("title", "string"),
            ("description?", "string|null"),
        ],
    ),
    (
        "compaction_update",
        &[
            ("compactionId", "string"),
            ("status", "string"),
            ("summary?", "[block]"),
            ("error?", "string|null"),
        ],
    ),
    ("Location", &[("path", "absolute"), ("line?", "integer")]),
    ("text", &[("type", "string"), ("text", "string")]),
    (
        "image",
        &[
            ("type", "string"),
            ("data", "string"),
            ("mimeType", "string"),
        ],
    ),
    ("content", &[("type", "string"), ("content", "block")]),
    (
        "diff",
        &[
            ("type", "string"),
            ("path", "absolute"),
            ("oldText?", "string|null"),
            ("newText", "string"),
            ("_meta?", "any"),
        ],
    ),
    ("terminal", &[("type", "string"), ("terminalId", "string")]),
    (
        "Permission",
        &[
            ("sessionId", "string"),
            ("toolCall", "ToolCallUpdate"),
            ("options", "[PermissionOption]"),
        ],
    ),
    (
        "PermissionOption",
        &[
            ("optionId", "string"),
            ("name", "string"),
            ("kind", "option kind"),
        ],
    ),
    (
        "Elicitation",
        &[
            ("sessionId", "string"),
            ("mode", "string"),
            ("message", "string"),
            ("requestedSchema", "any"),
        ],
    ),
    ("CancelRequest", &[("requestId", "integer")]),
];

const CHUNK: Members = &[("messageId", "string"), ("content", "block")];
const CALL_UPDATE: Members = &[
    ("toolCallId", "string"),
    ("title?", "string"),
    ("name?", "string"),
    ("kind?", "kind"),
    ("status?", "status"),
    ("content?", "[CallContent]"),
    ("locations?", "[Location]"),
    ("rawInput?", "any"),
    ("rawOutput?", "any"),
    ("_meta?", "any"),
];
const WORDS: &[(&str, &[&str])] = &[
    (
        "stop reason",
        &[
            "end_turn",
            "max_tokens",
            "max_turn_requests",
            "refusal",
            "cancelled",
        ],
    ),
    ("status", &["pending", "in_progress", "completed", "failed"]),
    (
        "kind",
        &[
            "read",
            "edit",
            "delete",
            "move",
            "search",
            "execute",
            "think",
            "fetch",
            "switch_mode",
            "other",
        ],
    ),
    (
        "option kind",
        &["allow_once", "allow_always", "reject_once", "reject_always"],
    ),
];
/// The types that the result of a request may have.
const RESULTS: &[&str] = &[
    "Initialize",
    "Prompted",
    "Listed",
    "Steered",
    "Titled",
    "Options",
    "Opened",
    "Empty",
];

/// Returns the complaint about a value of a type.
fn complaint(value: &Value, kind: &str) -> Option<String> {
    let wrong = || Some(format!("{value} is not {kind}"));
    if let Some(kind) = kind.strip_suffix("|null") {
        return if value.is_null() {
            None
        } else {
            complaint(value, kind)
        };
    }
    if let Some(kind) = kind
        .strip_prefix('[')
        .and_then(|kind| kind.strip_suffix(']'))
    {
        let Some(items) = value.as_array() else {
            return wrong();
        };
        return items.iter().find_map(|item| complaint(item, kind));
    }
    if let Some((_, words)) = WORDS.iter().find(|(name, _)| *name == kind) {
        return (!value.as_str().is_some_and(|word| words.contains(&word)))
            .then(|| format!("{value} is not {kind}"));
    }
    let fits = match kind {
        "any" => true,
        "string" => value.is_string(),
        "absolute" => value.as_str().is_some_and(|path| path.starts_with('/')),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "block" | "CallContent" => {
            let known: &[&str] = if kind == "block" {
                &["text", "image"]
            } else {
                &["content", "diff", "terminal"]
            };
            return match value["type"].as_str().filter(|name| known.contains(name)) {
                Some(name) => object(value, name),
                None => wrong(),
            };
        }
        "update" => {
            let Some(name) = value["sessionUpdate"].as_str() else {
                return wrong();
            };
            let mut rest = value.clone();
            rest.as_object_mut().unwrap().remove("sessionUpdate");
            return object(&rest, name);
        }
        name => return object(value, name),
    };
    if fits { None } else { wrong() }
}

fn object(value: &Value, name: &str) -> Option<String> {
    let Some((_, members)) = TYPES.iter().find(|(known, _)| *known == name) else {
        return Some(format!("there is no type {name}"));
    };
    let Some(given) = value.as_object() else {
        return Some(format!("{value} is not an object of {name}"));
    };
    for (member, kind) in *members {
        let (member, is_optional) = match member.strip_suffix('?') {
            Some(member) => (member, true),
            None => (*member, false),
        };
        match given.get(member) {
            None if is_optional => {}
            None => return Some(format!("{name} has no {member}: {value}")),
            Some(value) => {
                if let Some(complaint) = complaint(value, kind) {
                    return Some(format!("{name}.{member}: {complaint}"));
                }
            }
        }
    }
    let is_known = |name: &String| {
        members
            .iter()
            .any(|(known, _)| known.trim_end_matches('?') == name)
    };
    let unknown = given.keys().find(|name| !is_known(name));
    unknown.map(|unknown| format!("{name} has an unknown member {unknown}: {value}"))
}

/// A conversation as its lines arrive.
#[derive(Debug, Default)]
pub struct Conversation {
    named: BTreeSet<String>,
    /// Sessions whose conversation is being replayed: updates come before the answer that has no id.
    answers: BTreeMap<String, usize>,
    calls: BTreeSet<(String, String)>,
}

impl Conversation {
    pub fn complaint(&mut self, line: &Value) -> Option<String> {
        if line["jsonrpc"] != "2.0" {
            return Some(format!("jsonrpc is missing: {line}"));
        }
        if line.to_string().len() > 8 << 20 {
            return Some("a line is longer than 8 MiB".to_owned());
        }
        match line["method"].as_str() {
            Some("session/update") => self.update(&line["params"]),
            Some("session/request_permission") => {
                object(&line["params"], "Permission").or_else(|| self.known(&line["params"]))
            }
            Some("elicitation/create") => object(&line["params"], "Elicitation"),
            Some("$/cancel_request") => object(&line["params"], "CancelRequest"),
            Some(method) => Some(format!("{method} is not a method of clients")),
            None => self.answer(line),
        }
    }

    fn known(&self, params: &Value) -> Option<String> {
        let session = params["sessionId"].as_str().unwrap_or_default();
        (!self.named.contains(session)).then(|| format!("the session {session} is not named yet"))
    }

    fn update(&mut self, params: &Value) -> Option<String> {
        if let Some(complaint) = object(params, "Update") {
            return Some(complaint);
        }
        let update = &params["update"];
        let session = params["sessionId"].as_str().unwrap_or_default().to_owned();
        let call = update["toolCallId"].as_str().unwrap_or_default().to_owned();
        match update["sessionUpdate"].as_str() {
            Some("tool_call") => {
                self.calls.insert((session.clone(), call));
            }
            Some("tool_call_update") if !self.calls.contains(&(session.clone(), call.clone())) => {
                return Some(format!("the call {call} was not created"));
            }
            _ => {}
        }
        if !self.named.contains(&session) {
            // The client named a session that it loads.
            let replayed = [
                "user_message_chunk",
                "agent_message_chunk",
                "agent_thought_chunk",
                "tool_call",
                "tool_call_update",
                "compaction_update",
            ];
            let kind = update["sessionUpdate"].as_str().unwrap_or_default();
            if !replayed.contains(&kind) && self.answers.is_empty() {
                return Some(format!("{kind} before the session {session} is named"));
            }
        }
        None
    }

    fn answer(&mut self, line: &Value) -> Option<String> {
        *self.answers.entry(line["id"].to_string()).or_default() += 1;
        if let Some(error) = line.get("error") {
            return object(error, "Error");
        }
        let result = &line["result"];
        if let Some(session) = result["sessionId"].as_str() {
            self.named.insert(session.to_owned());
        }
        let complaints: Vec<String> = RESULTS
            .iter()
            .filter_map(|name| object(result, name))
            .collect();
        (complaints.len() == RESULTS.len()).then(|| format!("{result} is no known result"))
    }

    /// Returns complaints about requests that were not answered once.
    pub fn unanswered(&self, requests: &[Value]) -> Vec<String> {
        let mut sent: BTreeMap<String, usize> = BTreeMap::new();
        for id in requests {
            *sent.entry(id.to_string()).or_default() += 1;
        }
        let wrong = |(id, count): (&String, &usize)| {
            let answered = self.answers.get(id).copied().unwrap_or_default();
            (answered != *count).then(|| {
                format!("request {id} was sent {count} times and answered {answered} times")
            })
        };
        sent.iter().filter_map(wrong).collect()
    }
}

/// The check itself finds what is wrong.
pub fn trials() -> Vec<Trial> {
    vec![Trial::test("strict::wrong_lines_are_found", || {
        for wrong in [
            json!({"id": 1, "result": {}}),
            json!({"jsonrpc": "2.0", "method": "fs/read_text_file", "params": {}}),
            json!({"jsonrpc": "2.0", "id": 1, "result": {"stopReason": "error"}}),
            json!({"jsonrpc": "2.0", "id": 1, "result": {"surprise": 1}}),
            json!({"jsonrpc": "2.0", "id": 1, "error": {"code": "x", "message": ""}}),
            json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update":
                {"sessionUpdate": "available_commands_update", "availableCommands": []}}}),
            json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update":
                {"sessionUpdate": "tool_call_update", "toolCallId": "c"}}}),
            json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update":
                {"sessionUpdate": "usage_update", "used": 1.5, "size": 2}}}),
        ] {
            if Conversation::default().complaint(&wrong).is_none() {
                return Err(Failed::from(format!("{wrong} was accepted")));
            }
        }
        Ok(())
    })]
}
