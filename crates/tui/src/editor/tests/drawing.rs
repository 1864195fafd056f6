//! The drawn editor.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::*;
use crate::theme::{Background, Colours, Theme};

/// The rows as text, with `▏` before the cursor's cell; at most `height` rows.
fn screen(editor: &Editor, width: u16, height: u16) -> String {
    let theme = Theme::new(Background::Dark, Colours::None);
    let area = Rect::new(0, 0, width, editor.height(width).min(height));
    let mut buffer = Buffer::empty(area);
    let cursor = editor
        .draw(area, &mut buffer, &theme, true)
        .expect("a cursor");
    let mut rows = Vec::new();
    for y in area.top()..area.bottom() {
        let mut row = String::new();
        let mut x = 0;
        while x < width {
            if (x, y) == (cursor.x, cursor.y) {
                row.push('▏');
            }
            let symbol = buffer[(x, y)].symbol();
            row.push_str(symbol);
            x += ratatui::buffer::CellWidth::cell_width(symbol).max(1);
        }
        rows.push(row.trim_end().to_owned());
    }
    rows.join("\n")
}

fn sample() -> Editor {
    let mut editor = Editor::new();
    editor.paste("Please look at crates/tui/src/editor/layout.rs and tell me why 東京タワーは高いです wraps here.\n\tindented\n\n");
    editor.paste(&"log\n".repeat(120));
    editor.paste(" 👨‍👩‍👧 e\u{301}nd of\u{200b}it");
    editor
}
#[test]
fn at_20_columns() {
    insta::assert_snapshot!(screen(&sample(), 20, 40), @r#"
    Please look at
    crates/tui/src/edit
    or/layout.rs and
    tell me why 東京タ
    ワーは高いです
    wraps here.
        indented

    [paste #1 +120 lin…
    👨‍👩‍👧 énd of�it▏
    "#);
}

#[test]
fn at_40_columns() {
    insta::assert_snapshot!(screen(&sample(), 40, 40), @r#"
    Please look at
    crates/tui/src/editor/layout.rs and
    tell me why 東京タワーは高いです wraps
    here.
        indented

    [paste #1 +120 lines] 👨‍👩‍👧 énd of�it▏
    "#);
}

#[test]
fn at_80_columns() {
    insta::assert_snapshot!(screen(&sample(), 80, 40), @r#"
    Please look at crates/tui/src/editor/layout.rs and tell me why 東京タワーは高い
    です wraps here.
        indented

    [paste #1 +120 lines] 👨‍👩‍👧 énd of�it▏
    "#);
}

#[test]
fn at_120_columns() {
    insta::assert_snapshot!(screen(&sample(), 120, 40), @r#"
    Please look at crates/tui/src/editor/layout.rs and tell me why 東京タワーは高いです wraps here.
        indented

    [paste #1 +120 lines] 👨‍👩‍👧 énd of�it▏
    "#);
}

#[test]
fn the_rows_around_the_cursor_are_shown() {
    let mut editor = Editor::new();
    editor.set_text("1\n2\n3\n4\n5");
    assert_eq!(screen(&editor, 10, 3), "3\n4\n5▏");
    assert_eq!(editor.hidden(Rect::new(0, 0, 10, 3)), (2, 0));
    press(&mut editor, "Up Up");
    assert_eq!(screen(&editor, 10, 3), "3▏\n4\n5");
    press(&mut editor, "Up");
    assert_eq!(screen(&editor, 10, 3), "2▏\n3\n4");
    assert_eq!(editor.hidden(Rect::new(0, 0, 10, 3)), (1, 1));
    press(&mut editor, "M-> C-u BS C-u BS");
    assert_eq!(screen(&editor, 10, 3), "1\n2\n3▏");
}

#[test]
fn the_cursor_is_where_the_next_character_will_be() {
    let steps = [
        ("'aaaaa'", "aaaaa▏"),
        // The space is in the last column, and the word continues on the next row.
        ("'_'", "aaaaa\n▏"),
        ("'bb'", "aaaaa\nbb▏"),
        ("Left Left Left", "aaaaa▏\nbb"),
        ("Down 'bbbbb'", "aaaaa\nbbbbb\nbb▏"),
    ];
    let mut editor = Editor::new();
    editor.height(6);
    for (script, expected) in steps {
        press(&mut editor, script);
        assert_eq!(screen(&editor, 6, 9), expected, "{script}");
    }
}

#[test]
fn nothing_is_drawn_where_there_is_no_room() {
    let theme = Theme::new(Background::Dark, Colours::None);
    let mut buffer = Buffer::empty(Rect::new(0, 0, 10, 2));
    let editor = sample();
    assert_eq!(
        editor.draw(Rect::new(0, 0, 0, 2), &mut buffer, &theme, true),
        None
    );
    assert_eq!(
        editor.draw(Rect::new(20, 20, 5, 5), &mut buffer, &theme, true),
        None
    );
    assert_eq!(
        editor.draw(Rect::new(0, 0, 10, 1), &mut buffer, &theme, false),
        None
    );
}
