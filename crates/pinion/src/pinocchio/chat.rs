//! The chat on a command: it sends the command's prompt first, then the user's input, one turn after the other.
//!
//! Turns are stored when a run ends, frames as they arrive. The screen itself is the terminal chat's; this module is
//! its host.

mod screen;
mod talk;

#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;

use pinion_history::Turn;
use pinion_jsonl::stdio;
use pinion_message::Message;
use pinion_pinocchio::{ErrorCode, RunEnd, SessionStream, timeline_messages};
use pinion_tui::{
    CapturedOutput, Chat, Colours, Feed, FeedReader, Host, Incoming, Options, PlainOptions,
    Terminal, background_of, feed, only_prints_lines, plain_chat, typed_lines,
};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use self::screen::Screen;
use self::talk::{Talk, line};
use super::conversation::{Conversation, Unanswered};
use super::job::{Job, Stores};
use super::kept::KeptFrames;
use super::running::Runner;
use super::{End, leave};
use crate::failure::Failure;
use crate::runtime;
use crate::signals::Ending;

/// A conversation, ready for the chat.
pub(super) struct Stage {
    pub runtime: Runtime,
    pub ending: Ending,
    pub frames: Option<KeptFrames>,
    pub runner: Runner,
    pub conversation: Conversation,
    /// The messages on the screen when it opens.
    pub shown: Vec<Message>,
}

/// Opens the chat on a command.
pub(super) fn open(mut job: Job) -> Result<ExitCode, Failure> {
    let canvas = canvas()?;
    let stage = set(&mut job)?;
    let options = options(&job, job.rendered.prompt.clone());
    stage.show(&job, canvas, options)
}

/// Continues a conversation in the chat that began without it. `stdout` is the original standard output.
pub(super) fn go_on(job: &Job, mut stage: Stage, stdout: File) -> Result<ExitCode, Failure> {
    let canvas = canvas_after(stdout)?;
    stage.conversation.unanswered = Unanswered::Remembered;
    stage.conversation.queues = stage.frames.iter().map(KeptFrames::queue).collect();
    stage.show(job, canvas, options(job, None))
}

/// Prepares everything that can fail before there is a screen.
fn set(job: &mut Job) -> Result<Stage, Failure> {
    let failed = |error: String| Failure::failed(format!("Error: {error}"));
    let mut stores = match job.open_stores() {
        Ok(stores) => stores,
        Err(error) => {
            if let Some(frames) = KeptFrames::begin(job, None)? {
                frames.break_off(ErrorCode::RunnerInitFailed, &error);
            }
            return Err(failed(error));
        }
    };
    let history = history(job, &mut stores).map_err(failed)?;
    let runtime = runtime::build()?;
    let ending = Ending::listen_to_all(&runtime)?;
    let frames = KeptFrames::begin(job, stores.timeline.take())?;
    let runner = match job.runner(&runtime) {
        Ok(runner) => runner,
        Err(error) => {
            let error = format!("failed to create engine: {error}");
            if let Some(frames) = frames {
                frames.fail(ErrorCode::EngineInitFailed, &error);
            }
            return Err(failed(error));
        }
    };
    let base = stores.resumed.take().unwrap_or_else(|| job.opening());
    let shown = match history.is_empty() {
        true => pinion_pinocchio::messages(&base),
        false => history,
    };
    let conversation = Conversation {
        session_id: job.session_id.clone(),
        base,
        turns: stores.turns.take(),
        queues: frames.iter().map(KeptFrames::queue).collect(),
        patch_mode: job.options.patch_mode,
        listeners: Vec::new(),
        unanswered: Unanswered::Remembered,
    };
    Ok(Stage {
        runtime,
        ending,
        frames,
        runner,
        conversation,
        shown,
    })
}

/// Returns the messages that the timeline of the session holds; none without a timeline store.
pub(super) fn history(job: &Job, stores: &mut Stores) -> Result<Vec<Message>, String> {
    let Some(timeline) = &mut stores.timeline else {
        return Ok(Vec::new());
    };
    let stream = SessionStream::hydrate(&job.session_id, &mut **timeline);
    let stream = stream.map_err(|error| error.to_string())?;
    Ok(timeline_messages(&stream.entities()))
}

/// Returns the messages on the screen when the chat opens after a run: the history, and that run.
pub(super) fn shown_after(history: Vec<Message>, turn: &Turn) -> Vec<Message> {
    let said = pinion_pinocchio::messages(turn);
    if history.is_empty() {
        return said;
    }
    let is_prompt = |message: &Message| matches!(message, Message::User(_));
    let prompt = said.iter().rposition(is_prompt).unwrap_or(0);
    let mut shown = history;
    shown.extend(said.into_iter().skip(prompt));
    shown
}

/// Returns the terminal for the screen: standard output, or standard error if the output is redirected.
fn canvas() -> Result<File, Failure> {
    match io::stdout().is_terminal() {
        true => Ok(stdio::claim_stdout()?),
        false => beside_stdout().ok_or_else(|| {
            Failure::usage(
                "Error: --chat needs a terminal, and neither standard output nor standard error is one. Use --stdin-rpc to talk with a command from a program, or leave the option out to run it once.",
            )
        }),
    }
}

/// Returns the same after standard output was claimed, for a user who has answered on the terminal.
fn canvas_after(stdout: File) -> io::Result<File> {
    match stdout.is_terminal() {
        true => Ok(stdout),
        false => match beside_stdout() {
            Some(stderr) => Ok(stderr),
            None => OpenOptions::new().read(true).write(true).open("/dev/tty"),
        },
    }
}

fn beside_stdout() -> Option<File> {
    let stderr = io::stderr();
    let copy = stderr.as_fd().try_clone_to_owned().ok()?;
    stderr.is_terminal().then(|| File::from(copy))
}

/// The end of the conversation.
#[derive(Debug)]
struct Talked {
    /// The end of the last run, if there was one.
    last: Option<RunEnd>,
    /// The exit code of the chat, or the reason why it could not be shown.
    chat: io::Result<u8>,
}

impl Stage {
    /// Shows the chat until the user leaves it.
    fn show(mut self, job: &Job, canvas: File, options: Options) -> Result<ExitCode, Failure> {
        self.ending = self.ending.and_to_quit(&self.runtime)?;
        let way = match job.options.plain || only_prints_lines() {
            true => Way::Lines,
            false => Way::Screen,
        };
        let (runtime, talked) = self.play(job, |host, feed, reader| {
            show(way, canvas, options, host, feed, reader)
        });
        if job.options.turns.outlasts_the_program() && talked.last == Some(RunEnd::Finished) {
            eprintln!("To go on later: --session-id {} --resume", job.session_id);
        }
        Ok(leave(runtime, talked.end()))
    }

    /// Runs the conversation. `show` shows the chat and returns its exit code.
    fn play<F: Future<Output = io::Result<u8>>>(
        mut self,
        job: &Job,
        show: impl FnOnce(Arc<dyn Host>, Feed, FeedReader) -> F,
    ) -> (Runtime, Talked) {
        let (feed, reader) = feed();
        feed.send(beside("setTitle", json!({"title": "pinocchio"})));
        if let Some(profile) = job.profile() {
            let text = format!("profile: {profile}");
            let status = json!({"statusKey": "profile", "statusText": text});
            feed.send(beside("setStatus", status));
        }
        let screen = Screen::new(feed.clone(), self.runner.models.model(), self.shown);
        let (line, orders) = line();
        let talk = Talk::new(&self.runner, Arc::new(screen), self.conversation);
        let talked = self.runtime.block_on(async {
            let is_over = Cell::new(false);
            let chat = async {
                let chat = show(Arc::new(line), feed.clone(), reader).await;
                is_over.set(true);
                chat
            };
            let mut talking = pin!(async {
                let (last, chat) = tokio::join!(talk.live(orders), chat);
                Talked { last, chat }
            });
            loop {
                tokio::select! {
                    talked = &mut talking => break talked,
                    code = self.ending.signalled() => match is_over.get() {
                        false => drop(feed.send(Incoming::End(code))),
                        // The chat is closed and the active run has not stopped; a second signal must not wait for
                        // it.
                        true => break Talked { last: Some(RunEnd::Stopped), chat: Ok(code) },
                    },
                }
            }
        });
        if let Some(frames) = self.frames {
            match (&talked.chat, &talked.last) {
                (Err(error), _) => frames.break_off(ErrorCode::TuiFailed, &error.to_string()),
                (Ok(_), Some(end)) => frames.end(end),
                (Ok(_), None) => frames.end(&RunEnd::Finished),
            }
        }
        (self.runtime, talked)
    }
}

impl Talked {
    /// Returns the end of the program: a failure of the last run is the program's failure.
    fn end(&self) -> End {
        match (&self.chat, &self.last) {
            (Err(error), _) => {
                eprintln!("Error: the chat could not be shown: {error}");
                End::Failed
            }
            (Ok(0), Some(RunEnd::Failed(words))) => {
                eprintln!("Error: {words}");
                End::Failed
            }
            (Ok(0), _) => End::Done,
            (Ok(code), _) => End::Signal(*code),
        }
    }
}

/// The form of the chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Screen,
    Lines,
}

/// Runs the chat on the terminal; returns its exit code.
async fn show(
    way: Way,
    canvas: File,
    options: Options,
    host: Arc<dyn Host>,
    feed: Feed,
    reader: FeedReader,
) -> io::Result<u8> {
    if way == Way::Lines {
        let options = PlainOptions {
            output: Box::new(canvas),
            input: typed_lines()?,
            texts: options.texts,
            images: options.images,
        };
        return Ok(plain_chat(options, host, reader).await?.exit_code);
    }
    // Restored when the screen is closed.
    let _printed = CapturedOutput::redirect(feed)?;
    let chat = Chat::open(Terminal::open(canvas)?, options)?;
    Ok(chat.run(host, reader).await?.exit_code)
}

/// Returns the options with which the chat of a command begins.
fn options(job: &Job, prompt: Option<String>) -> Options {
    let dirs = job.dirs();
    Options {
        cwd: dirs.cwd.clone(),
        home: dirs.home.clone(),
        background: background_of(job.theme()),
        colours: Colours::from_environment(),
        texts: prompt.into_iter().collect(),
        images: Vec::new(),
    }
}

/// Makes a request to show something beside the conversation, in the form that extensions use.
fn beside(method: &str, members: Value) -> Incoming {
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
