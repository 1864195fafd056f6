//! The extensions of a run: finds them, loads them before the session begins, and connects them to the client.

mod services;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pinion_agent::Participant;
use pinion_cli::{Problem, PromptLine};
use pinion_config::{Dirs, ProjectTrust, Settings, find_extensions};
use pinion_extensions::{
    ApiRelease, ExtensionEntry, Extensions, Flag, FlagKind, InputSource, LoadProblem, Mode,
    Options, RecordSink, RoomCheck, Script, ScriptOptions,
};
use pinion_text::nearest;
use serde_json::{Map, Value, json};

pub(crate) use self::services::{Ground, ProgramServices};
use crate::cli::Flags;
use crate::failure::Failure;

/// The client that extensions and approvals talk to.
pub(crate) struct Audience {
    /// Sends a record to the client.
    pub records: RecordSink,
    /// Reports whether the client has room for more records.
    pub has_room: RoomCheck,
    /// A client that can answer questions is connected.
    pub has_ui: bool,
    /// The origin of prompts, as extensions see it.
    pub source: InputSource,
    /// The way in which the session is used.
    pub mode: Mode,
}

impl Audience {
    /// Creates an audience without a client: records are dropped.
    pub fn none(mode: Mode) -> Self {
        Self {
            records: Arc::new(|_| ()),
            has_room: Arc::new(|| true),
            has_ui: false,
            source: InputSource::Interactive,
            mode,
        }
    }
}

/// Returns the options of extensions from the settings.
pub(crate) fn options(settings: &Settings, dirs: &Dirs) -> Options {
    let number = |name: &str| settings.get_global(name).and_then(Value::as_u64);
    let mut script = ScriptOptions {
        cache_dir: cache_dir(dirs),
        ..ScriptOptions::default()
    };
    if let Some(seconds) = number("extensionLimits.busySeconds") {
        script.busy_limit = Duration::from_secs(seconds);
    }
    if let Some(megabytes) = number("extensionLimits.memoryMb") {
        script.memory_limit = usize::try_from(megabytes << 20)
            .ok()
            .filter(|&limit| limit > 0);
    }
    let mut options = Options {
        script,
        theme: settings
            .get("theme")
            .and_then(Value::as_str)
            .map(str::to_owned),
        ..Options::default()
    };
    if let Some(seconds) = number("extensionLimits.handlerSeconds") {
        options.handler_timeout = Duration::from_secs(seconds);
    }
    options
}

/// Returns the directory of the cache of transformed scripts, which can be deleted at any time.
fn cache_dir(dirs: &Dirs) -> Option<PathBuf> {
    let named = std::env::var_os("XDG_CACHE_HOME").filter(|path| !path.is_empty());
    let base = named.map_or_else(|| dirs.home.join(".cache"), PathBuf::from);
    base.is_absolute().then(|| base.join("pinion/extensions"))
}

/// Extensions that were found, and the script engine that will run them.
pub(crate) struct Found {
    entries: Vec<ExtensionEntry>,
    options: Options,
    engine: Script,
}

/// Starts a script engine if the command line names extensions: it starts while everything else is read.
pub(crate) fn start_ahead(flags: &Flags) -> Option<Script> {
    if flags.extensions.is_empty() {
        return None;
    }
    // If it cannot be started now, `find` tries again and reports the reason.
    Extensions::start_engine(ScriptOptions::default()).ok()
}

/// Finds the extensions of a run; `None` if there are none. `engine` is an engine that already runs.
pub(crate) fn find(
    flags: &Flags,
    dirs: &Dirs,
    settings: &Settings,
    trust: ProjectTrust,
    engine: Option<Script>,
) -> Result<Option<Found>, Failure> {
    let found = find_extensions(dirs, settings, &flags.extension_flags(), trust);
    for notice in &found.notices {
        eprintln!("Warning: {notice}");
    }
    if found.entries.is_empty() {
        return Ok(None);
    }
    let entries = found.entries.into_iter().map(|entry| ExtensionEntry {
        source_info: json!(entry.source_info),
        path: entry.path,
    });
    let options = options(settings, dirs);
    let engine = match engine {
        Some(engine) => engine,
        None => Extensions::start_engine(options.script.clone())?,
    };
    Ok(Some(Found {
        entries: entries.collect(),
        engine,
        options,
    }))
}

/// Loads the extensions that were found and starts them with the values of their flags.
pub(crate) async fn load(
    found: Option<Found>,
    flags: &Flags,
    services: Arc<ProgramServices>,
    audience: Audience,
    release: ApiRelease,
) -> Result<Option<Started>, Failure> {
    let Some(found) = found else {
        return Ok(None);
    };
    let options = Options {
        has_ui: audience.has_ui,
        source: audience.source,
        mode: audience.mode,
        release,
        records: audience.records,
        has_room: audience.has_room,
        services,
        ..found.options
    };
    let loading = Extensions::load_into(found.engine, found.entries, options);
    let loaded = loading.await?;
    let values = flag_values(&loaded.flags(), &flags.prompt)?;
    let started = loaded.extensions.start(values).await;
    started.map_err(|problems| {
        let messages = problems
            .iter()
            .map(|LoadProblem { path, message }| format!("Extension \"{path}\" error: {message}"));
        Failure::all(messages)
    })?;
    let reports = loaded.report();
    let mut events = reports.iter().flat_map(|report| &report.events);
    Ok(Some(Started {
        may_add_tools: events.any(|event| event == "session_start"),
        extensions: loaded.extensions,
    }))
}

pub(crate) struct Started {
    pub extensions: Extensions,
    /// An extension handles `session_start`, and may register tools then.
    pub may_add_tools: bool,
}

/// Returns the values that unknown flags of the command line give to flags of extensions. Fails if no extension has the
/// flag.
fn flag_values(known: &[Flag], line: &PromptLine) -> Result<Map<String, Value>, Failure> {
    let mut values = Map::new();
    let mut unknown = Vec::new();
    for given in &line.unknown {
        // Short flags were refused when the line was read.
        let Some(name) = given.long_name() else {
            continue;
        };
        let Some(flag) = known.iter().find(|flag| flag.name == name) else {
            unknown.push(given.written.as_str());
            continue;
        };
        let value = match (flag.kind, &given.value) {
            (FlagKind::Boolean, _) => Value::Bool(true),
            (FlagKind::String, Some(value)) => Value::String(value.clone()),
            (FlagKind::String, None) => {
                let words = format!("Extension flag \"--{name}\" requires a value");
                return Err(Failure::failed(words));
            }
        };
        values.insert(name.to_owned(), value);
    }
    match unknown.as_slice() {
        [] => Ok(values),
        [one] => {
            let hint = nearest_flag(one, known, line);
            let hint = hint.map_or_else(String::new, |near| format!(". Did you mean {near}?"));
            Err(Failure::failed(format!("Unknown option: {one}{hint}")))
        }
        several => Err(Failure::failed(format!(
            "Unknown options: {}",
            several.join(", ")
        ))),
    }
}

/// Returns the flag of an extension or of pinion that is nearest to an unknown one.
fn nearest_flag(written: &str, known: &[Flag], line: &PromptLine) -> Option<String> {
    let name = written.trim_start_matches('-');
    match nearest(name, known.iter().map(|flag| flag.name.as_str())) {
        Some(near) => Some(format!("--{near}")),
        None => match line.unknown_flag(written) {
            Problem::UnknownFlag { nearest, .. } => nearest.map(str::to_owned),
            _ => None,
        },
    }
}

/// Extensions as a participant of a conversation.
pub(crate) struct Talker(pub Extensions);

impl Participant for Talker {
    fn choice(&self, id: &str, choice: &Map<String, Value>) {
        self.0.dialogs().answer(id, &Value::Object(choice.clone()));
    }

    fn wants_to_end(&self) -> bool {
        self.0.shutdown_requested()
    }

    fn hang_up(&self) {
        self.0.dialogs().hang_up();
    }
}
