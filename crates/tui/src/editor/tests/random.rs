//! Random keys and pastes.

use proptest::prelude::*;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::*;
use crate::editor::unit;
use crate::theme::{Background, Colours, Theme};

#[derive(Debug, Clone)]
enum Step {
    Key(&'static str),
    Type(char),
    Paste(String),
    Set(String),
    Draw(u16, u16),
}

const KEYS: [&str; 30] = [
    "Enter", "S-Enter", "Left", "Right", "Up", "Down", "C-Left", "C-Right", "Home", "End", "BS",
    "M-BS", "Del", "M-d", "C-a", "C-e", "C-k", "C-u", "C-w", "C-y", "M-y", "C-_", "C-_", "M-_",
    "M-<", "M->", "C-j", "Tab", "BS", "C-h",
];

fn character() -> impl Strategy<Value = char> {
    prop_oneof![
        4 => prop::char::range(' ', '~'),
        1 => Just(' '),
        1 => any::<char>(),
        2 => prop::sample::select(vec![
            '\u{301}', '\u{200d}', '👨', '👩', '🇩', '🇪', '中', 'ー', '\u{600}', '\u{100000}', '\u{10fffd}', '\t', '\n', '\r',
            '\u{1b}', '[', '\u{200b}', '\u{202e}', 'ﾞ', '\u{fe0f}', '\u{1f3fd}', '\\',
        ]),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::collection::vec(character(), 0..40).prop_map(String::from_iter),
        1 => prop::collection::vec(character(), 100..110)
            .prop_map(|some| String::from_iter(some).repeat(11)),
        1 => (11usize..30).prop_map(|lines| "line\n".repeat(lines)),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => prop::sample::select(KEYS.to_vec()).prop_map(Step::Key),
        4 => character().prop_map(Step::Type),
        2 => text().prop_map(Step::Paste),
        1 => text().prop_map(Step::Set),
        2 => (1u16..30, 1u16..6).prop_map(|(width, height)| Step::Draw(width, height)),
    ]
}

fn apply(editor: &mut Editor, step: &Step) {
    match step {
        Step::Key(name) => {
            editor.key(key(name));
        }
        Step::Type(character) => {
            editor.key(KeyEvent::from(KeyCode::Char(*character)));
        }
        Step::Paste(text) => editor.paste(text),
        Step::Set(text) => editor.set_text(text),
        Step::Draw(width, height) => drawn(editor, *width, *height),
    }
}

/// Draws at any size and checks that the drawing, the height and the cursor agree.
fn drawn(editor: &Editor, width: u16, height: u16) {
    let theme = Theme::new(Background::Dark, Colours::None);
    let area = Rect::new(1, 1, width, height);
    let mut buffer = Buffer::empty(Rect::new(0, 0, width + 2, height + 2));
    let cursor = editor
        .draw(area, &mut buffer, &theme, true)
        .expect("a cursor");
    assert!(area.contains(cursor), "{cursor:?} is outside of {area:?}");
    for position in buffer.area.positions() {
        let is_inside = area.contains(position);
        assert!(
            is_inside || buffer[position].symbol() == " ",
            "drew outside at {position:?}"
        );
    }
    let (above, below) = editor.hidden(area);
    let shown = usize::from(editor.height(width)) - above - below;
    assert!(shown <= usize::from(height));
    assert!(shown == usize::from(height) || (above == 0 && below == 0));
    for y in area.top() + u16::try_from(shown).expect("few rows")..area.bottom() {
        for x in area.left()..area.right() {
            assert_eq!(
                buffer[(x, y)].symbol(),
                " ",
                "a row that is not there is drawn"
            );
        }
    }
}

fn is_between_units(text: &str, at: usize) -> bool {
    at == text.len() || unit::units(text).any(|(start, _)| start == at)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_keys_are_handled(steps in prop::collection::vec(step(), 0..60)) {
        let mut editor = Editor::new();
        editor.set_history(vec!["one".into(), "two\nlines".into(), "x".repeat(700)]);
        for step in &steps {
            apply(&mut editor, step);
            let whole = editor.buffer.text().to_owned();
            prop_assert!(is_between_units(&whole, editor.buffer.cursor()), "{:?} at {}", whole, editor.buffer.cursor());
            prop_assert!(!whole.chars().any(|character| character.is_control() && !matches!(character, '\n' | '\t')));
        }
        for width in [1, 2, 3, 10, 80] {
            drawn(&editor, width, 3);
        }
        let text = editor.text();
        prop_assert_eq!(editor.take(), text);
        prop_assert!(editor.is_empty());
    }

    #[test]
    fn taking_everything_back_leaves_nothing(steps in prop::collection::vec(step(), 0..60)) {
        let mut editor = Editor::new();
        for step in &steps {
            apply(&mut editor, step);
        }
        let whole = editor.text();
        let mut back = 0;
        while editor.buffer.undo() {
            back += 1;
        }
        prop_assert_eq!(editor.text(), "");
        for _ in 0..back {
            editor.buffer.redo();
        }
        prop_assert!(steps.iter().any(|step| matches!(step, Step::Key("C-_" | "M-_"))) || editor.text() == whole);
    }

    #[test]
    fn a_paste_comes_out_as_it_went_in(before in "[ -~]{0,20}", pasted in text(), after in text()) {
        let sanitise_paste = |text: &str| super::super::pastes::sanitise_paste(text).into_owned();
        let mut editor = Editor::new();
        for part in [&before, &pasted, &after] {
            editor.paste(part);
        }
        let expected = before + &sanitise_paste(&pasted) + &sanitise_paste(&after);
        prop_assert_eq!(editor.text(), expected);
    }

    #[test]
    fn every_place_has_its_cell(text in text(), width in 2u16..40) {
        let mut editor = Editor::new();
        editor.set_text(&text);
        editor.height(width);
        let whole = editor.buffer.text().to_owned();
        let mut last = None;
        for place in unit::units(&whole).map(|(start, _)| start).chain([whole.len()]) {
            editor.buffer.move_to(place);
            let cell = editor.row_and_column();
            prop_assert!(last < Some(cell), "{:?} is not behind {:?}", cell, last);
            last = Some(cell);
            let (row, column) = cell;
            let back = editor.layout().position_at(&whole, &editor.pastes, row, column);
            prop_assert_eq!(back, place);
        }
    }
}

#[test]
fn a_paste_of_a_megabyte_is_folded() {
    let line = "a line of a log file with some words in it é中\n";
    let megabyte = line.repeat(1_000_000 / line.len());
    let mut editor = Editor::new();
    for _ in 0..4 {
        editor.paste(&megabyte);
        press(&mut editor, "'x' Left Right Up Down M-b M-f");
        drawn(&editor, 80, 10);
    }
    assert_eq!(editor.height(80), 2);
    assert_eq!(editor.take().len(), 4 * (megabyte.len() + 1));
}

#[test]
fn a_paste_typed_character_by_character_is_fast() {
    let mut editor = Editor::new();
    for number in 0..300_000u32 {
        let character = char::from_digit(number % 36, 36).expect("a digit");
        editor.key(KeyEvent::from(KeyCode::Char(character)));
    }
    assert_eq!(editor.take().len(), 300_000);
}
