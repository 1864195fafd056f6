//! The chat on a terminal: one session with all features of the other modes, and a user who can answer questions.

use std::process::ExitCode;
use std::sync::Arc;

use pinion_agent::{Companions, Config, Listener};
use pinion_extensions::{InputSource, Mode};
use pinion_jsonl::stdio;
use pinion_pi::{Dialect, Prompts};
use pinion_tui::{
    CapturedOutput, Chat, ChatEnding, Colours, Feed, Incoming, Options, PlainOptions, SessionHost,
    Terminal, background_of, only_prints_lines, pick_by_number, plain_chat, run_chat_session,
    typed_lines,
};
use tokio::runtime::Runtime;

use super::conversation::opening;
use crate::cli::Flags;
use crate::engine::{self, Basis, Company, Conversation, Shared, session_directory};
use crate::extensions::Audience;
use crate::failure::Failure;
use crate::program::Program;
use crate::runtime;
use crate::signals::ShutdownSignals;

/// Runs a chat with the user at the terminal until the user leaves.
pub(crate) fn chat(program: Program, flags: Box<Flags>) -> Result<ExitCode, Failure> {
    let opening = opening(&flags)?;
    let ended = if flags.plain || only_prints_lines() {
        in_lines(program, flags, opening)?
    } else {
        on_screen(program, flags, opening)?
    };
    let Some(ended) = ended else {
        return Ok(ExitCode::SUCCESS);
    };
    print_session_hint(program, &ended);
    Ok(ExitCode::from(ended.exit_code))
}

/// Runs the chat on the whole screen. Returns `None` if the user picked no session.
fn on_screen(
    program: Program,
    mut flags: Box<Flags>,
    opening: Prompts,
) -> Result<Option<ChatEnding>, Failure> {
    let (feed, reader) = pinion_tui::feed();
    let (output, printed) = CapturedOutput::claim(feed.clone())?;
    let basis = modern_basis(&flags)?;
    let theme = basis.settings.get("theme").and_then(|theme| theme.as_str());
    let options = Options {
        cwd: basis.dirs.cwd.clone(),
        home: basis.dirs.home.clone(),
        background: background_of(flags.theme.as_deref().or(theme)),
        colours: Colours::from_environment(),
        texts: opening.texts,
        images: opening.images,
    };
    let mut chat = Chat::open(Terminal::open(output)?, options)?;
    let runtime = runtime::build()?;
    let mut signals = ShutdownSignals::listen_to_all(&runtime)?.and_to_quit(&runtime)?;
    let shared = Shared::new(&basis.dirs);
    let host = session_host(&basis, &flags, feed.clone());
    let ended = runtime.block_on(async {
        if flags.resume {
            let picked = tokio::select! {
                picked = chat.choose_session(Arc::clone(&host) as _) => picked?,
                code = signals.received() => return Ok(Some(ended_with(code))),
            };
            match picked {
                Some(path) => flags.session = Some(path.display().to_string()),
                None => return Ok(None),
            }
        }
        let shown = chat.run(Arc::clone(&host) as _, reader);
        let session = session(
            program,
            &flags,
            basis,
            &shared,
            host.listeners(),
            feed.clone(),
        );
        let signalled = async || signals.received().await;
        let ended = run_chat_session(host, feed, shown, session, Some(printed), signalled);
        Box::pin(ended).await.map(Some)
    });
    leave(runtime, &shared);
    ended
}

/// Runs the chat in plain lines. Returns `None` if the user picked no session.
fn in_lines(
    program: Program,
    mut flags: Box<Flags>,
    opening: Prompts,
) -> Result<Option<ChatEnding>, Failure> {
    let mut output = stdio::claim_stdout()?;
    let mut input = typed_lines()?;
    let (feed, reader) = pinion_tui::feed();
    let basis = modern_basis(&flags)?;
    if flags.resume {
        let directory = session_directory(&basis.dirs, &flags, &basis.settings);
        let found = directory.map_or_else(Vec::new, |directory| pinion_session::list(&directory));
        match pick_by_number(&found, &mut output, || input.blocking_recv())? {
            Some(session) => flags.session = Some(session.path.display().to_string()),
            None => return Ok(None),
        }
    }
    let options = PlainOptions {
        output: Box::new(output),
        input,
        texts: opening.texts,
        images: opening.images,
    };
    let runtime = runtime::build()?;
    let mut signals = ShutdownSignals::listen_to_all(&runtime)?.and_to_quit(&runtime)?;
    let shared = Shared::new(&basis.dirs);
    let host = session_host(&basis, &flags, feed.clone());
    let ended = runtime.block_on(async {
        let shown = plain_chat(options, Arc::clone(&host) as _, reader);
        let session = session(
            program,
            &flags,
            basis,
            &shared,
            host.listeners(),
            feed.clone(),
        );
        let signalled = async || signals.received().await;
        Box::pin(run_chat_session(
            host, feed, shown, session, None, signalled,
        ))
        .await
    });
    leave(runtime, &shared);
    ended.map(Some)
}

fn session_host(basis: &Basis, flags: &Flags, feed: Feed) -> Arc<SessionHost> {
    Arc::new(SessionHost::new(
        session_directory(&basis.dirs, flags, &basis.settings),
        basis.dirs.agent_dir.join("sessions"),
        feed,
    ))
}

/// Builds the session of a chat.
async fn session(
    program: Program,
    flags: &Flags,
    basis: Basis,
    shared: &Shared,
    listeners: Vec<Arc<dyn Listener>>,
    feed: Feed,
) -> Result<(Config, Arc<dyn Companions>), Failure> {
    let conversation = Conversation::open(flags, &basis)?;
    let audience = Audience {
        records: Arc::new(move |record| {
            feed.send(Incoming::Record(record));
        }),
        // The chat itself reads the records.
        has_room: Arc::new(|| true),
        has_ui: true,
        source: InputSource::Interactive,
        mode: Mode::Tui,
    };
    let company = Company::new(listeners, audience);
    let engine = engine::build(program, flags, basis, conversation, company, shared).await?;
    let mut config = engine.config;
    // The models and levels that a person chooses become the defaults. Releases of pi before 1.0 do not know messages
    // with the system prompt.
    let behaviour = &mut config.settings.behaviour;
    behaviour.keep_choices_in_session = false;
    behaviour.record_system_prompt = false;
    behaviour.remove_sessions_without_messages = false;
    Ok((config, engine.companions))
}

/// Reads the basis with the modern dialect: tool calls run in parallel, and later commands exist.
fn modern_basis(flags: &Flags) -> Result<Basis, Failure> {
    let mut basis = Basis::read(flags)?;
    basis.dialect = Dialect::Modern;
    Ok(basis)
}

/// Kills child processes, saves preferences and shuts the runtime down.
fn leave(runtime: Runtime, shared: &Shared) {
    pinion_process::kill_all();
    shared.preferences.flush();
    runtime.shutdown_background();
}

/// Returns the ending of a chat in which no session was started.
fn ended_with(exit_code: u8) -> ChatEnding {
    ChatEnding {
        exit_code,
        session: None,
    }
}

/// Prints the command that continues the session.
fn print_session_hint(program: Program, ended: &ChatEnding) {
    let Some(session) = &ended.session else {
        return;
    };
    // A session without an answer leaves no file behind.
    if session.file.exists() {
        let program = program.name();
        eprintln!(
            "To go on with this session: {program} --session {}",
            session.id
        );
    }
}
