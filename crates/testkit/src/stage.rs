//! A model server, a sandbox and a program put together: the usual start of a whole-program test.

use std::process::Command;

use serde_json::{Value, json};

use crate::{ModelServer, Process, Program, Sandbox};

/// Everything a whole-program test needs.
#[derive(Debug)]
pub struct Stage {
    /// Answers as the scenario says.
    pub server: ModelServer,
    /// Where the program runs.
    pub sandbox: Sandbox,
    /// The program under test.
    pub program: Program,
}

impl Stage {
    /// A stage on which the model answers as the scenario says; see [`crate::model`].
    pub fn new(program: impl AsRef<std::ffi::OsStr>, scenario: Value) -> Self {
        Self::with_settings(program, scenario, json!({}))
    }

    /// The same with settings of its own.
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

    /// The command behind [`Stage::start`], to be changed before it is spawned.
    pub fn command(&self, args: &[&str]) -> Command {
        let args: Vec<String> = ["--mode", "rpc"]
            .iter()
            .chain(args)
            .map(|a| (*a).into())
            .collect();
        self.program.command(&self.sandbox, &args)
    }
}
