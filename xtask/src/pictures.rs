//! `cargo xtask pictures`: the picture of the README, drawn from a conversation with the real program in tmux, so that it
//! stays true. A test makes it anew and compares.

mod screen;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::shell::{self, Outcome, root, target};

const COLUMNS: usize = 92;
const ROWS: usize = 26;
/// Longest wait for a text on the screen.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The picture, below the root of the project.
const PICTURE: &str = "docs/pictures/chat.svg";
const TITLE: &str = "A conversation in pinion's chat: the model reads a file and edits it";

/// The file that the conversation is about.
const FILE: (&str, &str) = (
    "greet.py",
    "def greet(name):\n    return f\"Hello, {name}!\"\n",
);

/// What is typed, and the text at the end of each answer.
const CONVERSATION: [(&str, &str); 2] = [
    ("read greet.py", "return f\"Hello, {name}!\"\n\n"),
    (
        "edit greet.py: replace `Hello` with `Good morning`",
        "Successfully replaced 1 block(s) in greet.py.",
    ),
];

/// The purpose of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Write the picture.
    Write,
    /// Compare it with the one that is there.
    Check,
}

/// Draws the picture with `binary`, or with a debug build.
pub fn run(purpose: Purpose, binary: Option<&str>) -> Outcome {
    let binary = match binary {
        Some(binary) => PathBuf::from(binary),
        None => {
            shell::run(&["cargo", "build", "-p", "pinion"])?;
            target().join("debug/pinion")
        }
    };
    let picture = screen::svg(&converse(&binary)?, COLUMNS, ROWS, TITLE);
    let path = root().join(PICTURE);
    if purpose == Purpose::Write {
        let directory = path.parent().unwrap_or(Path::new("."));
        return fs::create_dir_all(directory)
            .and_then(|()| fs::write(&path, picture))
            .map_err(|error| format!("{PICTURE}: {error}"));
    }
    let known = fs::read_to_string(&path).map_err(|error| format!("{PICTURE}: {error}"))?;
    if known == picture {
        return Ok(());
    }
    let mut lines = known.lines().zip(picture.lines());
    let changed = lines.find(|(known, new)| known != new);
    Err(format!(
        "{PICTURE} is not what the program shows, first here: {changed:?}. Draw it again with `cargo xtask pictures`."
    ))
}

/// A terminal in tmux, which ends with this value.
struct Terminal {
    socket: PathBuf,
    _directory: Directory,
}

/// A directory that is removed with this value.
struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Terminal {
    fn start(binary: &Path) -> Result<Self, String> {
        let place = std::env::temp_dir().join(format!("pinion-pictures-{}", std::process::id()));
        let directory = Directory(place.clone());
        // The chat shows it as ~/hello.
        let work = place.join("home/hello");
        let (name, content) = FILE;
        fs::create_dir_all(&work)
            .and_then(|()| fs::write(work.join(name), content))
            .map_err(|error| format!("{}: {error}", work.display()))?;
        let binary = std::path::absolute(binary).map_err(|error| error.to_string())?;
        let line = format!(
            "env -i HOME='{}' PATH=/usr/bin:/bin TERM=tmux-256color COLORTERM=truecolor LANG=C.UTF-8 '{}' --model offline/demo",
            place.join("home").display(),
            binary.display()
        );
        let terminal = Self {
            socket: place.join("socket"),
            _directory: directory,
        };
        let (columns, rows) = (COLUMNS.to_string(), ROWS.to_string());
        terminal.tmux(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            &columns,
            "-y",
            &rows,
            "-c",
            &work.to_string_lossy(),
            &line,
        ])?;
        Ok(terminal)
    }

    fn tmux(&self, arguments: &[&str]) -> Result<String, String> {
        let mut command = Command::new("tmux");
        command
            .arg("-S")
            .arg(&self.socket)
            .args(arguments)
            .stdin(Stdio::null());
        let output = command.output().map_err(|error| format!("tmux: {error}"))?;
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        } else {
            Err(format!("tmux: {}", String::from_utf8_lossy(&output.stderr)))
        }
    }

    /// Waits until the screen contains a text, and then until it does not change any more.
    fn wait_for(&self, text: &str) -> Result<(), String> {
        let begun = Instant::now();
        let mut before = String::new();
        loop {
            let screen = self.tmux(&["capture-pane", "-p"])?;
            if screen.contains(text) && screen == before {
                return Ok(());
            }
            if begun.elapsed() > TIMEOUT {
                return Err(format!("the screen never shows {text:?}:\n{screen}"));
            }
            before = screen;
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.tmux(&["kill-server"]);
    }
}

/// Returns the screen at the end of the conversation, with its escape sequences.
fn converse(binary: &Path) -> Result<String, String> {
    let terminal = Terminal::start(binary)?;
    terminal.wait_for("Ctrl-G help")?;
    for (typed, answer) in CONVERSATION {
        terminal.tmux(&["send-keys", "-l", typed])?;
        terminal.wait_for(typed)?;
        terminal.tmux(&["send-keys", "Enter"])?;
        terminal.wait_for(answer)?;
    }
    terminal.tmux(&["capture-pane", "-e", "-p"])
}
