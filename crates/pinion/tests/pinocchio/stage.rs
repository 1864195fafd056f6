//! The environment of commands in these tests: a home with command files in it, and the built-in model or a scripted
//! server that answers.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use pinion_testkit::frames::{self, Frames};
use pinion_testkit::{Exit, ModelServer, Program, Sandbox};
use serde_json::{Value, json};

use crate::rules;
use crate::support::{HANG, args, offline_sandbox, pinion, shorten};

/// A command that repeats its argument, and a command for conversations, as the recorded streams have them.
const SAY: &str = "name: say\nshort: Says what it is told\nflags:\n  - name: what\n    type: string\n    default: hello\nprompt: \"{{ .what }}\"\n";
const SEED: &str = "name: seed\nshort: Begins a conversation\nprompt: seed\n";

/// A home with commands in it.
pub struct Home {
    pub sandbox: Sandbox,
    environment: Vec<(String, String)>,
}

impl Home {
    /// Creates a home in which the built-in model answers.
    pub fn offline() -> Self {
        let mut home = Self::with_settings(&json!({}));
        home.set("PINOCCHIO_AI_ENGINE", "offline/demo");
        home
    }

    /// Creates a home without a configured model, with these settings of the engine.
    pub fn with_settings(settings: &Value) -> Self {
        let sandbox = offline_sandbox(settings);
        sandbox.add_files(&json!({"say.yaml": SAY, "seed.yaml": SEED}));
        Self {
            sandbox,
            environment: Vec::new(),
        }
    }

    /// Creates a home in which the built-in model answers as the scenario describes, whatever the prompt is.
    pub fn playing(scenario: &Value) -> Self {
        let mut home = Self::offline();
        home.sandbox.add_files(&json!({"scenario.json": scenario}));
        let path = home.sandbox.work().join("scenario.json");
        home.set("PINION_OFFLINE_SCENARIO", &path.display().to_string());
        home
    }

    /// Creates a home in which a scripted server answers, over the API that a profile names.
    pub fn of(server: &ModelServer, api_type: &str) -> Self {
        Self::asking(server, api_type, &json!({}))
    }

    /// Creates a home with a scripted server and these settings of the engine.
    pub fn asking(server: &ModelServer, api_type: &str, settings: &Value) -> Self {
        let home = Self::with_settings(settings);
        let path = match api_type {
            "claude" => "",
            "gemini" => "/v1beta",
            _ => "/v1",
        };
        let profiles = json!({"slug": "local", "profiles": {"default": {"slug": "default",
        "inference_settings": {
            "api": {
                "api_keys": {format!("{api_type}-api-key"): "a-secret-key"},
                "base_urls": {format!("{api_type}-base-url"): format!("{}{path}", server.base_url())},
                "allow_http": {api_type: true},
                "allow_local_networks": {api_type: true},
            },
            "chat": {"engine": "some-model", "api_type": api_type},
        }}}});
        // JSON is YAML.
        home.configure("profiles.yaml", &profiles.to_string());
        home
    }

    /// Writes a document of the user's configuration.
    pub fn configure(&self, name: &str, text: &str) {
        let directory = self.sandbox.home().join(".config/pinocchio");
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join(name), text).unwrap();
    }

    /// Writes a file into the working directory.
    pub fn write(&self, name: &str, text: &str) {
        self.sandbox.add_files(&json!({name: text}));
    }

    /// Reads a file of the working directory.
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.sandbox.work().join(name)).unwrap_or_default()
    }

    /// Sets a variable of the program's environment.
    pub fn set(&mut self, name: &str, value: &str) {
        self.environment.push((name.to_owned(), value.to_owned()));
    }

    /// Returns the program, with the environment of this home.
    pub fn program(&self, mut program: Program) -> Program {
        program.environment.extend(self.environment.iter().cloned());
        program
    }

    /// Starts the program, which must print frames.
    pub fn start(&self, arguments: &[&str]) -> Frames {
        Frames::start(&self.program(pinion()), &self.sandbox, &args(arguments))
    }

    /// Runs the program to its end, with an empty standard input.
    pub fn run(&self, arguments: &[&str]) -> Ran {
        self.run_as(&self.program(pinion()), arguments, b"")
    }

    /// Runs a program to its end.
    pub fn run_as(&self, program: &Program, arguments: &[&str], input: &[u8]) -> Ran {
        let mut command = program.command(&self.sandbox, &args(arguments));
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        // A program that does not read all of its input may be gone by now.
        let writing = std::thread::spawn(move || drop(stdin.write_all(&input)));
        let output = child.wait_with_output().unwrap();
        writing.join().unwrap();
        Ran {
            exit: Exit::of(output.status),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs `say.yaml` once and returns its frames.
    pub fn say(&self, what: &str, more: &[&str]) -> Told {
        let arguments = [&["run-command", "say.yaml", "--rpc", "--what", what], more].concat();
        self.run(&arguments).told()
    }

    /// Starts a conversation over standard input.
    pub fn talk(self, more: &[&str]) -> Talk {
        self.talk_about("seed.yaml", more)
    }

    /// Starts a conversation with another command.
    pub fn talk_about(self, file: &str, more: &[&str]) -> Talk {
        let arguments = [&["run-command", file, "--rpc", "--stdin-rpc"], more].concat();
        Talk {
            process: self.start(&arguments),
            home: self,
        }
    }
}

/// The output of a program, and its exit.
#[derive(Debug)]
pub struct Ran {
    pub exit: Exit,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    /// Returns the output as frames.
    pub fn told(self) -> Told {
        frames::check(self.stdout.as_bytes());
        let lines: Vec<Value> = lines(&self.stdout);
        rules::check(&lines).unwrap_or_else(|fault| panic!("{fault}\n{}", self.stderr));
        Told {
            exit: self.exit,
            lines,
            stderr: self.stderr,
        }
    }
}

/// Frames of a run that has ended.
#[derive(Debug)]
pub struct Told {
    pub exit: Exit,
    pub lines: Vec<Value>,
    pub stderr: String,
}

impl Told {
    pub fn status(&self) -> &str {
        let last = self.lines.last().unwrap();
        last["done"]["status"]
            .as_str()
            .unwrap_or_else(|| panic!("{last}"))
    }

    pub fn names(&self) -> Vec<&str> {
        names(&self.lines)
    }
}

/// A conversation over standard input, in session `s1`.
pub struct Talk {
    pub process: Frames,
    pub home: Home,
}

impl Talk {
    /// Sends a request.
    pub fn ask(&mut self, id: &str, kind: &str) {
        self.process
            .send(&json!({"version": 1, "sessionId": "s1", "requestId": id, kind: {}}));
    }

    /// Sends a prompt.
    pub fn submit(&mut self, id: &str, prompt: &str) {
        self.process
            .send(&json!({"version": 1, "sessionId": "s1", "requestId": id,
            "submit": {"prompt": prompt}}));
    }

    /// Sends a prompt and waits for its end.
    pub fn say(&mut self, id: &str, prompt: &str) -> String {
        self.submit(id, prompt);
        self.done(id)
    }

    /// Waits for a frame that contains this.
    pub fn wait(&self, pattern: &Value) -> Value {
        let found = self.process.find(0, 1, HANG, |line| {
            pinion_testkit::transcript::fits(pattern, line)
        });
        match found {
            Some(at) => self.process.line(at).unwrap().value,
            None => panic!("no frame fits {pattern}; {}", self.report()),
        }
    }

    /// Waits for an event of a request.
    pub fn event(&self, id: &str, name: &str) -> Value {
        let line = self.wait(&json!({"requestId": id, "uiEvent": {"name": name}}));
        line["uiEvent"]["payload"].clone()
    }

    /// Waits for the end of a request and returns its status.
    pub fn done(&self, id: &str) -> String {
        let pattern = json!({"requestId": id, "done": {}});
        let line = self.wait(&pattern);
        line["done"]["status"].as_str().unwrap().to_owned()
    }

    /// All frames so far.
    pub fn lines(&self) -> Vec<Value> {
        let lines = self.process.lines().into_iter();
        lines.map(|line| line.value).collect()
    }

    /// Ends the input and waits for the end of the process.
    pub fn finish(&mut self) -> Exit {
        self.process.close_stdin();
        self.end()
    }

    /// Waits for the end of the process and checks all its frames.
    pub fn end(&mut self) -> Exit {
        let exit = self.process.wait(HANG);
        self.process.drain(HANG);
        let exit = exit.unwrap_or_else(|| panic!("no end; {}", self.report()));
        rules::check(&self.lines()).unwrap_or_else(|fault| panic!("{fault}; {}", self.report()));
        exit
    }

    fn report(&self) -> String {
        let lines = self.lines();
        let tail = &lines[lines.len().saturating_sub(40)..];
        let tail: Vec<String> = tail.iter().map(|line| shorten(&line.to_string())).collect();
        format!(
            "frames:\n{}\nstandard error:\n{}",
            tail.join("\n"),
            self.process.stderr()
        )
    }
}

/// Returns the lines of a stream as values.
pub fn lines(stream: &str) -> Vec<Value> {
    stream
        .split_terminator('\n')
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
        .collect()
}

/// Returns the names of the events among these frames.
pub fn names(lines: &[Value]) -> Vec<&str> {
    let names = lines.iter().map(|line| line["uiEvent"]["name"].as_str());
    names.flatten().collect()
}

/// Returns the payloads of the events of one name.
pub fn payloads<'a>(lines: &'a [Value], name: &str) -> Vec<&'a Value> {
    let events = lines.iter().map(|line| &line["uiEvent"]);
    let named = events.filter(|event| event["name"] == name);
    named.map(|event| &event["payload"]).collect()
}

/// Returns the frames of one request.
pub fn of_request(lines: &[Value], id: &str) -> Vec<Value> {
    let lines = lines.iter().filter(|line| line["requestId"] == id);
    lines.cloned().collect()
}

/// Returns the messages of a request to the model, as `role: text`.
pub fn said(request: &Value) -> Vec<String> {
    let messages = request["body"]["messages"].as_array();
    let text = |content: &Value| match content {
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        other => other.as_str().unwrap_or_default().to_owned(),
    };
    let messages = messages.into_iter().flatten();
    messages
        .map(|message| {
            let role = message["role"].as_str().unwrap_or_default();
            format!("{role}: {}", text(&message["content"]))
        })
        .collect()
}
