//! Builds a session from flags, settings and the files on disk.

mod basis;
mod companions;
mod mcp;
mod model;
mod prompter;
mod session;
mod settings;
mod shared;
mod tool_choice;
mod tool_names;

use std::future::poll_fn;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use pinion_acp::ClientServer;
use pinion_agent::{Config, Expanded, Expander, Gate, Hooks, Listener};
use pinion_approval::{Approvals, Ask};
use pinion_codemode::ScriptTools;
use pinion_config::{Discovery, LazyResources, ResourceFlags};
use pinion_extensions::{ApiRelease, Extensions};
use pinion_llm::Registry;
use pinion_pi::Dialect;
use pinion_session::NewEntry;
use pinion_tools::{ResultForm, Tool, ToolSettings};
use serde_json::{Value, json};

pub(crate) use self::basis::{Basis, dialect};
pub(crate) use self::companions::{SHUTDOWN_TIMEOUT, SessionCompanions};
use self::mcp::Supply;
pub(crate) use self::mcp::untrusted_notice;
use self::model::{choose_model, scoped_models};
pub(crate) use self::prompter::Prompter;
pub(crate) use self::session::Conversation;
use self::session::append;
pub(crate) use self::session::session_directory;
pub(crate) use self::settings::{engine_settings, tool_settings};
use self::settings::{with_later_ways, with_modern_behaviour};
pub(crate) use self::shared::Shared;
use self::tool_choice::ToolChoice;
use crate::approvals;
use crate::choices::Choices;
use crate::cli::Flags;
use crate::extensions::{self, Audience, Ground, ProgramServices};
use crate::failure::Failure;
use crate::program::Program;
use crate::sandbox;

/// A session ready to be started, and the parts that the fronts need beside it.
pub(crate) struct Engine {
    pub config: Config,
    pub companions: Arc<SessionCompanions>,
    /// The approvals of a session in an editor, whose mode can change.
    pub approvals: Option<Arc<Approvals>>,
}

/// Inputs of a session that come neither from flags nor from files.
pub(crate) struct Company {
    /// The listeners that receive the session's events.
    pub listeners: Vec<Arc<dyn Listener>>,
    /// The client that extensions and approvals can ask.
    pub audience: Audience,
    /// Tools beside the built-in ones and those of clips and extensions.
    pub tools: Vec<Arc<dyn Tool>>,
    /// The session's own models and keys; `None` shares those of the program.
    pub registry: Option<Registry>,
    /// The parts that a session in an editor has besides.
    pub editor: Option<EditorParts>,
}

/// Parts of a session in an editor.
pub(crate) struct EditorParts {
    /// Asks the client about tool calls.
    pub asker: Arc<dyn Ask>,
    /// The directories of the project besides the working directory.
    pub roots: Vec<PathBuf>,
    pub servers: Vec<ClientServer>,
    /// The editor shows the output of commands as it is printed.
    pub shows_terminals: bool,
}

impl Company {
    /// Creates a company without further tools and with the program's registry.
    pub fn new(listeners: Vec<Arc<dyn Listener>>, audience: Audience) -> Self {
        Self {
            listeners,
            audience,
            tools: Vec::new(),
            registry: None,
            editor: None,
        }
    }
}

/// The shortest time between two updates of one command for an editor without terminals.
const EDITOR_UPDATE_INTERVAL: Duration = Duration::from_millis(500);
/// The built-in tools.
const ALL_TOOLS: &[&str] = &["read", "bash", "edit", "write", "grep", "find", "ls"];
/// The tools that are active unless flags choose others.
const DEFAULT_TOOLS: &[&str] = &["read", "bash", "edit", "write"];

/// Builds a session. Problems with files on disk are reported on stderr and do not stop it.
///
/// Waits for extensions and for the hub of the clips, and reads files: do not call it on a thread that serves other
/// sessions.
pub(crate) async fn build(
    program: Program,
    flags: &Flags,
    basis: Basis,
    conversation: Conversation,
    company: Company,
    shared: &Shared,
) -> Result<Engine, Failure> {
    let Company {
        listeners,
        audience,
        tools: mut added_tools,
        registry,
        editor,
    } = company;
    let Basis {
        dirs,
        trust,
        settings,
        dialect,
        script,
    } = basis;
    let found = extensions::find(flags, &dirs, &settings, trust, script)?;
    let mask = shared.mask.clone();
    let sandbox = sandbox::of_session(flags, &dirs, found.is_some())?;
    let mut choice = ToolChoice::of(flags, &settings)?;
    if sandbox.is_some() {
        choice
            .active
            .retain(|name| sandbox::CONFINED_TOOLS.contains(&name.as_str()));
    }
    let of_client = editor.as_ref().map_or(&[][..], |editor| &editor.servers);
    let supply = Supply::of(flags, &dirs, trust, &settings, &choice, of_client, &mask)?;
    let resources = Arc::new(LazyResources::new(
        dirs.clone(),
        settings.clone(),
        resource_flags(flags, dialect),
        trust,
    ));
    let mut shell = tool_settings(&dirs, &settings, &mask);
    if editor.as_ref().is_some_and(|it| !it.shows_terminals) {
        // Such an editor receives the whole output again with each update.
        shell.update_interval = EDITOR_UPDATE_INTERVAL;
    }
    if let Some(family) = &conversation.family {
        shell
            .env
            .push((pinion_process::FAMILY.into(), family.clone()));
    }
    let ground = Ground {
        dirs: dirs.clone(),
        settings: settings.clone(),
        trust,
        resources: Arc::clone(&resources),
        mask: mask.clone(),
        shell: shell.clone(),
        runtime: tokio::runtime::Handle::current(),
    };
    let registry = registry.unwrap_or_else(|| shared.registry(&dirs));
    let providers = shared.providers.clone();
    let services = Arc::new(ProgramServices::new(registry, providers, ground));
    let policy = match editor {
        None => approvals::policy(&flags.approvals, &settings, &dirs)?,
        Some(_) => Some(approvals::policy_of_editor(
            &flags.approvals,
            &settings,
            &dirs,
        )?),
    };
    let named_tools = tool_names::named(flags, policy.as_ref(), supply.servers.is_some());
    let is_editor = editor.is_some();
    let of_editor = editor.zip(policy.clone()).map(|(editor, policy)| {
        Arc::new(Approvals::new(policy, editor.asker).with_roots(editor.roots))
    });
    let (gate, approvals) = match &of_editor {
        Some(approvals) => (Some(Arc::clone(approvals) as Arc<dyn Gate>), None),
        None => approvals::gate(policy, &audience, &mask),
    };
    let ways = match (dialect, &found) {
        (Dialect::Early | Dialect::Classic, None) if !is_editor => Ways::Classic,
        (Dialect::Early | Dialect::Classic, None) => Ways::Later,
        (Dialect::Modern, _) | (_, Some(_)) => Ways::Later,
    };
    let release = match dialect {
        Dialect::Early | Dialect::Classic => ApiRelease::Classic,
        Dialect::Modern => ApiRelease::Modern,
    };
    let loading = extensions::load(found, flags, Arc::clone(&services), audience, release);
    let mut loading = pin!(loading);
    // Extensions are loaded on a thread of their own; the parts that do not need them are built meanwhile.
    let loaded = poll_fn(|context| Poll::Ready(loading.as_mut().poll(context))).await;
    let prompter = Prompter::read(&dirs, flags, Arc::clone(&resources), trust, shared);
    let prompter = Arc::new(prompter.with_servers(supply.servers.clone()));
    services.set_prompter(Arc::clone(&prompter));
    let mut for_tools = for_tools(&shell, ways, dialect);
    let mut names = ALL_TOOLS;
    if let Some(sandbox) = &sandbox {
        for_tools.confinement = sandbox.confinement.clone();
        names = sandbox::CONFINED_TOOLS;
    }
    let mut tools = pinion_tools::builtin(names, for_tools);
    tools.extend(supply.scripts.iter().flat_map(ScriptTools::tools));
    let started = match loaded {
        Poll::Ready(loaded) => loaded?,
        Poll::Pending => loading.await?,
    };
    let may_add_tools = started
        .as_ref()
        .is_some_and(|started| started.may_add_tools);
    let extensions = started.map(|started| started.extensions);
    let registry = services.registry();
    let scope = scoped_models(&registry, flags, &settings);
    services.set_scope(scope.clone());
    let Conversation {
        mut store,
        directory,
        ..
    } = conversation;
    if let Some(name) = flags
        .name
        .as_deref()
        .map(str::trim)
        .filter(|name| !name.is_empty())
    {
        append(
            &mut store,
            NewEntry::SessionInfo {
                name: name.to_owned(),
            },
        );
    }
    added_tools.extend(shared.clips(&flags.clips).await?);
    added_tools.extend(extensions.iter().flat_map(Extensions::tools));
    let known: Vec<&str> = tools
        .iter()
        .chain(&added_tools)
        .map(|tool| tool.spec().name.as_str())
        .collect();
    let odd = tool_names::check(program, &named_tools, &known, may_add_tools, &dirs)?;
    tell(&odd);
    let (model, thinking_level) = choose_model(
        program, dialect, flags, &settings, &registry, &scope, &mut store,
    )?;
    let mut config = Config {
        messages: store.context().messages,
        store,
        cwd: dirs.cwd.clone(),
        session_directory: directory,
        model,
        thinking_level,
        models: Arc::new(Choices::new(Arc::clone(&services), scope, mask.clone())),
        mask,
        tools,
        active_tools: choice.active,
        added_tools,
        tool_supply: supply.for_engine(),
        tool_filter: choice.filter,
        shell: ToolSettings {
            form: result_form(dialect),
            ..shell
        },
        system_prompt: prompter,
        settings: match (dialect, ways) {
            (_, Ways::Classic) => engine_settings(&settings),
            (Dialect::Modern, Ways::Later) => {
                with_modern_behaviour(with_later_ways(engine_settings(&settings)), &settings)
            }
            (_, Ways::Later) => with_later_ways(engine_settings(&settings)),
        },
        preferences: Arc::clone(&shared.preferences) as _,
        expander: Arc::new(ResourceExpander {
            resources,
            extensions: extensions.clone(),
        }),
        listeners,
        hooks: extensions
            .clone()
            .map(|extensions| Arc::new(extensions) as Arc<dyn Hooks>),
        gate,
    };
    if is_editor {
        config.settings.report_call_details = true;
        config.settings.resize_prompt_images = settings.images().auto_resize;
        // An editor stores its own default model.
        config.settings.behaviour.keep_choices_in_session = true;
    }
    let companions = SessionCompanions {
        extensions,
        approvals,
        services,
        servers: supply.servers,
        _sandbox: sandbox,
    };
    Ok(Engine {
        config,
        companions: Arc::new(companions),
        approvals: of_editor,
    })
}

fn tell<T: std::fmt::Display>(notices: &[T]) {
    for notice in notices {
        eprintln!("Warning: {notice}");
    }
}

struct ResourceExpander {
    resources: Arc<LazyResources>,
    extensions: Option<Extensions>,
}

impl Expander for ResourceExpander {
    fn expand(&self, text: &str) -> Expanded {
        if !text.starts_with('/') {
            return Expanded {
                text: text.to_owned(),
                fault: None,
            };
        }
        let resources = self.resources.get();
        let expanded = resources.expand(text);
        let fault = expanded
            .error
            .map(|error| (error.path.display().to_string(), error.message));
        Expanded {
            text: expanded.text.into_owned(),
            fault,
        }
    }

    fn commands(&self) -> Value {
        let of_extensions = self.extensions.as_ref().map(Extensions::commands);
        let mut commands = of_extensions.unwrap_or_default();
        let resources = self.resources.get().commands();
        commands.extend(resources.iter().map(|command| json!(command)));
        Value::Array(commands)
    }
}

/// The order in which tool calls run and the way they are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ways {
    /// One after the other.
    Classic,
    /// In parallel, and each is reported before it prints anything: modern clients expect this, and so do extensions,
    /// which are written for a later pi.
    Later,
}

fn for_tools(shell: &ToolSettings, ways: Ways, dialect: Dialect) -> ToolSettings {
    ToolSettings {
        send_start_update: ways == Ways::Later,
        form: result_form(dialect),
        ..shell.clone()
    }
}

/// The form of the results of tools that clients of a dialect expect.
fn result_form(dialect: Dialect) -> ResultForm {
    match dialect {
        Dialect::Early | Dialect::Classic => ResultForm::Text,
        Dialect::Modern => ResultForm::Structured,
    }
}

fn resource_flags(flags: &Flags, dialect: Dialect) -> ResourceFlags {
    let discovery = |off| if off { Discovery::Off } else { Discovery::On };
    ResourceFlags {
        contributions: Default::default(),
        skills: flags.skills.clone(),
        skill_discovery: discovery(flags.no_skills),
        prompt_templates: flags.prompt_templates.clone(),
        prompt_discovery: discovery(flags.no_prompt_templates),
        extensions: flags.extensions.clone(),
        plain_descriptions: dialect == Dialect::Modern,
    }
}
