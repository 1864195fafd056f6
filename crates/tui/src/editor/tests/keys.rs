use super::*;

/// Each row: keys, then the text with `|` at the cursor.
fn check(table: &[(&str, &str)]) {
    for (script, expected) in table {
        let mut editor = Editor::new();
        press(&mut editor, script);
        assert_eq!(state(&editor), *expected, "{script}");
    }
}

#[test]
fn typing_and_moving() {
    check(&[
        ("'hello'", "hello|"),
        ("'hello' Left Left", "hel|lo"),
        ("'hello' C-a", "|hello"),
        ("'hello' C-a C-f C-f 'X'", "heX|llo"),
        ("'hello' Home End", "hello|"),
        ("'hello' C-b C-b C-e", "hello|"),
        ("'a_b' S-Enter 'c' C-a", "a b\n|c"),
        ("'a' C-j 'b' Left Left 'x'", "ax|\nb"),
        ("'one_two.three' M-b", "one two.|three"),
        ("'one_two.three' M-b M-b M-b", "|one two.three"),
        ("'one_two' C-a M-f", "one| two"),
        ("'one_two' C-a C-Right C-Right", "one two|"),
        ("'one_two' C-Left", "one |two"),
        ("'a' C-j 'b' M-<", "|a\nb"),
        ("'a' C-j 'b' M-< M->", "a\nb|"),
        ("Left Right Up Down C-a C-e M-b M-f", "|"),
    ]);
}

#[test]
fn graphemes_are_one_step() {
    check(&[
        ("\"e\u{301}x\" Left Left", "|e\u{301}x"),
        ("\"👨‍👩‍👧🇩🇪\" Left", "👨‍👩‍👧|🇩🇪"),
        ("\"👨‍👩‍👧🇩🇪\" BS", "👨‍👩‍👧|"),
        ("\"中文\" C-a Del", "|文"),
        ("\"東京タワー\" M-b", "東京|タワー"),
        // A combining mark joins the letter before it.
        ("'ex' Left \"\u{301}\"", "e\u{301}|x"),
    ]);
}

#[test]
fn deleting_and_putting_back() {
    check(&[
        ("'hello' BS C-h", "hel|"),
        ("'hello' C-a Del C-d", "|llo"),
        ("'one_two' C-w", "one |"),
        ("'one_two.three' M-BS", "one two.|"),
        ("'one_two.three_' C-w", "one |"),
        ("'one_two' C-a M-d", "| two"),
        ("'one_two' C-a C-k", "|"),
        ("'a' C-j 'b' C-j 'c' Up C-a C-k C-k", "a\n|c"),
        ("'one_two' M-b C-u", "|two"),
        ("'a' C-j 'b' C-a C-u", "a|b"),
        ("'one_two' C-u C-y C-y", "one twoone two|"),
        ("'one_two_three' C-w C-w C-y", "one two three|"),
        ("'one_two' C-a M-d M-d C-y", "one two|"),
        ("'one' C-u 'two' C-u C-y M-y", "one|"),
        ("'one' C-u 'two' C-u C-y M-y M-y", "two|"),
        ("'one' C-u 'x' M-y", "x|"),
        ("C-y", "|"),
    ]);
}

#[test]
fn taking_back() {
    check(&[
        ("'one_two' C-_", "one |"),
        ("'one_two' C-_ C-_", "|"),
        ("'one_two' C-_ C-_ C-_", "|"),
        ("'one_two' C-_ M-_", "one two|"),
        ("'one' Left 'X' C-_", "on|e"),
        ("'one_two' C-w C-_", "one two|"),
        ("'one' \"two\" C-_", "one|"),
        ("'abc' BS BS C-7 C-/", "abc|"),
        ("'one' C-_ 'x' M-_", "x|"),
    ]);
}

#[test]
fn a_backslash_before_enter_breaks_the_line() {
    check(&[
        ("'a\\' Enter 'b'", "a\nb|"),
        ("'a\\b' Left Enter 'c'", "a\nc|b"),
    ]);
    let mut editor = Editor::new();
    assert_eq!(press(&mut editor, "'a' Enter"), EditorOutcome::Submit);
    assert_eq!(press(&mut editor, "'\\' Enter"), EditorOutcome::Changed);
    assert_eq!(editor.take(), "a\n");
    assert_eq!(state(&editor), "|");
}

#[test]
fn up_and_down_keep_the_column() {
    check(&[
        (
            "'abcdef' C-j 'x' C-j 'abcdef' Up Up 'I'",
            "abcdefI|\nx\nabcdef",
        ),
        (
            "'abcdef' C-j 'x' C-j 'abcdef' Left Up Up 'I'",
            "abcdeI|f\nx\nabcdef",
        ),
        ("'abc' C-j 'abc' Up Down", "abc\nabc|"),
        ("'abc' Left Up", "|abc"),
        ("'abc' C-a Down", "abc|"),
        ("\"中中\\nabc\" Left Up", "中|中\nabc"),
    ]);
    let mut editor = Editor::new();
    assert_eq!(editor.height(6), 1);
    press(&mut editor, "'aaaa_bbbb_cccc'");
    assert_eq!(editor.height(6), 3);
    press(&mut editor, "Up Up 'X'");
    assert_eq!(state(&editor), "aaaaX| bbbb cccc");
}

#[test]
fn what_was_said_comes_back_and_the_draft_stays() {
    let mut editor = Editor::new();
    editor.set_history(vec![
        "first".into(),
        "second\nline".into(),
        "second\nline".into(),
        " ".into(),
    ]);
    let steps = [
        ("'draft'", "draft|"),
        ("Up", "second\nline|"),
        ("Up", "first|"),
        ("Up", "|first"),
        ("Down", "second\nline|"),
        ("Down", "draft|"),
        ("Down", "draft|"),
        ("Up Up 'X'", "firstX|"),
        ("Up", "second\nline|"),
        // Moving the cursor turns the shown text into the draft.
        ("Left Up", "sec|ond\nline"),
        ("Up", "first|"),
        ("Down Down", "firstX|"),
    ];
    for (script, expected) in steps {
        press(&mut editor, script);
        assert_eq!(state(&editor), expected, "{script}");
    }
    assert_eq!(editor.take(), "firstX");
    editor.remember("firstX".into());
    press(&mut editor, "Up");
    assert_eq!(state(&editor), "firstX|");
}

#[test]
fn a_draft_with_a_paste_survives_a_look_at_history() {
    let mut editor = Editor::new();
    editor.remember("old".into());
    let long = "line\n".repeat(120);
    editor.paste(&long);
    press(&mut editor, "Up Down 'x'");
    assert_eq!(state(&editor), "[paste #1 +120 lines]x|");
    assert_eq!(editor.take(), long + "x");
}

#[test]
fn a_large_paste_is_one_step() {
    let long = "line\\n".repeat(20);
    let table = [
        ("'a' PASTE 'b' Left Left 'x'", "ax|[paste #1 +20 lines]b"),
        ("'a' PASTE BS", "a|"),
        ("'a' PASTE Left Del", "a|"),
        ("'a' PASTE BS C-_", "a[paste #1 +20 lines]|"),
        (
            "PASTE PASTE M-b",
            "[paste #1 +20 lines]|[paste #2 +20 lines]",
        ),
        (
            "'a_' PASTE C-w C-y C-y",
            "a [paste #1 +20 lines][paste #1 +20 lines]|",
        ),
        (
            "PASTE \"\u{301}x\" C-a Right",
            "[paste #1 +20 lines]|\u{301}x",
        ),
    ];
    for (script, expected) in table {
        let mut editor = Editor::new();
        press(
            &mut editor,
            &script.replace("PASTE", &format!("\"{long}\"")),
        );
        assert_eq!(state(&editor), expected, "{script}");
    }
}

#[test]
fn a_cut_paste_can_be_put_into_the_next_message() {
    let mut editor = Editor::new();
    let long = "line\n".repeat(20);
    editor.paste(&long);
    press(&mut editor, "C-u 'first'");
    assert_eq!(editor.take(), "first");
    press(&mut editor, "C-y");
    assert_eq!(editor.take(), long);
}

#[test]
fn keys_of_others_are_left_to_them() {
    let mut editor = Editor::new();
    for name in [
        "Tab", "Esc", "C-c", "C-d", "C-l", "C-p", "C-z", "C-o", "C-t", "M-Enter", "C-Home", "M-l",
    ] {
        assert_eq!(editor.key(key(name)), EditorOutcome::Ignored, "{name}");
    }
    press(&mut editor, "'ab' C-a");
    assert_eq!(editor.key(key("C-d")), EditorOutcome::Changed);
    assert_eq!(editor.key(key("C-f")), EditorOutcome::Moved);
    let mut release = key("x");
    release.kind = crossterm::event::KeyEventKind::Release;
    assert_eq!(editor.key(release), EditorOutcome::Ignored);
    assert_eq!(editor.text(), "b");
}

#[test]
fn a_path_dragged_in_stays_as_it_is() {
    for path in ["'/tmp/my file.png'", "/tmp/my\\ file.png", "\"C:\\x y\""] {
        let mut editor = Editor::new();
        editor.paste(path);
        assert_eq!(editor.text(), path);
    }
}

#[test]
fn text_can_be_set_replaced_and_taken() {
    let mut editor = Editor::new();
    editor.set_text("from\r\nelsewhere\u{7}");
    assert_eq!(state(&editor), "from\nelsewhere|");
    editor.clear();
    assert!(editor.is_empty());
    press(&mut editor, "C-_");
    assert_eq!(state(&editor), "from\nelsewhere|");
    press(&mut editor, "Left");
    editor.replace_around_cursor(8, 1, "here");
    assert_eq!(state(&editor), "from\nhere|");
    press(&mut editor, "C-_");
    assert_eq!(state(&editor), "from\nelsewher|e");
    let huge = "x".repeat(1_000_000);
    editor.set_text(&huge);
    assert_eq!(state(&editor), "[paste #1 1000000 chars]|");
    assert_eq!(editor.take(), huge);
}

#[test]
fn long_pastes_refer_to_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    for name in ["a.png", "b.png"] {
        std::fs::write(directory.path().join(name), "").expect("a file");
    }
    let mut editor = Editor::new();
    editor.paste("@a.png");
    editor.paste(&"@b.png\n".repeat(20));
    assert_eq!(
        editor.references(directory.path()),
        [directory.path().join("a.png")]
    );
}

#[test]
fn what_was_pasted_at_length_comes_back_folded() {
    let mut editor = Editor::new();
    let long = "line\n".repeat(20);
    press(&mut editor, "'explain_'");
    editor.paste(&long);
    press(&mut editor, "'please'");
    let said = editor.take();
    assert_eq!(said, format!("explain {long}please"));
    editor.remember(said.clone());
    press(&mut editor, "'next'");
    editor.take();
    editor.remember("something else".into());
    press(&mut editor, "Up Up");
    assert_eq!(state(&editor), "explain [paste #1 +20 lines]please|");
    assert_eq!(editor.text(), said);
    press(&mut editor, "Down");
    assert_eq!(state(&editor), "something else|");
}
