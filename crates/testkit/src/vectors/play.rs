//! Plays a recording: starts the program in its own sandbox, sends the recorded input, and stores the output.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::names::{Names, Places};
use super::project::{reduce, settle, shorten};
use super::{Recording, Traffic, provider};
use crate::{ModelServer, Process, Program, Sandbox};

/// Time that the next recorded line may take; recorded dialogs themselves wait up to ten seconds.
const LINE_TIMEOUT: Duration = Duration::from_secs(20);

/// The behaviour of the program, in the form of a recording.
#[derive(Debug)]
pub(super) struct Played {
    pub(super) out: Vec<Value>,
    /// The lines sent without a recording, each with the number of output lines before it.
    pub(super) sent: Vec<(usize, Traffic)>,
    pub(super) exit: Option<i64>,
    pub(super) provider: Vec<Value>,
    pub(super) stderr: String,
}

/// Time without output after which an exploration continues.
const QUIET_TIME: Duration = Duration::from_millis(700);

/// The condition for sending the next line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    /// All lines recorded before it have arrived.
    AsRecorded,
    /// No more output arrives; there is no recording yet.
    WhenQuiet,
}

pub(super) fn play(
    recording: &Recording,
    program: &Program,
    places: &Places,
    pace: Pace,
) -> Played {
    let server = ModelServer::start(json!({"directives": true}));
    let sandbox = sandbox(&server, &json!({}));
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
        sent: Vec::new(),
    };
    match pace {
        Pace::AsRecorded => session.follow(&recording.traffic),
        Pace::WhenQuiet => session.explore(&recording.traffic),
    }
    let exit = session.process.wait(LINE_TIMEOUT);
    session.process.drain(LINE_TIMEOUT);
    session.take_all();
    let Session {
        process,
        out,
        mut names,
        sent,
        ..
    } = session;
    let stderr = names.named_text(&process.stderr());
    Played {
        out: match pace {
            Pace::AsRecorded => settle(out),
            Pace::WhenQuiet => out,
        },
        sent,
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

/// Creates a sandbox with two models, `m1` and the reasoning `m2`, behind a server that follows directives in the
/// prompt.
pub fn sandbox(server: &ModelServer, settings: &Value) -> Sandbox {
    let mut all = json!({"defaultModel": "m1", "defaultThinkingLevel": null, "quietStartup": null});
    for (name, value) in settings.as_object().into_iter().flatten() {
        all[name] = value.clone();
    }
    let sandbox = Sandbox::with_settings(server.port(), &all);
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
    /// The number of output lines that have been processed.
    seen: usize,
    out: Vec<Value>,
    names: Names,
    sent: Vec<(usize, Traffic)>,
}

impl Session {
    /// Sends each line when all lines recorded before it have arrived. Stops at the first missing line, because later
    /// differences would hide it.
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
                        self.process.find(from, 1, LINE_TIMEOUT, begun);
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

    /// Sends each line when the program is quiet. Dialogs that are open then get the first possible answer.
    fn explore(&mut self, traffic: &[Traffic]) {
        for step in traffic {
            self.wait_until_quiet();
            while let Some(answer) = self.next_answer() {
                self.send_and_note(answer);
                self.wait_until_quiet();
            }
            match step {
                Traffic::In(line) => self.send_and_note(line.clone()),
                Traffic::EndOfInput => {
                    self.sent.push((self.out.len(), step.clone()));
                    self.process.close_stdin();
                }
                Traffic::Out(_) => {}
            }
        }
    }

    /// Waits until no more output arrives, and no run is due or active unless it waits for an answer.
    fn wait_until_quiet(&mut self) {
        loop {
            let held = (self.runs() || self.owes_an_answer()) && self.next_answer().is_none();
            let patience = if held { LINE_TIMEOUT } else { QUIET_TIME };
            if self
                .process
                .find(self.seen, 1, patience, |_| true)
                .is_none()
            {
                return;
            }
            self.take_all();
        }
    }

    /// Reports whether the last line is a request without a response.
    fn owes_an_answer(&self) -> bool {
        let Some((before, Traffic::In(line))) = self.sent.last() else {
            return false;
        };
        let answers = |told: &Value| told["type"] == "response" && told["id"] == line["id"];
        line["type"] != "extension_ui_response" && !self.out[*before..].iter().any(answers)
    }

    /// Reports whether a run has begun, or was requested, and has not ended.
    fn runs(&self) -> bool {
        let last = |kind: &str| self.out.iter().rposition(|line| line["type"] == kind);
        let asks = |step: &Traffic| match step {
            Traffic::In(line) => {
                let text = line["message"].as_str().unwrap_or("/");
                line["type"] == "prompt" && !text.starts_with('/')
            }
            _ => false,
        };
        let asked = self.sent.iter().rfind(|(_, step)| asks(step));
        let asked = asked.map(|(before, _)| *before);
        let begun = asked.max(last("agent_start"));
        begun.is_some_and(|begun| last("agent_end").is_none_or(|ended| ended < begun))
    }

    fn send_and_note(&mut self, line: Value) {
        let real = self.names.real(&line);
        self.process.send(&real);
        self.sent.push((self.out.len(), Traffic::In(line)));
        self.process.find(self.seen, 1, LINE_TIMEOUT, |_| true);
    }

    /// Returns an answer to the oldest dialog that has none.
    fn next_answer(&self) -> Option<Value> {
        let answered = |id: &Value| {
            let sent = |line: &Traffic| matches!(line, Traffic::In(line) if line["id"] == *id);
            self.sent.iter().any(|(_, line)| sent(line))
        };
        let (id, answer) = self.out.iter().find_map(|line| {
            let answer = match line["method"].as_str()? {
                "select" => json!({"value": line["options"][0]}),
                "confirm" => json!({"confirmed": true}),
                "input" => json!({"value": "some text"}),
                "editor" => json!({"value": "some edited text"}),
                _ => return None,
            };
            (!answered(&line["id"])).then(|| (line["id"].clone(), answer))
        })?;
        let mut line = json!({"type": "extension_ui_response", "id": id});
        for (name, value) in answer.as_object().into_iter().flatten() {
            line[name] = value.clone();
        }
        Some(line)
    }

    fn wait_for(&mut self, count: usize) -> bool {
        loop {
            self.take_all();
            if settle(self.out.clone()).len() >= count {
                return true;
            }
            if self
                .process
                .find(self.seen, 1, LINE_TIMEOUT, |_| true)
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

/// Returns the system prompt of the same program in the same directory without extensions. The server does not record
/// the request.
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
    process.wait(LINE_TIMEOUT);
    server.set_scenario(json!({"directives": true}));
    prompt.unwrap_or_default()
}
