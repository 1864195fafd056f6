//! A real terminal for the program: its own tmux server with one window. Keys are sent as a person types them, and the
//! screen is read back as text.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::Sandbox;

/// Time that the screen may take to show the awaited text.
const WAIT_TIMEOUT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(15);

/// A terminal with a program in it; the server ends with it.
#[derive(Debug)]
pub struct Tmux {
    socket: String,
    marker: String,
}

impl Tmux {
    /// Starts a shell in the sandbox, in a window of this size.
    pub fn shell(sandbox: &Sandbox, columns: u16, rows: u16) -> Self {
        Self::start(sandbox, columns, rows, &[], &["sh"])
    }

    /// Starts a program with more variables in its environment.
    pub fn start(
        sandbox: &Sandbox,
        columns: u16,
        rows: u16,
        variables: &[(&str, &str)],
        line: &[&str],
    ) -> Self {
        static STARTED: AtomicUsize = AtomicUsize::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let terminal = Self {
            socket: format!("pinion-test-{}-{number}", std::process::id()),
            marker: sandbox.marker().to_owned(),
        };
        let (columns, rows) = (columns.to_string(), rows.to_string());
        let work = sandbox.work();
        let mut arguments = vec![
            "new-session",
            "-d",
            "-x",
            &columns,
            "-y",
            &rows,
            "-c",
            text(&work),
        ];
        arguments.extend(["env", "-i", "TERM=tmux-256color", "PS1=$ "]);
        let environment: Vec<String> = sandbox
            .environment()
            .into_iter()
            .map(|(name, value)| format!("{name}={value}"))
            .chain(
                variables
                    .iter()
                    .map(|(name, value)| format!("{name}={value}")),
            )
            .collect();
        arguments.extend(environment.iter().map(String::as_str));
        arguments.extend(line);
        terminal.tmux(&arguments);
        terminal.tmux(&["set-option", "-g", "remain-on-exit", "on"]);
        terminal
    }

    /// Types text as it is.
    pub fn write(&self, text: &str) {
        self.tmux(&["send-keys", "-l", "--", text]);
    }

    /// Presses keys, by the names tmux has for them: `Enter`, `Escape`, `C-c`, `M-Enter`.
    pub fn press(&self, keys: &[&str]) {
        let mut arguments = vec!["send-keys"];
        arguments.extend(keys);
        self.tmux(&arguments);
    }

    /// Types a line and Enter.
    pub fn say(&self, line: &str) {
        self.write(line);
        self.press(&["Enter"]);
    }

    /// Runs a line in the shell on an empty screen, so that older output cannot be mistaken for its output.
    pub fn run(&self, line: &str) {
        self.tmux(&["send-keys", "-R"]);
        self.say(&format!("clear; {line}"));
    }

    /// Pastes text, as a bracketed paste if the program enabled that.
    pub fn paste(&self, text: &str) {
        let place = std::env::temp_dir().join(format!("{}-{}", self.socket, "paste"));
        std::fs::write(&place, text).expect("a file for the paste");
        self.tmux(&["load-buffer", place.to_str().expect("a path in UTF-8")]);
        std::fs::remove_file(&place).expect("the file for the paste can go");
        self.tmux(&["paste-buffer", "-p", "-d"]);
    }

    /// Resizes the window.
    pub fn resize(&self, columns: u16, rows: u16) {
        let (columns, rows) = (columns.to_string(), rows.to_string());
        self.tmux(&["resize-window", "-x", &columns, "-y", &rows]);
    }

    /// Returns the screen as text; rows have no trailing blanks.
    pub fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// Returns the screen with its colours, as escape sequences.
    pub fn coloured_screen(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-e"])
    }

    /// Returns the text that the program copied to the clipboard.
    pub fn clipboard(&self) -> String {
        self.tmux(&["show-buffer"])
    }

    /// Sets an option of tmux for all windows.
    pub fn set_option(&self, name: &str, value: &str) {
        self.tmux(&["set-option", "-g", name, value]);
    }

    /// Evaluates a tmux format for the pane, such as `#{alternate_on}`.
    pub fn ask(&self, format: &str) -> String {
        self.tmux(&["display-message", "-p", format])
            .trim()
            .to_owned()
    }

    /// Returns the process id of the program in the pane.
    pub fn process(&self) -> i32 {
        self.ask("#{pane_pid}").parse().expect("a process id")
    }

    /// Waits until the screen shows `text` and returns the screen.
    pub fn wait_for(&self, text: &str) -> String {
        self.wait_until(&format!("\"{text}\""), |screen| screen.contains(text))
    }

    /// Waits until the screen does not show `text` and returns the screen.
    pub fn wait_without(&self, text: &str) -> String {
        self.wait_until(&format!("no \"{text}\""), |screen| !screen.contains(text))
    }

    /// Waits until `wanted` accepts the screen and returns it.
    pub fn wait_until(&self, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        let until = Instant::now() + WAIT_TIMEOUT;
        loop {
            let screen = self.screen();
            if wanted(&screen) {
                return screen;
            }
            assert!(
                Instant::now() < until,
                "waited for {what} in vain; the screen:\n{screen}"
            );
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Waits until a tmux format for the pane has the value `wanted`.
    pub fn wait_until_asked(&self, format: &str, wanted: &str) {
        let until = Instant::now() + WAIT_TIMEOUT;
        while self.ask(format) != wanted {
            assert!(
                Instant::now() < until,
                "{format} is {} and not {wanted}; the screen:\n{}",
                self.ask(format),
                self.screen()
            );
            thread::sleep(POLL_INTERVAL);
        }
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let Output {
            status,
            stdout,
            stderr,
        } = self
            .command(arguments)
            .output()
            .expect("tmux can be started");
        let problem = String::from_utf8_lossy(&stderr);
        assert!(status.success(), "tmux {arguments:?}: {problem}");
        String::from_utf8_lossy(&stdout).into_owned()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("tmux");
        command
            .env_remove("TMUX")
            .env("LANG", "C.UTF-8")
            .env(crate::sandbox::MARKER_VARIABLE, &self.marker)
            .args(["-u", "-L", &self.socket, "-f", "/dev/null"])
            .args(arguments);
        command
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        // The server ends with its program and may be gone already.
        let _ = self.command(&["kill-server"]).output();
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}
