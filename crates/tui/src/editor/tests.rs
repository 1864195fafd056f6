//! Tests of the editor: keys in, text and cursor out.

mod drawing;
mod keys;
mod random;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{Editor, EditorOutcome};

/// Presses the keys of a script and returns the effect of the last one.
///
/// A word of a script is a key as people write it (`C-a`, `M-b`, `C-Left`, `Enter`, `Up`), `'text'`
/// to type, or `"text"` to paste (`\n` is a line break). Words are separated by spaces; in quotes `_` is a space.
pub(super) fn press(editor: &mut Editor, script: &str) -> EditorOutcome {
    let mut outcome = EditorOutcome::Ignored;
    for word in script.split_whitespace() {
        let quoted = |quote| {
            word.strip_prefix(quote)
                .and_then(|word| word.strip_suffix(quote))
        };
        if let Some(typed) = quoted('\'') {
            for character in typed.replace('_', " ").chars() {
                outcome = editor.key(KeyEvent::from(KeyCode::Char(character)));
            }
        } else if let Some(pasted) = quoted('"') {
            editor.paste(&pasted.replace('_', " ").replace("\\n", "\n"));
        } else {
            outcome = editor.key(key(word));
        }
    }
    outcome
}

pub(super) fn key(name: &str) -> KeyEvent {
    let mut modifiers = KeyModifiers::NONE;
    let mut name = name;
    while let Some((modifier, rest)) = name.split_once('-').filter(|(_, rest)| !rest.is_empty()) {
        modifiers |= match modifier {
            "C" => KeyModifiers::CONTROL,
            "M" => KeyModifiers::ALT,
            "S" => KeyModifiers::SHIFT,
            other => panic!("no modifier {other}"),
        };
        name = rest;
    }
    let code = match name {
        "Enter" => KeyCode::Enter,
        "Left" => KeyCode::Left,
        "Right" => KeyCode::Right,
        "Up" => KeyCode::Up,
        "Down" => KeyCode::Down,
        "Home" => KeyCode::Home,
        "End" => KeyCode::End,
        "Tab" => KeyCode::Tab,
        "Esc" => KeyCode::Esc,
        "BS" => KeyCode::Backspace,
        "Del" => KeyCode::Delete,
        _ => KeyCode::Char(name.chars().next().expect("a key")),
    };
    KeyEvent::new(code, modifiers)
}

/// The text with `|` at the cursor; pastes are shown by their labels.
pub(super) fn state(editor: &Editor) -> String {
    let labelled = |text: &str| {
        super::unit::units(text)
            .map(|(_, unit)| match super::unit::unit_marker(unit) {
                Some(number) => editor.pastes.label(number).to_owned(),
                None => unit.to_owned(),
            })
            .collect::<String>()
    };
    format!(
        "{}|{}",
        labelled(editor.before_cursor()),
        labelled(editor.after_cursor())
    )
}
