//! Plays a case against a program. Problems are recorded instead of raised, so that the recording of a failed run can
//! still be inspected and compared.

use std::collections::HashMap;
use std::time::{Duration, Instant};
use std::{fs, mem, thread};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::pattern::{dig, fill, fill_text, fits};
use super::{Await, Case, Intent, Reach, Recording, Sent, Step};
use crate::{Exit, ModelServer, Process, Program, Sandbox};

/// The reaction to a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextStep {
    Continue,
    Stop,
}

struct Run<'a> {
    case: &'a Case,
    program: Program,
    server: ModelServer,
    sandbox: Sandbox,
    names: HashMap<String, String>,
    process: Process,
    /// Lines of earlier processes and what the runner did, with their times.
    past: Vec<(Instant, Value)>,
    /// The start of the next search in the lines of the current process.
    position: usize,
    requests_seen: usize,
    never: Vec<(String, usize, Value)>,
    problems: Vec<String>,
    input: Vec<Sent>,
    stderr: String,
}

/// Plays the case and returns everything seen.
pub fn run(case: &Case, program: &Program) -> Recording {
    let server = ModelServer::start(json!({}));
    let sandbox = Sandbox::with_settings(server.port(), &case.settings);
    let text = |path: &std::path::Path| path.to_string_lossy().into_owned();
    let names = HashMap::from([
        ("ROOT".to_owned(), text(sandbox.root())),
        ("CWD".to_owned(), text(&sandbox.work())),
        ("HOME".to_owned(), text(&sandbox.home())),
        ("AGENT_DIR".to_owned(), text(&sandbox.agent())),
        ("PORT".to_owned(), server.port().to_string()),
    ]);
    server.set_scenario(fill(&case.scenario, &names));
    sandbox.add_files(&fill(&case.files, &names));
    sandbox.add_agent_files(&fill(&case.agent_files, &names));
    sandbox.add_base64_files(&case.files_base64);
    let mut program = program.clone();
    program.environment.extend(case.env.iter().cloned());
    let process = start(&program, &sandbox, &case.args, &names);
    Run {
        case,
        program,
        server,
        sandbox,
        names,
        process,
        past: Vec::new(),
        position: 0,
        requests_seen: 0,
        never: Vec::new(),
        problems: Vec::new(),
        input: Vec::new(),
        stderr: String::new(),
    }
    .play()
}

fn start(
    program: &Program,
    sandbox: &Sandbox,
    args: &[String],
    names: &HashMap<String, String>,
) -> Process {
    let args: Vec<String> = args.iter().map(|arg| fill_text(arg, names)).collect();
    program.start(sandbox, &args)
}

impl Run<'_> {
    fn play(mut self) -> Recording {
        for placed in &self.case.steps {
            if self.take(&placed.place, &placed.step) == NextStep::Stop {
                break;
            }
        }
        self.finish();
        thread::sleep(self.case.collect_delay);
        self.record()
    }

    fn take(&mut self, place: &str, step: &Step) -> NextStep {
        match step {
            Step::Send(value) => self.process.send(&fill(value, &self.names)),
            Step::SendText(text) => self.send_text(place, text, Intent::Command),
            Step::SendWrong(text) => self.send_text(place, text, Intent::Wrong),
            Step::Await(awaited) => return self.wait_for(place, awaited),
            Step::Never(pattern) => {
                let pattern = fill(pattern, &self.names);
                self.never.push((place.to_owned(), self.position, pattern));
            }
            Step::ModelSees(pattern) => return self.model_sees(place, pattern),
            Step::Delay(time) => thread::sleep(*time),
            Step::Release(gate) => self.server.release(gate),
            Step::CloseStdin => {
                self.note(json!({"event": "close_stdin"}));
                self.process.close_stdin();
            }
            Step::Signal(signal) => {
                self.note(json!({"event": signal.as_str()}));
                self.process.signal(*signal);
            }
            Step::WaitExit(time, expected) => return self.wait_exit(place, *time, *expected),
            Step::Restart(args) => self.restart(args.as_deref()),
            Step::WriteFiles(files) => self.sandbox.add_files(&fill(files, &self.names)),
            Step::FileHas(name, pattern) => {
                let text = fs::read_to_string(self.sandbox.work().join(name));
                let found = text.map_or(Value::Null, Value::String);
                if !fits(&fill(pattern, &self.names), &found) {
                    self.problem(
                        place,
                        format!("{name} should hold {pattern} and holds {found}"),
                    );
                    return NextStep::Stop;
                }
            }
        }
        NextStep::Continue
    }

    fn send_text(&mut self, place: &str, text: &str, intent: Intent) {
        let text = fill_text(text, &self.names);
        self.process.send_text(&text);
        self.input.push(Sent {
            place: place.to_owned(),
            text,
            intent,
        });
    }

    fn wait_for(&mut self, place: &str, awaited: &Await) -> NextStep {
        let pattern = fill(&awaited.pattern, &self.names);
        let from = if awaited.reach == Reach::FromStart {
            0
        } else {
            self.position
        };
        let patience = awaited.patience.unwrap_or(self.case.patience);
        let found = match awaited.reach {
            Reach::Adjacent => self.process.find(from, 1, patience, |_| true).filter(|at| {
                self.process
                    .line(*at)
                    .is_some_and(|l| fits(&pattern, &l.value))
            }),
            _ => self
                .process
                .find(from, awaited.count, patience, |line| fits(&pattern, line)),
        };
        let Some(at) = found else {
            let times = if awaited.count > 1 {
                format!(" ({} times)", awaited.count)
            } else {
                String::new()
            };
            self.problem(
                place,
                format!("no line fits {pattern}{times}{}", self.seen_since(from)),
            );
            return if awaited.optional {
                NextStep::Continue
            } else {
                NextStep::Stop
            };
        };
        if awaited.reach != Reach::Peek {
            self.position = self.position.max(at + 1);
        }
        let line = self.process.line(at).expect("a line that was found").value;
        for (name, path) in &awaited.remember {
            match dig(&line, path) {
                Some(Value::String(text)) => self.names.insert(name.clone(), text.clone()),
                Some(other) => self.names.insert(name.clone(), other.to_string()),
                None => {
                    self.problem(place, format!("there is no {path} in {line}"));
                    None
                }
            };
        }
        NextStep::Continue
    }

    fn model_sees(&mut self, place: &str, pattern: &Value) -> NextStep {
        let wanted = self.requests_seen + 1;
        if !self.server.wait_for_requests(wanted, self.case.patience) {
            self.problem(place, "the model was not asked".into());
            return NextStep::Stop;
        }
        self.requests_seen = wanted;
        let body = self.server.requests()[wanted - 1]["body"].clone();
        if fits(&fill(pattern, &self.names), &body) {
            return NextStep::Continue;
        }
        self.problem(
            place,
            format!("the model should see {pattern} and saw {body}"),
        );
        NextStep::Stop
    }

    fn wait_exit(&mut self, place: &str, time: Duration, expected: Option<Exit>) -> NextStep {
        match (self.process.wait(time), expected) {
            (None, _) => self.problem(place, format!("no exit within {time:?}")),
            (Some(exit), Some(expected)) if exit != expected => {
                self.problem(place, format!("exit was {exit:?}, expected {expected:?}"));
            }
            _ => return NextStep::Continue,
        }
        if expected.is_some() {
            NextStep::Stop
        } else {
            NextStep::Continue
        }
    }

    fn restart(&mut self, args: Option<&[String]>) {
        self.finish();
        let noted: Vec<&String> = match args {
            Some(args) => args.iter().collect(),
            None => self
                .case
                .args
                .iter()
                .skip(self.case.leading_args.len())
                .collect(),
        };
        self.note(json!({"event": "restart", "args": noted}));
        let args: Vec<String> = match args {
            Some(args) => self.case.leading_args.iter().chain(args).cloned().collect(),
            None => self.case.args.clone(),
        };
        self.process = start(&self.program, &self.sandbox, &args, &self.names);
        self.position = 0;
    }

    /// Ends the current process, gracefully if possible, and stores its lines.
    fn finish(&mut self) {
        self.process.close_stdin();
        let mut after = "eof";
        let mut exit = self.process.wait(self.case.exit_patience);
        if exit.is_none() {
            after = "sigterm";
            self.process.signal(Signal::SIGTERM);
            exit = self.process.wait(Duration::from_secs(4));
        }
        if exit.is_none() {
            after = "sigkill";
            exit = self.process.kill_group();
        }
        self.process.drain(Duration::from_secs(2));
        let lines = self.process.lines();
        for (place, from, pattern) in mem::take(&mut self.never) {
            if let Some(line) = lines.iter().skip(from).find(|l| fits(&pattern, &l.value)) {
                self.problem(&place, format!("a line fits {pattern}: {}", line.value));
            }
        }
        self.past
            .extend(lines.into_iter().map(|line| (line.at, line.value)));
        self.stderr.push_str(&self.process.stderr());
        self.note(json!({"event": "exit", "code": exit.map(Exit::number), "after": after}));
    }

    fn note(&mut self, event: Value) {
        self.past
            .push((Instant::now(), json!({"__harness": event})));
    }

    fn problem(&mut self, place: &str, what: String) {
        self.problems.push(format!("{place}: {what}"));
    }

    /// Returns the last lines after a position, truncated, for a problem report.
    fn seen_since(&self, from: usize) -> String {
        let lines = self.process.lines();
        let seen = &lines[from.min(lines.len())..];
        let shown = seen.len().min(12);
        let mut out = format!("; {} lines came since the last match", seen.len());
        for line in &seen[seen.len() - shown..] {
            let text: String = line.value.to_string().chars().take(200).collect();
            out.push_str("\n      ");
            out.push_str(&text);
        }
        let stderr = self.process.stderr();
        if !stderr.is_empty() {
            out.push_str("\n    and on standard error:\n      ");
            out.push_str(&stderr.trim_end().replace('\n', "\n      "));
        }
        out
    }

    fn record(mut self) -> Recording {
        self.past.sort_by_key(|(at, _)| *at);
        let sessions = self
            .sandbox
            .session_files()
            .into_iter()
            .map(|(name, path)| {
                let bytes = fs::read(path).unwrap_or_default();
                let text = String::from_utf8_lossy(&bytes);
                let lines = text.split('\n').filter(|line| !line.trim().is_empty());
                (name, lines.map(parse).collect())
            })
            .collect();
        let mut files = json!({});
        for name in &self.case.collect {
            let bytes = fs::read(self.sandbox.work().join(name)).ok();
            files[name] = json!(bytes.map(|b| String::from_utf8_lossy(&b).into_owned()));
        }
        let lines = self.past.iter().map(|(_, value)| value);
        let promised = self.case.schema.or(self.program.promises);
        let broken_promises = promised.map_or_else(Vec::new, |schema| schema.complaints(lines));
        Recording {
            problems: self.problems,
            broken_promises,
            input: self.input,
            output: self.past.into_iter().map(|(_, value)| value).collect(),
            requests: self.server.requests(),
            sessions,
            stderr: self.stderr,
            files,
            root: self.sandbox.root().to_owned(),
            port: self.server.port(),
        }
    }
}

fn parse(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|_| json!({"__unparsed": line}))
}
