//! The plain chat: reads input line by line and prints events as they happen, for screen readers
//! and simple terminals.

mod commands;
mod input;
mod questions;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use pinion_agent::{Answer, Command, Delivery, EngineError, Event, Prompt, Reply};
use pinion_message::Block;
use tokio::sync::mpsc;

pub use self::input::typed_lines;
use self::questions::Questions;
use crate::plain::PlainPrinter;
use crate::request::{NotifyKind, Request};
use crate::transcript::{Fold, NoticeKind};
use crate::{Abilities, ChatEnding, FeedReader, Host, Incoming, SessionHint};

/// The exit code of SIGINT, which stops a run instead of ending the program.
const INTERRUPTED: u8 = 130;

/// Requests to the session that may be unanswered at a time. The chat reads no further lines while there are as many,
/// less those of [`OWN_REQUESTS`].
const OPEN_REQUESTS: usize = 64;
/// Requests that typed lines leave free for the chat's own requests, an abort above all.
const OWN_REQUESTS: usize = 16;

/// The settings of a plain chat.
pub struct PlainOptions {
    pub output: Box<dyn Write + Send>,
    /// The lines that the user types.
    pub input: mpsc::Receiver<String>,
    /// Prompts to send at the start, one after the other.
    pub texts: Vec<String>,
    /// Images for the first of them.
    pub images: Vec<Block>,
}

impl std::fmt::Debug for PlainOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PlainOptions").finish_non_exhaustive()
    }
}

type Turn = Box<dyn FnOnce(&mut PlainChat) + Send>;

/// A plain chat.
struct PlainChat {
    output: Box<dyn Write + Send>,
    printer: PlainPrinter,
    host: Arc<dyn Host>,
    /// Answers of the session. Each request has a place for its answer.
    turns: mpsc::Sender<Turn>,
    questions: Questions,
    /// Prompts to send when no run is active, the next one last.
    waiting: Vec<(String, Vec<Block>)>,
    session: Option<SessionHint>,
    is_ready: bool,
    is_running: bool,
    /// Number of running shell commands of the user.
    shells: usize,
    /// Status texts and widgets of extensions that were not printed yet, by key.
    side_texts: BTreeMap<String, String>,
    /// Commands of templates, skills and extensions; `None` until they are known.
    commands: Option<Vec<String>>,
    /// A line that calls an unknown command; typing it again sends it to the model.
    unknown_line: Option<String>,
    ending: Option<u8>,
    broken: Option<io::Error>,
}

/// Runs a plain chat until the input or the program ends.
pub async fn plain_chat(
    options: PlainOptions,
    host: Arc<dyn Host>,
    feed: FeedReader,
) -> io::Result<ChatEnding> {
    let (turns, mut answers) = mpsc::channel::<Turn>(OPEN_REQUESTS);
    let mut input = options.input;
    let mut waiting: Vec<(String, Vec<Block>)> = options
        .texts
        .into_iter()
        .map(|text| (text, Vec::new()))
        .rev()
        .collect();
    if let Some((_, images)) = waiting.last_mut() {
        *images = options.images;
    }
    let mut chat = PlainChat {
        output: options.output,
        printer: PlainPrinter::new(Fold::Folded, Fold::Folded).for_host(host.abilities()),
        host,
        turns,
        questions: Questions::default(),
        waiting,
        session: None,
        is_ready: false,
        is_running: false,
        shells: 0,
        side_texts: BTreeMap::new(),
        commands: None,
        unknown_line: None,
        ending: None,
        broken: None,
    };
    chat.begin();
    while chat.ending.is_none() && chat.broken.is_none() {
        for incoming in feed.take() {
            chat.incoming(incoming);
        }
        if chat.ending.is_some() {
            break;
        }
        tokio::select! {
            biased;
            Some(turn) = answers.recv() => turn(&mut chat),
            line = input.recv(), if chat.turns.capacity() > OWN_REQUESTS => match line {
                Some(line) => chat.line(&line),
                None => chat.ending = Some(0),
            },
            () = feed.arrived() => {}
            () = chat.questions.over() => chat.question_is_over(),
        }
    }
    match chat.broken {
        Some(error) => Err(error),
        None => Ok(ChatEnding {
            exit_code: chat.ending.unwrap_or_default(),
            session: chat.session,
        }),
    }
}

impl PlainChat {
    fn begin(&mut self) {
        self.print("Type a message and press Enter. /help lists the commands, Ctrl-D quits.\n");
        self.ask_state();
        self.ask_commands();
        self.ask(Command::GetMessages, |chat, result| {
            match result {
                Ok(Answer::Messages(messages)) => {
                    let words = chat.printer.history(&messages);
                    chat.print(&words);
                }
                Ok(_) => {}
                Err(error) => chat.failed(&error),
            }
            chat.is_ready = true;
            chat.next();
        });
    }

    fn ask(
        &mut self,
        command: Command,
        then: impl FnOnce(&mut Self, Result<Answer, EngineError>) + Send + 'static,
    ) {
        let Ok(place) = self.turns.clone().try_reserve_owned() else {
            let busy =
                format!("The session is busy: {OPEN_REQUESTS} requests wait for it already.");
            return then(self, Err(EngineError::Unsupported(busy)));
        };
        let reply = Reply::new(move |result| {
            place.send(Box::new(move |chat| then(chat, result)));
        });
        self.host.send(command, reply);
    }

    fn ask_state(&mut self) {
        self.ask(Command::GetState, |chat, result| {
            if let Ok(Answer::State(view)) = result {
                let id = view.session_id;
                let hint = |file| SessionHint {
                    id,
                    file: PathBuf::from(file),
                };
                chat.session = view.session_file.map(hint);
            }
        });
    }

    fn print(&mut self, words: &str) {
        let written = self.output.write_all(words.as_bytes());
        if let Err(error) = written.and_then(|()| self.output.flush()) {
            self.broken = Some(error);
        }
    }

    fn notice(&mut self, kind: NoticeKind, text: &str) {
        let words = self.printer.notice(kind, text);
        self.print(&words);
    }

    fn failed(&mut self, error: &EngineError) {
        self.notice(NoticeKind::Error, &error.to_string());
    }

    fn incoming(&mut self, incoming: Incoming) {
        match incoming {
            Incoming::Event(event) => self.event(&event),
            Incoming::Record(record) => self.request(Request::read(&record)),
            Incoming::Printed(line) => self.notice(NoticeKind::Information, &line),
            Incoming::End(INTERRUPTED) if self.is_running || self.shells > 0 => self.stop(),
            Incoming::End(code) => self.ending = Some(code),
        }
    }

    fn event(&mut self, event: &Event) {
        let words = self.printer.event(event);
        self.print(&words);
        match event {
            Event::AgentStart => self.is_running = true,
            Event::Settled { .. } => {
                self.is_running = false;
                self.ask_state();
                self.next();
            }
            _ => {}
        }
    }

    fn request(&mut self, request: Request) {
        match request {
            Request::Dialog(dialog) => {
                if let Some(words) = self.questions.push(dialog) {
                    self.notice(NoticeKind::Information, &words);
                }
            }
            Request::Notify { kind, text } => {
                let kind = match kind {
                    NotifyKind::Info => NoticeKind::Information,
                    NotifyKind::Warning => NoticeKind::Warning,
                    NotifyKind::Error => NoticeKind::Error,
                };
                self.notice(kind, &text);
            }
            Request::ExtensionError { path, event, error } => {
                self.notice(NoticeKind::Error, &format!("{path}: {event}: {error}"));
            }
            Request::EditorText(text) => {
                let words = format!("Suggested message; type it to send it:\n{text}");
                self.notice(NoticeKind::Information, &words);
            }
            Request::Status { key, text } => self.set_side_text(format!("status {key}"), text),
            Request::Widget { key, lines, .. } => {
                self.set_side_text(format!("widget {key}"), lines.map(|lines| lines.join("\n")));
            }
            Request::Title(_) | Request::Other => {}
        }
    }

    /// Stores a status or widget until it can be printed in a pause, because it may change many
    /// times a second.
    fn set_side_text(&mut self, key: String, text: Option<String>) {
        match text.filter(|text| !text.trim().is_empty()) {
            Some(text) => drop(self.side_texts.insert(key, text)),
            None => drop(self.side_texts.remove(&key)),
        }
    }

    fn question_is_over(&mut self) {
        if let Some(words) = self.questions.drop_overdue() {
            self.notice(NoticeKind::Information, &words);
        }
    }

    /// Handles a typed line.
    fn line(&mut self, line: &str) {
        if self.questions.is_open() {
            let (answered, words) = self.questions.answer(line);
            if let Some((id, response)) = answered {
                self.host.answer(&id, response);
            }
            if !words.is_empty() {
                self.notice(NoticeKind::Information, &words);
            }
            return;
        }
        let text = line.trim();
        if text.is_empty() {
            return self.show_prompt();
        }
        if let Some(command) = text.strip_prefix('!') {
            return self.shell(command);
        }
        if text.starts_with('/') && self.run_built_in(text) {
            return;
        }
        if self.is_unknown_command(text) {
            return self.show_prompt();
        }
        self.printer.typed(text);
        if self.is_ready {
            self.send_prompt(text.to_owned(), Vec::new())
        } else {
            self.waiting.insert(0, (text.to_owned(), Vec::new()))
        }
    }

    /// Sends the next waiting prompt, or shows the input prompt.
    fn next(&mut self) {
        match self.waiting.pop() {
            Some((text, images)) => self.send_prompt(text, images),
            None => self.show_prompt(),
        }
    }

    fn show_prompt(&mut self) {
        if self.is_ready && !self.is_running {
            for text in std::mem::take(&mut self.side_texts).into_values() {
                self.notice(NoticeKind::Information, &text);
            }
            self.print("> ");
        }
    }

    /// Stops the run and drops waiting prompts.
    fn stop(&mut self) {
        for (text, _) in std::mem::take(&mut self.waiting).into_iter().rev() {
            self.notice(NoticeKind::Information, &format!("Not sent: {text}"));
        }
        if self.shells > 0 {
            self.send(Command::AbortBash);
        }
        if self.is_running || self.shells == 0 {
            self.send(Command::Abort);
        }
    }

    fn send_prompt(&mut self, text: String, images: Vec<Block>) {
        let when_busy = match self.host.abilities() {
            Abilities::Session => Some(Delivery::Steer),
            Abilities::Turns => None,
        };
        let prompt = Prompt {
            images,
            when_busy,
            ..Prompt::new(text)
        };
        self.ask(Command::Prompt(prompt), |chat, result| match result {
            Ok(Answer::Taken(pinion_agent::Disposition::Handled)) => chat.next(),
            Ok(_) => {}
            Err(error) => {
                chat.failed(&error);
                chat.show_prompt();
            }
        });
    }

    fn send(&mut self, command: Command) {
        self.ask(command, |chat, result| {
            if let Err(error) = result {
                chat.failed(&error);
            }
        });
    }

    fn shell(&mut self, line: &str) {
        let (command, exclude_from_context) = match line.strip_prefix('!') {
            Some(private) => (private.trim().to_owned(), true),
            None => (line.trim().to_owned(), false),
        };
        let shown = command.clone();
        let command = Command::Bash {
            command,
            exclude_from_context,
            follower: None,
        };
        self.shells += 1;
        self.ask(command, move |chat, result| {
            chat.shells -= 1;
            let words = match &result {
                Ok(Answer::Bash(outcome)) => chat.printer.shell_end(&shown, Ok(outcome)),
                Ok(_) => String::new(),
                Err(error) => chat.printer.shell_end(&shown, Err(&error.to_string())),
            };
            chat.print(&words);
            chat.show_prompt();
        });
    }
}
