//! A directory for plans, and the result of a run.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use pinion_testkit::{ModelServer, Program, Sandbox};
use serde_json::{Value, json};

use crate::support::{HANG, offline_sandbox, pinion};

/// The directory in which fleets run.
pub struct Stage {
    pub sandbox: Sandbox,
    pub program: Program,
    /// The model server on loopback, if children use one.
    pub server: Option<ModelServer>,
}

/// The result of a fleet.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    pub directory: PathBuf,
}

impl Stage {
    /// Creates a stage with the built-in model only.
    pub fn offline() -> Self {
        Self {
            sandbox: offline_sandbox(&json!({})),
            program: pinion(),
            server: None,
        }
    }

    /// Creates a stage with a model on loopback that answers as the scenario describes.
    pub fn mock(scenario: Value) -> Self {
        let server = ModelServer::start(scenario);
        Self {
            sandbox: Sandbox::new(server.port()),
            program: pinion(),
            server: Some(server),
        }
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.sandbox.work().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn run_dir(&self) -> PathBuf {
        self.sandbox.work().join("run")
    }

    /// Returns the command, with all streams piped.
    pub fn command(&self, args: &[&str]) -> Command {
        let args: Vec<String> = args.iter().map(ToString::to_string).collect();
        let mut command = self.program.command(&self.sandbox, &args);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Starts a plan with an empty standard input.
    pub fn start(&self, plan: &str, more: &[&str]) -> Child {
        self.write("plan.yaml", plan);
        let directory = self.run_dir().display().to_string();
        let mut args = vec!["fleet", "run", "plan.yaml", "--run-dir", &directory];
        args.extend(more);
        let mut child = self.command(&args).spawn().unwrap();
        drop(child.stdin.take());
        child
    }

    /// Runs a plan to its end.
    pub fn run(&self, plan: &str) -> Ran {
        self.run_with(plan, "", &[])
    }

    pub fn run_with(&self, plan: &str, input: &str, more: &[&str]) -> Ran {
        self.write("plan.yaml", plan);
        let directory = self.run_dir().display().to_string();
        let mut args = vec!["fleet", "run", "plan.yaml", "--run-dir", &directory];
        args.extend(more);
        self.finish(self.command(&args), input.as_bytes())
    }

    /// Runs any command to its end.
    pub fn finish(&self, mut command: Command, input: &[u8]) -> Ran {
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
        let ran = self.wait(child);
        writer.join().unwrap();
        ran
    }

    pub fn wait(&self, child: Child) -> Ran {
        let output = child.wait_with_output().unwrap();
        Ran {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            directory: self.run_dir(),
        }
    }

    /// Runs a verb of `fleet`.
    pub fn verb(&self, args: &[&str]) -> Ran {
        let mut all = vec!["fleet"];
        all.extend(args);
        self.finish(self.command(&all), b"")
    }
}

impl Ran {
    pub fn report(&self) -> Value {
        let text = fs::read(self.directory.join("report.json"))
            .unwrap_or_else(|error| panic!("no report: {error}\n{}", self.stderr));
        serde_json::from_slice(&text).unwrap()
    }

    pub fn child(&self, name: &str) -> Value {
        let report = self.report();
        let children = report["children"].as_array().unwrap();
        children
            .iter()
            .find(|child| child["name"] == name)
            .cloned()
            .unwrap_or_else(|| panic!("no {name} in {report:#}"))
    }

    pub fn events(&self) -> Vec<Value> {
        events(&self.directory)
    }

    pub fn log(&self, name: &str) -> Vec<u8> {
        fs::read(self.directory.join("children").join(name)).unwrap()
    }
}

/// Returns the readable part of a run's journal.
pub fn events(directory: &Path) -> Vec<Value> {
    let text = fs::read_to_string(directory.join("events.jsonl")).unwrap_or_default();
    text.lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

/// Returns the line of a plan for a child that is a shell script.
pub fn script(name: &str, body: &str) -> String {
    script_as("jsonl", name, body)
}

/// Returns the line of a plan for a script that prints the lines of `agent`.
pub fn script_as(agent: &str, name: &str, body: &str) -> String {
    let command = json!(["bash", "-c", body]);
    format!("  - {{ name: {name}, agent: {agent}, prompt: go, command: {command} }}\n")
}

/// Waits until the condition is true.
pub fn wait_until(what: &str, mut so: impl FnMut() -> bool) {
    let end = std::time::Instant::now() + HANG;
    while !so() {
        assert!(std::time::Instant::now() < end, "{what} never happened");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Reports whether a process exists and is not a zombie.
pub fn is_alive(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')')
        .is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}
