//! What the terminal's background is like: from the environment, or from the terminal itself.
//!
//! The terminal answers among the keys, as `ESC ] 11 ; rgb:rrrr/gggg/bbbb` and an end, which reads as Alt-] and
//! characters. They are held back while they may be the answer and given on when they are not.

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};

use crate::Background;

/// Asks for the colour of the background.
pub(super) const QUESTION: &[u8] = b"\x1b]11;?\x1b\\";
const ANSWER: &str = "11;rgb:";
/// The longest answer there is.
const LONGEST: usize = 40;

/// What the environment says: `COLORFGBG`, as some terminals set it.
pub fn named_background() -> Option<Background> {
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

/// Looks for the answer among the keys.
#[derive(Debug, Default)]
pub(crate) struct BackgroundQuery {
    held: Vec<Event>,
    text: String,
    answered: bool,
}

/// What a key turned out to be.
#[derive(Debug, PartialEq)]
pub(crate) enum Sorted {
    /// Nothing yet.
    Held,
    /// The answer.
    Background(Background),
    /// Keys of the user.
    Keys(Vec<Event>),
}

impl BackgroundQuery {
    /// Whether something is held back that may be more than an answer.
    pub fn holds(&self) -> bool {
        !self.held.is_empty()
    }

    /// Gives back what was held: nothing followed.
    pub fn release(&mut self) -> Vec<Event> {
        self.text.clear();
        std::mem::take(&mut self.held)
    }

    /// Looks at the next thing that came from the terminal.
    pub fn sort(&mut self, event: Event) -> Sorted {
        if self.answered {
            return Sorted::Keys(vec![event]);
        }
        let Some(key) = event.as_key_event() else {
            return self.give_back(event);
        };
        if self.held.is_empty() {
            if !is(key, ']', KeyModifiers::ALT) {
                return Sorted::Keys(vec![event]);
            }
            self.held.push(event);
            return Sorted::Held;
        }
        if is(key, '\\', KeyModifiers::ALT) || is(key, 'g', KeyModifiers::CONTROL) {
            let answer = self.text.strip_prefix(ANSWER).and_then(of_answer);
            return match answer {
                Some(background) => {
                    self.answered = true;
                    self.release();
                    Sorted::Background(background)
                }
                None => self.give_back(event),
            };
        }
        match key.code {
            KeyCode::Char(char) if self.may_go_on(char) => {
                self.text.push(char);
                self.held.push(event);
                Sorted::Held
            }
            _ => self.give_back(event),
        }
    }

    fn may_go_on(&self, char: char) -> bool {
        match ANSWER.chars().nth(self.text.len()) {
            Some(expected) => char == expected,
            None => self.text.len() < LONGEST && (char.is_ascii_hexdigit() || char == '/'),
        }
    }

    fn give_back(&mut self, event: Event) -> Sorted {
        let mut keys = self.release();
        keys.push(event);
        Sorted::Keys(keys)
    }
}

fn is(key: KeyEvent, char: char, modifiers: KeyModifiers) -> bool {
    key.code == KeyCode::Char(char) && key.modifiers == modifiers
}

/// `rrrr/gggg/bbbb` in any number of digits.
fn of_answer(colour: &str) -> Option<Background> {
    let mut parts = colour.split('/').map(|part| {
        let value = u32::from_str_radix(part, 16).ok()?;
        let most = 16u32.checked_pow(part.len() as u32)?.checked_sub(1)?;
        Some(f64::from(value) / f64::from(most))
    });
    let (red, green, blue) = (parts.next()??, parts.next()??, parts.next()??);
    let brightness = 0.299 * red + 0.587 * green + 0.114 * blue;
    Some(match brightness > 0.5 {
        true => Background::Light,
        false => Background::Dark,
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
        ] {
            let mut events = typed("hi");
            events.extend(answer(text, end));
            events.extend(typed("!"));
            assert_eq!(sort(events), (Some(expected), typed("hi!")), "{text}");
        }
    }

    #[test]
    fn what_is_no_answer_stays_as_it_was() {
        let end = || key('\\', KeyModifiers::ALT);
        for text in [
            "",
            "11;rg",
            "12;rgb:0/0/0",
            "11;rgb:",
            "11;rgb:zz/0/0",
            "hello",
        ] {
            let events = answer(text, end());
            assert_eq!(sort(events.clone()), (None, events), "{text}");
        }
        let unfinished = answer("11;rgb:00", key('x', KeyModifiers::NONE));
        assert_eq!(sort(unfinished.clone()), (None, unfinished));
    }

    #[test]
    fn the_environment_names_colours_by_number() {
        assert_eq!(of_colours("15;0"), Some(Background::Dark));
        assert_eq!(of_colours("0;default;15"), Some(Background::Light));
        assert_eq!(of_colours("0;7"), Some(Background::Light));
        assert_eq!(of_colours("default"), None);
    }
}
