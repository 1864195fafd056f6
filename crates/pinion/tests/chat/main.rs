//! The chat in a real terminal: tmux is the terminal, keys are typed, and the screen is read.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail loudly"
)]

mod asking;
mod conversation;
mod endings;
mod lists;
mod plain;
mod screens;

use pinion_testkit::{ModelServer, Sandbox, Tmux};
use serde_json::Value;

/// A model server, a sandbox, and a shell in a terminal.
struct Room {
    server: ModelServer,
    sandbox: Sandbox,
    terminal: Tmux,
}

impl Room {
    fn new(scenario: Value) -> Self {
        Self::sized(scenario, 80, 24)
    }

    fn sized(scenario: Value, columns: u16, rows: u16) -> Self {
        let server = ModelServer::start(scenario);
        let sandbox = Sandbox::new(server.port());
        let terminal = Tmux::shell(&sandbox, columns, rows);
        let room = Self {
            server,
            sandbox,
            terminal,
        };
        room.terminal.wait_for("$");
        room
    }

    /// Starts the program from the shell and waits until it accepts input.
    fn chat(&self, arguments: &str) -> &Tmux {
        self.start(arguments);
        self.terminal.wait_for("Ctrl-G help");
        &self.terminal
    }

    fn start(&self, arguments: &str) {
        let program = env!("CARGO_BIN_EXE_pinion");
        self.terminal
            .run(&format!("{program} {arguments}; echo ended with $?"));
    }
}

/// Returns a turn that answers with this text.
fn says(text: &str) -> Value {
    serde_json::json!({"steps": [{"text": text}]})
}
