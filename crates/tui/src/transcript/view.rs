//! The visible part of the transcript, and its drawing.
//!
//! Heights are known only of entries that were drawn. The position is a row of an entry, never a
//! row of the whole transcript, so that changes elsewhere do not move it.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::entry::Entry;
use super::picture::{Gallery, Images};
use super::{Look, Scroll, Transcript};
use crate::theme::Theme;

/// Entries off the screen whose lines stay cached.
const MAX_CACHED: usize = 400;

/// The visible part of the transcript.
#[derive(Default)]
pub(super) struct View {
    top: Top,
    /// Movements to apply when the size is known.
    pending: Vec<Scroll>,
    /// Changes when all lines must be laid out again.
    epoch: u64,
    theme: Option<Theme>,
    generation: u64,
    /// Entries that have lines.
    cached: Vec<usize>,
    images: Images,
    gallery: Gallery,
    #[cfg(test)]
    pub layouts: usize,
}

/// The first row of the screen.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Top {
    /// The row that puts the last row of the transcript on the last row of the screen.
    #[default]
    End,
    At(Position),
}

/// A row of an entry; the blank row above an entry is its first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Position {
    entry: usize,
    row: usize,
    /// The rows of the entry, by which the position is found again after another layout.
    of: usize,
}

/// The parameters of one drawing.
#[derive(Clone, Copy)]
struct Frame<'a> {
    look: &'a Look<'a>,
    width: u16,
    height: usize,
}

impl View {
    /// The view of another transcript on the same terminal.
    pub fn for_new_transcript(self) -> Self {
        Self {
            images: self.images,
            gallery: self.gallery,
            ..Self::default()
        }
    }
}

impl Transcript {
    /// Moves the view.
    pub(crate) fn scroll(&mut self, by: Scroll) {
        if matches!(by, Scroll::Start | Scroll::End) {
            self.view.pending.clear();
        }
        self.view.pending.push(by);
    }

    /// Reports whether the view follows the end as the transcript grows.
    pub(crate) fn follows_end(&self) -> bool {
        let mut follows = self.view.top == Top::End;
        for scroll in &self.view.pending {
            match scroll {
                Scroll::Up(0) | Scroll::Down(_) | Scroll::PageDown => {}
                Scroll::Up(_) | Scroll::PageUp | Scroll::Start => follows = false,
                Scroll::End => follows = true,
            }
        }
        follows
    }

    /// Sets the display of images.
    pub(crate) fn set_images(&mut self, images: Images) {
        if self.view.images != images {
            self.view.images = images;
            self.view.epoch += 1;
            self.entries.iter_mut().for_each(Entry::touch);
        }
    }

    /// Takes the sequences that make the terminal show the drawn pictures; to be written unchanged
    /// after a frame.
    pub(crate) fn take_pictures(&mut self) -> Option<String> {
        self.view.gallery.take()
    }

    /// Draws the visible part.
    pub(crate) fn draw(&mut self, area: Rect, buf: &mut Buffer, look: &Look<'_>) {
        let area = area.intersection(buf.area);
        if area.is_empty() {
            return;
        }
        let frame = Frame {
            look,
            width: area.width,
            height: usize::from(area.height),
        };
        self.notice_look(look);
        let mut place = self.settle(frame);
        let first = place.entry;
        let mut y = area.y;
        while y < area.bottom() && place.entry < self.entries.len() {
            let gap = self.gap(place.entry, look);
            let lines = self.lines(place.entry, frame);
            if !lines.is_empty() {
                for row in place.row..gap + lines.len() {
                    if y >= area.bottom() {
                        break;
                    }
                    if row >= gap {
                        buf.set_line(area.x, y, &lines[row - gap], area.width);
                    }
                    y += 1;
                }
            }
            for (picture, block) in self.entries[place.entry].pictures() {
                self.view.gallery.show(picture, block);
            }
            place = Position {
                entry: place.entry + 1,
                row: 0,
                of: 0,
            };
        }
        self.drop_lines(first, place.entry);
    }

    /// Starts a new epoch if the look changed.
    fn notice_look(&mut self, look: &Look<'_>) {
        let generation = look.highlighter.generation();
        let view = &mut self.view;
        if view.theme.as_ref() != Some(look.theme) || view.generation != generation {
            view.theme = Some(*look.theme);
            view.generation = generation;
            view.epoch += 1;
        }
    }

    /// Applies pending movements and returns the first row of the screen.
    fn settle(&mut self, frame: Frame<'_>) -> Position {
        let mut place = match self.view.top {
            Top::End => self.last_screen(frame),
            Top::At(place) => self.found_again(place, frame),
        };
        let page = frame.height.saturating_sub(2).max(1);
        for scroll in std::mem::take(&mut self.view.pending) {
            place = match scroll {
                Scroll::Up(rows) => self.up(place, rows, frame),
                Scroll::Down(rows) => self.down(place, rows, frame),
                Scroll::PageUp => self.up(place, page, frame),
                Scroll::PageDown => self.down(place, page, frame),
                Scroll::Start => Position {
                    entry: 0,
                    row: 0,
                    of: 0,
                },
                Scroll::End => self.last_screen(frame),
            };
        }
        if self.reaches_end(place, frame) {
            self.view.top = Top::End;
            return self.last_screen(frame);
        }
        place.of = self.rows(place.entry, frame);
        self.view.top = Top::At(place);
        place
    }

    /// The position from which the rest of the transcript fills the screen.
    fn last_screen(&mut self, frame: Frame<'_>) -> Position {
        let end = Position {
            entry: self.entries.len(),
            row: 0,
            of: 0,
        };
        self.up(end, frame.height, frame)
    }

    /// Finds a position again in an entry whose height may have changed.
    fn found_again(&mut self, place: Position, frame: Frame<'_>) -> Position {
        let Some(entry) = self.entries.get(place.entry) else {
            return self.last_screen(frame);
        };
        let shape = entry.shape(frame.width, frame.look);
        let is_reshaped = entry.measured().is_none_or(|(last, _)| last != shape);
        let rows = self.rows(place.entry, frame);
        let row = if is_reshaped && place.of > 0 {
            place.row * rows / place.of
        } else {
            place.row
        };
        Position {
            row: row.min(rows.saturating_sub(1)),
            ..place
        }
    }

    fn up(&mut self, from: Position, rows: usize, frame: Frame<'_>) -> Position {
        let mut place = from;
        let mut left = rows;
        while left > place.row {
            left -= place.row;
            let Some(entry) = place.entry.checked_sub(1) else {
                place.row = 0;
                return place;
            };
            place.entry = entry;
            place.row = self.rows(entry, frame);
        }
        place.row -= left;
        place
    }

    fn down(&mut self, from: Position, rows: usize, frame: Frame<'_>) -> Position {
        let mut place = from;
        let mut left = rows;
        while place.entry < self.entries.len() {
            let below = self.rows(place.entry, frame).saturating_sub(place.row);
            if left < below {
                place.row += left;
                return place;
            }
            left -= below;
            place.entry += 1;
            place.row = 0;
        }
        place
    }

    /// Reports whether the screen that begins at `place` reaches the end of the transcript.
    fn reaches_end(&mut self, place: Position, frame: Frame<'_>) -> bool {
        self.down(place, frame.height, frame).entry >= self.entries.len()
    }

    /// Rows of an entry, including the blank one above it.
    fn rows(&mut self, at: usize, frame: Frame<'_>) -> usize {
        let known = self.entries[at].known_height(frame.width, frame.look);
        let rows = match known {
            Some(rows) => rows,
            None => self.lines(at, frame).len(),
        };
        if rows == 0 {
            0
        } else {
            rows + self.gap(at, frame.look)
        }
    }

    /// Blank rows above an entry: none above the first, none between cards of a single line.
    fn gap(&self, at: usize, look: &Look<'_>) -> usize {
        let before = self.entries[..at].iter().rev();
        let Some(before) = before.into_iter().find(|entry| !entry.is_hidden()) else {
            return 0;
        };
        let are_slim = self.entries[at].is_card() && before.is_slim(look);
        usize::from(!are_slim)
    }

    fn lines(&mut self, at: usize, frame: Frame<'_>) -> &[Line<'static>] {
        let entry = &mut self.entries[at];
        if !entry.is_laid_out(frame.width, frame.look, self.view.epoch) {
            self.view.cached.push(at);
            #[cfg(test)]
            {
                self.view.layouts += 1;
            }
        }
        entry.lines(frame.width, frame.look, self.view.images, self.view.epoch)
    }

    /// Drops the lines of entries far from the screen, once there are many.
    fn drop_lines(&mut self, first: usize, end: usize) {
        if self.view.cached.len() <= MAX_CACHED {
            return;
        }
        let near = first.saturating_sub(MAX_CACHED / 4)..end + MAX_CACHED / 4;
        let mut cached = std::mem::take(&mut self.view.cached);
        cached.sort_unstable();
        cached.dedup();
        cached.retain(|at| {
            let stays = near.contains(at);
            if !stays && let Some(entry) = self.entries.get_mut(*at) {
                entry.drop_lines();
            }
            stays
        });
        self.view.cached = cached;
    }
}
