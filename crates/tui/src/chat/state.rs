//! What the chat knows: what is shown, and what it waits for.

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
use super::{Ending, Options, SessionHint, soonest};
use crate::completion::{Completion, TabCompletes};
use crate::editor::Editor;
use crate::feed::Answers;
use crate::highlight::Highlighter;
use crate::overlay::{CommandHelp, Dialogs, Overlay};
use crate::terminal::Stops;
use crate::transcript::{Fold, NoticeKind, Transcript};
use crate::{Abilities, Background, Colours, Host, Theme};

/// Something that is done to the chat when an answer is there.
pub(crate) type Turn = Box<dyn FnOnce(&mut State) + Send>;

/// Things that may wait to be done to the chat: a listing for each one that was asked for, and one reminder for each
/// thread that finds files or colours.
const WAITING_TURNS: usize = 64;
/// Places that listings leave free for reminders.
pub(super) const REMINDERS: usize = 32;

/// How long a short word in the status line stays.
const HINT: Duration = Duration::from_secs(4);

/// Something only the terminal can do.
#[derive(Debug)]
pub(super) enum Effect {
    Copy(String),
    Title(String),
    Suspend(Stops),
}

/// Something to say when nothing goes on.
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
    /// It has told of itself at least once.
    pub is_known: bool,
}

/// What the chat knows.
pub(crate) struct State {
    pub(super) cwd: PathBuf,
    /// When the chat began, for what moves.
    pub(super) born: Instant,
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
    /// Commands of templates, skills and extensions, once they are known.
    pub(super) other_commands: Option<Vec<CommandHelp>>,
    /// A line that calls no command there is, and was to be sent once.
    pub(super) doubted: Option<String>,
    pub(super) shells: Shells,
    /// Since when a run is active.
    pub(super) running: Option<Instant>,
    pub(super) compacting: bool,
    /// How many compactions have begun.
    pub(super) compactions: usize,
    /// Since when a prompt waits to be taken.
    pub(super) waits_since: Option<Instant>,
    /// The context as the provider counted it last, while an answer grows.
    pub(super) context_tokens: Option<u64>,
    /// The session is shown as it was when the chat came to it.
    pub(super) is_loaded: bool,
    /// What was told before that.
    pub(super) early: Vec<(NoticeKind, String)>,
    /// Lines that were printed and are not shown yet.
    pub(super) printed: Vec<String>,
    /// Lines that were printed since something happened.
    pub(super) printed_lines: usize,
    /// What is said when the run before is over.
    pub(super) opening: VecDeque<Saying>,
    pub(super) effects: Vec<Effect>,
    /// A short word in the status line, and until when it stays.
    pub(super) hint: Option<(String, Instant)>,
    /// When a key that means something twice was pressed.
    pub(super) pressed: Option<(Twice, Instant)>,
    /// When something was written that is not sent yet, or was taken away.
    pub(super) written: Option<Instant>,
    /// A session is being picked before there is one; what was picked.
    pub(super) picking: Option<Option<PathBuf>>,
    pub(super) ending: Option<u8>,
    pub(super) host: Option<Arc<dyn Host>>,
    /// Where answers come in.
    pub(super) answers: Option<Answers>,
    /// Where what needs no order comes in.
    pub(super) turns: mpsc::Sender<Turn>,
}

/// Keys that mean something when pressed twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Twice {
    Quit,
    Tree,
}

/// What the chat knows at first.
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
        born: Instant::now(),
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
        doubted: None,
        shells: Shells::default(),
        running: None,
        compacting: false,
        compactions: 0,
        waits_since: None,
        context_tokens: None,
        is_loaded: false,
        early: Vec::new(),
        printed: Vec::new(),
        printed_lines: 0,
        opening,
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
            // Tab sends what is written there.
            self.completion.set_tab(TabCompletes::Paths);
        }
        self.host = Some(host);
    }

    pub fn abilities(&self) -> Abilities {
        self.host
            .as_ref()
            .map_or(Abilities::Session, |host| host.abilities())
    }

    /// Asks the session something; `then` is done with its answer.
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

    /// The same where only a failure is worth telling.
    pub fn tell(&self, command: Command) {
        self.ask(command, |state, result| {
            if let Err(error) = result {
                state.failed(&error);
            }
        });
    }

    /// A session begins to be shown: everything about it is asked for, and what is to be said first is said.
    pub fn begin_session(&mut self) {
        self.highlighter = Highlighter::start(reminder(&self.turns, |_| ()));
        self.reload();
        self.ask_commands();
    }

    /// Shows the session as it is now.
    pub fn reload(&mut self) {
        self.ask(Command::GetMessages, |state, result| match result {
            Ok(Answer::Messages(messages)) => {
                state.transcript.load(&messages);
                // What was told while the session was put together stays.
                for (kind, text) in std::mem::take(&mut state.early) {
                    state.transcript.notice(kind, &text);
                }
                let texts = state.transcript.user_texts();
                state.editor.set_history(texts);
                state.is_loaded = true;
                state.say_next();
                // All of the session is counted for them: what it says is seen before.
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
            self.early.push((kind, text.to_owned()));
        }
        self.transcript.notice(kind, text);
    }

    pub fn failed(&mut self, error: &EngineError) {
        self.notice(NoticeKind::Error, &error.to_string());
    }

    /// Says something in the status line for a moment.
    pub fn hint(&mut self, words: &str) {
        self.hint = Some((words.to_owned(), Instant::now() + HINT));
    }

    pub fn is_busy(&self) -> bool {
        self.running.is_some() || self.compacting
    }

    pub fn set_background(&mut self, background: Background) {
        self.theme = Theme::new(background, self.colours);
    }

    /// Whether something on the screen moves by itself.
    pub fn is_lively(&self) -> bool {
        self.is_busy() || !self.session.is_known || self.transcript.is_lively()
    }

    /// A deadline has passed.
    pub fn time_passed(&mut self) {
        let now = Instant::now();
        if self.hint.as_ref().is_some_and(|(_, until)| *until <= now) {
            self.hint = None;
        }
        self.tick_overlays(now);
    }

    /// When something changes by itself.
    pub fn deadline(&self) -> Option<Instant> {
        let overlay = self.overlay.as_ref().and_then(|overlay| overlay.deadline());
        let hint = self.hint.as_ref().map(|(_, until)| *until);
        soonest(soonest(overlay, self.dialogs.deadline()), hint)
    }

    pub fn end(&mut self, code: u8) {
        self.ending.get_or_insert(code);
    }

    /// Whether the loop is done.
    pub fn is_over(&self) -> bool {
        let picked = match &self.picking {
            Some(Some(_)) => true,
            Some(None) => self.overlay.is_none(),
            None => false,
        };
        picked || self.ending.is_some()
    }

    pub fn ended(self) -> Ending {
        let Session { id, file, .. } = self.session;
        Ending {
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
