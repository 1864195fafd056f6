//! A model server, a sandbox and a program put together: the usual start of a whole-program test.

use std::process::Command;

use serde_json::{Value, json};

use crate::{ModelServer, Process, Program, Sandbox};

/// Everything a whole-program test needs.
#[derive(Debug)]
pub struct Stage {
    /// Answers with the turns of the scenario.
    pub server: ModelServer,
    /// The environment of the program.
    pub sandbox: Sandbox,
    /// The program under test.
    pub program: Program,
}

impl Stage {
    /// Creates a stage whose model follows the scenario; see [`crate::model`].
    pub fn new(program: impl AsRef<std::ffi::OsStr>, scenario: Value) -> Self {
        Self::with_settings(program, scenario, json!({}))
    }

    /// Like [`Stage::new`], with other settings.
    pub fn with_settings(
        program: impl AsRef<std::ffi::OsStr>,
        scenario: Value,
        settings: Value,
    ) -> Self {
        let server = ModelServer::start(scenario);
        let sandbox = Sandbox::with_settings(server.port(), &settings);
        Self {
            server,
            sandbox,
            program: Program::new(program),
        }
    }

    /// Starts the program in RPC mode.
    pub fn start(&self, args: &[&str]) -> Process {
        Process::start(self.command(args))
    }

    /// Returns the command behind [`Stage::start`], for changes before it is spawned.
    pub fn command(&self, args: &[&str]) -> Command {
        let args: Vec<String> = ["--mode", "rpc"]
            .iter()
            .chain(args)
            .map(|a| (*a).into())
            .collect();
        self.program.command(&self.sandbox, &args)
    }
}
