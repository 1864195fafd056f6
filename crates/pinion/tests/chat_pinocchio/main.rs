//! The chat on a command, in a real terminal, and the content of its databases afterwards.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail loudly"
)]

mod conversations;
mod endings;
mod questions;

use std::fs;
use std::path::PathBuf;

use pinion_testkit::{ModelServer, Sandbox, Tmux};
use rusqlite::Connection;
use serde_json::{Value, json};

/// A command whose first prompt is its argument, if there is one.
const SAY: &str = "name: say\nflags:\n  - name: what\n    type: string\n    default: \"\"\nsystem-prompt: Be brief.\nprompt: \"{{ .what }}\"\n";

/// The options that store a conversation in session `s`.
const KEPT: &str = "--session-id s --turns-db turns.db --timeline-db timeline.db";

/// A model server, a home with a command, and a shell in a terminal.
struct Room {
    server: ModelServer,
    sandbox: Sandbox,
    terminal: Tmux,
}

impl Room {
    /// Creates a room whose model answers with `turns`.
    fn new(turns: Value) -> Self {
        let server = ModelServer::start(json!({ "turns": turns }));
        let sandbox = Sandbox::new(server.port());
        sandbox.add_files(&json!({ "say.yaml": SAY }));
        let profiles = json!({"slug": "local", "profiles": {"quick": {"slug": "quick",
        "inference_settings": {
            "api": {
                "api_keys": {"openai-api-key": "a-secret-key"},
                "base_urls": {"openai-base-url": format!("{}/v1", server.base_url())},
                "allow_http": {"openai": true},
                "allow_local_networks": {"openai": true},
            },
            "chat": {"engine": "some-model", "api_type": "openai"},
        }}}});
        let directory = sandbox.home().join(".config/pinocchio");
        fs::create_dir_all(&directory).unwrap();
        // JSON is YAML.
        fs::write(directory.join("profiles.yaml"), profiles.to_string()).unwrap();
        let terminal = Tmux::shell(&sandbox, 100, 30);
        terminal.wait_for("$");
        Self {
            server,
            sandbox,
            terminal,
        }
    }

    /// Runs the command from the shell.
    fn start(&self, arguments: &str) {
        let program = env!("CARGO_BIN_EXE_pinion");
        self.terminal.run(&format!(
            "{program} run-command say.yaml {arguments}; echo ended with $?"
        ));
    }

    /// Opens the chat and waits until it accepts input.
    fn chat(&self, arguments: &str) {
        self.start(&format!("--chat {arguments}"));
        self.terminal.wait_for("profile: quick");
    }

    /// Sends a prompt and waits until the screen shows the answer.
    fn say(&self, text: &str, answer: &str) {
        self.terminal.say(text);
        self.terminal.wait_for(answer);
        self.idle();
    }

    /// Waits until no answer is in progress.
    fn idle(&self) {
        self.terminal.wait_for("Ctrl-G help");
    }

    /// Leaves the chat and returns the screen of the shell.
    fn leave(&self) -> String {
        self.terminal.press(&["C-d"]);
        self.terminal.wait_for("ended with")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.sandbox.work().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    fn turns(&self) -> Connection {
        Connection::open(self.path("turns.db")).unwrap()
    }

    fn timeline(&self) -> Connection {
        Connection::open(self.path("timeline.db")).unwrap()
    }

    /// Returns the number of stored snapshots of the conversation in a phase.
    fn kept(&self, phase: &str) -> i64 {
        number(
            &self.turns(),
            &format!(
                "SELECT count(DISTINCT snapshot_created_at_ms) FROM turn_block_membership WHERE phase = '{phase}' AND conv_id = 's' AND session_id = 's'"
            ),
        )
    }

    /// Returns the messages of the last request to the model, as `role: text`.
    fn told(&self) -> Vec<String> {
        let requests = self.server.requests();
        let request = requests.last().expect("the model was asked");
        let messages = request["body"]["messages"].as_array().cloned();
        let text = |content: &Value| match content {
            Value::Array(parts) => {
                let texts = parts.iter().filter_map(|part| part["text"].as_str());
                texts.collect::<Vec<_>>().join("\n")
            }
            other => other.as_str().unwrap_or_default().to_owned(),
        };
        let messages = messages.unwrap_or_default();
        let outline = |message: &Value| {
            let role = message["role"].as_str().unwrap_or_default();
            format!("{role}: {}", text(&message["content"]))
        };
        messages.iter().map(outline).collect()
    }
}

/// Returns the one number that a query selects.
fn number(database: &Connection, query: &str) -> i64 {
    database.query_row(query, [], |row| row.get(0)).unwrap()
}

/// Returns a turn that answers with this text.
fn says(text: &str) -> Value {
    json!({"steps": [{"text": text}]})
}

/// Returns a turn that starts an answer and never ends it.
fn lingers(text: &str) -> Value {
    json!({"steps": [{"text": text}, {"stall": true}]})
}

/// Returns the kinds of the frames in a file, without events.
fn kinds(frames: &str) -> Vec<String> {
    let kinds = ["hello", "snapshot", "error", "done"];
    let frames = frames
        .lines()
        .map(|line| -> Value { serde_json::from_str(line).unwrap() });
    frames
        .filter_map(|frame| kinds.iter().find(|kind| !frame[**kind].is_null()).copied())
        .map(str::to_owned)
        .collect()
}
