//! The state of the chat: everything on the screen, and the replies it waits for.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pinion_agent::{Answer, Command, EngineError, Reply};
use pinion_message::{Block, Model, ThinkingLevel};
use pinion_session::Stats;
use tokio::sync::mpsc;

use super::run::Clockwork;
use super::shell::Shells;
use super::status::Panels;
use super::{ChatEnding, Options, SessionHint, soonest};
use crate::completion::{Completion, TabCompletes};
use crate::editor::Editor;
use crate::feed::ReplySender;
use crate::highlight::Highlighter;
use crate::overlay::{CommandHelp, Dialogs, Overlay};
use crate::terminal::SuspendTarget;
use crate::transcript::{Fold, NoticeKind, Transcript};
use crate::{Abilities, Background, Colours, Host, Theme};

/// A function to run on the state when a reply arrives.
pub(crate) type Turn = Box<dyn FnOnce(&mut State) + Send>;

/// Functions that may wait to change the chat: one for each listing that was requested, and one reminder for each thread that
/// finds files or colours code.
const WAITING_TURNS: usize = 64;
/// Places that listings leave free for reminders.
pub(super) const REMINDERS: usize = 32;

/// Time for which a hint stays in the status line.
const HINT_TIME: Duration = Duration::from_secs(4);

/// An action that only the terminal can carry out.
#[derive(Debug)]
pub(super) enum Effect {
    Copy(String),
    Title(String),
    Suspend(SuspendTarget),
}

/// A prompt to send when no run is active.
pub(super) struct Saying {
    pub text: String,
    pub images: Vec<Block>,
}

/// The session, as far as it is known.
#[derive(Debug, Default)]
pub(super) struct Session {
    pub id: String,
    pub file: Option<PathBuf>,
    pub name: Option<String>,
    pub model: Option<Arc<Model>>,
    pub thinking: ThinkingLevel,
    pub messages: usize,
    /// The session has reported its state at least once.
    pub is_known: bool,
}

/// The state of the chat.
pub(crate) struct State {
    pub(super) cwd: PathBuf,
    /// The start of the chat, for the spinner.
    pub(super) started: Instant,
    pub(super) home: PathBuf,
    pub(super) colours: Colours,
    pub(super) theme: Theme,
    pub(super) transcript: Transcript,
    pub(super) editor: Editor,
    pub(super) completion: Completion,
    pub(super) highlighter: Highlighter,
    pub(super) thinking: Fold,
    pub(super) tools: Fold,
    pub(super) overlay: Option<Box<dyn Overlay>>,
    pub(super) dialogs: Dialogs,
    pub(super) session: Session,
    pub(super) stats: Option<Stats>,
    pub(super) steering: Vec<String>,
    pub(super) follow_up: Vec<String>,
    pub(super) panels: Panels,
    /// Commands of templates, skills and extensions; `None` until they are known.
    pub(super) other_commands: Option<Vec<CommandHelp>>,
    /// A line that calls an unknown command; sending it again sends it to the model.
    pub(super) unknown_line: Option<String>,
    pub(super) shells: Shells,
    /// The start of the active run.
    pub(super) running: Option<Instant>,
    pub(super) compacting: bool,
    /// Number of compactions so far.
    pub(super) compactions: usize,
    /// The time since which a prompt waits to be accepted.
    pub(super) waits_since: Option<Instant>,
    /// The size of the context as the provider last counted it, while an answer grows.
    pub(super) context_tokens: Option<u64>,
    /// The messages of the session are shown.
    pub(super) is_loaded: bool,
    /// Notices from before that.
    pub(super) early_notices: Vec<(NoticeKind, String)>,
    /// Printed lines that are not shown yet.
    pub(super) printed: Vec<String>,
    /// Number of lines printed since the last event.
    pub(super) printed_lines: usize,
    /// Prompts to send when no run is active.
    pub(super) pending_prompts: VecDeque<Saying>,
    pub(super) effects: Vec<Effect>,
    /// A short text in the status line, and the time at which it disappears.
    pub(super) hint: Option<(String, Instant)>,
    /// The last press of a key that has an effect when pressed twice.
    pub(super) pressed: Option<(DoublePress, Instant)>,
    /// The time of the last edit of an unsent text.
    pub(super) written: Option<Instant>,
    /// Set while the user chooses a session before one exists; contains the choice.
    pub(super) picking: Option<Option<PathBuf>>,
    pub(super) ending: Option<u8>,
    pub(super) host: Option<Arc<dyn Host>>,
    /// Sends replies in order with events.
    pub(super) answers: Option<ReplySender>,
    /// Sends functions whose order does not matter.
    pub(super) turns: mpsc::Sender<Turn>,
}

/// Keys that have an effect when pressed twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DoublePress {
    Quit,
    Tree,
}

/// The initial state.
pub(super) fn begin(options: Options) -> (State, Clockwork) {
    let (turns, receiver) = mpsc::channel::<Turn>(WAITING_TURNS);
    let mut opening: VecDeque<Saying> = options
        .texts
        .into_iter()
        .map(|text| Saying {
            text,
            images: Vec::new(),
        })
        .collect();
    if let Some(first) = opening.front_mut() {
        first.images = options.images;
    }
    let on_found = reminder(&turns, |state| state.completion.update(&state.editor));
    let background = options.background.unwrap_or(Background::Dark);
    let state = State {
        started: Instant::now(),
        theme: Theme::new(background, options.colours),
        colours: options.colours,
        transcript: Transcript::new(),
        editor: Editor::new(),
        completion: Completion::new(options.cwd.clone(), on_found),
        highlighter: Highlighter::off(),
        thinking: Fold::Folded,
        tools: Fold::Folded,
        overlay: None,
        dialogs: Dialogs::new(),
        session: Session::default(),
        stats: None,
        steering: Vec::new(),
        follow_up: Vec::new(),
        panels: Panels::default(),
        other_commands: None,
        unknown_line: None,
        shells: Shells::default(),
        running: None,
        compacting: false,
        compactions: 0,
        waits_since: None,
        context_tokens: None,
        is_loaded: false,
        early_notices: Vec::new(),
        printed: Vec::new(),
        printed_lines: 0,
        pending_prompts: opening,
        effects: Vec::new(),
        hint: None,
        pressed: None,
        written: None,
        picking: None,
        ending: None,
        host: None,
        answers: None,
        cwd: options.cwd,
        home: options.home,
        turns,
    };
    (state, Clockwork::new(receiver))
}

/// Has something done to the chat soon after each call. Calls that come before it is done are one.
fn reminder(turns: &mpsc::Sender<Turn>, turn: fn(&mut State)) -> impl Fn() + Send + Sync + 'static {
    let turns = turns.clone();
    let waits = Arc::new(AtomicBool::new(false));
    move || {
        if waits.swap(true, Ordering::AcqRel) {
            return;
        }
        let begun = Arc::clone(&waits);
        let sent = turns.try_send(Box::new(move |state| {
            // First: a call from now on is about something newer.
            begun.store(false, Ordering::Release);
            turn(state);
        }));
        if sent.is_err() {
            // The chat has ended and needs no reminder.
            waits.store(false, Ordering::Release);
        }
    }
}

impl State {
    pub fn set_host(&mut self, host: Arc<dyn Host>) {
        if host.abilities() == Abilities::Turns {
            // Tab sends the text with this host.
            self.completion.set_tab(TabCompletes::Paths);
        }
        self.host = Some(host);
    }

    pub fn abilities(&self) -> Abilities {
        self.host
            .as_ref()
            .map_or(Abilities::Session, |host| host.abilities())
    }

    /// Sends a command to the session and runs `then` with its answer.
    pub fn ask(
        &self,
        command: Command,
        then: impl FnOnce(&mut Self, Result<Answer, EngineError>) + Send + 'static,
    ) {
        let (Some(answers), Some(host)) = (self.answers.clone(), &self.host) else {
            return;
        };
        let reply = Reply::new(move |result| {
            answers.send(Box::new(move |state| then(state, result)));
        });
        host.send(command, reply);
    }

    /// Sends a command of which only a failure is shown.
    pub fn send(&self, command: Command) {
        self.ask(command, |state, result| {
            if let Err(error) = result {
                state.failed(&error);
            }
        });
    }

    /// Starts to show a session: requests everything about it and sends the first prompts.
    pub fn begin_session(&mut self) {
        self.highlighter = Highlighter::start(reminder(&self.turns, |_| ()));
        self.reload();
        self.ask_commands();
    }

    /// Shows the current messages of the session.
    pub fn reload(&mut self) {
        self.ask(Command::GetMessages, |state, result| match result {
            Ok(Answer::Messages(messages)) => {
                state.transcript.load(&messages);
                // Notices from before the session was loaded stay.
                for (kind, text) in std::mem::take(&mut state.early_notices) {
                    state.transcript.notice(kind, &text);
                }
                let texts = state.transcript.user_texts();
                state.editor.set_history(texts);
                state.is_loaded = true;
                state.send_next_prompt();
                // Counting reads the whole session, so the messages are shown first.
                state.ask_stats();
            }
            Ok(_) => {}
            Err(error) => state.failed(&error),
        });
        self.ask_state();
    }

    pub fn ask_state(&self) {
        self.ask(Command::GetState, |state, result| {
            let Ok(Answer::State(view)) = result else {
                return;
            };
            state.session = Session {
                id: view.session_id,
                file: view.session_file.map(PathBuf::from),
                name: view.session_name,
                model: view.model,
                thinking: view.thinking_level,
                messages: view.message_count,
                is_known: true,
            };
            state.compacting = view.is_compacting;
            if view.is_streaming && state.running.is_none() {
                state.running = Some(Instant::now());
            }
            state.show_title();
        });
    }

    pub fn ask_stats(&self) {
        self.ask(Command::GetStats, |state, result| {
            if let Ok(Answer::Stats(stats)) = result {
                state.stats = Some(*stats);
                state.context_tokens = None;
            }
        });
    }

    pub fn show_title(&mut self) {
        let title = self.panels.title.clone().unwrap_or_else(|| {
            let directory = self.cwd.file_name().unwrap_or(self.cwd.as_os_str());
            let name = self.session.name.clone();
            let name = name.unwrap_or_else(|| directory.to_string_lossy().into_owned());
            format!("pinion - {name}")
        });
        self.effects.push(Effect::Title(title));
    }

    pub fn notice(&mut self, kind: NoticeKind, text: &str) {
        if !self.is_loaded {
            self.early_notices.push((kind, text.to_owned()));
        }
        self.transcript.notice(kind, text);
    }

    pub fn failed(&mut self, error: &EngineError) {
        self.notice(NoticeKind::Error, &error.to_string());
    }

    /// Shows a text in the status line for a few seconds.
    pub fn hint(&mut self, words: &str) {
        self.hint = Some((words.to_owned(), Instant::now() + HINT_TIME));
    }

    pub fn is_busy(&self) -> bool {
        self.running.is_some() || self.compacting
    }

    pub fn set_background(&mut self, background: Background) {
        self.theme = Theme::new(background, self.colours);
    }

    /// Reports whether something on the screen changes by itself.
    pub fn is_lively(&self) -> bool {
        self.is_busy() || !self.session.is_known || self.transcript.is_lively()
    }

    /// Handles a deadline that has passed.
    pub fn time_passed(&mut self) {
        let now = Instant::now();
        if self.hint.as_ref().is_some_and(|(_, until)| *until <= now) {
            self.hint = None;
        }
        self.tick_overlays(now);
    }

    /// The next time at which something changes by itself.
    pub fn deadline(&self) -> Option<Instant> {
        let overlay = self.overlay.as_ref().and_then(|overlay| overlay.deadline());
        let hint = self.hint.as_ref().map(|(_, until)| *until);
        soonest(soonest(overlay, self.dialogs.deadline()), hint)
    }

    pub fn end(&mut self, code: u8) {
        self.ending.get_or_insert(code);
    }

    /// Reports whether the loop should end.
    pub fn is_over(&self) -> bool {
        let picked = match &self.picking {
            Some(Some(_)) => true,
            Some(None) => self.overlay.is_none(),
            None => false,
        };
        picked || self.ending.is_some()
    }

    pub fn ended(self) -> ChatEnding {
        let Session { id, file, .. } = self.session;
        ChatEnding {
            exit_code: self.ending.unwrap_or_default(),
            session: file.map(|file| SessionHint { id, file }),
        }
    }
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State")
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}
