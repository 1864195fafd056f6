//! The terminal: how it is taken over, drawn on, asked and given back.
//!
//! Frames go out on a thread of their own, so that a terminal that does not read keeps nobody from working. It is
//! given back when the value is dropped, which panics and orderly ends do alike.

mod background;
mod keys;
mod modes;
mod output;
mod stopping;

use std::fs::File;
use std::io;

use base64::Engine as _;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::{Position, Rect};
use ratatui::{Frame, Terminal as Canvas};

pub use self::background::named_background;
pub(crate) use self::background::{BackgroundQuery, Sorted};
pub(crate) use self::keys::Keys;
use self::modes::Modes;
use self::output::{Output, Page};
pub(crate) use self::stopping::Stops;

const BEGIN_UPDATE: &[u8] = b"\x1b[?2026h";
const END_UPDATE: &[u8] = b"\x1b[?2026l";
/// The most a terminal is asked to take into its clipboard.
const LARGEST_COPY: usize = 1 << 20;

/// A terminal that was taken over.
#[derive(Debug)]
pub struct Terminal {
    canvas: Canvas<CrosstermBackend<Page>>,
    page: Page,
    output: Output,
    modes: Modes,
    title: String,
}

impl Terminal {
    /// Takes over the terminal that `output` writes to; keys are read from standard input.
    pub fn open(output: File) -> io::Result<Self> {
        let modes = Modes::enter(&output)?;
        let page = Page::default();
        let canvas = Canvas::new(CrosstermBackend::new(page.clone()))?;
        Ok(Self {
            canvas,
            page,
            output: Output::start(output)?,
            modes,
            title: String::new(),
        })
    }

    /// Whether what was drawn last is on its way out, so that drawing more makes sense.
    pub fn is_ready(&self) -> bool {
        self.output.is_idle()
    }

    /// Waits until the terminal has taken what was drawn; an error when it never will.
    pub async fn ready(&self) -> io::Result<()> {
        self.output.idle().await
    }

    /// Draws all of it; only what changed goes out.
    pub fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.page.push(BEGIN_UPDATE);
        self.canvas.draw(draw)?;
        self.page.push(END_UPDATE);
        match self.output.send(self.page.take()) {
            true => Ok(()),
            // What was not taken is part of the next frame.
            false => self.redraw(),
        }
    }

    /// Everything is drawn anew with the next frame.
    pub fn redraw(&mut self) -> io::Result<()> {
        // Unlike clearing, this does not ask the terminal where its cursor is.
        let size = self.canvas.size()?;
        self.canvas.resize(Rect::from((Position::ORIGIN, size)))
    }

    /// Writes something the terminal understands and shows elsewhere.
    pub(crate) fn write(&self, words: String) {
        self.output.send(words.into_bytes());
    }

    /// Names the window, with the next frame.
    pub fn set_title(&mut self, title: &str) {
        let title: String = title
            .chars()
            .filter(|char| !char.is_control())
            .take(200)
            .collect();
        if title != self.title {
            self.page.push(format!("\x1b]2;{title}\x07").as_bytes());
            self.title = title;
        }
    }

    /// Puts text into the clipboard of the terminal, where it has one; whether it was asked to.
    pub fn copy(&self, text: &str) -> bool {
        if text.len() > LARGEST_COPY {
            return false;
        }
        let encoded = base64::engine::general_purpose::STANDARD.encode(text);
        self.output
            .send(format!("\x1b]52;c;{encoded}\x07").into_bytes())
    }

    /// Asks what the background is like; the answer comes among the keys.
    pub(crate) fn ask_background(&self) {
        self.output.send(background::QUESTION.to_vec());
    }

    /// Gives the terminal back, stops like any other program of the shell, and takes it over again when it is to go on.
    pub(crate) fn suspend(&mut self, who: Stops) -> io::Result<()> {
        self.output.finish();
        self.modes.leave()?;
        stopping::stop(who)?;
        self.resume()
    }

    /// Takes the terminal over again after somebody else had it.
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
            // Whoever cannot be written to cannot be given back either.
            let _ = self.modes.leave();
        } else {
            let _ = crossterm::terminal::disable_raw_mode();
        }
    }
}
