//! All extensions of one process: loading them, and the state that outlives the replacement of a session.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use pinion_agent::SessionApi;
use pinion_tools::Tool;
use serde_json::{Map, Value, json};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::bridge::WeakBridge;
use super::children::Children;
use super::dialogs::{Dialogs, OpenDialogs};
use super::held_records::HeldRecords;
use super::instance::Instance;
use super::loaded::{LoadFailure, LoadProblem, Loaded, Summary};
use super::nested_calls::NestedCalls;
use super::options::{ApiRelease, Options};
use super::partial_answer::PartialAnswer;
use super::provider::OpenStreams;
use super::replacement::Compactions;
use super::tool::ExtensionTool;
use super::work::Updates;
use crate::{Script, ScriptError, ScriptOptions, Uncaught, UncaughtKind};

/// An extension to load.
#[derive(Debug, Clone, PartialEq)]
pub struct ExtensionEntry {
    /// The file of the module.
    pub path: PathBuf,
    /// The origin of the extension, as clients see it.
    pub source_info: Value,
}

/// All extensions of one process. Cheap to clone.
#[derive(Clone)]
pub struct Extensions {
    pub(super) inner: Arc<Inner>,
}

/// State that all handles share.
pub(super) struct Inner {
    pub options: Options,
    /// The runtime of the program's own work.
    pub runtime: Handle,
    script: OnceLock<Script>,
    desk: OnceLock<SessionApi>,
    instances: Mutex<Instances>,
    /// The moments that the current instance has handlers for, one bit each.
    pub wants: AtomicU64,
    /// Instances with a smaller number belong to sessions that were replaced.
    stale_before: AtomicU64,
    pub dialogs: OpenDialogs,
    pub held_records: HeldRecords,
    pub updates: Updates,
    pub nested: NestedCalls,
    pub streams: OpenStreams,
    pub children: Children,
    pub compactions: Mutex<Compactions>,
    /// Programs that run for extensions, with the token that stops each.
    pub programs: Mutex<HashMap<String, CancellationToken>>,
    pub run: Mutex<RunState>,
    /// The client has disconnected.
    pub client_gone: AtomicBool,
    /// An extension requested the end of the program.
    pub shutdown: AtomicBool,
    /// The time at which extensions were last reloaded because they ran out of memory.
    pub last_restart: Mutex<Option<Instant>>,
}

#[derive(Default)]
struct Instances {
    entries: Vec<ExtensionEntry>,
    flags: Map<String, Value>,
    current: Option<Arc<Instance>>,
    /// Every instance whose JavaScript may still send requests.
    alive: HashMap<u64, Arc<Instance>>,
    count: u64,
}

/// The state of the active run.
#[derive(Default)]
pub(super) struct RunState {
    /// The number and the cancellation of the active run; `None` between runs.
    pub active: Option<(u64, CancellationToken)>,
    pub count: u64,
    pub turn: u64,
    pub partial_answer: PartialAnswer,
}

/// The event bus of a new instance.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Bus {
    Inherited,
    New,
}

impl Extensions {
    /// Loads extensions, one after another. They cannot reach a session yet.
    ///
    /// # Errors
    ///
    /// Fails if an extension cannot be loaded or two of them conflict, unless problems are tolerated.
    pub async fn load(
        entries: Vec<ExtensionEntry>,
        options: Options,
    ) -> Result<Loaded, LoadFailure> {
        let script = Self::start_engine(options.script.clone())?;
        Self::load_into(script, entries, options).await
    }

    /// Starts the engine early, while other work runs before extensions can be loaded.
    ///
    /// # Errors
    ///
    /// Fails if the engine's thread cannot be started.
    pub fn start_engine(options: ScriptOptions) -> Result<Script, LoadFailure> {
        Script::start(options).map_err(|error| LoadFailure::Engine(error.to_string()))
    }

    /// Like [`Extensions::load`], with an engine that was started before all options were known.
    ///
    /// # Errors
    ///
    /// As [`Extensions::load`].
    pub async fn load_into(
        script: Script,
        entries: Vec<ExtensionEntry>,
        options: Options,
    ) -> Result<Loaded, LoadFailure> {
        let lenient = options.lenient;
        let inner = Arc::new(Inner {
            options,
            runtime: Handle::current(),
            script: OnceLock::new(),
            desk: OnceLock::new(),
            instances: Mutex::new(Instances {
                entries,
                ..Instances::default()
            }),
            wants: AtomicU64::new(0),
            stale_before: AtomicU64::new(0),
            dialogs: OpenDialogs::default(),
            held_records: HeldRecords::default(),
            updates: Updates::default(),
            nested: NestedCalls::default(),
            streams: OpenStreams::default(),
            children: Children::default(),
            compactions: Mutex::default(),
            programs: Mutex::default(),
            run: Mutex::default(),
            client_gone: AtomicBool::new(false),
            shutdown: AtomicBool::new(false),
            last_restart: Mutex::default(),
        });
        let weak = Arc::downgrade(&inner);
        let connected = ScriptOptions {
            services: Arc::clone(&inner.options.services),
            bridge: Some(Arc::new(WeakBridge(Arc::downgrade(&inner)))),
            on_uncaught: Arc::new(move |uncaught| {
                if let Some(inner) = weak.upgrade() {
                    inner.report_uncaught(&uncaught);
                }
            }),
            ..inner.options.script.clone()
        };
        script
            .connect(connected)
            .map_err(|error| inner.load_failure(&error))?;
        // The cell is set only here.
        let _ = inner.script.set(script);
        let instance = inner
            .load_instance(Bus::New)
            .await
            .map_err(|error| inner.load_failure(&error))?;
        let summary = instance.summary.clone();
        inner.make_current(&instance);
        if !lenient && !summary.problems.is_empty() {
            return Err(LoadFailure::Problems(summary.problems));
        }
        let extensions = Self { inner };
        Ok(Loaded {
            extensions,
            summary,
        })
    }

    /// Applies the values of command-line flags and registers the providers of extensions. Call it before the model is
    /// chosen.
    ///
    /// # Errors
    ///
    /// Returns the providers that cannot be registered.
    pub async fn start(&self, flags: Map<String, Value>) -> Result<(), Vec<LoadProblem>> {
        self.inner.lock_instances().flags = flags;
        let Some(instance) = self.inner.current() else {
            return Ok(());
        };
        let problems = self.inner.start_instance(&instance).await;
        if problems.is_empty() || self.inner.options.lenient {
            Ok(())
        } else {
            Err(problems)
        }
    }

    /// Announces the start of the session to extensions and collects their skills and prompts. Call it after the
    /// session was spawned with these extensions as a hook.
    pub async fn begin(&self) {
        let Some(instance) = self.inner.current() else {
            return;
        };
        // Clients do not read about thinking levels that extensions set while they start.
        let emit_levels = |emits| {
            if let Some(desk) = self.inner.desk() {
                desk.emit_levels(emits);
            }
        };
        emit_levels(false);
        self.inner
            .begin_instance(&instance, json!({"reason": "startup"}), "startup")
            .await;
        emit_levels(true);
    }

    /// Returns the tools of extensions, for the start of the session.
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let instance = self.inner.current();
        instance.map_or_else(Vec::new, |instance| self.inner.tools_of(&instance))
    }

    /// Returns the commands of extensions, as `get_commands` lists them.
    pub fn commands(&self) -> Vec<Value> {
        let instance = self.inner.current();
        instance.map_or_else(Vec::new, |instance| instance.commands())
    }

    /// Returns a handle that accepts the client's answers.
    pub fn dialogs(&self) -> Dialogs {
        Dialogs(Arc::downgrade(&self.inner))
    }

    /// Reports whether an extension requested the end of the program. Check it after every command.
    pub fn shutdown_requested(&self) -> bool {
        self.inner.shutdown.load(Ordering::Acquire)
    }
}

impl std::fmt::Debug for Extensions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Extensions")
    }
}

impl Inner {
    pub fn script(&self) -> Result<&Script, ScriptError> {
        self.script.get().ok_or(ScriptError::Ended)
    }

    /// Returns the session after it has started.
    pub fn desk(&self) -> Option<&SessionApi> {
        self.desk.get()
    }

    pub fn set_desk(&self, desk: SessionApi) {
        // Extensions serve only one session: a second one is ignored.
        let _ = self.desk.set(desk);
    }

    fn lock_instances(&self) -> MutexGuard<'_, Instances> {
        self.instances
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the instance that receives the session's events.
    pub fn current(&self) -> Option<Arc<Instance>> {
        self.lock_instances().current.clone()
    }

    /// Returns the instance of this number while its JavaScript exists.
    pub fn instance(&self, number: u64) -> Option<Arc<Instance>> {
        self.lock_instances().alive.get(&number).cloned()
    }

    pub fn is_stale(&self, number: u64) -> bool {
        number < self.stale_before.load(Ordering::Acquire)
    }

    /// Loads every extension into a new instance.
    pub async fn load_instance(&self, bus: Bus) -> Result<Arc<Instance>, ScriptError> {
        let script = self.script()?;
        let opening = script.begin_generation()?;
        let generation = opening.generation;
        let found = self.options.services.entries();
        let (number, entries) = {
            let mut instances = self.lock_instances();
            instances.count += 1;
            if let Some(found) = found {
                instances.entries = found;
            }
            (instances.count, instances.entries.clone())
        };
        let entries: Vec<Value> = entries.iter().map(entry_json).collect();
        let request = json!({
            "generation": number,
            "entries": entries,
            "keepBus": bus == Bus::Inherited,
            "hasUi": self.options.has_ui,
            "mode": self.options.mode.name(),
            "modern": self.options.release == ApiRelease::Modern,
            "patience": self.options.handler_timeout.as_millis() as u64,
        });
        let arguments = vec![request.to_string()];
        let answer = match script.call(generation, "main.load", arguments).await {
            Err(ScriptError::Closed) => {
                return Err(opening.finish().await.err().unwrap_or(ScriptError::Closed));
            }
            answer => answer?,
        };
        let summary: Summary = pinion_jsonl::json::from_slice(answer.as_bytes())
            .map_err(|error| ScriptError::Interrupted(error.to_string()))?;
        let instance = Arc::new(Instance::new(number, generation, summary));
        self.lock_instances()
            .alive
            .insert(number, Arc::clone(&instance));
        Ok(instance)
    }

    /// Applies flags and registers providers. Returns the problems with providers.
    pub async fn start_instance(&self, instance: &Instance) -> Vec<LoadProblem> {
        let Ok(script) = self.script() else {
            return Vec::new();
        };
        let request = json!({"flags": self.lock_instances().flags.clone()});
        let arguments = vec![request.to_string()];
        let generation = instance.generation;
        if !instance.summary.has_providers() {
            // Later calls run after this one, and fail too if the engine has ended.
            let posted = script.post(generation, "main.start", arguments.clone());
            if posted != Err(ScriptError::Busy) {
                return Vec::new();
            }
        }
        let answer = script.call(generation, "main.start", arguments).await;
        let summary =
            answer.map(|answer| pinion_jsonl::json::from_slice::<Summary>(answer.as_bytes()));
        match summary {
            Ok(Ok(summary)) => summary.problems,
            _ => Vec::new(),
        }
    }

    /// Makes `instance` receive the session's events, and its registrations take effect.
    pub fn make_current(&self, instance: &Arc<Instance>) {
        self.lock_instances().current = Some(Arc::clone(instance));
        self.wants.store(instance.moments(), Ordering::Release);
    }

    /// Marks the instances before `number` as belonging to a replaced session.
    pub fn retire_before(&self, number: u64) {
        self.stale_before.fetch_max(number, Ordering::AcqRel);
    }

    /// Releases an instance that has no work left.
    pub fn close(&self, instance: &Instance) {
        self.children.close_generation(instance.number);
        self.lock_instances().alive.remove(&instance.number);
        if let Ok(script) = self.script() {
            script.close_generation(instance.generation);
        }
    }

    pub fn tools_of(self: &Arc<Self>, instance: &Instance) -> Vec<Arc<dyn Tool>> {
        let cards = instance
            .summary
            .extensions
            .iter()
            .flat_map(|card| &card.tools);
        let tools = cards.map(|card| ExtensionTool::shared(self, instance.number, card.clone()));
        tools.collect()
    }

    /// Reports a failure of an extension to the client.
    pub fn fault(&self, source: &str, during: &str, error: String) {
        self.report_fault(source.to_owned(), during.to_owned(), error);
    }

    pub fn report_fault(&self, source: String, during: String, error: String) {
        match self.desk() {
            Some(desk) => desk.fault(source, during, error),
            None => eprintln!("Extension error ({source}, {during}): {error}"),
        }
    }

    fn report_uncaught(self: &Arc<Self>, uncaught: &Uncaught) {
        if uncaught.kind == UncaughtKind::Exhausted {
            let inner = Arc::clone(self);
            let message = uncaught.message.clone();
            self.runtime
                .spawn(async move { inner.restart(message).await });
            return;
        }
        let source = uncaught
            .stack
            .as_deref()
            .and_then(|stack| self.responsible_extension(stack));
        let source = source.unwrap_or_else(|| "<runtime>".to_owned());
        self.deliver_fault(&source, "uncaught", uncaught.message.clone());
    }

    /// Converts an error to a load failure that names the responsible extension if it is known.
    fn load_failure(&self, error: &ScriptError) -> LoadFailure {
        let message = error.to_string();
        match self.responsible_extension(&message) {
            None => LoadFailure::Engine(message),
            Some(path) => LoadFailure::Problems(vec![LoadProblem { path, message }]),
        }
    }

    /// Returns the extension that a stack trace leads to.
    fn responsible_extension(&self, stack: &str) -> Option<String> {
        let instances = self.lock_instances();
        let paths = instances
            .entries
            .iter()
            .map(|entry| entry.path.display().to_string());
        let mut known: Vec<String> = paths.filter(|path| stack.contains(path.as_str())).collect();
        known.sort_by_key(|path| stack.find(path.as_str()));
        known.into_iter().next()
    }
}

fn entry_json(entry: &ExtensionEntry) -> Value {
    json!({
        "path": entry.path.display().to_string(),
        "sourceInfo": entry.source_info,
        "missing": !entry.path.exists(),
    })
}
