//! Tests of sent messages, queued messages and commands.

use super::*;
use crate::chat::state::Saying;

#[test]
fn messages_during_a_run_steer_or_wait() {
    let mut chat = TestChat::new(Abilities::Session);
    chat.event(Event::AgentStart);
    chat.asked();
    chat.write("left");
    chat.press(KeyCode::Enter, KeyModifiers::NONE);
    chat.write("later");
    chat.press(KeyCode::Enter, KeyModifiers::ALT);
    let asked = chat.asked();
    assert!(
        asked[0].contains("left") && asked[0].contains("Some(Steer)"),
        "{asked:?}"
    );
    assert!(
        asked[1].contains("later") && asked[1].contains("Some(FollowUp)"),
        "{asked:?}"
    );
    chat.press(KeyCode::Esc, KeyModifiers::NONE);
    assert_eq!(chat.asked(), ["Abort"]);
}

#[test]
fn a_command_with_turns_answers_one_thing_at_a_time() {
    let mut chat = TestChat::new(Abilities::Turns);
    chat.write("first");
    chat.press(KeyCode::Tab, KeyModifiers::NONE);
    assert!(chat.asked()[0].contains("when_busy: None"));
    chat.event(Event::AgentStart);
    chat.asked();
    chat.write("second");
    chat.press(KeyCode::Enter, KeyModifiers::NONE);
    assert_eq!(chat.asked(), Vec::<String>::new());
    assert!(
        chat.screen(80, 10).contains("second"),
        "it stays in the editor"
    );
    assert!(chat.screen(80, 10).contains("The model is still answering"));
}

#[test]
fn a_refused_message_returns_to_the_editor() {
    let mut chat = TestChat::new(Abilities::Session);
    chat.write("hello");
    chat.press(KeyCode::Enter, KeyModifiers::NONE);
    assert!(!chat.screen(80, 10).contains("> hello"));
    // Dropping a reply answers it with an error.
    chat.asked();
    assert!(chat.screen(80, 10).contains("> hello"));
}

#[test]
fn messages_that_wait_since_the_start_are_taken_back_too() {
    for key in [
        (KeyCode::Up, KeyModifiers::ALT),
        (KeyCode::Esc, KeyModifiers::NONE),
    ] {
        let mut chat = TestChat::new(Abilities::Session);
        chat.event(Event::AgentStart);
        chat.asked();
        for text in ["second", "third"] {
            chat.state.pending_prompts.push_back(Saying {
                text: text.to_owned(),
                images: Vec::new(),
            });
        }
        chat.press(key.0, key.1);
        chat.answer(|command| match command {
            Command::ClearQueue => Some(Answer::Queues {
                steering: vec!["steered".to_owned()],
                follow_up: Vec::new(),
            }),
            _ => Some(Answer::Done),
        });
        assert_eq!(chat.state.editor.text(), "steered\n\nsecond\n\nthird");
        assert!(!chat.screen(80, 20).contains("then: "), "nothing waits");
        chat.event(Event::Settled { aborted: false });
        let asked = chat.asked().join(" ");
        assert!(!asked.contains("Prompt"), "{asked}");
    }
}

#[test]
fn messages_behind_a_refused_one_return_to_the_editor() {
    let mut chat = TestChat::new(Abilities::Session);
    for text in ["first", "second"] {
        chat.state.pending_prompts.push_back(Saying {
            text: text.to_owned(),
            images: Vec::new(),
        });
    }
    chat.state.send_next_prompt();
    // Dropping a reply answers it with an error.
    chat.asked();
    assert_eq!(chat.state.editor.text(), "first\n\nsecond");
}

#[test]
fn a_host_with_turns_refuses_session_commands() {
    let mut chat = TestChat::new(Abilities::Turns);
    for (line, asked) in [
        ("/model openai/gpt-4o", "CycleModel"),
        ("/compact the end", "Compact"),
        ("/export talk.html", "ExportHtml"),
        ("/name talk", "GetTree"),
        ("/new", "GetTree"),
    ] {
        chat.write(line);
        chat.press(KeyCode::Enter, KeyModifiers::NONE);
        let commands = chat.asked();
        assert!(commands[0].starts_with(asked), "{line}: {commands:?}");
        assert_eq!(commands.len(), 1, "{line}: {commands:?}");
    }
}

fn know_commands(chat: &mut TestChat) {
    chat.state.ask_commands();
    chat.answer(|command| match command {
        Command::GetCommands => Some(Answer::Commands(json!([{"name": "review"}]))),
        _ => None,
    });
}

#[test]
fn a_mistyped_command_is_sent_on_the_second_enter() {
    let mut chat = TestChat::new(Abilities::Session);
    know_commands(&mut chat);
    chat.write("/reveiw it");
    chat.press(KeyCode::Enter, KeyModifiers::NONE);
    assert!(chat.asked().is_empty());
    let screen = chat.screen(80, 10);
    assert!(screen.contains("Unknown command \"/reveiw\"."), "{screen}");
    assert!(screen.contains("> /reveiw it"), "it stays: {screen}");
    chat.press(KeyCode::Enter, KeyModifiers::NONE);
    assert!(chat.asked()[0].contains("/reveiw it"));
    for line in ["/review it", "/etc/hosts is empty", "/ is the root"] {
        chat.state.editor.clear();
        chat.write(line);
        chat.press(KeyCode::Enter, KeyModifiers::NONE);
        let asked = chat.asked();
        assert!(asked.join(" ").contains(line), "{line}: {asked:?}");
    }
}

#[test]
fn an_unknown_model_may_lack_a_key() {
    let mut chat = TestChat::new(Abilities::Session);
    chat.write("/model openai/gpt-4o");
    chat.press(KeyCode::Enter, KeyModifiers::NONE);
    chat.answer(|command| match command {
        Command::GetAvailableModels => Some(Answer::Models(Vec::new())),
        _ => None,
    });
    let error = pinion_agent::EngineError::ModelNotFound {
        provider: "openai".to_owned(),
        id: "gpt-4o".to_owned(),
    };
    let words = crate::chat::about_model(&error);
    assert!(words.contains("openai has no key"), "{words}");
    assert!(words.contains("pinion models"), "{words}");
}
