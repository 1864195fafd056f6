//! Extensions that do everything wrong. Despite them every command is answered once, every run ends once, standard
//! output stays JSON, the session continues, the process exits when its input ends, and nothing is left behind.

mod dialogs;
mod environment;
mod hanging;
mod leaving;
mod output;
mod results;
mod throwing;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use pinion_testkit::fault::proc;
use pinion_testkit::schema::Schema;
use pinion_testkit::{Exit, ModelServer, vectors};
use serde_json::{Value, json};

use crate::support::{Client, HANG, answers_by_id, check_runs};

/// Limits short enough for tests; a machine under load still gets its work done within them.
fn limits() -> Value {
    json!({"extensionLimits": {"busySeconds": 2, "handlerSeconds": 2, "memoryMb": 96}})
}

/// A session with one extension, and a model that follows the prompt.
pub(super) struct Hostile {
    pub(super) client: Client,
    server: ModelServer,
}

impl Hostile {
    /// Creates a session whose extension has `body` as its factory function, with the argument `pi`.
    pub(super) fn new(body: &str) -> Self {
        Self::with(body, &[])
    }

    /// Like [`Hostile::new`], with further arguments of the program.
    pub(super) fn with(body: &str, arguments: &[&str]) -> Self {
        let server = ModelServer::start(json!({"directives": true}));
        let sandbox = vectors::sandbox(&server, &limits());
        let imports = [("fs.", FILES), ("child.", CHILDREN)];
        let used = imports.iter().filter(|(word, _)| body.contains(word));
        let imports: String = used.map(|(_, line)| *line).collect();
        let source =
            format!("{imports}{PRELUDE}export default function (pi: any) {{\n{body}\n}}\n");
        sandbox.add_files(&json!({"hostile.ts": source}));
        let all = [&["--mode", "rpc", "-e", "hostile.ts"], arguments].concat();
        Self {
            client: Client::start(sandbox, &all),
            server,
        }
    }

    /// Returns the requests that the model has received.
    pub(super) fn requests(&self) -> Vec<Value> {
        self.server.requests()
    }

    /// Runs a prompt to its end and returns the messages of the run.
    fn run(&mut self, prompt: &str) -> Vec<Value> {
        let from = self.client.prompt(prompt);
        self.client.wait_end(from)
    }

    /// Calls a tool of the extension and returns the result that the model sees.
    fn call(&mut self, tool: &str) -> Value {
        let messages = self.run(&format!("CALL {tool} {{}}"));
        let result = messages
            .iter()
            .find(|message| message["role"] == "toolResult");
        result
            .unwrap_or_else(|| panic!("{tool} has no result: {}", self.client.report(0)))
            .clone()
    }

    /// Waits until the extension has sent this text with `notify`.
    fn heard(&self, text: &str) -> usize {
        let said = json!({"type": "extension_ui_request", "method": "notify", "message": text});
        self.client.wait_for(0, &said)
    }

    /// Returns the errors reported about the extension, as event and message.
    fn errors(&self) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let lines = self.client.lines();
        let errors = lines
            .iter()
            .filter(|line| line["type"] == "extension_error");
        errors
            .map(|line| (text(&line["event"]), text(&line["error"])))
            .collect()
    }

    /// Checks that the session accepts another prompt and ends as it should.
    pub(super) fn goes_on(mut self) {
        // A prompt whose run was cut short is still open for the model; this answers it.
        self.run("SAY go on");
        let last = self.run("SAY still here").pop().unwrap();
        assert_eq!(
            last["content"][0]["text"],
            "still here",
            "{}",
            self.client.report(0)
        );
        assert_eq!(self.client.data("get_state")["isStreaming"], false);
        self.ends(Exit::Code(0));
    }

    /// Checks that the process exits when its input ends, and that its stream is in order.
    fn ends(mut self, exit: Exit) {
        let found = self.client.finish();
        assert_eq!(found, exit, "{}", self.client.report(0));
        self.is_in_order();
    }

    /// Checks the rules of every stream, after the process has exited.
    fn is_in_order(&self) {
        let lines = self.client.lines();
        check_runs(&lines).unwrap_or_else(|error| panic!("{error}\n{}", self.client.report(0)));
        for line in &lines {
            let complaint = Schema::PiClassic.complaint(line);
            assert!(complaint.is_none(), "{complaint:?}: {line}");
        }
        for (id, count) in answers_by_id(&lines) {
            assert_eq!(count, 1, "{id} was answered {count} times");
        }
        let left = proc::left_behind(self.client.sandbox.marker(), Duration::from_secs(10));
        assert!(left.is_empty(), "left behind: {left:?}");
    }
}

const FILES: &str = "import * as fs from \"node:fs\";\n";
const CHILDREN: &str = "import * as child from \"node:child_process\";\n";

/// Helper functions for the extensions of these tests.
const PRELUDE: &str = r#"
const text = (t: string) => [{ type: "text", text: t }];
const sleep = (ms: number) => new Promise((done) => setTimeout(done, ms));
const never = () => new Promise(() => {});
const tool = (pi: any, name: string, execute: any, more: any = {}) => pi.registerTool({ name, label: name, description: name,
  parameters: { type: "object", properties: {} }, execute, ...more });
const command = (pi: any, name: string, handler: any) => pi.registerCommand(name, { handler });
"#;

/// The events of a prompt that calls a tool, in about this order.
const EVENTS_OF_A_RUN: [&str; 20] = [
    "session_start",
    "resources_discover",
    "input",
    "before_agent_start",
    "agent_start",
    "turn_start",
    "context",
    "before_provider_request",
    "after_provider_response",
    "message_start",
    "message_update",
    "message_end",
    "tool_execution_start",
    "tool_call",
    "tool_execution_update",
    "tool_result",
    "tool_execution_end",
    "turn_end",
    "agent_end",
    "session_shutdown",
];

/// Runs `attempt` for each item, a few at a time, because attempts mostly wait.
fn each<T: Sync>(list: &[T], attempt: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(item) = list.get(next.fetch_add(1, Ordering::Relaxed)) {
                    attempt(item);
                }
            });
        }
    });
}

/// Waits for a file that an extension or its child writes when it has begun.
fn wait_for_file(client: &Client, name: &str) {
    let path = client.sandbox.work().join(name);
    let end = std::time::Instant::now() + HANG;
    while !path.exists() {
        assert!(std::time::Instant::now() < end, "{}", client.report(0));
        thread::sleep(Duration::from_millis(2));
    }
}
