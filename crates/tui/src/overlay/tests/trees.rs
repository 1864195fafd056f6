use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::*;
use crate::overlay::{Author, Choice, TreeAction, TreeView};

/// One entry: id, parent, author, text, label.
type EntrySpec<'a> = (&'a str, Option<&'a str>, &'a str, &'a str, Option<&'a str>);

fn entry(id: &str, who: &str, said: &str) -> Value {
    match who {
        "model_change" => {
            json!({"type": "model_change", "id": id, "provider": "offline", "modelId": said})
        }
        "calls" => json!({"type": "message", "id": id,
            "message": {"role": "assistant", "content": [{"type": "toolCall", "id": "call", "name": said, "arguments": {"path": "src/parser.rs"}}]}}),
        "toolResult" => json!({"type": "message", "id": id,
            "message": {"role": who, "toolCallId": "call", "toolName": "read", "content": [{"type": "text", "text": said}]}}),
        _ => {
            json!({"type": "message", "id": id, "message": {"role": who, "content": [{"type": "text", "text": said}]}})
        }
    }
}

/// The answer of the engine; it nests as deep as the conversation is long.
fn answer(given: &[EntrySpec<'_>]) -> Box<RawValue> {
    fn print(given: &[EntrySpec<'_>], parent: Option<&str>) -> String {
        let below = given.iter().filter(|entry| entry.1 == parent);
        let nodes = below.map(|&(id, _, who, said, label)| {
            let children = print(given, Some(id));
            let label = label.map_or(String::new(), |label| {
                format!(",\"label\":{}", json!(label))
            });
            format!(
                "{{\"entry\":{},\"children\":{children}{label}}}",
                entry(id, who, said)
            )
        });
        format!("[{}]", nodes.collect::<Vec<_>>().join(","))
    }
    RawValue::from_string(print(given, None)).unwrap()
}

/// A conversation of this many entries without a branch.
fn line(length: usize) -> Box<RawValue> {
    let open = (0..length).map(|at| {
        let who = if at % 2 == 0 { "user" } else { "assistant" };
        let entry = entry(&at.to_string(), who, &format!("message {at}"));
        format!("{{\"entry\":{entry},\"children\":[")
    });
    let text = format!("[{}{}]", open.collect::<String>(), "]}".repeat(length));
    RawValue::from_string(text).unwrap_or_else(|_| panic!("not JSON"))
}

const CONVERSATION: &[EntrySpec<'_>] = &[
    ("m", None, "model_change", "demo", None),
    ("a", Some("m"), "user", "Which files are there?", None),
    (
        "b",
        Some("a"),
        "assistant",
        "Three: main.rs, lib.rs and Cargo.toml.",
        None,
    ),
    (
        "c",
        Some("b"),
        "user",
        "Fix the parser",
        Some("before the fix"),
    ),
    ("r", Some("c"), "calls", "read", None),
    (
        "d",
        Some("r"),
        "toolResult",
        "fn parse(text: &str) -> Ast {",
        None,
    ),
    (
        "e",
        Some("d"),
        "assistant",
        "Done: the last line is kept now, with or without a newline at its end.",
        None,
    ),
    ("f", Some("b"), "user", "Delete the parser", None),
    ("g", Some("f"), "assistant", "It is gone.", None),
    ("h", Some("g"), "user", "Bring it back", None),
    ("i", Some("g"), "user", "And its tests", Some("cleanup")),
    ("j", Some("i"), "assistant", "They are gone too.", None),
    ("k", Some("b"), "user", "What is it for?", None),
    ("n", Some("j"), "model_change", "other", None),
];

fn conversation() -> TreeView {
    TreeView::new(answer(CONVERSATION), Some("n")).unwrap()
}

fn chosen(entry_id: &str, author: Author, action: TreeAction) -> Choice {
    Choice::Tree {
        entry_id: entry_id.into(),
        author,
        action,
    }
}

#[test]
fn keys_and_where_they_lead() {
    use Author::{Other, User};
    for (keys, id, author, action) in [
        ("Enter", "j", Other, TreeAction::Jump),
        ("Up Enter", "i", User, TreeAction::Jump),
        ("Up s", "i", User, TreeAction::JumpWithSummary),
        ("Home Down f", "b", Other, TreeAction::Fork),
        ("Left Enter", "i", User, TreeAction::Jump),
        ("Left Left Enter", "f", User, TreeAction::Jump),
        ("Up Left Enter", "f", User, TreeAction::Jump),
        ("Home Right Enter", "c", User, TreeAction::Jump),
        ("Home Right Right Enter", "f", User, TreeAction::Jump),
        ("/ f i x Enter Enter", "c", User, TreeAction::Jump),
        ("/ t o o Down Enter Enter", "j", Other, TreeAction::Jump),
        ("Tab Enter", "i", User, TreeAction::Jump),
        ("Tab Tab Home Enter", "c", User, TreeAction::Jump),
        (
            "Ctrl-O Ctrl-O Ctrl-O Home Enter",
            "m",
            Other,
            TreeAction::Jump,
        ),
        ("/ f i x Esc Enter", "c", User, TreeAction::Jump),
    ] {
        let mut tree = conversation();
        screen(&mut tree, 80, 24);
        let step = press(&mut tree, keys);
        assert_eq!(step, Step::Chosen(chosen(id, author, action)), "{keys}");
    }
    assert_eq!(press(&mut conversation(), "Esc"), Step::Close);
    assert_eq!(press(&mut conversation(), "/ a Esc Esc"), Step::Close);
    assert_eq!(
        press(&mut conversation(), "/ f i x Enter Esc"),
        Step::Stay,
        "what is searched for is left first"
    );
}

#[test]
fn entries_get_and_lose_their_names() {
    let mut tree = conversation();
    press(&mut tree, "l");
    type_in(&mut tree, " the end /x");
    tree.paste("\n");
    let named = chosen(
        "j",
        Author::Other,
        TreeAction::Label(Some("the end /x".into())),
    );
    assert_eq!(press(&mut tree, "Enter"), Step::Asked(named));
    assert!(screen(&mut tree, 80, 24).contains("[the end /x] model"));
    press(&mut tree, "l Ctrl-U");
    assert_eq!(
        press(&mut tree, "Enter"),
        Step::Asked(chosen("j", Author::Other, TreeAction::Label(None)))
    );
    assert!(!screen(&mut tree, 80, 24).contains("the end"));
    assert_eq!(press(&mut tree, "l x Esc"), Step::Stay);
    assert!(!screen(&mut tree, 80, 24).contains("[x]"));
}

#[test]
fn of_ten_thousand_entries_only_those_on_the_screen_are_laid_out() {
    let mut tree = TreeView::new(line(10_000), Some("9999")).unwrap();
    for keys in ["Down", "End", "PgUp", "Tab", "Up"] {
        press(&mut tree, keys);
        tree.laid_out = 0;
        screen(&mut tree, 80, 24);
        assert!(
            (1..=24).contains(&tree.laid_out),
            "{} after {keys}",
            tree.laid_out
        );
    }
}

#[test]
fn an_invalid_tree_is_an_error() {
    let broken = RawValue::from_string(r#"[{"entry":{"id":5}}]"#.into()).unwrap();
    assert!(TreeView::new(broken, None).is_err());
    let mut empty = TreeView::new(RawValue::from_string("[]".into()).unwrap(), None).unwrap();
    assert!(screen(&mut empty, 80, 24).contains("no messages yet"));
    assert_eq!(press(&mut empty, "Up f s l Left Right Enter"), Step::Stay);
}

#[test]
fn screens() {
    insta::assert_snapshot!("tree", at_all_widths(&mut conversation()));
    let mut tree = conversation();
    press(&mut tree, "Tab");
    insta::assert_snapshot!("tree_of_user_messages", screen(&mut tree, 80, 24));
    press(&mut tree, "Tab");
    insta::assert_snapshot!("tree_of_labels", screen(&mut tree, 80, 24));
    press(&mut tree, "Tab");
    insta::assert_snapshot!("tree_of_everything", screen(&mut tree, 80, 24));
    let mut tree = conversation();
    type_in(&mut tree, "/parser");
    insta::assert_snapshot!("tree_search", screen(&mut tree, 80, 24));
    insta::assert_snapshot!("tree_tiny", screen(&mut conversation(), 20, 6));
    let mut tree = conversation();
    press(&mut tree, "l");
    insta::assert_snapshot!("tree_label", screen(&mut tree, 80, 24));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_tree_size_and_key_works(
        parents in prop::collection::vec((any::<prop::sample::Index>(), 0usize..5, any::<String>(), any::<Option<String>>()), 0..60),
        leaf in any::<prop::sample::Index>(),
        keys in prop::collection::vec((0usize..15, 0u16..100, 0u16..30), 0..25),
    ) {
        let ids: Vec<String> = (0..parents.len()).map(|at| at.to_string()).collect();
        let whose = ["user", "assistant", "toolResult", "model_change", "other"];
        let given: Vec<EntrySpec<'_>> = parents.iter().enumerate().map(|(at, (parent, who, said, label))| {
            // Sometimes a root.
            let parent = parent.index(at + 1);
            let parent = (parent < at).then(|| ids[parent].as_str());
            (ids[at].as_str(), parent, whose[*who], said.as_str(), label.as_deref())
        }).collect();
        let leaf = (!ids.is_empty()).then(|| leaf.get(&ids).as_str());
        let mut tree = TreeView::new(answer(&given), leaf).unwrap();
        for (what, width, height) in keys {
            let names = ["Up", "Down", "PgUp", "PgDn", "Home", "End", "Left", "Right", "Tab", "/", "a", "l", "Esc", "Backspace", "Ctrl-O"];
            press(&mut tree, names[what]);
            let shown = screen(&mut tree, width, height);
            if width > 2 && height > 1 && !tree.is_empty() {
                prop_assert!(shown.contains('❯'), "{}", shown);
            }
        }
    }
}
