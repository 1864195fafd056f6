//! The manifest of the agent clip.

use pinion_clip::manifest::Manifest;
use serde_json::{Value, json};

const PACKAGE: &str = "@pinix/agent";
/// The version of the agent interface, which Pinix defines.
const VERSION: &str = "1.0.0";

/// Returns the manifest of the agent under `alias`.
pub(super) fn manifest(alias: &str) -> Manifest {
    let commands: Vec<Value> = COMMANDS
        .iter()
        .map(|(name, description, fields)| {
            json!({"name": name, "description": description, "input": input(fields)})
        })
        .collect();
    Manifest::read(&json!({
        "name": alias,
        "package": PACKAGE,
        "version": VERSION,
        "domain": "ai",
        "description": "Runs coding agents: topics that are sessions on disk, with the clips of this hub as tools.",
        "commands": commands,
        "groups": {
            "agent": {"description": "Who answers: model, prompt, allowed clips"},
            "topic": {"description": "Conversations"},
            "event": {"description": "Scheduled prompts to agents"},
            "run": {"description": "What is going on in a topic"},
            "sessions": {"description": "Topics as they are on disk"},
        },
        "patterns": [
            "chat streams text, thinking, tool_call, tool_result, usage, error and done",
            "without topic_id chat begins a topic; its first event names it",
        ],
    }))
}

/// A field of an input: name, type, required or not, description.
type Field = (&'static str, &'static str, bool, &'static str);

const ID: Field = ("id", "string", true, "Which one");
const TOPIC: Field = ("topic_id", "string", true, "Which topic");
const MESSAGE: Field = ("message", "string", true, "What is said");

/// The fields of an agent that callers may set.
const AGENT: [Field; 12] = [
    ("name", "string", false, "What it is called"),
    ("llm_provider", "string", false, "The provider of its model"),
    (
        "llm_model",
        "string",
        false,
        "Its model; the hub's own unless said",
    ),
    (
        "base_url",
        "string",
        false,
        "The address of its provider, with api_key",
    ),
    (
        "api_key",
        "string",
        false,
        "The key of its provider; never shown again",
    ),
    ("system_prompt", "string", false, "Its system prompt"),
    (
        "thinking",
        "string",
        false,
        "off, minimal, low, medium, high or xhigh",
    ),
    ("temperature", "number", false, "Sampling temperature"),
    (
        "max_tokens",
        "integer",
        false,
        "The longest answer, in tokens",
    ),
    ("scope", "array", false, "Clips it may use; all without any"),
    (
        "pinned",
        "array",
        false,
        "Clips that come first among its tools",
    ),
    (
        "tools",
        "array",
        false,
        "Tools of this machine, for who owns the hub: read, bash, edit, write, grep, find, ls",
    ),
];

const AGENT_OF_EVENT: Field = (
    "agent_id",
    "string",
    false,
    "Who is asked; the first one unless said",
);
const TOPIC_OF_EVENT: Field = (
    "topic_id",
    "string",
    false,
    "The conversation it belongs to; a new one every time unless said",
);
const TIMEZONE: Field = (
    "timezone",
    "string",
    false,
    "A name such as Europe/Berlin; the machine's own unless said",
);

const EVENT: [Field; 6] = [
    ("type", "string", true, "once or daily"),
    (
        "schedule",
        "string",
        true,
        "When: 2030-01-31T09:00:00Z or 2030-01-31T09:00 for once, 08:30 for daily",
    ),
    ("prompt", "string", true, "What is said"),
    TIMEZONE,
    AGENT_OF_EVENT,
    TOPIC_OF_EVENT,
];

const EVENT_UPDATE: [Field; 8] = [
    ID,
    ("type", "string", false, "once or daily"),
    ("schedule", "string", false, "When"),
    ("prompt", "string", false, "What is said"),
    ("status", "string", false, "active, paused or cancelled"),
    TIMEZONE,
    AGENT_OF_EVENT,
    TOPIC_OF_EVENT,
];

type Entry = (&'static str, &'static str, &'static [Field]);

const COMMANDS: &[Entry] = &[
    (
        "chat",
        "Says something to an agent and streams what it does",
        &[
            MESSAGE,
            (
                "agent_id",
                "string",
                false,
                "Who is asked; the first one unless said",
            ),
            (
                "topic_id",
                "string",
                false,
                "The conversation it belongs to; a new one unless said",
            ),
            ("detach", "boolean", false, "Goes on when the caller leaves"),
        ],
    ),
    (
        "steer",
        "Says something into a run, as soon as the model can be told",
        &[TOPIC, MESSAGE],
    ),
    (
        "follow_up",
        "Says something when a run would end",
        &[TOPIC, MESSAGE],
    ),
    ("abort", "Stops what goes on in a topic", &[TOPIC]),
    ("state", "How a topic stands", &[TOPIC]),
    (
        "sessions list",
        "Topics as sessions on disk, those used last first",
        &[],
    ),
    ("sessions get", "The entries of a session", &[TOPIC]),
    ("topic list", "All topics, those used last first", &[]),
    (
        "topic get",
        "A topic and its messages",
        &[
            ID,
            (
                "limit",
                "integer",
                false,
                "How many of the last messages; 200 unless said",
            ),
        ],
    ),
    (
        "topic create",
        "Begins a topic",
        &[
            ("title", "string", false, "What it is called"),
            ("agent_id", "string", false, "Who is asked in it"),
        ],
    ),
    (
        "topic rename",
        "Calls a topic something else",
        &[ID, ("title", "string", true, "What it is called")],
    ),
    (
        "topic delete",
        "Deletes a topic and what was said in it",
        &[ID],
    ),
    (
        "topic search",
        "Topics in which something was said",
        &[("query", "string", true, "What was said")],
    ),
    (
        "agent list",
        "All agents; the first one answers unless another is named",
        &[],
    ),
    ("agent get", "One agent", &[ID]),
    ("agent create", "Makes an agent", &AGENT),
    ("agent update", "Changes an agent", &UPDATE),
    ("agent delete", "Forgets an agent", &[ID]),
    (
        "event list",
        "Scheduled prompts to agents",
        &[(
            "agent_id",
            "string",
            false,
            "Only those of this agent; all unless said",
        )],
    ),
    ("event get", "One event", &[ID]),
    (
        "event create",
        "Says something to an agent by the clock",
        &EVENT,
    ),
    ("event update", "Changes an event", &EVENT_UPDATE),
    ("event cancel", "Ends an event; it stays in the list", &[ID]),
    ("run get", "How a run stands", &[ID]),
    ("run cancel", "Stops a run", &[ID]),
    ("config get", "What holds for every agent of this hub", &[]),
];

const UPDATE: [Field; 13] = {
    let mut fields = [ID; 13];
    let mut at = 0;
    while at < AGENT.len() {
        fields[at + 1] = AGENT[at];
        at += 1;
    }
    fields
};

fn input(fields: &[Field]) -> String {
    let properties: serde_json::Map<String, Value> = fields
        .iter()
        .map(|(name, kind, _, description)| {
            let mut field = json!({"type": kind, "description": description});
            if *kind == "array" {
                field["items"] = json!({"type": "string"});
            }
            ((*name).to_owned(), field)
        })
        .collect();
    let required = fields.iter().filter(|(_, _, required, _)| *required);
    let required: Vec<&str> = required.map(|(name, ..)| *name).collect();
    json!({"type": "object", "properties": properties, "required": required}).to_string()
}
