//! The whole screen, and what keys and answers do to it, without a terminal.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use crossterm::event::{Event as TerminalEvent, KeyCode, KeyEvent, KeyModifiers};
use futures_util::future::BoxFuture;
use pinion_agent::{Answer, Command, Event, Reply, ToolRun};
use pinion_message::{AssistantMessage, Block, Content, Message, UserMessage};
use pinion_session::SessionInfo;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use serde_json::{Map, Value, json};

use super::Options;
use super::state::{self, Saying, State};
use crate::feed::Told;
use crate::{Abilities, Colours, FeedReader, Host, Incoming, Scope, feed};

/// Keeps what it is asked.
struct Recorder {
    abilities: Abilities,
    asked: Mutex<Vec<(Command, Reply)>>,
    answered: Mutex<Vec<(String, Map<String, Value>)>>,
}

impl Host for Recorder {
    fn send(&self, command: Command, reply: Reply) {
        self.asked.lock().unwrap().push((command, reply));
    }

    fn answer(&self, id: &str, response: Map<String, Value>) {
        self.answered
            .lock()
            .unwrap()
            .push((id.to_owned(), response));
    }

    fn sessions(&self, _scope: Scope) -> BoxFuture<'static, Result<Vec<SessionInfo>, String>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn abilities(&self) -> Abilities {
        self.abilities
    }
}

struct Desk {
    state: State,
    host: Arc<Recorder>,
    feed: FeedReader,
}

impl Desk {
    fn new(abilities: Abilities) -> Self {
        let (mut state, _) = state::begin(Options {
            cwd: PathBuf::from("/home/ada/hello"),
            home: PathBuf::from("/home/ada"),
            background: None,
            colours: Colours::None,
            texts: Vec::new(),
            images: Vec::new(),
        });
        let host = Arc::new(Recorder {
            abilities,
            asked: Mutex::default(),
            answered: Mutex::default(),
        });
        let (_, reader) = feed();
        state.set_host(Arc::clone(&host) as _);
        state.answers = Some(reader.answers());
        state.session.is_known = true;
        state.is_loaded = true;
        Self {
            state,
            host,
            feed: reader,
        }
    }

    fn press(&mut self, code: KeyCode, modifiers: KeyModifiers) {
        let key = KeyEvent::new(code, modifiers);
        self.state.terminal_event(TerminalEvent::Key(key));
    }

    fn write(&mut self, text: &str) {
        for char in text.chars() {
            self.press(KeyCode::Char(char), KeyModifiers::NONE);
        }
    }

    fn tell(&mut self, event: Event) {
        self.state.incoming(Incoming::Event(event));
    }

    fn record(&mut self, record: Value) {
        self.state.incoming(Incoming::Record(record.to_string()));
    }

    /// What was asked since the last time, answered with nothing but its end.
    fn asked(&mut self) -> Vec<String> {
        let asked = std::mem::take(&mut *self.host.asked.lock().unwrap());
        let names = asked.iter().map(|(command, _)| format!("{command:?}"));
        let names = names.collect();
        drop(asked);
        for told in self.feed.take_all() {
            if let Told::Turn(turn) = told {
                turn(&mut self.state);
            }
        }
        names
    }

    /// Answers what was asked, as `with` says; what it does not answer is answered with nothing but its end.
    fn answer(&mut self, with: impl Fn(&Command) -> Option<Answer>) {
        let asked = std::mem::take(&mut *self.host.asked.lock().unwrap());
        for (command, reply) in asked {
            if let Some(answer) = with(&command) {
                reply.send(Ok(answer));
            }
        }
        self.asked();
    }

    fn screen(&mut self, width: u16, height: u16) -> String {
        let area = Rect::new(0, 0, width, height);
        let mut buffer = Buffer::empty(area);
        self.state.draw(area, &mut buffer);
        let rows = (0..height).map(|y| {
            let row: String = (0..width).map(|x| buffer[(x, y)].symbol()).collect();
            row.trim_end().to_owned()
        });
        rows.collect::<Vec<_>>().join("\n")
    }
}

fn said(text: &str) -> Event {
    let message = UserMessage {
        content: Content::Text(text.to_owned()),
        ..serde_json::from_value(json!({"content": "", "timestamp": 0})).unwrap()
    };
    Event::MessageEnd(Arc::new(Message::User(message)))
}

fn answered(text: &str) -> Event {
    let answer: AssistantMessage = serde_json::from_value(json!({
        "content": [], "api": "offline", "provider": "offline", "model": "demo",
        "usage": {}, "stopReason": "stop", "timestamp": 0,
    }))
    .unwrap();
    let block: Block = serde_json::from_value(json!({"type": "text", "text": text})).unwrap();
    Event::MessageEnd(Arc::new(Message::Assistant(AssistantMessage {
        content: vec![block],
        ..answer
    })))
}

fn conversation() -> Desk {
    let mut desk = Desk::new(Abilities::Session);
    desk.tell(said("which files are there?"));
    desk.tell(answered(
        "There are **three**:\n\n- `main.rs`, where everything begins\n- `lib.rs`\n- `Cargo.toml`\n",
    ));
    desk.tell(Event::QueueUpdate {
        steering: vec!["only those in src".to_owned()],
        follow_up: vec!["and count them".to_owned()],
    });
    desk.tell(Event::SessionInfoChanged(Some("files".to_owned())));
    desk.record(
        json!({"type": "extension_ui_request", "id": "1", "method": "setStatus",
        "statusKey": "git", "statusText": "main, 2 changed"}),
    );
    desk.record(
        json!({"type": "extension_ui_request", "id": "2", "method": "setWidget",
        "widgetKey": "todo", "widgetLines": ["1 of 3 done"]}),
    );
    desk.write("thanks");
    desk
}

#[test]
fn everything_has_its_place() {
    for (width, height) in [(40, 16), (80, 20), (120, 20)] {
        let screen = conversation().screen(width, height);
        insta::assert_snapshot!(format!("screen_{width}"), screen);
    }
}

#[test]
fn no_size_is_too_small_to_draw() {
    for width in 0..30 {
        for height in 0..14 {
            conversation().screen(width, height);
        }
    }
}

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
    // Who drops a question answers it with an error.
    desk.asked();
    assert!(desk.screen(80, 10).contains("> hello"));
}

#[test]
fn a_question_is_answered_with_its_id() {
    let mut desk = Desk::new(Abilities::Session);
    desk.record(
        json!({"type": "extension_ui_request", "id": "q", "method": "confirm",
        "title": "Sure?", "message": "It cannot be undone."}),
    );
    assert!(desk.screen(80, 12).contains("It cannot be undone."));
    std::thread::sleep(std::time::Duration::from_millis(350));
    desk.press(KeyCode::Esc, KeyModifiers::NONE);
    let answered = desk.host.answered.lock().unwrap().clone();
    assert_eq!(answered.len(), 1);
    assert_eq!(
        (answered[0].0.as_str(), &answered[0].1["cancelled"]),
        ("q", &json!(true))
    );
}

#[test]
fn whoever_writes_does_not_approve_with_the_enter_of_the_message() {
    let approval = json!({"type": "extension_ui_request", "id": "q", "method": "select",
        "title": "Allow bash: rm -rf target?", "options": ["Allow once", "Refuse"]});
    let mut desk = Desk::new(Abilities::Session);
    desk.write("and the");
    desk.record(approval.clone());
    assert!(desk.screen(80, 12).contains("choose one first"));
    std::thread::sleep(std::time::Duration::from_millis(1_050));
    desk.press(KeyCode::Enter, KeyModifiers::NONE);
    assert!(desk.host.answered.lock().unwrap().is_empty());
    desk.press(KeyCode::Down, KeyModifiers::NONE);
    desk.press(KeyCode::Enter, KeyModifiers::NONE);
    assert_eq!(desk.host.answered.lock().unwrap().len(), 1);
    assert!(desk.screen(80, 12).contains("> and the"), "it is kept");
    // Whoever has just sent something waits for the question.
    desk.press(KeyCode::Enter, KeyModifiers::NONE);
    desk.record(approval);
    assert!(desk.screen(80, 12).contains("❯ Allow once"));
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
    // Who drops a question answers it with an error.
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

fn asks_about(desk: &mut Desk, name: &str, arguments: Value) {
    desk.tell(Event::AgentStart);
    desk.asked();
    let run = Arc::new(ToolRun {
        call_id: "1".into(),
        name: name.into(),
        arguments,
    });
    desk.tell(Event::ToolStart(run));
    desk.record(
        json!({"type": "extension_ui_request", "id": "q", "method": "select",
        "title": format!("Allow {name}: n.txt?"), "options": ["Allow once", "Refuse"]}),
    );
}

#[test]
fn whoever_is_asked_sees_what_will_be_written() {
    let mut desk = Desk::new(Abilities::Session);
    let content: String = (1..=30).map(|line| format!("line {line}\n")).collect();
    asks_about(
        &mut desk,
        "write",
        json!({"path": "n.txt", "content": content}),
    );
    let screen = desk.screen(60, 30);
    assert!(
        screen.contains("n.txt (30 lines) · waiting for you"),
        "{screen}"
    );
    assert!(screen.contains("line 1\n"), "{screen}");
    assert!(!screen.contains("line 30"), "{screen}");
    desk.press(KeyCode::Char('o'), KeyModifiers::CONTROL);
    assert!(desk.screen(60, 30).contains("line 30"));
    desk.press(KeyCode::PageUp, KeyModifiers::NONE);
    assert!(!desk.screen(60, 30).contains("line 30"));
    assert!(desk.screen(60, 30).contains("Allow once"));

    let mut desk = Desk::new(Abilities::Session);
    let edit = json!({"path": "n.txt", "oldText": "milk\nbread", "newText": "milk\nwine"});
    asks_about(&mut desk, "edit", edit);
    insta::assert_snapshot!("edit_to_be_allowed", desk.screen(60, 16));
}

#[test]
fn control_c_refuses_and_stops_the_run() {
    let mut desk = Desk::new(Abilities::Session);
    asks_about(&mut desk, "bash", json!({"command": "rm n.txt"}));
    desk.record(
        json!({"type": "extension_ui_request", "id": "r", "method": "input", "title": "Who?"}),
    );
    desk.screen(60, 16);
    std::thread::sleep(std::time::Duration::from_millis(350));
    desk.press(KeyCode::Char('c'), KeyModifiers::CONTROL);
    let answered = desk.host.answered.lock().unwrap().clone();
    let ids: Vec<&str> = answered.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["q", "r"]);
    assert!(
        answered
            .iter()
            .all(|(_, response)| response["cancelled"] == true)
    );
    assert_eq!(desk.asked(), ["Abort"]);
}
