use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::overlay::Choice;
use crate::overlay::dialog::{ANSWER_GRACE, Dialogs, UserActivity, WRITING_GRACE};
use crate::request::{Dialog, Request};

/// A clock that is set by hand.
#[derive(Clone)]
struct ManualClock(Arc<Mutex<Instant>>);

impl ManualClock {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }

    fn advance(&self, by: Duration) {
        *self.0.lock().unwrap() += by;
    }

    fn now(&self) -> Instant {
        *self.0.lock().unwrap()
    }

    fn dialogs(&self) -> Dialogs {
        let clock = self.clone();
        Dialogs::with_clock(Arc::new(move || clock.now()))
    }
}

fn dialog(members: Value) -> Dialog {
    let mut record = json!({"type": "extension_ui_request", "id": "d1"});
    for (name, value) in members.as_object().unwrap() {
        record[name] = value.clone();
    }
    match Request::read(&record.to_string()) {
        Request::Dialog(dialog) => dialog,
        other => panic!("{other:?}"),
    }
}

/// Questions that have been visible for long enough to be answered.
fn asked(questions: &[Value]) -> (Dialogs, ManualClock) {
    let clock = ManualClock::new();
    let mut dialogs = clock.dialogs();
    for question in questions {
        dialogs.push(dialog(question.clone()), UserActivity::Idle);
    }
    screen(&mut dialogs, 80, 24);
    clock.advance(ANSWER_GRACE);
    (dialogs, clock)
}

fn answer(id: &str, response: Value) -> Choice {
    let Value::Object(response) = response else {
        panic!("{response}")
    };
    Choice::Dialog {
        id: id.into(),
        response,
    }
}

fn approval() -> Value {
    json!({"method": "select", "title": "Allow bash: rm -rf target && cargo build --release --workspace --all-targets?",
        "options": ["Allow once", "Allow for this run", "Refuse"], "timeout": 300_000})
}

#[test]
fn keys_and_what_they_answer() {
    let select =
        json!({"method": "select", "title": "Pick", "options": ["Alpha", "Beta", "Gamma\nDelta"]});
    let confirm = json!({"method": "confirm", "title": "Sure?", "message": "Really"});
    let input = json!({"method": "input", "title": "Who?"});
    let editor = json!({"method": "editor", "title": "Edit", "prefill": "one\ntwo"});
    for (question, keys, response) in [
        (&select, "Enter", json!({"value": "Alpha"})),
        (&select, "Down Enter", json!({"value": "Beta"})),
        (&select, "Up Enter", json!({"value": "Gamma\nDelta"})),
        (
            &select,
            "End Home PgDn Enter",
            json!({"value": "Gamma\nDelta"}),
        ),
        (&select, "b e Enter", json!({"value": "Beta"})),
        (
            &select,
            "b x Enter Backspace Enter",
            json!({"value": "Beta"}),
        ),
        (&select, "Esc", json!({"cancelled": true})),
        (&select, "Down Ctrl-C", json!({"cancelled": true})),
        (&confirm, "Enter", json!({"confirmed": true})),
        (&confirm, "Down Enter", json!({"confirmed": false})),
        (&confirm, "y", json!({"confirmed": true})),
        (&confirm, "n", json!({"confirmed": false})),
        (&confirm, "x q Ctrl-Y Enter", json!({"confirmed": true})),
        (&confirm, "Esc", json!({"cancelled": true})),
        (&input, "Enter", json!({"value": ""})),
        (&input, "a d x Backspace a Enter", json!({"value": "ada"})),
        (&input, "a Esc", json!({"cancelled": true})),
        (&editor, "Enter", json!({"value": "one\ntwo"})),
        (&editor, "Ctrl-J x Enter", json!({"value": "one\ntwo\nx"})),
        (&editor, "Up Backspace Esc", json!({"cancelled": true})),
    ] {
        let (mut dialogs, _) = asked(std::slice::from_ref(question));
        let step = press(&mut dialogs, keys);
        assert_eq!(step, Step::Chosen(answer("d1", response)), "{keys}");
        assert!(dialogs.is_empty());
    }
}

#[test]
fn keys_pressed_too_early_do_not_answer() {
    let clock = ManualClock::new();
    let mut dialogs = clock.dialogs();
    dialogs.push(dialog(approval()), UserActivity::Idle);
    assert_eq!(
        press(&mut dialogs, "Enter"),
        Step::Stay,
        "it has not been seen yet"
    );
    screen(&mut dialogs, 80, 24);
    // Each key restarts the wait.
    for _ in 0..3 {
        clock.advance(ANSWER_GRACE - Duration::from_millis(1));
        assert_eq!(press(&mut dialogs, "Enter"), Step::Stay);
    }
    clock.advance(ANSWER_GRACE);
    let allowed = answer("d1", json!({"value": "Allow once"}));
    assert_eq!(press(&mut dialogs, "Enter"), Step::Chosen(allowed));
}

#[test]
fn the_enter_of_a_message_does_not_answer() {
    let confirm = json!({"method": "confirm", "title": "Sure?", "message": "Really"});
    for (question, keys, response) in [
        (approval(), "Down Enter", json!({"value": "Allow once"})),
        (approval(), "Up Enter", json!({"value": "Refuse"})),
        (
            approval(),
            "Down Down Enter",
            json!({"value": "Allow for this run"}),
        ),
        (confirm.clone(), "Down Enter", json!({"confirmed": true})),
        (confirm, "n", json!({"confirmed": false})),
    ] {
        let clock = ManualClock::new();
        let mut dialogs = clock.dialogs();
        dialogs.push(dialog(question), UserActivity::Writing);
        let seen = screen(&mut dialogs, 80, 24);
        assert!(
            !seen.contains('❯') && seen.contains("choose one first"),
            "{seen}"
        );
        clock.advance(WRITING_GRACE - Duration::from_millis(1));
        assert_eq!(press(&mut dialogs, "Down"), Step::Stay, "too early");
        clock.advance(WRITING_GRACE);
        assert_eq!(
            press(&mut dialogs, "Enter"),
            Step::Stay,
            "nothing is selected"
        );
        let step = press(&mut dialogs, keys);
        assert_eq!(step, Step::Chosen(answer("d1", response)), "{keys}");
    }
}

#[test]
fn questions_queue_up_and_are_answered_in_turn() {
    let question =
        |id: &str| json!({"id": id, "method": "confirm", "title": format!("Question {id}")});
    let (mut dialogs, clock) = asked(&[question("a"), question("b"), question("c")]);
    assert!(screen(&mut dialogs, 80, 24).contains("Question a"));
    assert!(screen(&mut dialogs, 80, 24).contains("1 of 3"));
    let step = press(&mut dialogs, "y");
    assert_eq!(step, Step::Asked(answer("a", json!({"confirmed": true}))));
    let shown = screen(&mut dialogs, 80, 24);
    assert!(
        shown.contains("Question b") && shown.contains("1 of 2"),
        "{shown}"
    );
    assert_eq!(
        press(&mut dialogs, "y"),
        Step::Stay,
        "the next question has just come up"
    );
    clock.advance(ANSWER_GRACE);
    assert_eq!(
        press(&mut dialogs, "Esc"),
        Step::Asked(answer("b", json!({"cancelled": true})))
    );
    let shown = screen(&mut dialogs, 80, 24);
    assert!(
        shown.contains("Question c") && !shown.contains(" of "),
        "{shown}"
    );
    clock.advance(ANSWER_GRACE);
    assert_eq!(
        press(&mut dialogs, "n"),
        Step::Chosen(answer("c", json!({"confirmed": false})))
    );
}

#[test]
fn all_of_an_option_can_be_read_while_it_is_selected() {
    let long = "rename the function everywhere, in the tests and in the guide as well";
    let question = json!({"method": "select", "title": "How?", "options": ["leave it", long]});
    let (mut dialogs, _) = asked(&[question]);
    let seen = screen(&mut dialogs, 40, 24);
    assert!(seen.contains('…') && !seen.contains("guide"), "{seen}");
    press(&mut dialogs, "Down");
    let seen = screen(&mut dialogs, 40, 24);
    assert!(seen.contains("guide as well"), "{seen}");
    press(&mut dialogs, "Up");
    assert!(!screen(&mut dialogs, 40, 24).contains("guide"));
}

#[test]
fn time_is_counted_down_and_its_end_closes() {
    let question = |id: &str, timeout: u64| json!({"id": id, "method": "input", "title": "Who?", "timeout": timeout});
    let (mut dialogs, clock) = asked(&[
        question("a", 2_500),
        question("b", 1_000),
        question("c", 60_000),
    ]);
    let start = clock.now() - ANSWER_GRACE;
    let shown = |dialogs: &mut Dialogs| screen(dialogs, 80, 24).lines().next().unwrap().to_owned();
    assert!(shown(&mut dialogs).contains("3 s · 1 of 3"));
    // The title shows 2 s next, and no question expires before.
    let next = dialogs.deadline().unwrap();
    assert!(next > start + Duration::from_millis(500) && next < start + Duration::from_millis(501));
    clock.advance(next - clock.now());
    assert_eq!(
        dialogs.deadline(),
        Some(next),
        "it passes and is not put off"
    );
    assert_eq!(dialogs.tick(), Step::Stay);
    assert!(shown(&mut dialogs).contains("2 s · 1 of 3"));
    assert_eq!(
        dialogs.deadline(),
        Some(start + Duration::from_secs(1)),
        "the second ends"
    );
    clock.advance(Duration::from_secs(1));
    assert_eq!(dialogs.tick(), Step::Stay);
    assert!(shown(&mut dialogs).contains("1 s · 1 of 2"));
    clock.advance(Duration::from_secs(1));
    assert_eq!(
        press(&mut dialogs, "Enter"),
        Step::Stay,
        "the first ended: nothing to answer"
    );
    assert!(
        shown(&mut dialogs).contains("58 s"),
        "{}",
        shown(&mut dialogs)
    );
    clock.advance(Duration::from_secs(60));
    assert_eq!(dialogs.tick(), Step::Close);
    assert_eq!(
        (dialogs.deadline(), press(&mut dialogs, "Enter")),
        (None, Step::Close)
    );
}

#[test]
fn text_of_extensions_is_sanitised() {
    let evil = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{202e}txt";
    let (mut dialogs, _) =
        asked(&[json!({"method": "select", "title": evil, "options": [evil, "b"]})]);
    let shown = screen(&mut dialogs, 80, 24);
    assert!(
        !shown.contains(['\u{1b}', '\u{7}', '\u{202e}']),
        "{shown:?}"
    );
    let step = press(&mut dialogs, "Enter");
    assert_eq!(
        step,
        Step::Chosen(answer("d1", json!({"value": evil}))),
        "what is answered is what was offered"
    );
}

#[test]
fn a_long_question_can_be_read_to_its_end() {
    let lines: Vec<String> = (1..=60)
        .map(|line| format!("line {line} of the script"))
        .collect();
    let (mut dialogs, _) =
        asked(&[json!({"method": "select", "title": lines.join("\n"), "options": ["Yes", "No"]})]);
    let mut seen = screen(&mut dialogs, 80, 24);
    assert!(seen.contains("Yes") && seen.contains("No"), "{seen}");
    for _ in 0..6 {
        press(&mut dialogs, "PgDn");
        seen.push_str(&screen(&mut dialogs, 80, 24));
    }
    for line in &lines {
        assert!(seen.contains(line.as_str()), "{line}");
    }
    assert_eq!(
        press(&mut dialogs, "Down Enter"),
        Step::Chosen(answer("d1", json!({"value": "No"})))
    );
}

#[test]
fn screens() {
    let show = |name: &str, question: Value, keys: Option<&str>| {
        let (mut dialogs, _) = asked(&[question]);
        if let Some(keys) = keys {
            press(&mut dialogs, keys);
        }
        insta::assert_snapshot!(name, at_all_widths(&mut dialogs));
    };
    show("approval", approval(), Some("Down"));
    show(
        "select_filtered",
        json!({"method": "select", "title": "Which branch?",
        "options": ["main", "release/2", "fix/tail-repair", "fix/tall-tree"]}),
        Some("t a i l"),
    );
    show(
        "confirm",
        json!({"method": "confirm", "title": "Delete the session?",
        "message": "Everything said in it is gone for good, on this machine and for whoever shares the directory.\n\nThere is no way back."}),
        None,
    );
    show(
        "input",
        json!({"method": "input", "title": "Who is to be greeted?", "placeholder": "a name"}),
        None,
    );
    let text = "Greet whoever comes in.\nAsk for their name first.";
    show(
        "editor",
        json!({"method": "editor", "title": "What is it to do?", "prefill": text}),
        None,
    );
}

fn question() -> impl Strategy<Value = Value> {
    (
        "select|confirm|input|editor",
        any::<String>(),
        prop::collection::vec(any::<String>(), 0..12),
        prop::option::of(0u32..5_000),
    )
        .prop_map(|(method, text, options, timeout)| {
            let message = options.join("\n");
            json!({"method": method, "title": text, "options": options, "message": message,
                "prefill": message, "placeholder": text, "timeout": timeout})
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_question_size_and_key_works(
        questions in prop::collection::vec(question(), 1..4),
        keys in prop::collection::vec((0usize..12, 0u16..60, 0u16..20, 0u64..900), 0..25),
    ) {
        let (mut dialogs, clock) = asked(&questions);
        for (what, width, height, wait) in keys {
            let names = ["Up", "Down", "PgUp", "PgDn", "Home", "End", "Enter", "Backspace", "a", "Ctrl-U", "Alt-Enter", "Tab"];
            clock.advance(Duration::from_millis(wait));
            press(&mut dialogs, names[what]);
            dialogs.paste("x\ny");
            screen(&mut dialogs, width, height);
            if let Some(deadline) = dialogs.deadline() {
                prop_assert!(deadline + Duration::from_secs(10) > clock.now());
            }
        }
    }
}
