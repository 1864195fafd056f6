//! Cases as text files, written to be read by people who know the protocol and not this runner.
//!
//! ```text
//! about: A prompt is answered before the run begins, and the run ends once.
//! answer: "Hello there, friend."
//! ---
//! # Lines with > are what the client writes, lines with < what it waits for.
//! > {"id": "p1", "type": "prompt", "message": "Say hello."}
//! < {"type": "response", "id": "p1", "success": true}
//! < {"type": "agent_end"}
//! never {"type": "agent_end"}
//! ```
//!
//! Above `---` stands how the program is started and how the model answers:
//!
//! | line | meaning |
//! |---|---|
//! | `about: …` | what the transcript shows, in a sentence |
//! | `dialect: modern` | what the client speaks: `--rpc-dialect` on the command line; classic if left out |
//! | `run: --mode rpc --no-session` | the command line; `--mode rpc` if left out |
//! | `settings: {…}` | laid over the settings of the sandbox |
//! | `env: NAME=value` | added to the environment |
//! | `file NAME:`, `agent file NAME:` | a file in the working or agent directory; its text follows, indented |
//! | `answer: …` | the next answer of the model: a text, a list of steps, or a whole turn ([`crate::model`]) |
//! | `pace: 5 ms` | pause between two events of the model |
//! | `scenario: {…}` | other fields of the scenario, and more turns |
//! | `patience: 30 s` | how long to wait for a line |
//!
//! Below it stands what happens, in order:
//!
//! | line | meaning |
//! |---|---|
//! | `> text` | the client writes this line, a command as in the schema of its dialect |
//! | `>! text` | the client writes this line, which is none |
//! | `< {…}` | wait for a line with these fields; others before it are passed over |
//! | `< 3x {…}` | wait for the third such line |
//! | `<< {…}` | the very next line has these fields |
//! | `remember NAME = data.path.0.id` | keep a value of the line just waited for; `${NAME}` puts it in |
//! | `never {…}` | from here to the end of the process no such line comes |
//! | `model sees {…}` | the next request to the model has a body with these fields |
//! | `file NAME has "…text…"` | a file of the working directory holds this text; null: there is none |
//! | `write {"NAME": …}` | writes files into the working directory |
//! | `open GATE` | releases the model that waits at `{"gate": "GATE"}` |
//! | `wait 200 ms` | does nothing for a while |
//! | `close input`, `signal SIGTERM` | closes standard input, sends the signal |
//! | `exits 0`, `exits by SIGTERM` | wait for the exit, with this status |
//! | `restart`, `restart --mode rpc --continue` | end the program and start it again in the same place |
//!
//! In patterns, `…` stands for any text, and `"…"` for any value, or for the rest of a list. An indented
//! line continues the one above it; `#` begins a comment line. `${CWD}`, `${HOME}`, `${AGENT_DIR}` and `${PORT}`
//! are known from the start. Every line the program prints is as in the schema. Without `exits` the program must
//! exit with 0 when its input ends.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Await, Case, Intent, Placed, Reach, Sent, Step, run};
use crate::schema::{Schema, of_input, of_output};
use crate::{Exit, Program, Signal};

/// Plays the transcript in a file; the error is a report for people.
pub fn check(path: &Path, program: &Program) -> Result<(), String> {
    check_text(&name(path), &read(path)?, program)
}

/// Plays a transcript given as text.
pub fn check_text(name: &str, text: &str, program: &Program) -> Result<(), String> {
    let mut case = parse(text).map_err(|error| format!("{name}: {error}"))?;
    case.name = name.to_owned();
    let states_exit = case
        .steps
        .iter()
        .any(|p| matches!(p.step, Step::WaitExit(..)));
    let schema = case.schema.or(program.promises);
    let recording = run(&case, program);
    let mut problems = recording.problems;
    problems.extend(recording.broken_promises);
    if let Some(schema) = schema {
        let complaints = recording
            .input
            .iter()
            .filter_map(|sent| misuse(schema, sent));
        problems.extend(complaints);
    }
    let last = recording
        .output
        .last()
        .map_or(&Value::Null, |line| &line["__harness"]);
    if problems.is_empty() && !states_exit && (last["code"] != 0 || last["after"] != "eof") {
        problems.push(format!(
            "end: it should exit with 0 when its input ends, and did: {last}"
        ));
    }
    if problems.is_empty() {
        return Ok(());
    }
    Err(format!("{name}: {}", problems.join("\n  ")))
}

/// The lines that a transcript writes and waits for.
#[derive(Debug)]
pub struct Shown {
    /// The schema of its lines, if it is not that of the program.
    pub schema: Option<Schema>,
    /// The kinds of its lines; see [`Schema::kinds`].
    pub kinds: BTreeSet<String>,
}

/// Returns what the transcript in a file shows, without playing it.
pub fn shown(path: &Path) -> Result<Shown, String> {
    let case = parse(&read(path)?).map_err(|error| format!("{}: {error}", name(path)))?;
    let mut kinds = BTreeSet::new();
    let mut commands: BTreeMap<String, Value> = BTreeMap::new();
    for Placed { step, .. } in &case.steps {
        match step {
            Step::SendText(text) => {
                let line: Value = serde_json::from_str(text).unwrap_or_default();
                kinds.insert(of_input(&line));
                if !line["id"].is_null() {
                    commands.insert(line["id"].to_string(), line["type"].clone());
                }
            }
            Step::Await(awaited) => kinds.extend(of_pattern(&awaited.pattern, &commands)),
            _ => {}
        }
    }
    Ok(Shown {
        schema: case.schema,
        kinds,
    })
}

/// Returns the kinds of a line that is waited for. A pattern with a command, or with the `id` of one, is a response; one
/// with `data` need not state the success.
fn of_pattern(pattern: &Value, commands: &BTreeMap<String, Value>) -> Vec<String> {
    let mut line = pattern.clone();
    let command = line
        .get("command")
        .or_else(|| commands.get(&line["id"].to_string()));
    let kind = line.get("type");
    if let Some(command) = command.cloned()
        && kind.is_none_or(|kind| kind == "response")
    {
        line["type"] = json!("response");
        line["command"] = command;
        if line.get("data").is_some() && line.get("success").is_none() {
            line["success"] = json!(true);
        }
    }
    of_output(&line)
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn name(path: &Path) -> String {
    let name = path.file_stem().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Returns the error in a line of the client, or in marking it as wrong.
fn misuse(schema: Schema, sent: &Sent) -> Option<String> {
    let complaint = match serde_json::from_str(&sent.text) {
        Ok(line) => schema.input_complaint(&line),
        Err(error) => Some(format!("{} is not JSON: {error}", sent.text)),
    };
    let place = &sent.place;
    match (sent.intent, complaint) {
        (Intent::Command, Some(complaint)) => Some(format!(
            "{place}: {complaint}\n      (if it is meant to be wrong, write >!)"
        )),
        (Intent::Wrong, None) => Some(format!("{place}: nothing is wrong with this line: write >")),
        _ => None,
    }
}

/// Reads a transcript; the error names the line.
pub fn parse(text: &str) -> Result<Case, String> {
    let mut case = Case::default();
    let mut turns = Vec::new();
    let mut below = false;
    for Entry {
        number,
        text,
        block,
    } in entries(text)
    {
        let place = format!("line {number}");
        let read = if text == "---" && !below {
            below = true;
            Ok(())
        } else if below {
            step(&joined(text, &block), &place, &mut case)
        } else {
            head(text, &block, &mut case, &mut turns)
        };
        read.map_err(|error| format!("{place}: {error}"))?;
    }
    if !below {
        return Err("there is no line with --- between the set-up and what happens".into());
    }
    case.scenario["turns"] = Value::Array(turns);
    if let Some(schema) = case.schema {
        case.leading_args = vec!["--rpc-dialect".into(), schema.dialect().into()];
        case.args.splice(0..0, case.leading_args.iter().cloned());
    }
    Ok(case)
}

/// A line, and the indented lines below it.
struct Entry<'a> {
    number: usize,
    text: &'a str,
    block: Vec<&'a str>,
}

fn entries(text: &str) -> Vec<Entry<'_>> {
    let mut entries: Vec<Entry<'_>> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let indented = line.starts_with("  ") || line.is_empty();
        match entries.last_mut() {
            Some(entry) if indented => entry.block.push(line),
            _ if line.starts_with('#') || line.trim().is_empty() => {}
            _ => entries.push(Entry {
                number: index + 1,
                text: line.trim_end(),
                block: Vec::new(),
            }),
        }
    }
    for entry in &mut entries {
        while entry
            .block
            .last()
            .is_some_and(|line| line.trim().is_empty())
        {
            entry.block.pop();
        }
        // The first line determines the indentation of the block; further indentation belongs to the text.
        let first = entry
            .block
            .first()
            .map_or(0, |line| line.len() - line.trim_start().len());
        for line in &mut entry.block {
            *line = line.get(first..).unwrap_or_default();
        }
    }
    entries
}

fn joined(text: &str, block: &[&str]) -> String {
    let parts = block
        .iter()
        .map(|line| line.trim())
        .filter(|line| !line.is_empty());
    std::iter::once(text)
        .chain(parts)
        .collect::<Vec<_>>()
        .join(" ")
}

fn head(text: &str, block: &[&str], case: &mut Case, turns: &mut Vec<Value>) -> Result<(), String> {
    if let Some(name) = text.strip_suffix(':') {
        let content: String = block.iter().map(|line| format!("{line}\n")).collect();
        if let Some(name) = name.strip_prefix("agent file ") {
            case.agent_files[name.trim()] = json!(content);
            return Ok(());
        } else if let Some(name) = name.strip_prefix("file ") {
            case.files[name.trim()] = json!(content);
            return Ok(());
        }
    }
    let text = joined(text, block);
    let (key, value) = text.split_once(':').ok_or("expected `name: value`")?;
    let value = value.trim();
    match key {
        "about" => {}
        "dialect" => {
            let schema = Schema::of_dialect(value);
            case.schema = Some(schema.ok_or_else(|| format!("there is no dialect {value}"))?);
        }
        "run" => case.args = words(value),
        "settings" => case.settings = parsed(value)?,
        "env" => {
            let (name, value) = value.split_once('=').ok_or("expected `env: NAME=value`")?;
            case.env.push((name.to_owned(), value.to_owned()));
        }
        "answer" => turns.push(match parsed(value)? {
            turn @ Value::Object(_) => turn,
            Value::Array(steps) => json!({"steps": steps}),
            text => json!({"steps": [text]}),
        }),
        "pace" => case.scenario["pace_ms"] = json!(duration(value)?.as_millis() as u64),
        "scenario" => {
            for (name, value) in parsed(value)?.as_object().into_iter().flatten() {
                match (name.as_str(), value.as_array()) {
                    ("turns", Some(more)) => turns.extend(more.iter().cloned()),
                    _ => case.scenario[name] = value.clone(),
                }
            }
        }
        "patience" => case.patience = duration(value)?,
        _ => return Err(format!("{key} is not something that can be set up")),
    }
    Ok(())
}

fn step(text: &str, place: &str, case: &mut Case) -> Result<(), String> {
    let (verb, rest) = text.split_once(' ').unwrap_or((text, ""));
    let rest = rest.trim();
    let step = match (verb, rest) {
        (">", _) => Step::SendText(rest.to_owned()),
        (">!", _) => Step::SendWrong(rest.to_owned()),
        ("<", _) => Step::Await(awaited(rest)?),
        ("<<", _) => Step::Await(Await {
            reach: Reach::Adjacent,
            ..Await::next(parsed(rest)?)
        }),
        ("remember", _) => return remember(rest, case),
        ("never", _) => Step::Never(parsed(rest)?),
        ("model", _) => {
            let pattern = rest
                .strip_prefix("sees ")
                .ok_or("expected `model sees {…}`")?;
            Step::ModelSees(parsed(pattern)?)
        }
        ("file", _) => {
            let (name, text) = rest
                .split_once(" has ")
                .ok_or("expected `file NAME has \"…\"`")?;
            Step::FileHas(name.trim().to_owned(), parsed(text.trim())?)
        }
        ("write", _) => Step::WriteFiles(parsed(rest)?),
        ("open", gate) => Step::Release(gate.to_owned()),
        ("wait", _) => Step::Delay(duration(rest)?),
        ("close", "input") => Step::CloseStdin,
        ("signal", name) => Step::Signal(signal(name)?),
        ("exits", _) => {
            let exit = match rest.strip_prefix("by ") {
                Some(name) => Exit::Signal(signal(name)? as i32),
                None => Exit::Code(rest.parse().map_err(|_| "expected `exits NUMBER`")?),
            };
            Step::WaitExit(case.patience, Some(exit))
        }
        ("restart", "") => Step::Restart(None),
        ("restart", args) => Step::Restart(Some(words(args))),
        _ => return Err(format!("this is not understood: {text}")),
    };
    case.steps.push(Placed {
        place: place.to_owned(),
        step,
    });
    Ok(())
}

fn awaited(rest: &str) -> Result<Await, String> {
    let counted = rest
        .split_once("x ")
        .and_then(|(n, rest)| Some((n.parse().ok()?, rest)));
    let (count, pattern) = counted.unwrap_or((1, rest));
    Ok(Await {
        count,
        ..Await::next(parsed(pattern)?)
    })
}

fn remember(rest: &str, case: &mut Case) -> Result<(), String> {
    let (name, path) = rest
        .split_once('=')
        .ok_or("expected `remember NAME = path`")?;
    match case.steps.last_mut().map(|placed| &mut placed.step) {
        Some(Step::Await(awaited)) => {
            awaited
                .remember
                .push((name.trim().to_owned(), path.trim().to_owned()));
            Ok(())
        }
        _ => Err("only a line just waited for can be remembered from".into()),
    }
}

fn parsed(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("{text} is not JSON: {error}"))
}

fn signal(name: &str) -> Result<Signal, String> {
    name.parse().map_err(|_| format!("{name} is not a signal"))
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = text
        .split_once(' ')
        .ok_or("expected a time such as `200 ms`")?;
    let number: u64 = number
        .parse()
        .map_err(|_| format!("{number} is not a number"))?;
    match unit {
        "ms" => Ok(Duration::from_millis(number)),
        "s" => Ok(Duration::from_secs(number)),
        _ => Err(format!("{unit} is not a unit of time known here: ms, s")),
    }
}
