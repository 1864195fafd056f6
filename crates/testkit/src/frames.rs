//! Checks the lines of the Pinocchio front against the declarations of their messages: each is parsed strictly and
//! written back byte by byte by pinion's code, and by Python's protobuf where `cargo xtask` has installed it.

use std::fs;
use std::io::Write;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use pinion_proto::rpc::RpcLine;
use pinion_proto::{DESCRIPTORS, Message, Strictness};
use pinion_sync::lock;

use crate::process::{Process, Program};
use crate::sandbox::Sandbox;

/// The variable that names the interpreter with protobuf.
pub const PYTHON: &str = "PINION_PROTOBUF_PYTHON";

/// A running program that writes frames to standard output; its output is checked on drop.
#[derive(Debug)]
pub struct Frames {
    process: Process,
    written: Arc<Mutex<Vec<u8>>>,
}

impl Frames {
    /// Starts the program in the sandbox.
    pub fn start(program: &Program, sandbox: &Sandbox, args: &[String]) -> Self {
        Self::start_command(program.command(sandbox, args))
    }

    /// Spawns a command prepared by [`Program::command`].
    pub fn start_command(command: Command) -> Self {
        let written = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&written);
        let process =
            Process::start_tapped(command, move |line| lock(&kept).extend_from_slice(line));
        Self { process, written }
    }

    /// Returns the frames written so far.
    pub fn frames(&self) -> Vec<RpcLine> {
        whole_lines(&lock(&self.written)).map(strictly).collect()
    }
}

impl Deref for Frames {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.process
    }
}

impl DerefMut for Frames {
    fn deref_mut(&mut self) -> &mut Process {
        &mut self.process
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        // A test that has failed already has reported the reason.
        if !thread::panicking() {
            let written = lock(&self.written);
            // A program that was killed may have stopped in the middle of a line.
            let end = written.iter().rposition(|&byte| byte == b'\n');
            check(&written[..end.map_or(0, |at| at + 1)]);
        }
    }
}

/// Checks a whole stream: standard output of a program that has ended, or a file of events.
pub fn check(stream: &[u8]) -> Vec<RpcLine> {
    assert!(
        stream.is_empty() || stream.ends_with(b"\n"),
        "the last line has no end: {}",
        String::from_utf8_lossy(&stream[stream.len().saturating_sub(200)..])
    );
    let frames = whole_lines(stream).map(strictly).collect();
    if let Some(python) = python()
        && !stream.is_empty()
    {
        let (succeeded, said) = python.run("check", RpcLine::FULL_NAME, stream);
        assert!(succeeded, "{said}");
    }
    frames
}

/// Parses the frame on a line, which must be exactly the output of pinion's writer.
pub fn strictly(line: &[u8]) -> RpcLine {
    let shown = || String::from_utf8_lossy(line);
    let frame = RpcLine::decode_json(line, Strictness::Strict)
        .unwrap_or_else(|error| panic!("{error}\n{}", shown()));
    assert_eq!(frame.to_json(), shown(), "a frame that is not canonical");
    frame
}

fn whole_lines(stream: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = stream.split_inclusive(|&byte| byte == b'\n');
    lines.filter_map(|line| line.strip_suffix(b"\n"))
}

/// Returns Python's implementation of protobuf, if it is installed.
pub fn python() -> Option<Python> {
    std::env::var_os(PYTHON).map(|it| Python(it.into()))
}

/// An interpreter that has protobuf.
#[derive(Debug)]
pub struct Python(PathBuf);

impl Python {
    /// Runs `tests/interop/frames.py` for a message with `input` on standard input. Returns whether it succeeded, and
    /// its output.
    pub fn run(&self, what: &str, message: &str, input: &[u8]) -> (bool, String) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/interop/frames.py");
        let directory = tempfile::tempdir().expect("a directory for the descriptors");
        let descriptors = directory.path().join("descriptors.bin");
        fs::write(&descriptors, DESCRIPTORS).expect("the descriptors are written");
        let mut child = Command::new(&self.0)
            .arg(script)
            .arg(what)
            .arg(descriptors)
            .arg(message)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{} does not start: {error}", self.0.display()));
        let mut stdin = child.stdin.take().expect("a pipe");
        let output = thread::scope(|scope| {
            scope.spawn(move || stdin.write_all(input));
            child.wait_with_output().expect("its output")
        });
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.success(), said)
    }
}
