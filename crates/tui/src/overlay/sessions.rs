//! The picker of sessions.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use crossterm::event::{KeyCode, KeyEvent};
use pinion_message::Millis;
use pinion_session::SessionInfo;
use pinion_text::start;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

use super::panel::{Panel, PanelSize, two_sides};
use super::picker::{Item, Picked, Picker, PickerFrame};
use super::search::Matching;
use super::{Choice, Overlay, Step};
use crate::text::{one_line, width, wrap};
use crate::{SessionScope, Theme};

/// Characters of a first message that are searched and shown.
const MAX_SHOWN: usize = 500;
/// Width from which ages are shown in words.
const MIN_WIDTH_FOR_WORDS: u16 = 70;
/// Columns that a directory may take.
const MAX_DIRECTORY_WIDTH: usize = 30;

/// The available sessions, the last used first.
pub(crate) struct SessionPicker {
    picker: Picker<SessionRow>,
    scope: SessionScope,
    state: ListingState,
    /// The open session.
    current: Option<PathBuf>,
    now: Millis,
}

enum ListingState {
    Looking,
    Found,
    Failed(String),
}

struct SessionRow {
    info: SessionInfo,
    scope: SessionScope,
    is_current: bool,
    now: Millis,
}

impl SessionPicker {
    /// Creates a picker that waits for the sessions of `scope`; `current` is the open session.
    pub fn new(scope: SessionScope, current: Option<PathBuf>) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = since.map_or(0, |since| since.as_millis() as Millis);
        Self::at(scope, current, now)
    }

    /// Creates a picker with another current time.
    pub fn at(scope: SessionScope, current: Option<PathBuf>, now: Millis) -> Self {
        Self {
            picker: Picker::new(Vec::new(), Matching::Words),
            scope,
            state: ListingState::Looking,
            current,
            now,
        }
    }

    fn title(&self) -> &'static str {
        match self.scope {
            SessionScope::Project => "Sessions of this directory",
            SessionScope::Everywhere => "All sessions",
        }
    }
}

impl Overlay for SessionPicker {
    fn key(&mut self, key: KeyEvent) -> Step {
        if key.code == KeyCode::Tab {
            self.scope = match self.scope {
                SessionScope::Project => SessionScope::Everywhere,
                SessionScope::Everywhere => SessionScope::Project,
            };
            self.state = ListingState::Looking;
            self.picker.set_items(Vec::new());
            return Step::Asked(Choice::Sessions(self.scope));
        }
        match (self.picker.key(key), self.picker.selected()) {
            (Picked::Chosen, Some(row)) => Step::Chosen(Choice::Session(row.info.path.clone())),
            (Picked::Close, _) => Step::Close,
            _ => Step::Stay,
        }
    }

    fn wheel(&mut self, rows: isize) {
        self.picker.wheel(rows);
    }

    fn paste(&mut self, text: &str) {
        self.picker.paste(text);
    }

    fn draw(&mut self, area: Rect, buf: &mut Buffer, theme: &Theme) -> Option<Position> {
        let title = self.title();
        let (tab, empty) = match self.scope {
            SessionScope::Project => (
                "all directories",
                "no sessions in this directory; Tab shows all",
            ),
            SessionScope::Everywhere => ("this directory", "no sessions yet"),
        };
        if let ListingState::Failed(error) = &self.state {
            let panel = Panel {
                title,
                note: "",
                hints: &[("Tab", tab), ("Esc", "close")],
                size: PanelSize::Part,
            };
            let words = format!("Cannot list the sessions: {}", one_line(error));
            let lines = wrap(Line::styled(words, theme.error), area.width);
            let content = panel.draw(area, buf, theme, lines.len());
            for (row, line) in content.rows().zip(&lines) {
                buf.set_line(row.x, row.y, line, row.width);
            }
            return None;
        }
        let is_looking = matches!(self.state, ListingState::Looking);
        let outfit = PickerFrame {
            title,
            note: "",
            empty: if is_looking {
                "looking for sessions…"
            } else {
                empty
            },
            hints: &[("Tab", tab)],
        };
        self.picker.draw(area, buf, theme, &outfit)
    }

    fn set_sessions(&mut self, scope: SessionScope, found: Result<Vec<SessionInfo>, String>) {
        if scope != self.scope {
            return;
        }
        match found {
            Err(error) => self.state = ListingState::Failed(error),
            Ok(sessions) => {
                let rows = sessions.into_iter().map(|info| SessionRow {
                    is_current: self.current.as_ref() == Some(&info.path),
                    info,
                    scope,
                    now: self.now,
                });
                self.picker.set_items(rows.collect());
                self.state = ListingState::Found;
            }
        }
    }
}

impl SessionRow {
    fn first_message(&self) -> String {
        one_line(start(&self.info.first_message, MAX_SHOWN))
    }
}

impl Item for SessionRow {
    fn words(&self) -> String {
        let name = self.info.name.as_deref().unwrap_or_default();
        let directory = match self.scope {
            SessionScope::Project => "",
            SessionScope::Everywhere => &self.info.cwd,
        };
        format!("{name} {} {directory}", self.first_message())
    }

    fn line(&self, columns: u16, theme: &Theme) -> Line<'static> {
        let mark = if self.is_current { "● " } else { "  " };
        let mut left = vec![Span::styled(mark, theme.success)];
        match self.info.name.as_deref().map(one_line) {
            Some(name) if !name.is_empty() => {
                left.push(Span::styled(name, theme.strong));
                left.push(Span::styled(
                    format!("  {}", self.first_message()),
                    theme.dim,
                ));
            }
            _ => left.push(Span::styled(self.first_message(), theme.text)),
        }
        let (age, count) = (
            Age::between(self.info.modified, self.now),
            self.info.message_count,
        );
        let room_for_words = match self.scope {
            SessionScope::Project => columns >= MIN_WIDTH_FOR_WORDS,
            SessionScope::Everywhere => columns >= MIN_WIDTH_FOR_WORDS + MAX_DIRECTORY_WIDTH as u16,
        };
        let (age, count) = if room_for_words {
            let noun = if count == 1 { "message " } else { "messages" };
            (format!("{:>14}", age.words()), format!("{count:>4} {noun}"))
        } else {
            (format!("{:>3}", age.letters()), format!("{count:>4}"))
        };
        let mut right = vec![(age, theme.dim), (count, theme.dim)];
        if self.scope == SessionScope::Everywhere {
            let room = MAX_DIRECTORY_WIDTH.min(usize::from(columns) / 3);
            let directory = tail(&one_line(&self.info.cwd), room);
            let padding = " ".repeat(room.saturating_sub(width(&directory)));
            right.insert(1, (format!("{directory}{padding}"), theme.accent));
        }
        two_sides(left, &right, usize::from(columns) * 2 / 5, columns)
    }
}

/// An age as a number and a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Age {
    count: i64,
    unit: &'static str,
    letter: &'static str,
}

impl Age {
    fn between(then: Millis, now: Millis) -> Self {
        const UNITS: [(i64, &str, &str); 6] = [
            (365 * 86_400, "year", "y"),
            (30 * 86_400, "month", "mo"),
            (7 * 86_400, "week", "w"),
            (86_400, "day", "d"),
            (3_600, "hour", "h"),
            (60, "minute", "m"),
        ];
        let seconds = now.saturating_sub(then).max(0) / 1_000;
        let unit = UNITS.iter().find(|(length, ..)| seconds >= *length);
        unit.map_or(
            Self {
                count: 0,
                unit: "",
                letter: "now",
            },
            |&(length, unit, letter)| Self {
                count: seconds / length,
                unit,
                letter,
            },
        )
    }

    fn words(self) -> String {
        match self.count {
            0 => "just now".to_owned(),
            1 => format!("1 {} ago", self.unit),
            count => format!("{count} {}s ago", self.unit),
        }
    }

    fn letters(self) -> String {
        match self.count {
            0 => self.letter.to_owned(),
            count => format!("{count}{}", self.letter),
        }
    }
}

/// Shortens a path to its end, which is more informative than its beginning.
fn tail(path: &str, columns: usize) -> String {
    if width(path) <= columns {
        return path.to_owned();
    }
    let mut start = path.len();
    let mut taken = 1;
    for (at, letter) in path.char_indices().rev() {
        taken += width(letter.encode_utf8(&mut [0; 4]));
        if taken > columns {
            break;
        }
        start = at;
    }
    format!("…{}", &path[start..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_shown_in_words() {
        let day = 86_400;
        for (seconds, words, letters) in [
            (-5, "just now", "now"),
            (59, "just now", "now"),
            (60, "1 minute ago", "1m"),
            (3_599, "59 minutes ago", "59m"),
            (7_200, "2 hours ago", "2h"),
            (day, "1 day ago", "1d"),
            (8 * day, "1 week ago", "1w"),
            (70 * day, "2 months ago", "2mo"),
            (800 * day, "2 years ago", "2y"),
        ] {
            let age = Age::between(1_000_000_000_000, 1_000_000_000_000 + seconds * 1_000);
            assert_eq!(
                (age.words().as_str(), age.letters().as_str()),
                (words, letters)
            );
        }
    }

    #[test]
    fn paths_keep_their_end() {
        assert_eq!(tail("/home/ada/pinion", 20), "/home/ada/pinion");
        assert_eq!(tail("/home/ada/projects/pinion", 12), "…ects/pinion");
        assert_eq!(tail("/日本/語", 4), "…/語");
    }
}
