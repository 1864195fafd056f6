//! Tools, providers and gates that panic or never return: the run must end exactly once and the session must continue.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream;
use pinion_agent::{
    Admission, Answer, Command, Config, EngineError, EngineSettings, Event, Expanded, Expander,
    Gate, Handle, Listener, Models, Preferences, Prompt, Reply, Session, Verdict,
};
use pinion_llm::{
    Authorization, EventStream, OfflineProvider, Provider, Registry, RegistryOptions, Request,
};
use pinion_message::{Message, Model, StopReason, ThinkingLevel, ToolSpec};
use pinion_session::{NewSession, Store};
use pinion_tools::{Tool, ToolContext, ToolError, ToolOutput, ToolSettings};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

/// The moment at which a tool fails.
#[derive(Debug, Clone, Copy)]
enum FailsWhen {
    Checked,
    Called,
    /// At the second poll of the call.
    Polled,
    /// The call never returns.
    Never,
}

struct BrokenTool {
    fails: FailsWhen,
    spec: ToolSpec,
}

fn broken(name: &str, fails: FailsWhen) -> Arc<dyn Tool> {
    let spec = ToolSpec {
        name: name.to_owned(),
        description: "Breaks.".to_owned(),
        parameters: json!({"type": "object"}),
    };
    Arc::new(BrokenTool { fails, spec })
}

impl Tool for BrokenTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn validate(&self, arguments: &Value) -> Result<Value, String> {
        match self.fails {
            FailsWhen::Checked => panic!("broken when checked"),
            _ => Ok(arguments.clone()),
        }
    }

    fn call<'a>(
        &'a self,
        _: Value,
        _: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        match self.fails {
            FailsWhen::Checked | FailsWhen::Called => panic!("broken when called"),
            FailsWhen::Polled => Box::pin(async {
                tokio::task::yield_now().await;
                panic!("broken later")
            }),
            // An abort does not end it either.
            FailsWhen::Never => Box::pin(std::future::pending()),
        }
    }
}

/// Answers as the offline model does, but panics when the last prompt asks for it.
struct BrokenProvider(AtomicUsize);

impl Provider for BrokenProvider {
    fn stream(&self, request: Request) -> EventStream {
        let asked = request.messages.last().map(|message| match &**message {
            Message::User(user) => user.content.joined_text(""),
            _ => String::new(),
        });
        match asked.as_deref() {
            Some("panic at once") => panic!("broken at once"),
            Some("panic later") => Box::pin(stream::poll_fn(|_| panic!("broken later"))),
            Some("end without an end") => Box::pin(stream::empty()),
            _ => {
                self.0.fetch_add(1, Ordering::Relaxed);
                OfflineProvider.stream(request)
            }
        }
    }
}

struct OneModel {
    model: Arc<Model>,
    provider: Arc<dyn Provider>,
}

impl Models for OneModel {
    fn find(&self, _: &str, _: &str) -> Option<Arc<Model>> {
        Some(Arc::clone(&self.model))
    }
    fn available(&self) -> Vec<Arc<Model>> {
        vec![Arc::clone(&self.model)]
    }
    fn scoped(&self) -> Vec<(Arc<Model>, Option<ThinkingLevel>)> {
        Vec::new()
    }
    fn access(&self, _: &Model) -> BoxFuture<'static, Result<Authorization, String>> {
        Box::pin(std::future::ready(Ok(Authorization::default())))
    }
    fn provider(&self, _: &Model) -> Arc<dyn Provider> {
        Arc::clone(&self.provider)
    }
    fn check_credentials(&self, _: &Model) -> Result<(), String> {
        Ok(())
    }
}

/// Stores nothing and expands nothing.
struct Plain;

impl Preferences for Plain {
    fn remember(&self, _: Vec<(&'static str, Option<Value>)>) {}
}

impl Expander for Plain {
    fn expand(&self, text: &str) -> Expanded {
        Expanded {
            text: text.to_owned(),
            fault: None,
        }
    }
    fn commands(&self) -> Value {
        json!([])
    }
}

struct Recorder {
    events: Mutex<Vec<Event>>,
    settled: mpsc::Sender<()>,
    started: mpsc::Sender<()>,
}

impl Listener for Recorder {
    fn notice(&self, _: u64, event: &Event) {
        self.events.lock().unwrap().push(event.clone());
        match event {
            Event::Settled { .. } => drop(self.settled.try_send(())),
            Event::ToolStart(_) => drop(self.started.try_send(())),
            _ => {}
        }
    }
}

struct Bench {
    session: Handle,
    recorder: Arc<Recorder>,
    settled: mpsc::Receiver<()>,
    started: mpsc::Receiver<()>,
}

fn bench(tool_timeout: Duration) -> Bench {
    bench_with(tool_timeout, None)
}

fn bench_with(tool_timeout: Duration, gate: Option<Arc<dyn Gate>>) -> Bench {
    let directory = std::env::temp_dir();
    let options = RegistryOptions {
        include_offline: true,
        ..RegistryOptions::default()
    };
    let (registry, _) = Registry::load(&directory.join("no-such-directory"), options);
    let model = registry
        .find("offline", "demo")
        .expect("the built-in model");
    let (settled_sender, settled) = mpsc::channel(1024);
    let (started_sender, started) = mpsc::channel(1024);
    let recorder = Arc::new(Recorder {
        events: Mutex::default(),
        settled: settled_sender,
        started: started_sender,
    });
    let new = NewSession {
        cwd: directory.clone(),
        directory: None,
        id: None,
        parent_session: None,
    };
    let config = Config {
        store: Store::create(new).unwrap(),
        messages: Vec::new(),
        cwd: directory,
        session_directory: None,
        model: Some(Arc::clone(&model)),
        thinking_level: ThinkingLevel::Off,
        models: Arc::new(OneModel {
            model,
            provider: Arc::new(BrokenProvider(AtomicUsize::new(0))),
        }),
        tools: vec![
            broken("checked", FailsWhen::Checked),
            broken("called", FailsWhen::Called),
            broken("later", FailsWhen::Polled),
            broken("endless", FailsWhen::Never),
        ],
        active_tools: ["checked", "called", "later", "endless"]
            .map(str::to_owned)
            .into(),
        added_tools: Vec::new(),
        tool_supply: None,
        tool_filter: Default::default(),
        shell: ToolSettings::default(),
        system_prompt: Arc::new(|_: &[Arc<dyn Tool>]| "".into()),
        mask: Default::default(),
        settings: EngineSettings {
            auto_retry: false,
            tool_timeout,
            ..EngineSettings::default()
        },
        preferences: Arc::new(Plain),
        expander: Arc::new(Plain),
        listeners: vec![Arc::clone(&recorder) as Arc<dyn Listener>],
        hooks: None,
        gate,
    };
    let (session, _task) = Session::spawn(config);
    Bench {
        session,
        recorder,
        settled,
        started,
    }
}

impl Bench {
    async fn ask(&self, command: Command) -> Result<Answer, EngineError> {
        let (sender, answer) = oneshot::channel();
        let reply = Reply::new(move |result| drop(sender.send(result)));
        self.session.send(command, reply).await;
        answer.await.expect("an answer")
    }

    async fn prompt(&self, text: &str) {
        let command = Command::Prompt(Prompt::new(text));
        self.ask(command)
            .await
            .expect("an idle session takes a prompt");
    }

    /// Sends a prompt, waits until the session is idle, and returns the events.
    async fn process_prompt(&mut self, text: &str) -> Vec<Event> {
        self.prompt(text).await;
        self.settled.recv().await.expect("it settles");
        std::mem::take(&mut self.recorder.events.lock().unwrap())
    }

    /// Checks that the session still answers.
    async fn assert_alive(&mut self) {
        let events = self
            .process_prompt("offline: {\"text\": \"still here\"}")
            .await;
        ends_once(&events);
        assert_eq!(answer(&events).0, StopReason::Stop);
    }
}

fn ends_once(events: &[Event]) {
    let count = |wanted: fn(&Event) -> bool| events.iter().filter(|event| wanted(event)).count();
    assert_eq!(count(|event| matches!(event, Event::AgentStart)), 1);
    assert_eq!(count(|event| matches!(event, Event::AgentEnd { .. })), 1);
}

/// Returns the stop reason and the error of the last answer.
fn answer(events: &[Event]) -> (StopReason, Option<String>) {
    let answers = events.iter().rev().filter_map(|event| match event {
        Event::MessageEnd(message) => message.as_assistant().cloned(),
        _ => None,
    });
    let answer = answers.into_iter().next().expect("an answer");
    (answer.stop_reason, answer.error_message)
}

fn call(tool: &str) -> String {
    let script = json!({"turns": [{"tool": tool, "args": {}}, {"text": "over"}]});
    format!("offline: {script}")
}

#[tokio::test]
async fn l2_a_tool_that_panics_fails_its_call() {
    let mut bench = bench(Duration::from_secs(600));
    for tool in ["checked", "called", "later"] {
        let events = bench.process_prompt(&call(tool)).await;
        ends_once(&events);
        let failed = events
            .iter()
            .any(|event| matches!(event, Event::ToolEnd { is_error: true, .. }));
        assert!(failed, "{tool}");
        assert_eq!(
            answer(&events).0,
            StopReason::Stop,
            "{tool}: the model sees the error"
        );
        bench.assert_alive().await;
    }
}

#[tokio::test]
async fn l2_a_provider_that_panics_produces_a_failed_answer() {
    let mut bench = bench(Duration::from_secs(600));
    for prompt in ["panic at once", "panic later", "end without an end"] {
        let events = bench.process_prompt(prompt).await;
        ends_once(&events);
        let (reason, error) = answer(&events);
        assert_eq!(reason, StopReason::Error, "{prompt}");
        assert!(error.is_some_and(|error| error.len() > 10), "{prompt}");
        bench.assert_alive().await;
    }
}

#[tokio::test]
async fn l2_a_tool_that_never_ends_is_ended_by_its_time_limit_or_by_an_abort() {
    let mut impatient = bench(Duration::from_millis(200));
    let events = impatient.process_prompt(&call("endless")).await;
    ends_once(&events);
    assert_eq!(answer(&events).0, StopReason::Stop);
    impatient.assert_alive().await;

    let mut bench = bench(Duration::from_secs(600));
    bench.prompt(&call("endless")).await;
    bench.started.recv().await.expect("the tool begins");
    bench
        .ask(Command::Abort)
        .await
        .expect("an abort is answered");
    bench.settled.recv().await.expect("it settles");
    let events = std::mem::take(&mut *bench.recorder.events.lock().unwrap());
    ends_once(&events);
    assert_eq!(answer(&events).0, StopReason::Aborted);
    bench.assert_alive().await;
}

/// Decides by the name of the tool, and counts the starts and ends of prompts.
#[derive(Default)]
struct BrokenGate {
    begun: AtomicUsize,
    settled: AtomicUsize,
}

impl Gate for BrokenGate {
    fn begin(&self) {
        self.begun.fetch_add(1, Ordering::Relaxed);
    }

    fn settled(&self) {
        self.settled.fetch_add(1, Ordering::Relaxed);
    }

    fn admit<'a>(&'a self, call: Admission<'a>) -> BoxFuture<'a, Verdict> {
        match call.run.name.as_str() {
            "later" => Box::pin(async {
                tokio::task::yield_now().await;
                panic!("broken while deciding")
            }),
            "endless" => Box::pin(std::future::pending()),
            name => {
                let text = format!("{name} is not for you");
                let details = json!({"why": call.arguments});
                Box::pin(std::future::ready(Verdict::Refuse { text, details }))
            }
        }
    }
}

#[tokio::test]
async fn l2_a_gate_that_panics_hangs_or_refuses_fails_only_the_call() {
    let gate = Arc::new(BrokenGate::default());
    let hour = Duration::from_secs(3600);
    let mut bench = bench_with(hour, Some(Arc::clone(&gate) as _));
    for (tool, words) in [
        ("called", "not for you"),
        ("later", "deciding about it failed"),
    ] {
        let events = bench.process_prompt(&call(tool)).await;
        ends_once(&events);
        let output = events.iter().find_map(|event| match event {
            Event::ToolEnd {
                output,
                is_error: true,
                ..
            } => Some(output),
            _ => None,
        });
        let output = output.expect("a failed call");
        assert!(
            output.content[0]
                .as_text()
                .is_some_and(|text| text.contains(words))
        );
        assert_eq!(
            answer(&events).0,
            StopReason::Stop,
            "the model sees the error"
        );
        if tool == "called" {
            assert_eq!(output.details, Some(json!({"why": {}})));
        }
    }
    while bench.started.try_recv().is_ok() {}
    bench.prompt(&call("endless")).await;
    bench.started.recv().await.expect("the call begins");
    bench
        .ask(Command::Abort)
        .await
        .expect("the abort is answered");
    bench.settled.recv().await.expect("it settles");
    let events = std::mem::take(&mut *bench.recorder.events.lock().unwrap());
    ends_once(&events);
    assert_eq!(answer(&events).0, StopReason::Aborted);
    bench.assert_alive().await;
    assert_eq!(gate.begun.load(Ordering::Relaxed), 4);
    assert_eq!(gate.settled.load(Ordering::Relaxed), 4);
}
