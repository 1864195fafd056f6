//! The program under test as a child process: lines in, lines out with their times, and an exit that is always awaited.
//! It assumes no protocol beyond "one JSON value per line".

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::symlink;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use pinion_sync::lock;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::sandbox::Sandbox;
use crate::schema::Schema;
use crate::transcript::fits;

/// The command line of the program under test.
#[derive(Debug, Clone)]
pub struct Program {
    /// The program and the first arguments of every run.
    pub command: Vec<OsString>,
    /// Variables added to the environment of the sandbox.
    pub environment: Vec<(String, String)>,
    /// The schema of its lines; runners of cases check the lines against it.
    pub promises: Option<Schema>,
    /// The directories it is installed in; these paths are removed from its output before a comparison.
    pub installed_in: Vec<PathBuf>,
    /// Holds the link of [`Program::linked`].
    _link: Option<Arc<TempDir>>,
}

impl Program {
    /// A program that is one binary, as in `Program::new(env!("CARGO_BIN_EXE_pinion"))`.
    pub fn new(path: impl AsRef<OsStr>) -> Self {
        Self::from_command([path])
    }

    /// Reports whether the program is one binary, like pinion; the reference needs an interpreter.
    pub fn is_binary(&self) -> bool {
        self.command.len() == 1
    }

    /// A program with fixed arguments, such as an interpreter and a script.
    pub fn from_command<S: AsRef<OsStr>>(command: impl IntoIterator<Item = S>) -> Self {
        Self {
            command: command
                .into_iter()
                .map(|part| part.as_ref().to_owned())
                .collect(),
            environment: Vec::new(),
            promises: None,
            installed_in: Vec::new(),
            _link: None,
        }
    }

    /// A binary called through a link of another name.
    pub fn linked(path: impl AsRef<OsStr>, name: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory for a link");
        let link = directory.path().join(name);
        symlink(path.as_ref(), &link).expect("a link");
        Self {
            _link: Some(Arc::new(directory)),
            ..Self::new(link)
        }
    }

    /// Returns the same program with a schema for its lines.
    pub fn promising(mut self, schema: Schema) -> Self {
        self.promises = Some(schema);
        self
    }

    /// Returns the command, in its own process group, for further changes.
    pub fn command(&self, sandbox: &Sandbox, args: &[String]) -> Command {
        let mut command = Command::new(&self.command[0]);
        command
            .args(&self.command[1..])
            .args(args)
            .current_dir(sandbox.work())
            .env_clear()
            .envs(sandbox.environment())
            .envs(self.environment.iter().cloned())
            .process_group(0);
        command
    }

    /// Starts the program in the sandbox with pipes on all three streams.
    pub fn start(&self, sandbox: &Sandbox, args: &[String]) -> Process {
        Process::start(self.command(sandbox, args))
    }
}

/// One line of standard output.
#[derive(Debug, Clone)]
pub struct Line {
    /// The time at which it was read.
    pub at: Instant,
    /// The line as JSON; `{"__unparsed": "…"}` if it is not JSON.
    pub value: Value,
}

/// The end of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It exited with this status.
    Code(i32),
    /// It was ended by this signal.
    Signal(i32),
}

impl Exit {
    /// Returns the status as one number: the code, or the negative number of the signal.
    pub fn number(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => -signal,
        }
    }

    /// Converts the status that the system reports.
    pub fn of(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Code(code),
            (None, signal) => Self::Signal(signal.unwrap_or(0)),
        }
    }
}

#[derive(Debug, Default)]
struct Seen {
    lines: Vec<Line>,
    ended: bool,
}

#[derive(Debug, Default)]
struct Output {
    seen: Mutex<Seen>,
    changed: Condvar,
}

/// A running program; dropping it kills its process group and waits.
#[derive(Debug)]
pub struct Process {
    child: Child,
    stdin: Option<ChildStdin>,
    output: Arc<Output>,
    errors: Arc<Mutex<Vec<u8>>>,
    readers: Vec<JoinHandle<()>>,
    exit: Option<Exit>,
    asked: usize,
}

/// Time that an awaited line may take before the test fails.
const LINE_TIMEOUT: Duration = Duration::from_secs(20);

impl Process {
    /// Spawns a command prepared by [`Program::command`].
    pub fn start(command: Command) -> Self {
        Self::start_tapped(command, |_| ())
    }

    /// Like [`Process::start`], and also passes every line of standard output to `tap` as it was read, with the LF if
    /// it has one.
    pub fn start_tapped(mut command: Command, tap: impl FnMut(&[u8]) + Send + 'static) -> Self {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .unwrap_or_else(|e| panic!("cannot start {command:?}: {e}"));
        let stdin = child.stdin.take();
        let output = Arc::new(Output::default());
        let errors = Arc::new(Mutex::new(Vec::new()));
        let stdout = child.stdout.take().expect("stdout is a pipe");
        let mut stderr = child.stderr.take().expect("stderr is a pipe");
        let (lines, bytes) = (Arc::clone(&output), Arc::clone(&errors));
        let readers = vec![
            thread::spawn(move || read_lines(stdout, &lines, tap)),
            thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(count @ 1..) = stderr.read(&mut buffer) {
                    lock(&bytes).extend_from_slice(&buffer[..count]);
                }
            }),
        ];
        Self {
            child,
            stdin,
            output,
            errors,
            readers,
            exit: None,
            asked: 0,
        }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Writes one line. A closed pipe is not an error here, because the missing answer will be one.
    pub fn send_text(&mut self, line: &str) {
        self.send_bytes(format!("{line}\n").as_bytes());
    }

    /// Writes a JSON value as one line.
    pub fn send(&mut self, value: &Value) {
        self.send_text(&value.to_string());
    }

    /// Writes bytes as they are.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        if let Some(stdin) = &mut self.stdin {
            let _ = stdin.write_all(bytes).and_then(|()| stdin.flush());
        }
    }

    /// Ends its standard input.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        let _ = kill(Pid::from_raw(self.child.id() as i32), signal);
    }

    /// The lines read so far.
    pub fn lines(&self) -> Vec<Line> {
        lock(&self.output.seen).lines.clone()
    }

    /// The line at this position, if it has been read.
    pub fn line(&self, position: usize) -> Option<Line> {
        lock(&self.output.seen).lines.get(position).cloned()
    }

    /// Returns the number of lines read so far.
    pub fn line_count(&self) -> usize {
        lock(&self.output.seen).lines.len()
    }

    /// Returns the standard error output so far.
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&lock(&self.errors)).into_owned()
    }

    /// Returns the position of the `count`-th line from `from` on that `fits`, waiting for it at most `time`. Returns
    /// `None` as soon as the output has ended without it.
    pub fn find(
        &self,
        from: usize,
        count: usize,
        time: Duration,
        mut fits: impl FnMut(&Value) -> bool,
    ) -> Option<usize> {
        let end = Instant::now() + time;
        let mut missing = count;
        let mut position = from;
        let mut seen = lock(&self.output.seen);
        loop {
            while let Some(line) = seen.lines.get(position) {
                if fits(&line.value) {
                    missing = missing.saturating_sub(1);
                    if missing == 0 {
                        return Some(position);
                    }
                }
                position += 1;
            }
            let left = end.saturating_duration_since(Instant::now());
            if seen.ended || left.is_zero() {
                return None;
            }
            let waited = self.output.changed.wait_timeout(seen, left);
            seen = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Sends a command and returns its response, which has the same `id`; a command without an id gets one.
    pub fn ask(&mut self, mut command: Value) -> Value {
        let from = self.line_count();
        if command.get("id").is_none() {
            self.asked += 1;
            command["id"] = json!(format!("ask-{}", self.asked));
        }
        self.send(&command);
        let pattern = json!({"type": "response", "id": command["id"]});
        self.expect(from, &pattern).value
    }

    /// Returns the next line from position `from` on that contains `pattern`.
    pub fn expect(&self, from: usize, pattern: &Value) -> Line {
        let found = self.find(from, 1, LINE_TIMEOUT, |line| fits(pattern, line));
        found.and_then(|at| self.line(at)).unwrap_or_else(|| {
            let lines: Vec<String> = self
                .lines()
                .iter()
                .skip(from)
                .map(|l| l.value.to_string())
                .collect();
            let (lines, errors) = (lines.join("\n"), self.stderr());
            panic!("no line fits {pattern}; after position {from} came:\n{lines}\n{errors}")
        })
    }

    /// Waits for the exit.
    pub fn wait(&mut self, time: Duration) -> Option<Exit> {
        let end = Instant::now() + time;
        while self.exit.is_none() {
            if let Ok(Some(status)) = self.child.try_wait() {
                self.exit = Some(Exit::of(status));
            } else if Instant::now() >= end {
                return None;
            } else {
                thread::sleep(Duration::from_millis(2));
            }
        }
        self.exit
    }

    /// Waits until all output has been read, which a surviving child may delay.
    pub fn drain(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while self.readers.iter().any(|r| !r.is_finished()) && Instant::now() < end {
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Ends its process group, first with SIGTERM, then with SIGKILL.
    pub fn kill_group(&mut self) -> Option<Exit> {
        for (signal, time) in [(Signal::SIGTERM, 3), (Signal::SIGKILL, 3)] {
            if self.exit.is_some() {
                break;
            }
            let _ = killpg(Pid::from_raw(self.child.id() as i32), signal);
            self.wait(Duration::from_secs(time));
        }
        self.exit
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The program may have exited and left processes in its group, which must not outlive the test.
        let _ = killpg(Pid::from_raw(self.child.id() as i32), Signal::SIGKILL);
        let _ = self.child.wait();
    }
}

fn read_lines(stdout: impl Read, output: &Output, mut tap: impl FnMut(&[u8])) {
    let mut reader = BufReader::with_capacity(64 * 1024, stdout);
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let count = reader.read_until(b'\n', &mut bytes).unwrap_or(0);
        if count == 0 {
            break;
        }
        tap(&bytes);
        let text = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        let value = serde_json::from_slice(text)
            .unwrap_or_else(|_| json!({"__unparsed": String::from_utf8_lossy(text)}));
        let at = Instant::now();
        lock(&output.seen).lines.push(Line { at, value });
        output.changed.notify_all();
    }
    lock(&output.seen).ended = true;
    output.changed.notify_all();
}
