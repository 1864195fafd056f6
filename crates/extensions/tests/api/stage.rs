//! A session with extensions that a test writes, and a model that follows commands in the prompt.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use pinion_agent::{
    Admission, Answer, Command, Config, EngineBehaviour, EngineError, EngineSettings, Event,
    Expanded, Expander, Gate, Handle, Hooks, Listener, Models, Preferences, Prompt, Reply, Session,
    Steering, ToolOrder, Verdict,
};
use pinion_extensions::{
    ApiRelease, Contribution, ExtensionEntry, Extensions, LoadFailure, Loaded, Mode, Options,
    Services,
};
use pinion_llm::{Authorization, Provider};
use pinion_message::{Message, Model, ThinkingLevel};
use pinion_session::{NewSession, Store};
use pinion_tools::{Tool, ToolSettings, all_names, builtin};
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::sync::{mpsc, oneshot};

use crate::model::Obedient;

/// The lines that a client would have read, in order.
#[derive(Clone, Default)]
pub struct Lines(Arc<Mutex<Vec<Value>>>);

impl Lines {
    pub fn push(&self, line: Value) {
        self.0.lock().unwrap().push(line);
    }

    /// Removes and returns all lines so far.
    pub fn take(&self) -> Vec<Value> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// More runs than any test has.
const MOST_SETTLED: usize = 1024;

/// The program around the extensions.
#[derive(Default)]
pub struct Program {
    pub registered: Mutex<Vec<(String, Value)>>,
    pub answering: Mutex<Option<Arc<dyn Provider>>>,
    pub skills: Mutex<Vec<Contribution>>,
}

impl Services for Program {
    fn exit(&self, _: i32) {}

    fn all_models(&self) -> Vec<Arc<Model>> {
        vec![model("m1"), model("m2")]
    }

    fn access(&self, _: &Model) -> BoxFuture<'static, Result<Authorization, String>> {
        let granted = Authorization {
            api_key: Some("k".to_owned().into()),
            ..Authorization::default()
        };
        Box::pin(std::future::ready(Ok(granted)))
    }

    fn register_provider(
        &self,
        name: &str,
        config: Value,
        answering: Option<Arc<dyn Provider>>,
    ) -> Result<(), String> {
        self.registered
            .lock()
            .unwrap()
            .push((name.to_owned(), config));
        *self.answering.lock().unwrap() = answering;
        Ok(())
    }

    fn register_virtual_model(&self, _: Model, answering: Arc<dyn Provider>) -> Result<(), String> {
        *self.answering.lock().unwrap() = Some(answering);
        Ok(())
    }

    fn unregister_virtual_model(&self, _: &str, _: &str) {
        *self.answering.lock().unwrap() = None;
    }

    fn provider(&self) -> Option<Arc<dyn Provider>> {
        Some(Arc::new(Obedient))
    }

    fn has_credentials(&self, provider: &str) -> bool {
        provider == "mock"
    }

    fn scoped_models(&self) -> Vec<(Arc<Model>, Option<ThinkingLevel>)> {
        vec![
            (model("m1"), None),
            (model("m2"), Some(ThinkingLevel::High)),
        ]
    }

    fn is_project_trusted(&self) -> bool {
        true
    }

    fn settings(&self) -> Value {
        json!({"theme": "light"})
    }

    fn add_resources(&self, skills: Vec<Contribution>, _: Vec<Contribution>) {
        *self.skills.lock().unwrap() = skills;
    }

    fn prompt_options(&self) -> Value {
        json!({"cwd": "/work"})
    }

    fn commands(&self) -> Vec<Value> {
        vec![json!({"name": "template", "source": "prompt"})]
    }
}

pub fn model(id: &str) -> Arc<Model> {
    let model = json!({
        "id": id, "name": id, "api": "test", "provider": "mock", "baseUrl": "http://127.0.0.1:9",
        "reasoning": id == "m2", "input": ["text"],
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
        "contextWindow": 200_000, "maxTokens": 1000,
    });
    Arc::new(serde_json::from_value(model).unwrap())
}

struct OneProvider(Arc<Program>);

impl Models for OneProvider {
    fn find(&self, provider: &str, id: &str) -> Option<Arc<Model>> {
        (provider == "mock").then(|| model(id))
    }
    fn available(&self) -> Vec<Arc<Model>> {
        vec![model("m1"), model("m2")]
    }
    fn scoped(&self) -> Vec<(Arc<Model>, Option<ThinkingLevel>)> {
        Vec::new()
    }
    fn access(&self, _: &Model) -> BoxFuture<'static, Result<Authorization, String>> {
        Box::pin(std::future::ready(Ok(Authorization::default())))
    }
    fn provider(&self, _: &Model) -> Arc<dyn Provider> {
        let own = self.0.answering.lock().unwrap().clone();
        own.unwrap_or_else(|| Arc::new(Obedient))
    }
    fn check_credentials(&self, _: &Model) -> Result<(), String> {
        Ok(())
    }
}

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

/// Refuses calls whose arguments contain `GATED`.
struct RefuseGated;

impl Gate for RefuseGated {
    fn begin(&self) {}

    fn settled(&self) {}

    fn admit<'a>(&'a self, call: Admission<'a>) -> BoxFuture<'a, Verdict> {
        let verdict = if call.arguments.to_string().contains("GATED") {
            Verdict::Refuse {
                text: "refused by the gate".to_owned(),
                details: json!({}),
            }
        } else {
            Verdict::Run
        };
        Box::pin(std::future::ready(verdict))
    }
}

struct Ear {
    lines: Lines,
    settled: mpsc::Sender<()>,
}

impl Listener for Ear {
    fn notice(&self, _: u64, event: &Event) {
        let line = match event {
            Event::AgentStart => json!("agent_start"),
            Event::AgentEnd { .. } => json!("agent_end"),
            Event::TurnStart => json!("turn_start"),
            Event::TurnEnd { .. } => json!("turn_end"),
            Event::MessageEnd(message) => json!({"message_end": shown(message)}),
            Event::ToolUpdate { output, .. } => json!({"tool_update": output.content}),
            Event::ToolEnd {
                run,
                output,
                is_error,
                ..
            } => json!({
                "tool_end": run.name,
                "content": output.content,
                "details": output.details,
                "isError": is_error,
            }),
            Event::Fault {
                source,
                during,
                error,
            } => json!({"error": error, "event": during, "path": file_name(source)}),
            Event::QueueUpdate {
                steering,
                follow_up,
            } => json!({"queued": [steering.len(), follow_up.len()]}),
            Event::SessionInfoChanged(name) => json!({"name": name}),
            Event::ThinkingLevelChanged(level) => json!({"level": level}),
            Event::EntryAppended(entry) => json!({"entry": entry["type"]}),
            Event::Settled { .. } => {
                let _ = self.settled.try_send(());
                return;
            }
            _ => return,
        };
        self.lines.push(line);
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn shown(message: &Message) -> Value {
    let value = json!(message);
    let text = match &value["content"] {
        Value::String(text) => text.clone(),
        blocks => blocks[0]["text"].as_str().unwrap_or_default().to_owned(),
    };
    json!([message.role(), text])
}

/// A session with extensions as its hook.
pub struct Stage {
    pub directory: TempDir,
    pub extensions: Extensions,
    pub program: Arc<Program>,
    pub lines: Lines,
    session: Handle,
    settled: mpsc::Receiver<()>,
}

/// Loads the extensions `(file, source)`.
pub async fn load(
    files: &[(&str, &str)],
    options: Options,
) -> Result<(TempDir, Loaded), LoadFailure> {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    let entries = files.iter().map(|(name, source)| {
        let path = root.join(name);
        fs::write(&path, source).unwrap();
        ExtensionEntry {
            source_info: json!({"path": path, "source": "cli", "scope": "temporary", "origin": "top-level"}),
            path,
        }
    });
    let loaded = Extensions::load(entries.collect(), options).await?;
    Ok((directory, loaded))
}

impl Stage {
    pub async fn new(source: &str) -> Self {
        Self::with(&[("extension.ts", source)], Map::new(), |options| options).await
    }

    /// Creates a stage whose engine and extensions follow pi 1.x.
    pub async fn modern(source: &str) -> Self {
        Self::with(&[("extension.ts", source)], Map::new(), |options| Options {
            release: ApiRelease::Modern,
            mode: Mode::Rpc,
            ..options
        })
        .await
    }

    pub async fn with(
        files: &[(&str, &str)],
        flags: Map<String, Value>,
        change: impl FnOnce(Options) -> Options,
    ) -> Self {
        let lines = Lines::default();
        let sink = lines.clone();
        let program = Arc::new(Program::default());
        let options = change(Options {
            has_ui: true,
            services: Arc::clone(&program) as Arc<dyn Services>,
            records: Arc::new(move |record| {
                let mut record: Value = serde_json::from_str(&record).unwrap();
                let record = record.as_object_mut().unwrap();
                assert_eq!(record.remove("type").unwrap(), "extension_ui_request");
                sink.push(json!({"ui": record}));
            }),
            ..Options::default()
        });
        let release = options.release;
        let (directory, loaded) = load(files, options).await.expect("it loads");
        let extensions = loaded.extensions;
        extensions.start(flags).await.expect("it starts");
        let (sender, settled) = mpsc::channel(MOST_SETTLED);
        let cwd = directory.path().canonicalize().unwrap();
        let behaviour = behaviour(release);
        let session = spawn(cwd, &extensions, &program, lines.clone(), sender, behaviour);
        extensions.begin().await;
        Self {
            directory,
            extensions,
            program,
            lines,
            session,
            settled,
        }
    }

    pub async fn ask(&self, command: Command) -> Result<Answer, EngineError> {
        let (sender, answer) = oneshot::channel();
        let reply = Reply::new(move |result| drop(sender.send(result)));
        self.session.send(command, reply).await;
        tokio::time::timeout(Duration::from_secs(60), answer)
            .await
            .expect("an answer in time")
            .expect("an answer")
    }

    /// Sends a prompt and waits for the answer to the command.
    pub async fn say(&self, text: &str) {
        self.ask(Command::Prompt(Prompt::new(text)))
            .await
            .expect("it is taken");
    }

    /// Waits until a run has settled.
    pub async fn settle(&mut self) {
        tokio::time::timeout(Duration::from_secs(60), self.settled.recv())
            .await
            .expect("it settles in time")
            .expect("it settles");
    }

    /// Sends a prompt, waits for the run that it starts, and returns the lines that a client would have read.
    pub async fn live(&mut self, text: &str) -> Vec<Value> {
        self.lines.take();
        self.say(text).await;
        self.settle().await;
        self.lines.take()
    }

    /// Runs a command and returns the texts of its notifications.
    pub async fn command(&self, text: &str) -> Vec<String> {
        self.lines.take();
        self.say(text).await;
        notes(&self.lines.take())
    }

    /// Waits for a dialog to open and returns its request.
    pub async fn dialog(&self) -> Value {
        let asks = ["select", "confirm", "input", "editor"];
        let asks = |line: &Value| {
            let method = line["ui"]["method"].as_str();
            method.is_some_and(|method| asks.contains(&method))
        };
        self.seen(asks).await["ui"].clone()
    }

    /// Waits for a line that fits and returns the latest; the lines stay.
    pub async fn seen(&self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let found = {
                let lines = self.lines.0.lock().unwrap();
                lines.iter().rev().find(|line| fits(line)).cloned()
            };
            match found {
                Some(line) => return line,
                None => tokio::time::sleep(Duration::from_millis(2)).await,
            }
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(name)
    }
}

/// Returns the texts of notifications.
pub fn notes(lines: &[Value]) -> Vec<String> {
    let notes = lines.iter().filter(|line| line["ui"]["method"] == "notify");
    let texts = notes.filter_map(|line| line["ui"]["message"].as_str());
    texts.map(str::to_owned).collect()
}

/// Returns the switches that concern hooks.
fn behaviour(release: ApiRelease) -> EngineBehaviour {
    let is_modern = release == ApiRelease::Modern;
    EngineBehaviour {
        context_after_messages: is_modern,
        ask_hooks_about_queued_messages: is_modern,
        ask_hooks_about_custom_runs: is_modern,
        reject_empty_compaction: is_modern,
        ..EngineBehaviour::default()
    }
}

fn spawn(
    cwd: PathBuf,
    extensions: &Extensions,
    program: &Arc<Program>,
    lines: Lines,
    settled: mpsc::Sender<()>,
    behaviour: EngineBehaviour,
) -> Handle {
    let new = NewSession {
        cwd: cwd.clone(),
        directory: Some(cwd.join("sessions")),
        id: None,
        parent_session: None,
    };
    let tools = builtin(all_names(), ToolSettings::default());
    let active: Vec<String> = ["read", "bash", "edit", "write"].map(str::to_owned).into();
    let config = Config {
        store: Store::create(new).unwrap(),
        messages: Vec::new(),
        session_directory: Some(cwd.join("sessions")),
        cwd,
        model: Some(model("m1")),
        thinking_level: ThinkingLevel::Off,
        models: Arc::new(OneProvider(Arc::clone(program))),
        tools,
        active_tools: active,
        added_tools: extensions.tools(),
        tool_supply: None,
        tool_filter: Default::default(),
        shell: ToolSettings::default(),
        system_prompt: Arc::new(|_: &[Arc<dyn Tool>]| "You help.".into()),
        mask: Default::default(),
        settings: EngineSettings {
            auto_retry: false,
            steering: Steering::WaitsForTurn,
            tool_order: ToolOrder::Parallel,
            behaviour,
            ..EngineSettings::default()
        },
        preferences: Arc::new(Plain),
        expander: Arc::new(Plain),
        listeners: vec![Arc::new(Ear { lines, settled })],
        hooks: Some(Arc::new(extensions.clone()) as Arc<dyn Hooks>),
        gate: Some(Arc::new(RefuseGated)),
    };
    Session::spawn(config).0
}
