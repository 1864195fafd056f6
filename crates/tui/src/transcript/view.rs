//! Which part of the list is on the screen, and drawing it.
//!
//! Heights are known only of what was seen. The place that is looked at is a row of an entry, never a row of the
//! whole list: what grows or changes elsewhere does not move it.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::entry::Entry;
use super::picture::{Gallery, Images};
use super::{Look, Scroll, Transcript};
use crate::theme::Theme;

/// So many entries keep their lines when they are out of sight.
const KEPT_WARM: usize = 400;

/// Which part of the list is on the screen.
#[derive(Default)]
pub(super) struct View {
    top: Top,
    /// Not yet heeded: what moves the view needs its size.
    pending: Vec<Scroll>,
    /// Changes when all lines look different now.
    epoch: u64,
    theme: Option<Theme>,
    generation: u64,
    /// Entries that have lines.
    warm: Vec<usize>,
    images: Images,
    gallery: Gallery,
    #[cfg(test)]
    pub layouts: usize,
}

/// What the first row of the screen is.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Top {
    /// Whatever makes the last row of the list the last of the screen.
    #[default]
    End,
    At(Place),
}

/// A row of an entry; the blank row above an entry is its first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    entry: usize,
    row: usize,
    /// The rows the entry had, so that the place can be found again when it is laid out differently.
    of: usize,
}

/// One drawing.
#[derive(Clone, Copy)]
struct Frame<'a> {
    look: &'a Look<'a>,
    width: u16,
    height: usize,
}

impl View {
    /// The view of another list on the same terminal.
    pub fn anew(self) -> Self {
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

    /// Whether the end stays in sight while the list grows.
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

    /// Says how images are shown.
    pub(crate) fn set_images(&mut self, images: Images) {
        if self.view.images != images {
            self.view.images = images;
            self.view.epoch += 1;
            self.entries.iter_mut().for_each(Entry::touch);
        }
    }

    /// What the terminal has to be told so that the pictures that were drawn are seen: to be written as it is, after a
    /// drawing.
    pub(crate) fn take_pictures(&mut self) -> Option<String> {
        self.view.gallery.take()
    }

    /// Draws what is in sight.
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
            place = Place {
                entry: place.entry + 1,
                row: 0,
                of: 0,
            };
        }
        self.cool(first, place.entry);
    }

    /// Sees whether everything looks different now.
    fn notice_look(&mut self, look: &Look<'_>) {
        let generation = look.highlighter.generation();
        let view = &mut self.view;
        if view.theme.as_ref() != Some(look.theme) || view.generation != generation {
            view.theme = Some(*look.theme);
            view.generation = generation;
            view.epoch += 1;
        }
    }

    /// Heeds what moved the view; gives the first row on the screen.
    fn settle(&mut self, frame: Frame<'_>) -> Place {
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
                Scroll::Start => Place {
                    entry: 0,
                    row: 0,
                    of: 0,
                },
                Scroll::End => self.last_screen(frame),
            };
        }
        if self.fills_no_more_than(place, frame) {
            self.view.top = Top::End;
            return self.last_screen(frame);
        }
        place.of = self.rows(place.entry, frame);
        self.view.top = Top::At(place);
        place
    }

    /// The place from which the rest of the list fills the screen.
    fn last_screen(&mut self, frame: Frame<'_>) -> Place {
        let end = Place {
            entry: self.entries.len(),
            row: 0,
            of: 0,
        };
        self.up(end, frame.height, frame)
    }

    /// The place in an entry that may be higher or lower than it was.
    fn found_again(&mut self, place: Place, frame: Frame<'_>) -> Place {
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
        Place {
            row: row.min(rows.saturating_sub(1)),
            ..place
        }
    }

    fn up(&mut self, from: Place, rows: usize, frame: Frame<'_>) -> Place {
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

    fn down(&mut self, from: Place, rows: usize, frame: Frame<'_>) -> Place {
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

    /// Whether there is nothing below the screen that begins at `place`.
    fn fills_no_more_than(&mut self, place: Place, frame: Frame<'_>) -> bool {
        self.down(place, frame.height, frame).entry >= self.entries.len()
    }

    /// How many rows an entry takes, the blank one above it included.
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
            self.view.warm.push(at);
            #[cfg(test)]
            {
                self.view.layouts += 1;
            }
        }
        entry.lines(frame.width, frame.look, self.view.images, self.view.epoch)
    }

    /// Lets go of the lines of what is far from the screen, once there are many.
    fn cool(&mut self, first: usize, end: usize) {
        if self.view.warm.len() <= KEPT_WARM {
            return;
        }
        let near = first.saturating_sub(KEPT_WARM / 4)..end + KEPT_WARM / 4;
        let mut warm = std::mem::take(&mut self.view.warm);
        warm.sort_unstable();
        warm.dedup();
        warm.retain(|at| {
            let stays = near.contains(at);
            if !stays && let Some(entry) = self.entries.get_mut(*at) {
                entry.cool();
            }
            stays
        });
        self.view.warm = warm;
    }
}
