//! Transcripts: the lines that a client writes, the lines it waits for, and the program's output.
//!
//! A [`Case`] describes the sandbox, the model's answers and the client's steps. [`run`] plays it against a
//! [`Program`](crate::Program) and returns a [`Recording`]: everything seen, and a list of problems (an awaited line
//! that never came, an unexpected exit status). Recordings can be made comparable ([`normal`]) and compared by what
//! matters ([`compare`]).
//!
//! pinion's own cases are text files that can be read without knowledge of the runner; [`text`] describes their format.

mod pattern;
mod runner;

pub mod compare;
pub mod normal;
pub mod text;

use std::path::PathBuf;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::Exit;
use crate::schema::Schema;

pub use pattern::{dig, fill, fits};
pub use runner::run;

/// The preparation of a sandbox and the steps to play in it.
#[derive(Debug, Clone)]
pub struct Case {
    /// Short name, used in reports.
    pub name: String,
    /// Complete command line of the program, without the program itself.
    pub args: Vec<String>,
    /// Put before the arguments of a restart that gives its own.
    pub leading_args: Vec<String>,
    /// Merged over the default settings.
    pub settings: Value,
    /// Added to the environment.
    pub env: Vec<(String, String)>,
    /// Files in the working directory: name to text, or to a JSON value.
    pub files: Value,
    /// Files in the working directory, in base64.
    pub files_base64: Value,
    /// Files in the agent directory.
    pub agent_files: Value,
    /// The model's answers; see [`crate::model`].
    pub scenario: Value,
    /// The client's steps.
    pub steps: Vec<Placed>,
    /// Files of the working directory whose text is recorded at the end.
    pub collect: Vec<String>,
    /// Pause before they are read.
    pub collect_delay: Duration,
    /// Time to wait for a line.
    pub patience: Duration,
    /// Time that the program may take to exit after its input has ended.
    pub exit_patience: Duration,
    /// The schema of its lines, if it is not that of the program.
    pub schema: Option<Schema>,
}

impl Default for Case {
    fn default() -> Self {
        Self {
            name: String::new(),
            args: vec!["--mode".into(), "rpc".into()],
            leading_args: Vec::new(),
            settings: json!({}),
            env: Vec::new(),
            files: json!({}),
            files_base64: json!({}),
            agent_files: json!({}),
            scenario: json!({}),
            steps: Vec::new(),
            collect: Vec::new(),
            collect_delay: Duration::from_millis(50),
            patience: Duration::from_secs(20),
            exit_patience: Duration::from_secs(4),
            schema: None,
        }
    }
}

/// A step, and where it was written.
#[derive(Debug, Clone)]
pub struct Placed {
    /// Such as `line 12`.
    pub place: String,
    pub step: Step,
}

/// One thing a client does or expects. `${NAME}` in texts stands for a remembered value.
#[derive(Debug, Clone)]
pub enum Step {
    /// Write a JSON value as one line.
    Send(Value),
    /// Write this text and a line end.
    SendText(String),
    /// Like `SendText`, with a text that is not a command, on purpose.
    SendWrong(String),
    /// Wait for a line.
    Await(Await),
    /// From here to the end of its output no line fits.
    Never(Value),
    /// The next request to the model has a body that fits.
    ModelSees(Value),
    /// Wait.
    Delay(Duration),
    /// Open a gate of the model server.
    Release(String),
    /// Close its input, wait for the exit, start again in the same sandbox.
    Restart(Option<Vec<String>>),
    /// Close its input.
    CloseStdin,
    /// Send a signal.
    Signal(Signal),
    /// Wait for its exit; with a status, that one.
    WaitExit(Duration, Option<Exit>),
    /// Write files into the working directory.
    WriteFiles(Value),
    /// A file of the working directory has a text that fits.
    FileHas(String, Value),
}

/// A line to wait for.
#[derive(Debug, Clone)]
pub struct Await {
    /// The content of the line; see [`fits`].
    pub pattern: Value,
    /// The number of the fitting line, from 1.
    pub count: usize,
    /// The start of the search and its effect on the position.
    pub reach: Reach,
    /// The line may be missing.
    pub optional: bool,
    /// Values to remember: name and dotted path in the line.
    pub remember: Vec<(String, String)>,
    /// Time to wait, if it is not that of the case.
    pub patience: Option<Duration>,
}

impl Await {
    /// The next line that fits.
    pub fn next(pattern: Value) -> Self {
        Self {
            pattern,
            count: 1,
            reach: Reach::Onward,
            optional: false,
            remember: Vec::new(),
            patience: None,
        }
    }
}

/// The start of a search for a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// After the last match; the position moves behind the new one.
    Onward,
    /// After the last match; the position stays.
    Peek,
    /// At the first line of the process; the position moves forward only.
    FromStart,
    /// The very next line, no other between.
    Adjacent,
}

/// A line that was written to the program.
#[derive(Debug, Clone)]
pub struct Sent {
    /// The place of the step in the transcript.
    pub place: String,
    /// The line.
    pub text: String,
    pub intent: Intent,
}

/// The intended kind of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intent {
    /// A command.
    Command,
    /// Not a command, on purpose.
    Wrong,
}

/// Everything seen while a case was played.
#[derive(Debug)]
pub struct Recording {
    /// Messages about problems.
    pub problems: Vec<String>,
    /// Lines that are not as the program promises, in words.
    pub broken_promises: Vec<String>,
    /// Lines that were written as texts.
    pub input: Vec<Sent>,
    /// Lines of standard output and what the runner did, in order.
    pub output: Vec<Value>,
    /// The requests the model server received.
    pub requests: Vec<Value>,
    /// Session files: relative name and lines.
    pub sessions: Vec<(String, Vec<Value>)>,
    /// Standard error of all processes.
    pub stderr: String,
    /// The wanted files at the end; null if there was none.
    pub files: Value,
    /// The root of the sandbox, for taking it out of texts.
    pub root: PathBuf,
    /// The port of the model server, for the same reason.
    pub port: u16,
}
