//! The agents that are measured, and their command lines.

use std::path::PathBuf;
use std::process::Command;

use crate::Fallible;
use crate::home::Home;
use crate::process::Process;

/// A program that speaks the protocol.
#[derive(Debug, Clone)]
pub struct Agent {
    command: Vec<PathBuf>,
    /// The name in the table.
    pub name: String,
}

impl Agent {
    /// Creates an agent with this command line.
    pub fn new(name: &str, command: Vec<PathBuf>) -> Self {
        Self {
            command,
            name: name.to_owned(),
        }
    }

    /// Returns the same agent with one more argument.
    pub fn with(&self, argument: &str) -> Self {
        let mut agent = self.clone();
        agent.command.push(argument.into());
        agent.name = format!("{} {argument}", self.name);
        agent
    }

    /// Returns the program without its arguments.
    pub fn program(&self) -> Fallible<&PathBuf> {
        Ok(self.command.first().ok_or("an agent without a program")?)
    }

    /// Starts the agent in `home`.
    pub fn start(&self, home: &Home, arguments: &[&str]) -> Fallible<Process> {
        let (program, first) = self
            .command
            .split_first()
            .ok_or("an agent without a program")?;
        let mut command = Command::new(program);
        // An interpreter's script comes before the mode; pinion's flags may come after it.
        command.args(first.iter().take_while(|part| !is_flag(part)));
        command.args(["--mode", "rpc"]);
        command.args(first.iter().skip_while(|part| !is_flag(part)));
        command.args(arguments);
        home.apply_to(&mut command);
        Process::start(&mut command)
    }

    /// Starts the agent and waits until it answers.
    pub fn start_ready(&self, home: &Home, arguments: &[&str]) -> Fallible<Process> {
        let mut process = self.start(home, arguments)?;
        process.ask("ready", "get_state")?;
        Ok(process)
    }
}

fn is_flag(part: &std::path::Path) -> bool {
    part.to_string_lossy().starts_with("--")
}

/// All agents of a run.
#[derive(Debug)]
pub struct Agents {
    pub pinion: Agent,
    /// The reference agent, if it could be installed.
    pub pi: Option<Agent>,
    /// The newest recorded release of the reference agent with its version, if it could be installed.
    pub latest: Option<(String, Agent)>,
}

impl Agents {
    /// Returns pinion, and the reference if there is one.
    pub fn both(&self) -> impl Iterator<Item = &Agent> {
        std::iter::once(&self.pinion).chain(&self.pi)
    }
}
