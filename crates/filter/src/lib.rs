//! Filters in the language of jq, over answers as they come.
//!
//! A [`Filter`] is compiled before anything is asked, and then given one JSON text after the other; what comes out goes to a writer, each
//! output on a line. It runs in a thread of its own: a filter may go on for ever, and whoever waits for it must be able to stop waiting.
//!
//! There are the functions of jq but `input`, `inputs` and modules: each text is filtered alone.

mod depth;
mod form;
mod program;

use std::fmt;
use std::io::{self, Write};
use std::sync::mpsc;
use std::thread;

use tokio::sync::oneshot;

pub use self::form::{Form, Layout, Texts};
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

impl Filter {
    /// Compiles `code`; what it makes will be written to `output` in this form. Fails with words about what is wrong with the code.
    pub fn compile(
        code: &str,
        form: Form,
        output: impl Write + Send + 'static,
    ) -> Result<Self, String> {
        let (work, waiting) = mpsc::channel();
        let (told, verdict) = mpsc::channel();
        let code = code.to_owned();
        let body = move || {
            let program = match Program::compile(&code) {
                Ok(program) => program,
                Err(problem) => return drop(told.send(Err(problem))),
            };
            let _ = told.send(Ok(()));
            serve(&program, form, output, &waiting);
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

/// Filters what comes until nobody is left who could send more.
fn serve(program: &Program, form: Form, mut output: impl Write, waiting: &mpsc::Receiver<Work>) {
    while let Ok(Work { json, done }) = waiting.recv() {
        let outcome = program.run(&json, |value| form.write(value, &mut output));
        let outcome = outcome.and_then(|flow| {
            output.flush().map_err(Problem::Output)?;
            Ok(flow)
        });
        // Whoever asked may have stopped waiting.
        let _ = done.send(outcome);
    }
}
