//! A filter in its own process, so that its memory can be limited.
//!
//! A short filter can request any amount of memory (`[range(1e18)]`, `"x" * 1e12`) or recurse
//! without end, and a process survives neither: a failed allocation or a stack overflow aborts it.
//! The program therefore starts itself with [`FILTER_ARGUMENT`], and the new process limits its
//! memory before it reads anything.
//!
//! Both processes communicate over a socket, which is standard input of the new process. A frame is
//! its length in eight bytes, then JSON: first the filter and its form, then one text after the
//! other; each is answered with a frame. Outputs go directly to standard output.

use std::io::{self, BufReader, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;

use nix::sys::prctl;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::program::Program;
use crate::{Flow, Form, Layout, Problem, STACK, Texts};

/// The first argument of a process that runs a filter.
pub const FILTER_ARGUMENT: &str = "__filter";

/// The most bytes that a filter process may have mapped.
pub const MEMORY_LIMIT: u64 = 1 << 30;

/// The parent's side of a filter process.
pub(crate) struct Remote {
    child: Child,
    channel: BufReader<UnixStream>,
}

impl Remote {
    /// Starts `program`, which compiles `code`. Fails with a description of the fault in the code.
    pub fn start(program: &Path, code: &str, form: Form) -> Result<Self, String> {
        let failed = |error: io::Error| format!("the process that runs it did not start: {error}");
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        let child = Command::new(program)
            .arg(FILTER_ARGUMENT)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .spawn()
            .map_err(failed)?;
        let mut remote = Self {
            child,
            channel: BufReader::new(ours),
        };
        let texts = match form.texts {
            Texts::Plain => "plain",
            Texts::Shown(_) => "shown",
            Texts::Quoted => "quoted",
        };
        let indented = form.layout == Layout::Indented;
        let head = json!({"code": code, "indented": indented, "texts": texts}).to_string();
        let answer = remote.request(head.as_bytes());
        let wrong = answer.map_err(|problem| problem.to_string())?;
        match wrong.get("wrong").and_then(Value::as_str) {
            Some(wrong) => Err(wrong.to_owned()),
            None => Ok(remote),
        }
    }

    /// Filters one JSON text.
    pub fn apply(&mut self, json: &[u8]) -> Result<Flow, Problem> {
        let answer = self.request(json)?;
        let failed = answer.get("failed").and_then(Value::as_str);
        if let Some(why) = failed {
            return Err(Problem::Failed(why.to_owned()));
        }
        let number = |name: &str| {
            let number = answer.get(name).and_then(Value::as_i64);
            number.and_then(|number| i32::try_from(number).ok())
        };
        if let Some(code) = number("unwritten") {
            return Err(Problem::Output(io::Error::from_raw_os_error(code)));
        }
        Ok(number("halt").map_or(Flow::Next, Flow::Halt))
    }

    fn request(&mut self, frame: &[u8]) -> Result<Value, Problem> {
        let sent = send(self.channel.get_mut(), frame);
        let answer = sent.and_then(|()| receive(&mut self.channel));
        match answer {
            Ok(Some(answer)) => serde_json::from_slice(&answer)
                .map_err(|_| Problem::Failed("the filter stopped unexpectedly".to_owned())),
            Ok(None) | Err(_) => Err(Problem::Failed(self.exit_reason())),
        }
    }

    /// Describes why the process exited.
    fn exit_reason(&mut self) -> String {
        let signal = self.child.wait().ok().and_then(|status| status.signal());
        match signal.map(Signal::try_from) {
            Some(Ok(Signal::SIGINT | Signal::SIGTERM)) => "the filter was interrupted".to_owned(),
            _ => format!(
                "the filter needs more than {} MB of memory, or calls itself too deeply; select less, or use limit(…)",
                MEMORY_LIMIT >> 20
            ),
        }
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        // The process has nothing to save.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the filter that the parent process sends. The program calls it when its first argument is
/// [`FILTER_ARGUMENT`], with its memory limited to [`MEMORY_LIMIT`]. `shown` is the function of
/// [`Texts::Shown`].
pub fn filter_main(shown: fn(&str) -> String) -> ExitCode {
    // A filter may run without end; it must not outlive the program that waits for it.
    let _ = prctl::set_pdeathsig(Signal::SIGKILL);
    let work = thread::Builder::new().stack_size(STACK);
    let served = work
        .spawn(move || serve(shown))
        .map(thread::JoinHandle::join);
    match served {
        Ok(Ok(Ok(()))) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

fn serve(shown: fn(&str) -> String) -> io::Result<()> {
    let socket = io::stdin().as_fd().try_clone_to_owned()?;
    let mut answers = UnixStream::from(socket);
    let mut requests = BufReader::new(answers.try_clone()?);
    let Some(head) = receive(&mut requests)? else {
        return Ok(());
    };
    let head: Value = serde_json::from_slice(&head)?;
    let form = Form {
        layout: if head["indented"] == true {
            Layout::Indented
        } else {
            Layout::Compact
        },
        texts: match head["texts"].as_str() {
            Some("quoted") => Texts::Quoted,
            Some("shown") => Texts::Shown(shown),
            _ => Texts::Plain,
        },
    };
    let program = match Program::compile(head["code"].as_str().unwrap_or_default()) {
        Ok(program) => program,
        Err(wrong) => {
            let answer = json!({"wrong": wrong}).to_string();
            return send(&mut answers, answer.as_bytes());
        }
    };
    send(&mut answers, b"{}")?;
    let mut output = io::stdout();
    while let Some(text) = receive(&mut requests)? {
        let outcome = crate::filter_one(&program, form, &mut output, &text);
        let answer = match outcome {
            Ok(Flow::Next) => json!({}),
            Ok(Flow::Halt(code)) => json!({"halt": code}),
            Err(Problem::Failed(why)) => json!({"failed": why}),
            Err(Problem::Output(error)) => {
                json!({"unwritten": error.raw_os_error().unwrap_or(nix::libc::EIO)})
            }
        };
        send(&mut answers, answer.to_string().as_bytes())?;
    }
    Ok(())
}

fn send(channel: &mut UnixStream, frame: &[u8]) -> io::Result<()> {
    channel.write_all(&(frame.len() as u64).to_le_bytes())?;
    channel.write_all(frame)
}

/// Receives the next frame; `None` at the end. The other side is this program, so its lengths are
/// correct.
fn receive(channel: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 8];
    match channel.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let length = u64::from_le_bytes(length);
    let mut frame = Vec::new();
    let read = channel.take(length).read_to_end(&mut frame)?;
    if read as u64 == length {
        Ok(Some(frame))
    } else {
        Ok(None)
    }
}
