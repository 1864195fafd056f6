//! The background of the terminal: from the environment, or from the terminal itself.
//!
//! The terminal answers among the keys, with `ESC ] 11 ;`, a colour and an end, which reads as
//! Alt-] and characters. Keys are held back while they may be the answer and released when they are
//! not. Keys that begin like the answer are never delivered, even if the colour is unknown.

use std::time::Duration;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};

use crate::Background;

/// Queries the background colour.
pub(super) const QUESTION: &[u8] = b"\x1b]11;?\x1b\\";
const ANSWER: &str = "11;";
/// Characters of the longest answer.
const LONGEST: usize = 80;
/// Time for which a key may be held back because it may begin an answer.
const KEY_HOLD_TIME: Duration = Duration::from_millis(50);
/// Time that the rest of an answer may take.
const ANSWER_HOLD_TIME: Duration = Duration::from_secs(1);

/// Reads the background from `COLORFGBG`, which some terminals set.
pub(super) fn named_background() -> Option<Background> {
    of_colours(&std::env::var("COLORFGBG").ok()?)
}

fn of_colours(colours: &str) -> Option<Background> {
    let (_, background) = colours.rsplit_once(';')?;
    match background.parse::<u8>().ok()? {
        0..=6 | 8 => Some(Background::Dark),
        7 | 9..=15 => Some(Background::Light),
        16.. => None,
    }
}

/// Finds the terminal's answer among the keys.
#[derive(Debug, Default)]
pub(crate) struct BackgroundQuery {
    held: Vec<Event>,
    text: String,
    end: End,
}

/// The state of the answer's end.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum End {
    #[default]
    Open,
    /// The first half of the end arrived alone; the second half is not a key either.
    Half,
}

/// The result of sorting one key.
#[derive(Debug, PartialEq)]
pub(crate) enum Sorted {
    /// The key is held back or part of the answer.
    Held,
    /// The answer is complete.
    Background(Background),
    /// Keys of the user.
    Keys(Vec<Event>),
}

impl BackgroundQuery {
    /// Reports whether keys are held back.
    pub fn holds(&self) -> bool {
        !self.held.is_empty()
    }

    /// Time for which keys may be held back.
    pub fn hold_time(&self) -> Duration {
        if self.is_answer() {
            ANSWER_HOLD_TIME
        } else {
            KEY_HOLD_TIME
        }
    }

    /// Releases the held keys after the time has passed. An incomplete answer is dropped.
    pub fn release(&mut self) -> Vec<Event> {
        let is_answer = self.is_answer();
        self.text.clear();
        let held = std::mem::take(&mut self.held);
        if is_answer { Vec::new() } else { held }
    }

    /// Sorts the next event of the terminal.
    pub fn sort(&mut self, event: Event) -> Sorted {
        let Some(key) = event.as_key_event() else {
            return self.release_with(event);
        };
        let end = std::mem::take(&mut self.end);
        if self.held.is_empty() {
            if end == End::Half && is(key, '\\', KeyModifiers::NONE) {
                return Sorted::Held;
            }
            if !is(key, ']', KeyModifiers::ALT) {
                return Sorted::Keys(vec![event]);
            }
            self.held.push(event);
            return Sorted::Held;
        }
        if self.is_answer() {
            let is_half = key.code == KeyCode::Esc;
            let is_end =
                is(key, '\\', KeyModifiers::ALT) || is(key, 'g', KeyModifiers::CONTROL) || is_half;
            if is_end || self.text.len() >= LONGEST {
                if is_half {
                    self.end = End::Half;
                }
                return self.finish();
            }
        }
        match key.code {
            KeyCode::Char(char) if self.may_continue(char) => {
                self.text.push(char);
                self.held.push(event);
                Sorted::Held
            }
            _ => self.release_with(event),
        }
    }

    fn is_answer(&self) -> bool {
        self.text.starts_with(ANSWER)
    }

    fn may_continue(&self, char: char) -> bool {
        let expected = ANSWER.chars().nth(self.text.len());
        self.is_answer() || expected == Some(char)
    }

    fn finish(&mut self) -> Sorted {
        let background = self.text.strip_prefix(ANSWER).and_then(of_answer);
        self.release();
        match background {
            Some(background) => Sorted::Background(background),
            None => Sorted::Held,
        }
    }

    fn release_with(&mut self, event: Event) -> Sorted {
        let mut keys = self.release();
        keys.push(event);
        Sorted::Keys(keys)
    }
}

fn is(key: KeyEvent, char: char, modifiers: KeyModifiers) -> bool {
    key.code == KeyCode::Char(char) && key.modifiers == modifiers
}

/// Parses `rgb:rrrr/gggg/bbbb`, `rgba:` with one more part, or `#rrggbb`, each part with any number
/// of digits.
fn of_answer(colour: &str) -> Option<Background> {
    let parts: Vec<&str> = match colour.strip_prefix('#') {
        Some(digits) => {
            let each = digits.len() / 3;
            let part = |number: usize| digits.get(number * each..(number + 1) * each);
            vec![part(0)?, part(1)?, part(2)?]
        }
        None => {
            let (_, parts) = colour
                .split_once(':')
                .filter(|(kind, _)| kind.starts_with("rgb"))?;
            parts.split('/').collect()
        }
    };
    let mut shares = parts.into_iter().map(|part| {
        let value = u32::from_str_radix(part, 16).ok()?;
        let most = 16u32.checked_pow(part.len() as u32)?.checked_sub(1)?;
        Some(f64::from(value) / f64::from(most))
    });
    let (red, green, blue) = (shares.next()??, shares.next()??, shares.next()??);
    let brightness = 0.299 * red + 0.587 * green + 0.114 * blue;
    Some(if brightness > 0.5 {
        Background::Light
    } else {
        Background::Dark
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(char: char, modifiers: KeyModifiers) -> Event {
        Event::Key(KeyEvent::new(KeyCode::Char(char), modifiers))
    }

    fn typed(text: &str) -> Vec<Event> {
        text.chars()
            .map(|char| key(char, KeyModifiers::NONE))
            .collect()
    }

    fn answer(text: &str, end: Event) -> Vec<Event> {
        let mut events = vec![key(']', KeyModifiers::ALT)];
        events.extend(typed(text));
        events.push(end);
        events
    }

    fn sort(events: Vec<Event>) -> (Option<Background>, Vec<Event>) {
        let mut query = BackgroundQuery::default();
        let mut keys = Vec::new();
        let mut background = None;
        for event in events {
            match query.sort(event) {
                Sorted::Held => {}
                Sorted::Background(answer) => background = Some(answer),
                Sorted::Keys(more) => keys.extend(more),
            }
        }
        keys.extend(query.release());
        (background, keys)
    }

    #[test]
    fn the_answer_is_taken_out_of_the_keys() {
        let string_end = || key('\\', KeyModifiers::ALT);
        let bell = || key('g', KeyModifiers::CONTROL);
        for (text, end, expected) in [
            ("11;rgb:ffff/ffff/eeee", string_end(), Background::Light),
            ("11;rgb:0000/0000/0000", bell(), Background::Dark),
            ("11;rgb:1e/1e/2e", string_end(), Background::Dark),
            ("11;rgba:ffff/ffff/ffff/0000", bell(), Background::Light),
            ("11;#ffffff", bell(), Background::Light),
            ("11;#000", string_end(), Background::Dark),
        ] {
            let mut events = typed("hi");
            events.extend(answer(text, end));
            events.extend(typed("!"));
            assert_eq!(sort(events), (Some(expected), typed("hi!")), "{text}");
        }
    }

    #[test]
    fn an_answer_with_an_unknown_colour_is_never_typed() {
        let end = || key('\\', KeyModifiers::ALT);
        for text in [
            "11;",
            "11;rgb:",
            "11;rgb:zz/0/0",
            "11;white",
            "11;rgb:é",
            "11;#12",
        ] {
            let events = answer(text, end());
            assert_eq!(sort(events), (None, Vec::new()), "{text}");
        }
        let unfinished = answer("11;rgb:00", key('x', KeyModifiers::NONE));
        assert_eq!(sort(unfinished), (None, Vec::new()));
    }

    #[test]
    fn the_end_may_come_in_halves() {
        let mut events = answer("11;rgb:0/0/0", Event::Key(KeyCode::Esc.into()));
        events.extend(typed("\\hi\\"));
        assert_eq!(sort(events), (Some(Background::Dark), typed("hi\\")));
    }

    #[test]
    fn keys_that_are_not_an_answer_are_released() {
        let end = || key('\\', KeyModifiers::ALT);
        for text in ["", "1", "11", "12;rgb:0/0/0", "hello"] {
            let events = answer(text, end());
            assert_eq!(sort(events.clone()), (None, events), "{text}");
        }
    }

    #[test]
    fn the_environment_names_colours_by_number() {
        assert_eq!(of_colours("15;0"), Some(Background::Dark));
        assert_eq!(of_colours("0;default;15"), Some(Background::Light));
        assert_eq!(of_colours("0;7"), Some(Background::Light));
        assert_eq!(of_colours("default"), None);
    }
}
