//! The terminal: entering and leaving its modes, drawing, and queries.
//!
//! A thread writes the frames, so that a terminal that does not read blocks no other work. Dropping
//! the value restores the terminal, after a panic as well as at an orderly end.

mod background;
mod capture;
mod environment;
mod hidden;
mod keys;
mod modes;
mod output;
mod suspend;

use std::fs::File;
use std::io;

use base64::Engine as _;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::{Position, Rect};
use ratatui::{Frame, Terminal as Canvas};

pub(crate) use self::background::{BackgroundQuery, Sorted};
pub use self::capture::CapturedOutput;
pub use self::environment::{background_of, has_colours, only_prints_lines};
pub use self::hidden::HiddenInput;
pub(crate) use self::keys::Keys;
use self::modes::Modes;
use self::output::{FrameBuffer, Output};
pub(crate) use self::suspend::SuspendTarget;

const BEGIN_UPDATE: &[u8] = b"\x1b[?2026h";
const END_UPDATE: &[u8] = b"\x1b[?2026l";
/// Bytes that are copied to the clipboard at most.
const MAX_COPY: usize = 1 << 20;

/// A terminal in the modes of the chat.
#[derive(Debug)]
pub struct Terminal {
    canvas: Canvas<CrosstermBackend<FrameBuffer>>,
    buffer: FrameBuffer,
    output: Output,
    modes: Modes,
    title: String,
}

impl Terminal {
    /// Enters the modes of the chat on the terminal that `output` writes to; keys are read from
    /// standard input.
    pub fn open(output: File) -> io::Result<Self> {
        let modes = Modes::enter(&output)?;
        let buffer = FrameBuffer::default();
        let canvas = Canvas::new(CrosstermBackend::new(buffer.clone()))?;
        Ok(Self {
            canvas,
            buffer,
            output: Output::start(output)?,
            modes,
            title: String::new(),
        })
    }

    /// Reports whether the last frame was written, so that drawing another makes sense.
    pub fn is_ready(&self) -> bool {
        self.output.is_idle()
    }

    /// Waits until the last frame was written. Fails if writing failed.
    pub async fn ready(&self) -> io::Result<()> {
        self.output.idle().await
    }

    /// Draws a whole frame; only the cells that changed are written.
    pub fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.buffer.push(BEGIN_UPDATE);
        self.canvas.draw(draw)?;
        self.buffer.push(END_UPDATE);
        if self.output.send(self.buffer.take()) {
            Ok(())
        } else {
            // A frame that was not sent is part of the next one.
            self.redraw()
        }
    }

    /// Makes the next frame draw everything.
    pub fn redraw(&mut self) -> io::Result<()> {
        // Unlike clearing, this does not query the terminal for its cursor.
        let size = self.canvas.size()?;
        self.canvas.resize(Rect::from((Position::ORIGIN, size)))
    }

    /// Writes a sequence that does not change the screen.
    pub(crate) fn write(&self, words: String) {
        self.output.send(words.into_bytes());
    }

    /// Sets the title of the window with the next frame.
    pub fn set_title(&mut self, title: &str) {
        let title: String = title
            .chars()
            .filter(|char| !char.is_control())
            .take(200)
            .collect();
        if title != self.title {
            self.buffer.push(format!("\x1b]2;{title}\x07").as_bytes());
            self.title = title;
        }
    }

    /// Copies text to the clipboard of the terminal, if it has one. Returns false if the text is
    /// too long.
    pub fn copy(&self, text: &str) -> bool {
        if text.len() > MAX_COPY {
            return false;
        }
        let encoded = base64::engine::general_purpose::STANDARD.encode(text);
        self.output
            .send(format!("\x1b]52;c;{encoded}\x07").into_bytes())
    }

    /// Queries the background colour; the answer arrives among the keys.
    pub(crate) fn ask_background(&self) {
        self.output.send(background::QUESTION.to_vec());
    }

    /// Restores the terminal, stops like any other program of the shell, and enters its modes again
    /// when continued.
    pub(crate) fn suspend(&mut self, target: SuspendTarget) -> io::Result<()> {
        self.output.finish();
        self.modes.leave()?;
        suspend::stop(target)?;
        self.resume()
    }

    /// Enters the modes again after another program used the terminal.
    pub fn resume(&mut self) -> io::Result<()> {
        self.modes.enter_again()?;
        let title = std::mem::take(&mut self.title);
        self.set_title(&title);
        self.redraw()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if self.output.finish() {
            // If the terminal does not read, its modes cannot be restored by writing to it.
            let _ = self.modes.leave();
        } else {
            let _ = crossterm::terminal::disable_raw_mode();
        }
    }
}
