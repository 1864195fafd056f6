//! A session in memory with a scripted provider, scripted tools and a recording of its events.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use pinion_agent::{
    Answer, Command, Config, Delivery, EngineError, EngineSettings, Expanded, Expander, Gate,
    Handle, Hooks, Listener, Models, Preferences, Prompt, Reply, Session, StateView,
};
use pinion_llm::{Authorization, Provider};
use pinion_message::{Model, ModelCost, StopReason, ThinkingLevel};
use pinion_session::{NewSession, Store};
use pinion_tools::{Execution, Tool, ToolSettings};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::events::{Recorder, answer, ends_once, last_answer};
use crate::provider::{Asked, Gates, ScriptedProvider, Turn, described};
use crate::tools::ScriptedTool;

/// The context window of every model, in tokens.
pub const WINDOW: u64 = 200_000;

fn model(id: &str, reasoning: bool) -> Arc<Model> {
    Arc::new(Model {
        id: id.to_owned(),
        name: id.to_uppercase(),
        api: "scripted".to_owned(),
        provider: "bench".to_owned(),
        base_url: String::new(),
        reasoning,
        thinking_level_map: None,
        input: vec!["text".to_owned()],
        cost: ModelCost::default(),
        context_window: WINDOW,
        max_tokens: 8_000,
        headers: None,
        compat: None,
    })
}

/// Offers the models `plain`, `thinker` and `locked`; the last one has no key.
struct BenchModels {
    all: Vec<Arc<Model>>,
    provider: Arc<ScriptedProvider>,
}

impl Models for BenchModels {
    fn find(&self, provider: &str, id: &str) -> Option<Arc<Model>> {
        let mut all = self.all.iter();
        all.find(|model| model.provider == provider && model.id == id)
            .cloned()
    }

    fn available(&self) -> Vec<Arc<Model>> {
        let with_key = |model: &&Arc<Model>| self.check_credentials(model).is_ok();
        self.all.iter().filter(with_key).cloned().collect()
    }

    fn scoped(&self) -> Vec<(Arc<Model>, Option<ThinkingLevel>)> {
        Vec::new()
    }

    fn access(&self, _: &Model) -> BoxFuture<'static, Result<Authorization, String>> {
        Box::pin(std::future::ready(Ok(Authorization::default())))
    }

    fn provider(&self, _: &Model) -> Arc<dyn Provider> {
        Arc::clone(&self.provider) as Arc<dyn Provider>
    }

    fn check_credentials(&self, model: &Model) -> Result<(), String> {
        if model.id == "locked" {
            Err("No API key for locked.".to_owned())
        } else {
            Ok(())
        }
    }
}

/// Remembers the names of stored preferences, and expands `/hello`.
#[derive(Default)]
pub struct Remembered(Mutex<Vec<(&'static str, Option<Value>)>>);

impl Preferences for Remembered {
    fn remember(&self, changes: Vec<(&'static str, Option<Value>)>) {
        self.0.lock().unwrap().extend(changes);
    }
}

impl Remembered {
    pub fn names(&self) -> Vec<&'static str> {
        let stored = self.0.lock().unwrap();
        stored.iter().map(|(name, _)| *name).collect()
    }
}

struct Templates;

impl Expander for Templates {
    fn expand(&self, text: &str) -> Expanded {
        Expanded {
            text: text.replace("/hello", "Say hello."),
            fault: None,
        }
    }

    fn commands(&self) -> Value {
        json!([{"name": "hello"}])
    }
}

/// The parts that a case may replace before its session starts.
#[derive(Default)]
pub struct Parts {
    pub settings: EngineSettings,
    pub hooks: Option<Arc<dyn Hooks>>,
    pub gate: Option<Arc<dyn Gate>>,
    /// Starts without a model.
    pub without_model: bool,
    /// The session file; by default the session is in memory.
    pub file: Option<PathBuf>,
}

/// A session with everything that a case needs to drive and observe it.
pub struct Bench {
    pub session: Handle,
    pub task: JoinHandle<()>,
    pub gates: Gates,
    pub preferences: Arc<Remembered>,
    provider: Arc<ScriptedProvider>,
    recorder: Arc<Recorder>,
    tool_log: Arc<Mutex<Vec<String>>>,
    /// Number of lines that [`Bench::until`] has passed.
    seen: usize,
}

/// Starts a session with default settings.
pub fn bench(script: Vec<Turn>) -> Bench {
    bench_with(script, Parts::default())
}

/// Starts a session with other settings.
pub fn bench_set(script: Vec<Turn>, change: impl FnOnce(&mut EngineSettings)) -> Bench {
    let mut parts = Parts::default();
    change(&mut parts.settings);
    bench_with(script, parts)
}

pub fn bench_with(script: Vec<Turn>, parts: Parts) -> Bench {
    let gates = Gates::default();
    let provider = Arc::new(ScriptedProvider::new(script, gates.clone()));
    let recorder = Arc::new(Recorder::default());
    let tool_log = Arc::new(Mutex::default());
    let preferences = Arc::new(Remembered::default());
    let all = vec![
        model("plain", false),
        model("thinker", true),
        model("locked", false),
    ];
    let tool = |name, execution| ScriptedTool::shared(name, execution, &gates, &tool_log);
    let new = NewSession {
        cwd: std::env::temp_dir(),
        directory: None,
        id: None,
        parent_session: None,
    };
    let store = match parts.file {
        Some(file) => Store::at_path(&file, &new.cwd),
        None => Store::create(new).unwrap(),
    };
    let config = Config {
        messages: store.context().messages,
        store,
        cwd: std::env::temp_dir(),
        session_directory: None,
        model: (!parts.without_model).then(|| Arc::clone(&all[0])),
        thinking_level: ThinkingLevel::Off,
        models: Arc::new(BenchModels {
            all,
            provider: Arc::clone(&provider),
        }),
        tools: vec![
            tool("act", Execution::Parallel),
            tool("act_alone", Execution::Sequential),
        ],
        active_tools: ["act", "act_alone"].map(str::to_owned).into(),
        added_tools: Vec::new(),
        tool_supply: None,
        tool_filter: Default::default(),
        shell: ToolSettings::default(),
        system_prompt: Arc::new(|_: &[Arc<dyn Tool>]| "Be brief.".into()),
        mask: Default::default(),
        settings: parts.settings,
        preferences: Arc::clone(&preferences) as _,
        expander: Arc::new(Templates),
        listeners: vec![Arc::clone(&recorder) as Arc<dyn Listener>],
        hooks: parts.hooks,
        gate: parts.gate,
    };
    let (session, task) = Session::spawn(config);
    Bench {
        session,
        task,
        gates,
        preferences,
        provider,
        recorder,
        tool_log,
        seen: 0,
    }
}

/// The answer to a command that was sent and may not be answered yet.
pub type PendingAnswer = oneshot::Receiver<Result<Answer, EngineError>>;

impl Bench {
    /// Sends a command without waiting for its answer.
    pub async fn send(&self, command: Command) -> PendingAnswer {
        let (sender, answer) = oneshot::channel();
        let reply = Reply::new(move |result| drop(sender.send(result)));
        self.session.send(command, reply).await;
        answer
    }

    pub async fn ask(&self, command: Command) -> Result<Answer, EngineError> {
        let answer = self.send(command).await;
        answer.await.expect("every command is answered")
    }

    /// Returns the error of a command that must fail.
    pub async fn refused(&self, command: Command) -> EngineError {
        self.ask(command).await.expect_err("the command fails")
    }

    pub async fn prompt(&self, text: &str) {
        let command = Command::Prompt(Prompt::new(text));
        self.ask(command).await.expect("the prompt is accepted");
    }

    /// Sends a prompt and waits until the session is idle. Returns the events in between.
    pub async fn run(&mut self, text: &str) -> Vec<String> {
        self.prompt(text).await;
        self.settled().await
    }

    /// Waits until the session is idle and returns the events up to then.
    pub async fn settled(&mut self) -> Vec<String> {
        self.until("settled").await
    }

    /// Waits for an event whose line begins with `start`. Returns the lines since the last wait.
    pub async fn until(&mut self, start: &str) -> Vec<String> {
        self.recorder.until(&mut self.seen, start).await
    }

    /// Returns the lines since the last wait, without waiting.
    pub fn news(&mut self) -> Vec<String> {
        self.recorder.news(&mut self.seen)
    }

    pub async fn queue(&self, text: &str, delivery: Delivery) {
        let command = Command::Queue {
            text: text.to_owned(),
            images: Vec::new(),
            delivery,
        };
        self.ask(command).await.expect("the message is queued");
    }

    pub async fn steer(&self, text: &str) {
        self.queue(text, Delivery::Steer).await;
    }

    pub async fn follow_up(&self, text: &str) {
        self.queue(text, Delivery::FollowUp).await;
    }

    pub async fn abort(&self) {
        self.ask(Command::Abort).await.expect("an abort succeeds");
    }

    pub async fn state(&self) -> StateView {
        match self.ask(Command::GetState).await {
            Ok(Answer::State(state)) => *state,
            other => panic!("{other:?}"),
        }
    }

    /// Returns the conversation, one `role: text` per message.
    pub async fn conversation(&self) -> Vec<String> {
        match self.ask(Command::GetMessages).await {
            Ok(Answer::Messages(messages)) => messages.iter().map(|one| described(one)).collect(),
            other => panic!("{other:?}"),
        }
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.provider.asked()
    }

    pub fn tool_log(&self) -> Vec<String> {
        self.tool_log.lock().unwrap().clone()
    }

    /// Checks that the session is idle and answers another prompt with `text`, the next turn of the script.
    pub async fn assert_continues(&mut self, text: &str) {
        let state = self.state().await;
        assert!(!state.is_streaming && !state.is_compacting, "{state:?}");
        self.news();
        let lines = self.run("continue").await;
        ends_once(&lines);
        assert_eq!(last_answer(&lines), answer(StopReason::Stop, text));
    }
}
