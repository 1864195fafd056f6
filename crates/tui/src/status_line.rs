//! The status line of `-p`: until the answer is complete, a terminal shows the model and the tool that runs.

use std::io::{IsTerminal, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pinion_agent::{Event, Listener};
use pinion_message::Model;
use pinion_sync::lock;
use pinion_text::one_line;

/// Moves to the start of the line and erases it.
const ERASE: &str = "\r\x1b[2K";
/// The longest line, in characters: it must fit into one row of a terminal, or it cannot be erased.
const WIDTH: usize = 60;
/// Longest wait for a terminal that does not accept the last bytes.
const ERASE_TIMEOUT: Duration = Duration::from_millis(500);

/// Shows the progress of a run on standard error. Another thread writes, because a terminal may be stopped with Ctrl-S.
pub struct StatusLine {
    lines: Mutex<Option<SyncSender<String>>>,
    model: Mutex<String>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl StatusLine {
    /// Returns `None` if standard error is not a terminal or the thread cannot be started.
    pub fn on_terminal() -> Option<Arc<Self>> {
        if !std::io::stderr().is_terminal() {
            return None;
        }
        let (lines, receiver) = sync_channel(16);
        let writer = std::thread::Builder::new()
            .name("status line".to_owned())
            .spawn(move || show(&receiver, &mut std::io::stderr()))
            .ok()?;
        Some(Arc::new(Self {
            lines: Mutex::new(Some(lines)),
            model: Mutex::default(),
            writer: Mutex::new(Some(writer)),
        }))
    }

    /// Erases the line. Later events show nothing.
    pub fn end(&self) {
        drop(lock(&self.lines).take());
        let Some(writer) = lock(&self.writer).take() else {
            return;
        };
        let end = Instant::now() + ERASE_TIMEOUT;
        while !writer.is_finished() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Sets the model that later lines name.
    pub fn set_model(&self, model: &Model) {
        *lock(&self.model) = format!("{}/{}", model.provider, model.id);
    }

    fn show(&self, doing: &str) {
        let line = format!("{}{doing} …", lock(&self.model));
        if let Some(lines) = &*lock(&self.lines) {
            // A terminal that is too slow misses a line.
            let _ = lines.try_send(line);
        }
    }
}

impl std::fmt::Debug for StatusLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StatusLine")
    }
}

impl Listener for StatusLine {
    fn notice(&self, _ordinal: u64, event: &Event) {
        match event {
            Event::TurnStart | Event::ToolEnd { .. } => self.show(""),
            Event::ToolStart(run) => self.show(&format!(" · {}", run.name)),
            Event::RetryStart {
                attempt,
                max_attempts,
                ..
            } => self.show(&format!(" · retry {attempt} of {max_attempts}")),
            _ => {}
        }
    }
}

/// Writes each line over the one before, and erases the last.
fn show(lines: &Receiver<String>, terminal: &mut impl Write) {
    let mut shown = false;
    for line in lines {
        let line: String = one_line(&line).chars().take(WIDTH).collect();
        let _ = write!(terminal, "{ERASE}{line}").and_then(|()| terminal.flush());
        shown = true;
    }
    if shown {
        let _ = terminal
            .write_all(ERASE.as_bytes())
            .and_then(|()| terminal.flush());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_replaces_the_last_and_nothing_is_left() {
        let (sender, receiver) = sync_channel(4);
        sender.send("a/b …".to_owned()).unwrap();
        sender
            .send(format!("a/b · \x1b[31m{}", "x".repeat(200)))
            .unwrap();
        drop(sender);
        let mut written = Vec::new();
        show(&receiver, &mut written);
        let written = String::from_utf8(written).unwrap();
        let lines: Vec<&str> = written.split(ERASE).collect();
        assert_eq!(
            (lines.len(), lines[0], lines[1], lines[3]),
            (4, "", "a/b …", "")
        );
        assert_eq!(lines[2].chars().count(), WIDTH);
        assert!(!lines[2].contains('\x1b'), "{written:?}");
        let (sender, receiver) = sync_channel::<String>(1);
        drop(sender);
        let mut written = Vec::new();
        show(&receiver, &mut written);
        assert!(written.is_empty());
    }
}
