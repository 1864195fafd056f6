//! The measurements, one file per promise. Each plays its scenario with every agent in turn, several times, and adds
//! rows to the table; none depends on another.

mod acp;
mod chat;
mod dialects;
mod extensions;
mod fleet;
mod flow;
mod hub;
mod latency;
mod latest;
mod open;
mod pause;
mod pinocchio;
mod probe;
mod sessions;
mod start;
mod stream;
mod turns;

use std::time::Duration;

use serde_json::{Value, json};

use crate::Fallible;
use crate::agent::Agents;
use crate::home::Home;
use crate::lines::Line;
use crate::model::Model;
use crate::table::Table;

/// The state that every measurement needs.
#[derive(Debug)]
pub struct Bench {
    pub agents: Agents,
    /// The server that answers the agents.
    pub model: Model,
    /// The results.
    pub table: Table,
    pub rounds: Rounds,
}

/// The numbers of repetitions.
#[derive(Debug, Clone, Copy)]
pub struct Rounds {
    /// Repetitions for pinion and for the plain programs.
    pub ours: usize,
    /// Repetitions for the reference agent, which takes longer.
    pub reference: usize,
    /// Time that the reference agent gets for tasks that it is known not to finish.
    pub give_up: Duration,
}

type Measure = fn(&mut Bench) -> Fallible<()>;

/// The measurements by name, in the order of the table.
pub const ALL: &[(&str, Measure)] = &[
    ("start", start::run),
    ("stream", stream::run),
    ("latest", latest::run),
    ("latency", latency::run),
    ("probe", probe::run),
    ("pause", pause::run),
    ("turns", turns::run),
    ("open", open::run),
    ("sessions", sessions::run),
    ("dialects", dialects::run),
    ("extensions", extensions::run),
    ("pinocchio", pinocchio::run),
    ("acp", acp::run),
    ("chat", chat::run),
    ("hub", hub::run),
    ("fleet", fleet::run),
];

impl Bench {
    fn home(&self) -> Fallible<Home> {
        Home::new(self.model.port)
    }

    /// Sets a scenario of this many deltas at full speed and returns their text.
    fn play_deltas(&self, count: usize) -> Fallible<String> {
        let text = json!({"delta": "token {i} ", "count": count});
        self.model.play(&one_turn(&json!({"text": text})))?;
        Ok((0..count)
            .map(|number| format!("token {number} "))
            .collect())
    }
}

/// Returns a scenario in which every request gets the same answer, sent as fast as it is read.
fn one_turn(step: &Value) -> Value {
    json!({"blind": true, "flush": "block", "on_exhausted": "repeat_last", "turns": [{"steps": [step]}]})
}

/// The line that starts a run.
const PROMPT: &str = r#"{"id":"go","type":"prompt","message":"Go"}"#;

/// The lines that a client receives while an answer streams.
#[derive(Debug, Default)]
struct Received {
    updates: usize,
    /// The lengths of all lines.
    lengths: Vec<u32>,
    /// All deltas, concatenated.
    text: Vec<u8>,
    /// The answer in the final message.
    answer: Option<String>,
    /// The run has ended.
    ended: bool,
}

impl Received {
    fn record(&mut self, line: &Line<'_>) {
        self.lengths
            .push(u32::try_from(line.length).unwrap_or(u32::MAX));
        if line.is_update() {
            self.updates += 1;
            self.text
                .extend_from_slice(line.delta().unwrap_or_default());
        } else if line.is("message_end") {
            let message: Value = serde_json::from_slice(line.head).unwrap_or_default();
            let message = &message["message"];
            if message["role"] == "assistant" {
                self.answer = message["content"][0]["text"].as_str().map(str::to_owned);
            }
        } else if line.is("agent_end") {
            self.ended = true;
        }
    }

    /// Reports whether the deltas and the final answer are both the whole text.
    fn complete(&self, expected: &str) -> bool {
        self.ended && self.answer.as_deref() == Some(expected) && self.text == expected.as_bytes()
    }
}

/// Formats 20000 as `20,000`.
fn thousands(number: usize) -> String {
    if number < 1000 {
        number.to_string()
    } else {
        format!("{},{:03}", number / 1000, number % 1000)
    }
}
