//! The chat on a command: it sends the command's prompt first, then the user's input, one turn after the other.
//!
//! Turns are stored when a run ends, frames as they arrive. The screen itself is that of the crate `tui`; this module is
//! its host.

mod events;
mod host;

#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::pin::pin;
use std::sync::Arc;

use pinion_history::Turn;
use pinion_jsonl::stdio;
use pinion_message::Message;
use pinion_pinocchio::{ErrorCode, RunEnd, SessionStream, timeline_messages};
use pinion_process::runtime;
use pinion_process::signals::ShutdownSignals;
use pinion_tui::{
    CapturedOutput, Chat, Colours, Feed, FeedReader, Host, Incoming, Options, PlainOptions,
    Terminal, background_of, feed, only_prints_lines, plain_chat, typed_lines,
};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use self::events::ChatEvents;
use self::host::{ChatSession, channel};
use crate::conversation::{Conversation, Unanswered};
use crate::debug_file::DebugFile;
use crate::end::leave;
use crate::engine::Engine;
use crate::job::{Job, Stores};
use crate::{End, RunError, stderr};

/// A conversation, ready for the chat.
pub(crate) struct ChatParts {
    pub runtime: Runtime,
    pub signals: ShutdownSignals,
    pub debug_file: Option<DebugFile>,
    pub engine: Engine,
    pub conversation: Conversation,
    /// The messages on the screen when it opens.
    pub shown: Vec<Message>,
}

/// Opens the chat on a command.
pub(crate) fn open(mut job: Job) -> Result<End, RunError> {
    let terminal = terminal()?;
    let parts = prepare(&mut job)?;
    let options = options(&job, job.rendered.prompt.clone());
    parts.show(&job, terminal, options)
}

/// Continues a conversation in the chat that began without it. `stdout` is the original standard output.
pub(crate) fn continue_conversation(
    job: &Job,
    mut parts: ChatParts,
    stdout: File,
) -> Result<End, RunError> {
    let terminal = terminal_after(stdout)?;
    parts.conversation.unanswered = Unanswered::Remembered;
    parts.conversation.queues = parts.debug_file.iter().map(DebugFile::queue).collect();
    parts.show(job, terminal, options(job, None))
}

/// Prepares everything that can fail before there is a screen.
fn prepare(job: &mut Job) -> Result<ChatParts, RunError> {
    let mut stores = match job.open_stores() {
        Ok(stores) => stores,
        Err(error) => {
            if let Some(debug_file) = DebugFile::open(job, None)? {
                debug_file.break_off(ErrorCode::RunnerInitFailed, &error);
            }
            return Err(RunError::Failed(error));
        }
    };
    let history = history(job, &mut stores).map_err(RunError::Failed)?;
    let runtime = runtime::build()?;
    let signals = ShutdownSignals::listen_to_all(&runtime)?;
    let mut debug_file = DebugFile::open(job, stores.timeline.take())?;
    let engine = DebugFile::build_engine(&mut debug_file, job, &runtime)?;
    let base = stores.resumed.take().unwrap_or_else(|| job.opening());
    let shown = if history.is_empty() {
        pinion_pinocchio::messages(&base)
    } else {
        history
    };
    let conversation = Conversation {
        session_id: job.session_id.clone(),
        base,
        turns: stores.turns.take(),
        queues: debug_file.iter().map(DebugFile::queue).collect(),
        patch_mode: job.options.patch_mode,
        listeners: Vec::new(),
        unanswered: Unanswered::Remembered,
    };
    Ok(ChatParts {
        runtime,
        signals,
        debug_file,
        engine,
        conversation,
        shown,
    })
}

/// Returns the messages that the timeline of the session holds; none without a timeline store.
pub(crate) fn history(job: &Job, stores: &mut Stores) -> Result<Vec<Message>, String> {
    let Some(timeline) = &mut stores.timeline else {
        return Ok(Vec::new());
    };
    let stream = SessionStream::hydrate(&job.session_id, &mut **timeline);
    let stream = stream.map_err(|error| error.to_string())?;
    Ok(timeline_messages(&stream.entities()))
}

/// Returns the messages on the screen when the chat opens after a run: the history, and that run.
pub(crate) fn shown_after(history: Vec<Message>, turn: &Turn) -> Vec<Message> {
    let messages = pinion_pinocchio::messages(turn);
    if history.is_empty() {
        return messages;
    }
    let is_prompt = |message: &Message| matches!(message, Message::User(_));
    let prompt = messages.iter().rposition(is_prompt).unwrap_or(0);
    let mut shown = history;
    shown.extend(messages.into_iter().skip(prompt));
    shown
}

/// Returns the terminal for the screen: standard output, or standard error if the output is redirected.
fn terminal() -> Result<File, RunError> {
    if io::stdout().is_terminal() {
        return Ok(stdio::claim_stdout()?);
    }
    stderr_terminal().ok_or_else(|| {
        RunError::Usage(
            "--chat needs a terminal, and neither standard output nor standard error is one. Use --stdin-rpc to talk with a command from a program, or leave the option out to run it once.".to_owned(),
        )
    })
}

/// Returns the terminal for the screen after standard output was claimed, for a user who has answered on the terminal.
fn terminal_after(stdout: File) -> io::Result<File> {
    if stdout.is_terminal() {
        return Ok(stdout);
    }
    match stderr_terminal() {
        Some(stderr) => Ok(stderr),
        None => OpenOptions::new().read(true).write(true).open("/dev/tty"),
    }
}

fn stderr_terminal() -> Option<File> {
    let stderr = io::stderr();
    let copy = stderr.as_fd().try_clone_to_owned().ok()?;
    stderr.is_terminal().then(|| File::from(copy))
}

/// The end of the conversation.
#[derive(Debug)]
struct ChatEnd {
    /// The end of the last run, if there was one.
    last_run: Option<RunEnd>,
    /// The exit code of the chat, or the reason why it could not be shown.
    chat: io::Result<u8>,
}

impl ChatParts {
    /// Shows the chat until the user leaves it.
    fn show(mut self, job: &Job, terminal: File, options: Options) -> Result<End, RunError> {
        self.signals = self.signals.and_to_quit(&self.runtime)?;
        let form = if job.options.plain || only_prints_lines() {
            ChatForm::Lines
        } else {
            ChatForm::Screen
        };
        let (runtime, chat_end) = self.run(job, |host, feed, reader| {
            show(form, terminal, options, host, feed, reader)
        });
        if job.options.turns.is_persistent() && chat_end.last_run == Some(RunEnd::Finished) {
            let id = &job.session_id;
            stderr::print(format_args!("To go on later: --session-id {id} --resume"));
        }
        let end = chat_end.report();
        leave(runtime);
        Ok(end)
    }

    /// Runs the conversation. `show` shows the chat and returns its exit code.
    fn run<F: Future<Output = io::Result<u8>>>(
        mut self,
        job: &Job,
        show: impl FnOnce(Arc<dyn Host>, Feed, FeedReader) -> F,
    ) -> (Runtime, ChatEnd) {
        let (feed, reader) = feed();
        feed.send(ui_request("setTitle", json!({"title": "pinocchio"})));
        if let Some(profile) = job.profile() {
            let text = format!("profile: {profile}");
            let status = json!({"statusKey": "profile", "statusText": text});
            feed.send(ui_request("setStatus", status));
        }
        let events = ChatEvents::new(feed.clone(), self.engine.models.model(), self.shown);
        let (host, commands) = channel();
        let session = ChatSession::new(&self.engine, Arc::new(events), self.conversation);
        let chat_end = self.runtime.block_on(async {
            let is_over = Cell::new(false);
            let chat = async {
                let chat = show(Arc::new(host), feed.clone(), reader).await;
                is_over.set(true);
                chat
            };
            let mut both = pin!(async {
                let (last_run, chat) = tokio::join!(session.serve(commands), chat);
                ChatEnd { last_run, chat }
            });
            loop {
                tokio::select! {
                    chat_end = &mut both => break chat_end,
                    code = self.signals.received() => {
                        if is_over.get() {
                            // The chat is closed and the active run has not stopped; a second signal must not wait
                            // for it.
                            break ChatEnd { last_run: Some(RunEnd::Stopped), chat: Ok(code) };
                        }
                        feed.send(Incoming::End(code));
                    }
                }
            }
        });
        if let Some(debug_file) = self.debug_file {
            match (&chat_end.chat, &chat_end.last_run) {
                (Err(error), _) => debug_file.break_off(ErrorCode::TuiFailed, &error.to_string()),
                (Ok(_), Some(end)) => debug_file.end(end),
                (Ok(_), None) => debug_file.end(&RunEnd::Finished),
            }
        }
        (self.runtime, chat_end)
    }
}

impl ChatEnd {
    /// Prints a failure and returns the end of the program: a failure of the last run is the program's failure.
    fn report(&self) -> End {
        match (&self.chat, &self.last_run) {
            (Err(error), _) => {
                stderr::error(format_args!("the chat could not be shown: {error}"));
                End::Failed
            }
            (Ok(0), Some(RunEnd::Failed(reason))) => {
                stderr::error(reason);
                End::Failed
            }
            (Ok(0), _) => End::Done,
            (Ok(code), _) => End::Signal(*code),
        }
    }
}

/// The form of the chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChatForm {
    Screen,
    Lines,
}

/// Runs the chat on the terminal; returns its exit code.
async fn show(
    form: ChatForm,
    terminal: File,
    options: Options,
    host: Arc<dyn Host>,
    feed: Feed,
    reader: FeedReader,
) -> io::Result<u8> {
    if form == ChatForm::Lines {
        let options = PlainOptions {
            output: Box::new(terminal),
            input: typed_lines()?,
            texts: options.texts,
            images: options.images,
        };
        return Ok(plain_chat(options, host, reader).await?.exit_code);
    }
    // Restored when the screen is closed.
    let _captured = CapturedOutput::redirect(feed)?;
    let chat = Chat::open(Terminal::open(terminal)?, options)?;
    Ok(chat.run(host, reader).await?.exit_code)
}

/// Returns the options with which the chat of a command begins.
fn options(job: &Job, prompt: Option<String>) -> Options {
    Options {
        cwd: job.host.cwd().to_owned(),
        home: job.host.home().to_owned(),
        background: background_of(job.host.theme()),
        colours: Colours::from_environment(),
        texts: prompt.into_iter().collect(),
        images: Vec::new(),
    }
}

/// Makes a request to show something beside the conversation, in the form that extensions use.
fn ui_request(method: &str, members: Value) -> Incoming {
    let mut record = json!({
        "type": "extension_ui_request",
        "id": pinion_pinocchio::new_id(),
        "method": method,
    });
    if let (Value::Object(record), Value::Object(members)) = (&mut record, members) {
        record.extend(members);
    }
    Incoming::Record(record.to_string())
}
