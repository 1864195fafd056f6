//! A client as its user sees it: arguments, output, input and exit.

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use pinion_testkit::{Exit, Sandbox};

use crate::support::HANG;

/// The output of one stream so far.
#[derive(Clone, Default)]
struct Shown(Arc<Mutex<Vec<u8>>>);

impl Shown {
    fn follow(&self, mut stream: impl Read + Send + 'static) -> JoinHandle<()> {
        let shown = self.clone();
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = stream.read(&mut bytes) {
                shown.0.lock().unwrap().extend(&bytes[..count]);
            }
        })
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

/// A client that is not started yet.
pub struct Client<'a> {
    command: &'a [OsString],
    sandbox: &'a Sandbox,
    pinion: PathBuf,
    variables: Vec<(&'static str, String)>,
}

impl<'a> Client<'a> {
    /// Creates a client that finds the binary under test as `pinion`.
    pub fn new(command: &'a [OsString], sandbox: &'a Sandbox) -> Self {
        let binary = Path::new(env!("CARGO_BIN_EXE_pinion"));
        Self {
            command,
            sandbox,
            pinion: binary.parent().unwrap().to_owned(),
            variables: Vec::new(),
        }
    }

    /// Makes the client find `pinion` in another directory.
    pub fn finding_pinion_in(mut self, directory: &Path) -> Self {
        directory.clone_into(&mut self.pinion);
        self
    }

    /// Sets a variable of its environment.
    pub fn with(mut self, name: &'static str, value: &str) -> Self {
        self.variables.push((name, value.to_owned()));
        self
    }

    /// Starts the client with a message, and with further arguments for pinion.
    pub fn ask(&self, message: &str, arguments: &[&OsStr]) -> Talk {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(&self.command[0]);
        command
            .args(&self.command[1..])
            .arg(message)
            .args(arguments)
            .current_dir(self.sandbox.work())
            .env_clear()
            .envs(self.sandbox.environment())
            .env("PATH", format!("{}:{path}", self.pinion.display()))
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let (answer, notes) = (Shown::default(), Shown::default());
        let readers = vec![
            answer.follow(child.stdout.take().unwrap()),
            notes.follow(child.stderr.take().unwrap()),
        ];
        Talk {
            name: format!("{:?}", self.command),
            child,
            answer,
            notes,
            readers,
        }
    }
}

/// A running client.
pub struct Talk {
    name: String,
    child: Child,
    answer: Shown,
    notes: Shown,
    readers: Vec<JoinHandle<()>>,
}

impl Talk {
    /// Waits until the client has printed this as a part of the answer.
    pub fn wait_for_answer(&self, text: &str) {
        self.wait_for(&self.answer, text);
    }

    /// Waits until the client has printed this on standard error.
    pub fn wait_for_note(&self, text: &str) {
        self.wait_for(&self.notes, text);
    }

    fn wait_for(&self, shown: &Shown, text: &str) {
        let end = Instant::now() + HANG;
        while !shown.text().contains(text) {
            assert!(Instant::now() < end, "no {text:?}; {}", self.report());
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Writes a line to the client's standard input.
    pub fn say(&mut self, line: &str) {
        let stdin = self.child.stdin.as_mut().unwrap();
        writeln!(stdin, "{line}").unwrap();
    }

    /// Closes the client's standard input.
    pub fn leave(&mut self) {
        self.child.stdin = None;
    }

    /// Waits for the end and returns the exit, the answer and the notes.
    pub fn end(mut self) -> (Exit, String, String) {
        let end = Instant::now() + HANG;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < end, "it does not end; {}", self.report());
            thread::sleep(Duration::from_millis(5));
        };
        for reader in self.readers.drain(..) {
            reader.join().unwrap();
        }
        (Exit::of(status), self.answer.text(), self.notes.text())
    }

    fn report(&self) -> String {
        let (answer, notes) = (self.answer.text(), self.notes.text());
        format!("{} answered {answer:?} and noted\n{notes}", self.name)
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
