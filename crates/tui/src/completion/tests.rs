//! Tests of completion: keys in, text, cursor and list out.

use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use super::*;
use crate::theme::{Background, Colours};

/// A directory of files, an editor and its completion.
struct TestEditor {
    _directory: tempfile::TempDir,
    editor: Editor,
    completion: Completion,
    ready: Receiver<()>,
}

const FILES: [&str; 9] = [
    "Cargo.toml",
    "src/main.rs",
    "src/lib.rs",
    "src/editor/mod.rs",
    "docs/my guide.md",
    "docs/plan.md",
    "two words/inner file.txt",
    "build/out.bin",
    ".gitignore",
];

impl TestEditor {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        for path in FILES {
            let path = directory.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
            std::fs::write(path, "").expect("a file");
        }
        std::fs::write(directory.path().join(".gitignore"), "build/\n").expect("a file");
        let (sender, ready) = sync_channel(1024);
        let mut completion = Completion::new(directory.path().to_owned(), move || {
            // The test may be over.
            let _ = sender.try_send(());
        });
        let command = |name: &str, arguments: &str, description: &str, source: &str| CommandEntry {
            name: name.into(),
            arguments: arguments.into(),
            description: description.into(),
            source: source.into(),
        };
        completion.set_commands(vec![
            command("help", "", "What there is", ""),
            command("model", "[name]", "Choose another model", ""),
            command("name", "<name>", "Name the session", ""),
            command("review", "", "Look at the last change", "template"),
            command("skill:deploy", "", "", "skill"),
        ]);
        Self {
            _directory: directory,
            editor: Editor::new(),
            completion,
            ready,
        }
    }

    /// Types and waits until the list has this many entries.
    fn typing(text: &str, listed: usize) -> Self {
        let mut test = Self::new();
        test.write(text);
        test.wait(listed);
        test
    }

    fn write(&mut self, text: &str) {
        for character in text.chars() {
            self.press(KeyCode::Char(character));
        }
    }

    fn press(&mut self, code: KeyCode) -> bool {
        let key = KeyEvent::from(code);
        let taken = self.completion.key(key, &mut self.editor);
        if !taken {
            self.editor.key(key);
        }
        self.completion.update(&self.editor);
        taken
    }

    fn wait(&mut self, listed: usize) {
        while self.completion.is_searching() || self.names().len() != listed {
            self.ready
                .recv_timeout(Duration::from_secs(20))
                .unwrap_or_else(|_| panic!("nothing more is found; listed: {:?}", self.names()));
            self.completion.update(&self.editor);
        }
    }

    fn names(&self) -> Vec<String> {
        let height = self.completion.height();
        let width = 60;
        let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
        let theme = Theme::new(Background::Dark, Colours::None);
        self.completion.draw(buffer.area, &mut buffer, &theme);
        rows(&buffer)
    }

    fn state(&self) -> String {
        format!(
            "{}|{}",
            self.editor.before_cursor(),
            self.editor.after_cursor()
        )
    }
}

fn rows(buffer: &Buffer) -> Vec<String> {
    let area = buffer.area;
    (area.top()..area.bottom())
        .map(|y| {
            (area.left()..area.right())
                .map(|x| buffer[(x, y)].symbol())
                .collect::<String>()
                .trim_end()
                .to_owned()
        })
        .collect()
}

#[test]
fn commands_are_listed_with_what_they_do() {
    let mut test = TestEditor::new();
    test.write("/");
    insta::assert_snapshot!(test.names().join("\n"), @r#"
    → /help          What there is
      /model [name]  Choose another model
      /name <name>   Name the session
      /review        Look at the last change (template)
      /skill:deploy  skill
    "#);
    test.write("me");
    insta::assert_snapshot!(test.names().join("\n"), @r#"
    → /model [name]  Choose another model
      /name <name>   Name the session
    "#);
    test.write("x");
    assert!(!test.completion.is_open());
}

#[test]
fn a_command_is_completed_by_tab_and_sent_by_enter() {
    let mut test = TestEditor::typing("/mo", 1);
    assert!(test.press(KeyCode::Tab));
    assert_eq!(test.state(), "/model |");
    assert!(!test.completion.is_open());

    let mut test = TestEditor::typing("/mo", 1);
    assert!(
        !test.press(KeyCode::Enter),
        "the editor gets it and submits"
    );
    assert_eq!(test.state(), "/model|");

    let mut test = TestEditor::typing("/nam", 1);
    assert!(test.press(KeyCode::Enter), "it needs an argument");
    assert_eq!(test.state(), "/name |");
}

#[test]
fn the_list_is_walked_through_and_sent_away() {
    let mut test = TestEditor::typing("/", 5);
    test.press(KeyCode::Down);
    test.press(KeyCode::Down);
    assert!(test.names()[2].starts_with("→ /name"), "{:?}", test.names());
    test.press(KeyCode::Up);
    test.press(KeyCode::Up);
    test.press(KeyCode::Up);
    assert!(
        test.names()[4].starts_with("→ /skill:deploy"),
        "{:?}",
        test.names()
    );
    test.press(KeyCode::Down);
    assert!(test.names()[0].starts_with("→ /help"), "{:?}", test.names());
    assert!(test.press(KeyCode::Esc));
    assert!(!test.completion.is_open());
    test.write("h");
    assert!(!test.completion.is_open(), "it stays away");
    assert!(!test.press(KeyCode::Esc), "the chat gets it");
    test.press(KeyCode::Backspace);
    test.press(KeyCode::Backspace);
    test.write("/h");
    assert!(test.completion.is_open(), "until another one begins");
}

#[test]
fn files_are_found_by_some_of_their_letters() {
    let mut test = TestEditor::typing("see @semod", 1);
    assert_eq!(test.names(), ["→ src/editor/mod.rs"]);
    assert!(test.press(KeyCode::Enter));
    assert_eq!(test.state(), "see @src/editor/mod.rs |");
    assert!(!test.completion.is_open());
}

#[test]
fn without_letters_the_nearest_are_listed_and_the_rest_is_counted() {
    let test = TestEditor::typing("@", 8);
    insta::assert_snapshot!(test.names().join("\n"), @r#"
    → .gitignore
      Cargo.toml
      docs/
      src/
      two words/
      docs/my guide.md
      docs/plan.md
      + 5 more
    "#);
}

#[test]
fn a_directory_stays_open_for_what_is_in_it() {
    let mut test = TestEditor::typing("@docs", 3);
    assert_eq!(test.names()[0], "→ docs/");
    test.press(KeyCode::Tab);
    assert_eq!(test.state(), "@docs/|");
    test.write("gui");
    test.wait(1);
    test.press(KeyCode::Tab);
    assert_eq!(test.state(), "@\"docs/my guide.md\" |");
}

#[test]
fn names_with_spaces_are_quoted() {
    let mut test = TestEditor::typing("@two", 2);
    test.press(KeyCode::Tab);
    assert_eq!(test.state(), "@\"two words/|\"");
    test.wait(1);
    test.write("inner");
    test.wait(1);
    test.press(KeyCode::Tab);
    assert_eq!(test.state(), "@\"two words/inner file.txt\" |");
    let found = test.editor.references(test._directory.path());
    assert_eq!(
        found,
        [test._directory.path().join("two words/inner file.txt")]
    );
}

#[test]
fn what_is_ignored_is_found_by_its_directory_only() {
    let test = TestEditor::typing("@build/", 1);
    assert_eq!(test.names(), ["→ build/out.bin"]);
    let mut test = TestEditor::typing("@src/lib", 1);
    assert_eq!(test.names(), ["→ src/lib.rs"]);
    test.press(KeyCode::Backspace);
    assert!(
        test.completion.is_open(),
        "what was found stays until there is better"
    );
}

#[test]
fn a_reference_written_in_full_is_sent_by_enter() {
    let mut test = TestEditor::typing("@src/lib.rs", 1);
    assert!(!test.press(KeyCode::Enter));
    assert_eq!(test.editor.text(), "@src/lib.rs ");
}

#[test]
fn paths_from_elsewhere_are_listed() {
    let mut test = TestEditor::new();
    let elsewhere = tempfile::tempdir().expect("a directory");
    std::fs::write(elsewhere.path().join("far away.txt"), "").expect("a file");
    test.write(&format!("@{}/far", elsewhere.path().display()));
    test.wait(1);
    test.press(KeyCode::Tab);
    assert_eq!(
        test.state(),
        format!("@\"{}/far away.txt\" |", elsewhere.path().display())
    );
    let mut test = TestEditor::typing("@./do", 1);
    test.press(KeyCode::Tab);
    assert_eq!(test.state(), "@./docs/|");
}

#[test]
fn tab_completes_a_path_as_a_shell_does() {
    let mut test = TestEditor::new();
    test.write("cat Car");
    assert!(test.press(KeyCode::Tab));
    assert_eq!(test.state(), "cat Cargo.toml |");

    let mut test = TestEditor::new();
    test.write("cat d");
    test.press(KeyCode::Tab);
    assert_eq!(test.state(), "cat docs/|");
    test.press(KeyCode::Tab);
    assert_eq!(test.names(), ["→ docs/my guide.md", "  docs/plan.md"]);
    test.write("my");
    assert_eq!(test.names(), ["→ docs/my guide.md"]);
    test.press(KeyCode::Tab);
    assert_eq!(test.state(), "cat \"docs/my guide.md\" |");

    let mut test = TestEditor::new();
    test.write("cat tw");
    test.press(KeyCode::Tab);
    assert_eq!(test.state(), "cat \"two words/|\"");
    test.press(KeyCode::Tab);
    assert_eq!(test.state(), "cat \"two words/inner file.txt\" |");
}

#[test]
fn tab_is_not_handled_without_a_path() {
    for text in ["", "nothing like that", "word "] {
        let mut test = TestEditor::new();
        test.write(text);
        assert!(!test.press(KeyCode::Tab), "{text:?}");
        assert_eq!(test.editor.text(), text);
    }
}

#[test]
fn new_commands_are_listed_at_once() {
    let mut test = TestEditor::typing("/", 5);
    test.completion.set_commands(vec![CommandEntry {
        name: "only".into(),
        ..CommandEntry::default()
    }]);
    test.completion.update(&test.editor);
    assert_eq!(test.names(), ["→ /only"]);
}

#[test]
fn what_does_not_fit_is_cut_where_it_matters_least() {
    let mut popup = Popup::default();
    let paths = ["a/very/long/path/to/the/file.rs", "short.rs"];
    popup.set(paths::entries(paths.map(String::from).into(), "fi"), 2);
    let theme = Theme::new(Background::Dark, Colours::None);
    let mut buffer = Buffer::empty(Rect::new(0, 0, 16, 2));
    popup.draw(buffer.area, &mut buffer, &theme);
    assert_eq!(rows(&buffer), ["→ …o/the/file.rs", "  short.rs"]);
    let command = CommandEntry {
        name: "model".into(),
        description: "Choose another model".into(),
        ..CommandEntry::default()
    };
    popup.set(commands::entries(&[command], "mo").0, 1);
    let mut buffer = Buffer::empty(Rect::new(0, 0, 16, 1));
    popup.draw(buffer.area, &mut buffer, &theme);
    assert_eq!(rows(&buffer), ["→ /model  Choos…"]);
}

#[test]
fn the_list_clears_exactly_its_own_area() {
    let mut test = TestEditor::typing("/mo", 1);
    test.completion.set_commands(vec![CommandEntry {
        name: "two".into(),
        description: "First line\u{1b}[31m\n\tsecond".into(),
        ..CommandEntry::default()
    }]);
    test.press(KeyCode::Backspace);
    test.press(KeyCode::Backspace);
    test.completion.update(&test.editor);
    let mut buffer = Buffer::with_lines(vec!["x".repeat(40); 3]);
    let theme = Theme::new(Background::Dark, Colours::Palette);
    test.completion
        .draw(Rect::new(0, 1, 40, 2), &mut buffer, &theme);
    let expected = [
        "x".repeat(40),
        "→ /two  First line second".to_owned(),
        "x".repeat(40),
    ];
    assert_eq!(rows(&buffer), expected);
}

#[test]
fn what_is_chosen_is_seen_in_any_room() {
    let mut popup = Popup::default();
    popup.set(
        paths::entries((0..20).map(|number| format!("file{number}")).collect(), ""),
        20,
    );
    let theme = Theme::new(Background::Dark, Colours::Palette);
    for step in [0, 3, 5, 7, 30, -2, -9] {
        popup.step(step);
        for height in 1..10 {
            let mut buffer = Buffer::empty(Rect::new(0, 0, 20, height));
            popup.draw(buffer.area, &mut buffer, &theme);
            let rows = rows(&buffer);
            let chosen = format!("→ {}", popup.selected().expect("one").name);
            assert!(rows.contains(&chosen), "{rows:?}");
            let counted = rows.iter().any(|row| row.ends_with("more"));
            assert_eq!(counted, height > 1, "{rows:?}");
        }
    }
}

#[test]
fn what_fits_is_marked() {
    let mut popup = Popup::default();
    let paths = ["src/é/main.rs", "a/very/long/path/main.rs"];
    popup.set(paths::entries(paths.map(String::from).into(), "main"), 2);
    let theme = Theme::new(Background::Dark, Colours::Palette);
    let mut buffer = Buffer::empty(Rect::new(0, 0, 20, 2));
    popup.draw(buffer.area, &mut buffer, &theme);
    let accent = theme.accent.fg.expect("a colour");
    for (y, expected) in [(0, "→main"), (1, "main")] {
        let marked = (0..20u16)
            .map(|x| &buffer[(x, y)])
            .filter(|cell| cell.fg == accent && cell.symbol() != " ");
        assert_eq!(
            marked.map(|cell| cell.symbol()).collect::<String>(),
            expected
        );
    }
}

#[test]
fn what_is_typed_faster_than_found_is_not_mistaken() {
    let mut test = TestEditor::typing("@", 8);
    // The list shows results of the empty query; entries that no longer match disappear before new
    // results arrive.
    test.editor.paste("zzz");
    test.completion.update(&test.editor);
    assert!(!test.completion.is_open());
    test.completion.is_searching = true;
    assert!(
        test.press(KeyCode::Tab),
        "Tab is not for others while files are looked for"
    );
    assert_eq!(test.editor.text(), "@zzz");
}

#[test]
fn tab_leaves_words_alone_where_it_means_something_else() {
    let mut test = TestEditor::new();
    test.completion.set_tab(TabCompletes::Paths);
    test.write("Car");
    assert!(!test.press(KeyCode::Tab));
    test.write(" ./Car");
    assert!(test.press(KeyCode::Tab));
    assert_eq!(test.state(), "Car ./Cargo.toml |");
}

#[test]
fn the_start_two_names_have_in_common_is_written() {
    let mut test = TestEditor::new();
    for name in ["two words/one more", "two words/one less"] {
        std::fs::write(test._directory.path().join(name), "").expect("a file");
    }
    test.write("\"two words/o");
    assert!(test.press(KeyCode::Tab));
    assert_eq!(test.state(), "\"two words/one |\"");
    assert_eq!(
        test.names(),
        ["→ two words/one less", "  two words/one more"]
    );
    test.write("m");
    test.press(KeyCode::Tab);
    assert_eq!(test.state(), "\"two words/one more\" |");
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(24))]

    #[test]
    fn any_keys_are_handled(keys in proptest::collection::vec(0usize..24, 0..40)) {
        let mut test = TestEditor::new();
        for key in keys {
            let code = match key {
                0 | 1 => KeyCode::Tab,
                2 => KeyCode::Enter,
                3 => KeyCode::Esc,
                4 => KeyCode::Up,
                5 => KeyCode::Down,
                6 => KeyCode::PageDown,
                7 => KeyCode::Backspace,
                8 => KeyCode::Left,
                9 => KeyCode::Right,
                _ => KeyCode::Char(['@', '@', '/', '"', '\\', ' ', 'd', 'o', 's', '.', 't', '中', '~', '\''][key - 10]),
            };
            test.press(code);
            let height = usize::from(test.completion.height());
            assert!(height <= 8);
            assert_eq!(test.names().len(), height);
            let marked = test.names().iter().filter(|row| row.starts_with('→')).count();
            assert_eq!(marked, usize::from(test.completion.is_open()));
        }
    }
}
