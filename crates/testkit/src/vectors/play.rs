//! Plays a recording: starts the program in a sandbox of its own, sends what was sent, and keeps what came back.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::names::{Names, Places};
use super::project::{reduce, settle, shorten};
use super::{Recording, Traffic, provider};
use crate::{ModelServer, Process, Program, Sandbox};

/// How long the next recorded line may take; recorded dialogs wait up to ten seconds themselves.
const PATIENCE: Duration = Duration::from_secs(20);

/// What the program did, told as a recording tells it.
#[derive(Debug)]
pub(super) struct Played {
    pub(super) out: Vec<Value>,
    pub(super) exit: Option<i64>,
    pub(super) provider: Vec<Value>,
    pub(super) stderr: String,
}

pub(super) fn play(recording: &Recording, program: &Program, places: &Places) -> Played {
    let server = ModelServer::start(json!({"directives": true}));
    let sandbox = stage(&server);
    let names = Names::new(&sandbox, places);
    for (path, text) in &recording.files {
        let path = names.real_text(path);
        let path = Path::new(&path);
        let directory = path.parent().expect("a file has a directory");
        fs::create_dir_all(directory).expect("a directory in the sandbox");
        fs::write(path, text).expect("a file in the sandbox");
    }
    let args: Vec<String> = recording
        .args
        .iter()
        .map(|arg| names.real_text(arg))
        .collect();
    let wants_plain = |line: &Value| line.get("system_appended").is_some();
    let plain = recording
        .provider
        .iter()
        .any(wants_plain)
        .then(|| plain_system_prompt(program, &server, &sandbox, &args));

    let mut session = Session {
        process: program.start(&sandbox, &args),
        seen: 0,
        out: Vec::new(),
        names,
    };
    session.follow(&recording.traffic);
    let exit = session.process.wait(PATIENCE);
    session.process.drain(PATIENCE);
    session.take_all();
    let Session {
        process,
        out,
        mut names,
        ..
    } = session;
    let stderr = names.named_text(&process.stderr());
    Played {
        out: settle(out),
        exit: exit.map(|exit| i64::from(exit.number())),
        provider: provider::told(
            &server.requests(),
            &recording.provider,
            plain.as_deref(),
            &mut names,
        ),
        stderr,
    }
}

/// A sandbox with two models behind the scripted server.
fn stage(server: &ModelServer) -> Sandbox {
    let settings =
        json!({"defaultModel": "m1", "defaultThinkingLevel": null, "quietStartup": null});
    let sandbox = Sandbox::with_settings(server.port(), &settings);
    let model = |id: &str, reasoning: bool| {
        json!({"id": id, "name": id, "reasoning": reasoning, "input": ["text"], "contextWindow": 200_000,
            "maxTokens": 8192, "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}})
    };
    sandbox.add_agent_files(&json!({"models.json": {"providers": {"mock": {
        "baseUrl": format!("{}/v1", server.base_url()), "api": "openai-completions", "apiKey": "k",
        "models": [model("m1", false), model("m2", true)]}}}}));
    sandbox
}

struct Session {
    process: Process,
    /// How many lines of output have been looked at.
    seen: usize,
    out: Vec<Value>,
    names: Names,
}

impl Session {
    /// Sends each line when all that was recorded before it has come. Stops when something does not come: what follows
    /// would only hide the place where it went wrong.
    fn follow(&mut self, traffic: &[Traffic]) {
        let mut due = Vec::new();
        // A slow answer is interrupted after its first word, which the recordings do not show.
        let mut answering: Option<usize> = None;
        for step in traffic {
            match step {
                Traffic::Out(line) => due.push(line.clone()),
                Traffic::In(line) => {
                    if !self.wait_for(settle(due.clone()).len()) {
                        break;
                    }
                    if let Some(from) = answering.take() {
                        let begun = |line: &Value| line["type"] == "message_update";
                        self.process.find(from, 1, PATIENCE, begun);
                    }
                    let text = line["message"].as_str().unwrap_or_default();
                    answering = text.starts_with("SLOW ").then_some(self.seen);
                    let line = self.names.real(line);
                    self.process.send(&line);
                }
                Traffic::EndOfInput => {
                    self.wait_for(settle(due.clone()).len());
                    break;
                }
            }
        }
        self.process.close_stdin();
    }

    fn wait_for(&mut self, count: usize) -> bool {
        loop {
            self.take_all();
            if settle(self.out.clone()).len() >= count {
                return true;
            }
            if self
                .process
                .find(self.seen, 1, PATIENCE, |_| true)
                .is_none()
            {
                return false;
            }
        }
    }

    fn take_all(&mut self) {
        while let Some(line) = self.process.line(self.seen) {
            self.seen += 1;
            self.names.learn(&line.value);
            if let Some(kept) = reduce(&line.value) {
                let named = self.names.named(&kept);
                self.out.push(shorten(&named));
            }
        }
    }
}

/// The system prompt of the same program in the same place without extensions. Asking leaves no trace with the server.
fn plain_system_prompt(
    program: &Program,
    server: &ModelServer,
    sandbox: &Sandbox,
    args: &[String],
) -> String {
    let mut plain = Vec::new();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        if arg == "-e" {
            args.next();
        } else {
            plain.push(arg.clone());
        }
    }
    let mut process = program.start(sandbox, &plain);
    process.ask(json!({"type": "prompt", "message": "hi"}));
    process.expect(0, &json!({"type": "agent_end"}));
    let prompt = server.requests().first().map(provider::system_prompt);
    process.close_stdin();
    process.wait(PATIENCE);
    server.set_scenario(json!({"directives": true}));
    prompt.unwrap_or_default()
}
