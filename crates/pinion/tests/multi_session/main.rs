//! Several sessions in one process: each line reaches the session it names, each event names its session, and sessions
//! do not affect each other.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

#[path = "../support/mod.rs"]
mod support;

mod apart;
mod endings;
mod memory;
mod routing;

use pinion_testkit::Sandbox;
use pinion_testkit::schema::Schema;
use serde_json::{Value, json};

use crate::support::{Client, check_runs, offline_sandbox};

const ARGUMENTS: &[&str] = &[
    "--mode",
    "rpc",
    "--multi-session",
    "--model",
    "offline/demo",
];

/// A client of several sessions.
struct MultiSession(Client);

impl MultiSession {
    fn start() -> Self {
        Self::with(offline_sandbox(&json!({})), &[])
    }

    fn with(sandbox: Sandbox, more: &[&str]) -> Self {
        Self(Client::start(sandbox, &[ARGUMENTS, more].concat()))
    }

    fn ask(&mut self, command: Value) -> Value {
        self.0.process.ask(command)
    }

    /// Sends a command that must succeed and returns its data.
    fn data(&mut self, command: Value) -> Value {
        assert_eq!(Schema::PiSessions.input_complaint(&command), None);
        let answer = self.ask(command);
        assert_eq!(answer["success"], true, "{answer}");
        assert_eq!(Schema::PiSessions.complaint(&answer), None);
        answer["data"].clone()
    }

    /// Sends a command that must fail and returns the error.
    fn refusal(&mut self, command: Value) -> String {
        let answer = self.ask(command);
        assert_eq!(answer["success"], false, "{answer}");
        assert_eq!(Schema::PiSessions.complaint(&answer), None);
        answer["error"].as_str().unwrap().to_owned()
    }

    /// Opens a session and returns its id.
    fn open(&mut self, mut command: Value) -> String {
        command["type"] = json!("open_session");
        let data = self.data(command);
        data["sessionId"].as_str().unwrap().to_owned()
    }

    fn prompt(&mut self, session: &str, text: &str) -> usize {
        let from = self.0.process.line_count();
        self.data(json!({"type": "prompt", "sessionId": session, "message": text}));
        from
    }

    fn wait_end(&self, session: &str, from: usize) -> Vec<Value> {
        let pattern = json!({"type": "agent_end", "sessionId": session});
        let at = self.0.wait_for(from, &pattern);
        let line = self.0.line(at);
        line["messages"].as_array().cloned().unwrap_or_default()
    }

    /// Returns all lines of a session.
    fn lines_of(&self, session: &str) -> Vec<Value> {
        let lines = self.0.lines().into_iter();
        lines.filter(|line| line["sessionId"] == session).collect()
    }

    /// Checks that the lines of a session are a whole conversation and returns the number of its runs.
    fn runs_of(&self, session: &str) -> usize {
        check_runs(&self.lines_of(session)).unwrap()
    }

    fn listed(&mut self) -> Vec<Value> {
        let data = self.data(json!({"type": "list_sessions"}));
        data["sessions"].as_array().cloned().unwrap()
    }
}

/// Returns the text of the last answer.
fn last_text(messages: &[Value]) -> &str {
    messages.last().unwrap()["content"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("{messages:?}"))
}
