//! Units of text that the cursor steps over: a grapheme, or the marker of a paste.
//!
//! A marker is one character of Unicode's plane 16, which is for private use. Characters of that
//! plane in the user's text are replaced by markers of their own (see `pastes.rs`), so every such
//! character in the editor is a marker.

use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation};

const FIRST_MARKER: u32 = 0x10_0000;

/// The first byte in UTF-8 of every character of plane 16, and of no other character.
const MARKER_BYTE: u8 = 0xF4;

/// The most markers that can exist.
pub(super) const MAX_MARKERS: usize = 0xFFFE;

/// The marker character of the paste with this number.
pub(super) fn marker(number: usize) -> Option<char> {
    let number = u32::try_from(number).ok()?;
    char::from_u32(FIRST_MARKER.checked_add(number)?)
}

/// The number of the paste that a character marks.
pub(super) fn marker_number(character: char) -> Option<usize> {
    usize::try_from(u32::from(character).checked_sub(FIRST_MARKER)?).ok()
}

/// Reports whether a character is the marker of a paste.
pub(crate) fn is_marker(character: char) -> bool {
    marker_number(character).is_some()
}

/// The number of the paste that a unit marks.
pub(super) fn unit_marker(unit: &str) -> Option<usize> {
    unit.chars().next().and_then(marker_number)
}

pub(super) fn has_markers(text: &str) -> bool {
    text.as_bytes().contains(&MARKER_BYTE)
}

/// The units of a text and their start positions.
pub(super) fn units(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let unit = first(text.get(at..)?)?;
        let start = at;
        at += unit.len();
        Some((start, unit))
    })
}

/// The end of the unit that starts at `at`, or the end of the text.
pub(super) fn after(text: &str, at: usize) -> usize {
    let unit = text.get(at..).and_then(first);
    at + unit.map_or(0, str::len)
}

/// The start of the unit that ends at `at`, or the start of the text.
pub(super) fn before(text: &str, at: usize) -> usize {
    let Some(last) = text.get(..at).and_then(|head| head.chars().next_back()) else {
        return at;
    };
    let mut start = at - last.len_utf8();
    while !is_boundary(text, start) {
        let head = &text[..start];
        start -= head.chars().next_back().map_or(start, char::len_utf8);
    }
    start
}

/// The nearest position at or before `at` that is between two units.
pub(super) fn snap(text: &str, at: usize) -> usize {
    let at = text.floor_char_boundary(at);
    if is_boundary(text, at) {
        at
    } else {
        before(text, at)
    }
}

/// Reports whether a position between two characters is between two units.
fn is_boundary(text: &str, at: usize) -> bool {
    let (head, tail) = text.split_at(at);
    let (Some(previous), Some(next)) = (head.chars().next_back(), tail.chars().next()) else {
        return true;
    };
    if (previous.is_ascii() && next.is_ascii()) || is_marker(previous) || is_marker(next) {
        return true;
    }
    // The cursor of the library has the whole text, so it never requests more.
    GraphemeCursor::new(at, text.len(), true)
        .is_boundary(text, 0)
        .unwrap_or(true)
}

fn first(text: &str) -> Option<&str> {
    let first = text.chars().next()?;
    if marker_number(first).is_some() {
        return Some(&text[..first.len_utf8()]);
    }
    // Most text is ASCII: an ASCII character before another one is a unit of its own.
    let bytes = text.as_bytes();
    if bytes[0].is_ascii() && bytes.get(1).is_none_or(u8::is_ascii) {
        return Some(&text[..1]);
    }
    let grapheme = text.graphemes(true).next()?;
    match grapheme
        .as_bytes()
        .iter()
        .position(|byte| *byte == MARKER_BYTE)
    {
        Some(end) => Some(&text[..end]),
        None => Some(grapheme),
    }
}

/// The kind of a unit, for moving by words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UnitKind {
    Space,
    Word,
    Ideograph,
    Kana,
    Marker,
    Mark,
}

fn kind(unit: &str) -> UnitKind {
    let Some(first) = unit.chars().next() else {
        return UnitKind::Space;
    };
    match first {
        _ if marker_number(first).is_some() => UnitKind::Marker,
        _ if first.is_whitespace() => UnitKind::Space,
        '\u{3041}'..='\u{30ff}' | '\u{ff66}'..='\u{ff9d}' => UnitKind::Kana,
        '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}' => {
            UnitKind::Ideograph
        }
        _ if first.is_alphanumeric() || first == '_' => UnitKind::Word,
        _ => UnitKind::Mark,
    }
}

/// Reports whether a unit separates words on the screen.
pub(super) fn is_space(unit: &str) -> bool {
    kind(unit) == UnitKind::Space
}

/// Reports whether a row may be broken on either side of a unit, as East Asian text and markers
/// allow.
pub(super) fn stands_alone(unit: &str) -> bool {
    matches!(
        kind(unit),
        UnitKind::Ideograph | UnitKind::Kana | UnitKind::Marker
    )
}

fn is_word(kind: UnitKind) -> bool {
    !matches!(kind, UnitKind::Space | UnitKind::Mark)
}

/// The end of the next word.
pub(super) fn word_end(text: &str, from: usize) -> usize {
    let mut inside = None;
    let mut at = from;
    while at < text.len() {
        let next = after(text, at);
        let here = kind(&text[at..next]);
        match inside {
            None if is_word(here) => inside = Some(here),
            Some(UnitKind::Marker) => break,
            Some(begun) if begun != here => break,
            _ => {}
        }
        at = next;
    }
    at
}

/// The start of the word before a position.
pub(super) fn word_start(text: &str, from: usize) -> usize {
    let mut inside = None;
    let mut at = from;
    while at > 0 {
        let previous = before(text, at);
        let here = kind(&text[previous..at]);
        match inside {
            None if is_word(here) => inside = Some(here),
            Some(UnitKind::Marker) => break,
            Some(begun) if begun != here => break,
            _ => {}
        }
        at = previous;
    }
    at
}

/// The start of the text between spaces before a position.
pub(super) fn chunk_start(text: &str, from: usize) -> usize {
    let mut at = from;
    let mut inside = false;
    while at > 0 {
        let previous = before(text, at);
        if is_space(&text[previous..at]) {
            if inside {
                break;
            }
        } else {
            inside = true;
        }
        at = previous;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<&str> {
        units(text).map(|(_, unit)| unit).collect()
    }

    #[test]
    fn a_unit_is_what_people_take_for_a_character() {
        assert_eq!(
            all("ae\u{301}👨‍👩‍👧🇩🇪中\n."),
            ["a", "e\u{301}", "👨‍👩‍👧", "🇩🇪", "中", "\n", "."]
        );
    }

    #[test]
    fn a_marker_joins_nothing() {
        let marker = marker(3).expect("a marker").to_string();
        let text = format!("\u{600}{marker}\u{301}👨\u{200d}{marker}x");
        assert_eq!(
            all(&text),
            ["\u{600}", &marker, "\u{301}", "👨\u{200d}", &marker, "x"]
        );
    }

    #[test]
    fn steps_back_are_the_steps_forward_reversed() {
        let marker = marker(0).expect("a marker");
        let text = format!("a\r{marker}\u{301}\n🇩🇪🇫🇷 e\u{301}{marker}{marker}中");
        let mut forward: Vec<usize> = units(&text).map(|(start, _)| start).collect();
        let mut backward = Vec::new();
        let mut at = text.len();
        while at > 0 {
            at = before(&text, at);
            backward.push(at);
        }
        forward.reverse();
        assert_eq!(forward, backward);
    }

    proptest::proptest! {
        #[test]
        fn places_are_those_of_the_units(text in "[a \n\u{301}\u{200d}👨👩🇩🇪中\u{600}각가कि्ष\u{100000}\u{10fffd}]{0,30}") {
            let mut places: Vec<usize> = units(&text).map(|(start, _)| start).collect();
            places.push(text.len());
            for at in 0..=text.len() {
                let place = *places.iter().rfind(|place| **place <= at).expect("the start");
                assert_eq!(snap(&text, at), place);
                if place == at {
                    let previous = places.iter().rfind(|place| **place < at).copied().unwrap_or(0);
                    assert_eq!(before(&text, at), previous);
                }
            }
        }
    }

    #[test]
    fn words_end_where_the_script_changes() {
        let text = "let foo_bar = 東京タワー.len();";
        let mut ends = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let end = word_end(text, at);
            ends.push(&text[at..end]);
            at = end;
        }
        assert_eq!(
            ends,
            ["let", " foo_bar", " = 東京", "タワー", ".len", "();"]
        );
    }
}
