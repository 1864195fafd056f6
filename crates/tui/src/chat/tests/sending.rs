//! Tests of sent messages, queued messages and commands.

use super::*;
use crate::chat::state::Saying;

#[test]
fn what_is_said_while_it_works_steers_or_waits() {
    let mut desk = Desk::new(Abilities::Session);
    desk.tell(Event::AgentStart);
    desk.asked();
    desk.write("left");
    desk.press(KeyCode::Enter, KeyModifiers::NONE);
    desk.write("later");
    desk.press(KeyCode::Enter, KeyModifiers::ALT);
    let asked = desk.asked();
    assert!(
        asked[0].contains("left") && asked[0].contains("Some(Steer)"),
        "{asked:?}"
    );
    assert!(
        asked[1].contains("later") && asked[1].contains("Some(FollowUp)"),
        "{asked:?}"
    );
    desk.press(KeyCode::Esc, KeyModifiers::NONE);
    assert_eq!(desk.asked(), ["Abort"]);
}

#[test]
fn a_command_with_turns_answers_one_thing_at_a_time() {
    let mut desk = Desk::new(Abilities::Turns);
    desk.write("first");
    desk.press(KeyCode::Tab, KeyModifiers::NONE);
    assert!(desk.asked()[0].contains("when_busy: None"));
    desk.tell(Event::AgentStart);
    desk.asked();
    desk.write("second");
    desk.press(KeyCode::Enter, KeyModifiers::NONE);
    assert_eq!(desk.asked(), Vec::<String>::new());
    assert!(
        desk.screen(80, 10).contains("second"),
        "it stays in the editor"
    );
    assert!(desk.screen(80, 10).contains("An answer is on its way"));
}

#[test]
fn words_that_were_refused_come_back() {
    let mut desk = Desk::new(Abilities::Session);
    desk.write("hello");
    desk.press(KeyCode::Enter, KeyModifiers::NONE);
    assert!(!desk.screen(80, 10).contains("> hello"));
    // Dropping a reply answers it with an error.
    desk.asked();
    assert!(desk.screen(80, 10).contains("> hello"));
}

#[test]
fn messages_that_wait_since_the_start_are_taken_back_too() {
    for key in [
        (KeyCode::Up, KeyModifiers::ALT),
        (KeyCode::Esc, KeyModifiers::NONE),
    ] {
        let mut desk = Desk::new(Abilities::Session);
        desk.tell(Event::AgentStart);
        desk.asked();
        for text in ["second", "third"] {
            desk.state.opening.push_back(Saying {
                text: text.to_owned(),
                images: Vec::new(),
            });
        }
        desk.press(key.0, key.1);
        desk.answer(|command| match command {
            Command::ClearQueue => Some(Answer::Queues {
                steering: vec!["steered".to_owned()],
                follow_up: Vec::new(),
            }),
            _ => Some(Answer::Done),
        });
        assert_eq!(desk.state.editor.text(), "steered\n\nsecond\n\nthird");
        assert!(!desk.screen(80, 20).contains("then: "), "nothing waits");
        desk.tell(Event::Settled { aborted: false });
        let asked = desk.asked().join(" ");
        assert!(!asked.contains("Prompt"), "{asked}");
    }
}

#[test]
fn messages_behind_one_that_was_refused_are_kept() {
    let mut desk = Desk::new(Abilities::Session);
    for text in ["first", "second"] {
        desk.state.opening.push_back(Saying {
            text: text.to_owned(),
            images: Vec::new(),
        });
    }
    desk.state.say_next();
    // Dropping a reply answers it with an error.
    desk.asked();
    assert_eq!(desk.state.editor.text(), "first\n\nsecond");
}

#[test]
fn a_command_with_turns_is_told_what_it_cannot_do() {
    let mut desk = Desk::new(Abilities::Turns);
    for (line, asked) in [
        ("/model openai/gpt-4o", "CycleModel"),
        ("/compact the end", "Compact"),
        ("/export talk.html", "ExportHtml"),
        ("/name talk", "GetTree"),
        ("/new", "GetTree"),
    ] {
        desk.write(line);
        desk.press(KeyCode::Enter, KeyModifiers::NONE);
        let commands = desk.asked();
        assert!(commands[0].starts_with(asked), "{line}: {commands:?}");
        assert_eq!(commands.len(), 1, "{line}: {commands:?}");
    }
}

fn know_commands(desk: &mut Desk) {
    desk.state.ask_commands();
    desk.answer(|command| match command {
        Command::GetCommands => Some(Answer::Commands(json!([{"name": "review"}]))),
        _ => None,
    });
}

#[test]
fn a_mistyped_command_is_sent_when_it_is_meant() {
    let mut desk = Desk::new(Abilities::Session);
    know_commands(&mut desk);
    desk.write("/reveiw it");
    desk.press(KeyCode::Enter, KeyModifiers::NONE);
    assert!(desk.asked().is_empty());
    let screen = desk.screen(80, 10);
    assert!(screen.contains("There is no command /reveiw."), "{screen}");
    assert!(screen.contains("> /reveiw it"), "it stays: {screen}");
    desk.press(KeyCode::Enter, KeyModifiers::NONE);
    assert!(desk.asked()[0].contains("/reveiw it"));
    for line in ["/review it", "/etc/hosts is empty", "/ is the root"] {
        desk.state.editor.clear();
        desk.write(line);
        desk.press(KeyCode::Enter, KeyModifiers::NONE);
        let asked = desk.asked();
        assert!(asked.join(" ").contains(line), "{line}: {asked:?}");
    }
}

#[test]
fn a_model_that_is_not_there_may_lack_a_key() {
    let mut desk = Desk::new(Abilities::Session);
    desk.write("/model openai/gpt-4o");
    desk.press(KeyCode::Enter, KeyModifiers::NONE);
    desk.answer(|command| match command {
        Command::GetAvailableModels => Some(Answer::Models(Vec::new())),
        _ => None,
    });
    let error = pinion_agent::EngineError::ModelNotFound {
        provider: "openai".to_owned(),
        id: "gpt-4o".to_owned(),
    };
    let words = crate::chat::about_model(&error);
    assert!(words.contains("no key for openai"), "{words}");
    assert!(words.contains("pinion models"), "{words}");
}
