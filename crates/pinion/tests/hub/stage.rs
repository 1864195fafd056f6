//! A home with a hub in it, and the commands that run there.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

/// Longest duration of any step before it counts as hanging. Not a measure of speed.
pub const HANG: Duration = Duration::from_secs(60);

/// A home directory for one test.
pub struct Home {
    directory: tempfile::TempDir,
}

/// The result of a command.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    /// Returns standard output. Panics if the command failed.
    #[track_caller]
    pub fn fine(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        self.stdout
    }

    /// Returns standard output as JSON. Panics if the command failed.
    #[track_caller]
    pub fn json(self) -> Value {
        serde_json::from_str(&self.fine()).unwrap()
    }

    /// Returns standard error. Panics unless the command failed with this code and printed nothing.
    #[track_caller]
    pub fn failed(self, code: i32) -> String {
        assert_eq!(self.code, code, "{self:?}");
        assert_eq!(self.stdout, "", "{self:?}");
        self.stderr
    }
}

impl Home {
    pub fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        for link in ["pinion", "pinix", "pinixd"] {
            let path = directory.path().join(link);
            std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_pinion"), path).unwrap();
        }
        Self { directory }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Returns the directory of the hub.
    pub fn root(&self) -> PathBuf {
        self.path(".pinion/hub")
    }

    pub fn write(&self, name: &str, content: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Writes a clip that shows its input, in a directory of this name.
    pub fn write_probe(&self, name: &str) {
        let input = json!({
            "to": {"type": "integer", "required": true},
            "pause": {"type": "number"},
        });
        // Required, so that a word alone fills it; with a default, so that it may be left out.
        let title = json!({"title": {"type": "string", "required": true, "default": "", "description": "What to show"}});
        let manifest = json!({
            "name": format!("@me/{name}"), "version": "1.2.0", "description": "Shows what it was told",
            "runtime": "python", "main": "probe.py", "ipc": "direct",
            "dependencies": {"store": {"package": "@me/db", "version": "^1"}},
            "commands": [
                {"name": "echo", "description": "Show", "input": title},
                {"name": "count", "input": input},
                {"name": "text"}, {"name": "fail"}, {"name": "family"}, {"name": "say"}, {"name": "wait"},
            ],
        });
        self.write(&format!("{name}/clip.json"), &manifest.to_string());
        self.write(&format!("{name}/probe.py"), include_str!("../hub/probe.py"));
    }

    /// Returns a command in this home, by one of the binary's names.
    pub fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.path(program));
        command.args(arguments).current_dir(self.directory.path());
        command.env_clear().env("HOME", self.directory.path());
        command.env("PATH", std::env::var_os("PATH").unwrap());
        command.stdin(Stdio::null());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        finish(self.command("pinion", arguments))
    }

    pub fn run_as(&self, program: &str, arguments: &[&str]) -> Ran {
        finish(self.command(program, arguments))
    }

    /// Runs a command with this standard input.
    pub fn run_fed(&self, program: &str, arguments: &[&str], input: &[u8]) -> Ran {
        let mut command = self.command(program, arguments);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        ran(child.wait_with_output().unwrap())
    }

    /// Starts a hub on any port.
    pub fn serve(&self) -> Hub {
        self.serve_with(&[])
    }

    pub fn serve_with(&self, flags: &[&str]) -> Hub {
        let mut command = self.command("pinion", &["hub", "serve", "--port", "0"]);
        command.args(flags);
        Hub::start(command, self.path("serve.err"))
    }

    /// Starts a hub with the probe on it.
    pub fn serve_probe(&self) -> Hub {
        self.write_probe("probe");
        let hub = self.serve();
        self.run(&["clip", "add", "./probe"]).fine();
        hub
    }

    /// Returns the aliases of the clips that were added.
    pub fn names(&self) -> Vec<String> {
        let listed = self.run(&["clip", "list"]).json();
        let names = listed
            .as_array()
            .unwrap()
            .iter()
            .filter(|it| it["provider"] == "pinixd");
        names
            .map(|it| it["name"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Waits until `found` returns true.
    #[track_caller]
    pub fn until(&self, what: &str, mut found: impl FnMut() -> bool) {
        let start = Instant::now();
        while !found() {
            assert!(start.elapsed() < HANG, "{what} did not happen");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn finish(mut command: Command) -> Ran {
    ran(command.output().unwrap())
}

fn ran(output: std::process::Output) -> Ran {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran {
        code: output
            .status
            .code()
            .unwrap_or_else(|| 128 + output.status.signal().unwrap()),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

/// A running hub. Killed when dropped.
pub struct Hub {
    child: Child,
    stderr: PathBuf,
    pub url: String,
}

impl Hub {
    pub fn start(mut command: Command, stderr: PathBuf) -> Self {
        command
            .stdout(Stdio::piped())
            .stderr(fs::File::create(&stderr).unwrap());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        let url = line
            .strip_prefix("Listening on ")
            .or(line.strip_prefix("Joined "))
            .map(|url| url.trim().to_owned());
        let url =
            url.unwrap_or_else(|| panic!("{line:?}: {}", fs::read_to_string(&stderr).unwrap()));
        Self { child, stderr, url }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().try_into().unwrap()), signal).unwrap();
    }

    pub fn said(&self) -> String {
        fs::read_to_string(&self.stderr).unwrap()
    }

    /// Waits for the exit and returns its code.
    pub fn end(&mut self) -> i32 {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status
                    .code()
                    .unwrap_or_else(|| 128 + status.signal().unwrap());
            }
            assert!(start.elapsed() < HANG, "the hub does not end");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Stops the hub in an orderly way.
    pub fn stop(&mut self) {
        self.signal(Signal::SIGTERM);
        assert_eq!(self.end(), 0, "{}", self.said());
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reports whether a process exists and is not a zombie.
pub fn is_alive(pid: i64) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().unwrap_or_default().trim_start();
    !state.is_empty() && !state.starts_with('Z')
}

pub fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}
