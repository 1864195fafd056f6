//! Filters in the language of jq, over answers as they come.
//!
//! A [`Filter`] is compiled before anything is asked, and then given one JSON text after the other; what comes out goes to a writer, each
//! output on a line. It runs in a thread of its own: a filter may go on for ever, and whoever waits for it must be able to stop waiting.
//!
//! [`Filter::compile_confined`] runs a filter in a process whose memory is limited.
//!
//! There are the functions of jq but `input`, `inputs` and modules: each text is filtered alone.

mod depth;
mod form;
mod process;
mod program;

use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc;
use std::thread;

use tokio::sync::oneshot;

pub use self::form::{Form, Layout, Texts};
use self::process::Remote;
pub use self::process::{FILTER_ARGUMENT, MEMORY_LIMIT, filter_main};
use self::program::Program;

/// Room for filters that call themselves and for JSON that is deep; it costs nothing until it is used.
const STACK: usize = 64 << 20;

/// A filter that was compiled. Its thread ends when it is dropped, unless it is at work.
pub struct Filter {
    work: mpsc::Sender<Work>,
}

/// A JSON text to be filtered, and who waits for the outcome.
struct Work {
    json: Vec<u8>,
    done: oneshot::Sender<Result<Flow, Problem>>,
}

/// How things go on after a text was filtered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// With the next one.
    Next,
    /// Not at all: the filter said `halt`, with this exit code.
    Halt(i32),
}

/// Why a text was not filtered to the end.
#[derive(Debug)]
pub enum Problem {
    /// The filter failed, in its own words, or what it was given is not JSON.
    Failed(String),
    /// What came out could not be written.
    Output(io::Error),
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(why) => formatter.write_str(why),
            Self::Output(error) => error.fmt(formatter),
        }
    }
}

impl Filter {
    /// Compiles `code`; what it makes will be written to `output` in this form. Fails with words about what is wrong with the code.
    pub fn compile(
        code: &str,
        form: Form,
        output: impl Write + Send + 'static,
    ) -> Result<Self, String> {
        let code = code.to_owned();
        let mut output = output;
        Self::in_thread(
            move || Program::compile(&code),
            move |program, json| filter_one(program, form, &mut output, json),
        )
    }

    /// Like [`Filter::compile`], in a process whose memory is limited: `program` is this program, which calls
    /// [`filter_main`] there. Outputs go to standard output.
    pub fn compile_confined(program: &Path, code: &str, form: Form) -> Result<Self, String> {
        let (program, code) = (program.to_owned(), code.to_owned());
        Self::in_thread(
            move || Remote::start(&program, &code, form),
            |remote, json| remote.apply(json),
        )
    }

    /// Starts the thread that makes something of each text with what `start` gives it.
    fn in_thread<T>(
        start: impl FnOnce() -> Result<T, String> + Send + 'static,
        mut apply: impl FnMut(&mut T, &[u8]) -> Result<Flow, Problem> + Send + 'static,
    ) -> Result<Self, String> {
        let (work, waiting) = mpsc::channel();
        let (told, verdict) = mpsc::channel();
        let body = move || {
            let mut started = match start() {
                Ok(started) => started,
                Err(problem) => return drop(told.send(Err(problem))),
            };
            let _ = told.send(Ok(()));
            while let Ok(Work { json, done }) = waiting.recv() {
                // The caller may have stopped waiting.
                let _ = done.send(apply(&mut started, &json));
            }
        };
        let thread = thread::Builder::new().name("filter".to_owned());
        thread
            .stack_size(STACK)
            .spawn(body)
            .map_err(|error| format!("there is no thread for it: {error}"))?;
        let broken = || Err("it cannot be compiled".to_owned());
        verdict.recv().unwrap_or_else(|_| broken())?;
        Ok(Self { work })
    }

    /// Filters one JSON text; nothing comes of an empty one. All that was made of it is written when this returns.
    pub async fn apply(&self, json: Vec<u8>) -> Result<Flow, Problem> {
        let (done, wait) = oneshot::channel();
        let gone = |_| Problem::Failed("the filter broke off".to_owned());
        let sent = self.work.send(Work { json, done });
        sent.map_err(|_| Problem::Failed("the filter broke off".to_owned()))?;
        wait.await.map_err(gone)?
    }
}

impl fmt::Debug for Filter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Filter").finish_non_exhaustive()
    }
}

/// Writes what `program` makes of one text to `output`.
fn filter_one(
    program: &Program,
    form: Form,
    mut output: impl Write,
    json: &[u8],
) -> Result<Flow, Problem> {
    let flow = program.run(json, |value| form.write(value, &mut output))?;
    output.flush().map_err(Problem::Output)?;
    Ok(flow)
}
