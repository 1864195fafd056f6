//! Tests of the whole screen and of its reactions to keys and answers, without a terminal.

mod questions;
mod sending;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use crossterm::event::{
    Event as TerminalEvent, KeyCode, KeyEvent, KeyModifiers, MouseEvent, MouseEventKind,
};
use futures_util::future::BoxFuture;
use pinion_agent::{Answer, Command, Event, Reply};
use pinion_message::{AssistantMessage, Block, Content, Message, UserMessage};
use pinion_session::SessionInfo;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use serde_json::{Map, Value, json};

use super::Options;
use super::state::{self, State};
use crate::feed::FeedItem;
use crate::{Abilities, Colours, FeedReader, Host, Incoming, SessionScope, feed};

/// Records the commands it receives.
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

    fn sessions(
        &self,
        _scope: SessionScope,
    ) -> BoxFuture<'static, Result<Vec<SessionInfo>, String>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn abilities(&self) -> Abilities {
        self.abilities
    }
}

struct TestChat {
    state: State,
    host: Arc<Recorder>,
    feed: FeedReader,
}

impl TestChat {
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

    fn event(&mut self, event: Event) {
        self.state.incoming(Incoming::Event(event));
    }

    fn record(&mut self, record: Value) {
        self.state.incoming(Incoming::Record(record.to_string()));
    }

    /// The commands since the last call; each is answered with an error by dropping its reply.
    fn asked(&mut self) -> Vec<String> {
        let asked = std::mem::take(&mut *self.host.asked.lock().unwrap());
        let names = asked.iter().map(|(command, _)| format!("{command:?}"));
        let names = names.collect();
        drop(asked);
        for told in self.feed.take_all() {
            if let FeedItem::Reply(turn) = told {
                turn(&mut self.state);
            }
        }
        names
    }

    /// Answers the commands with the results of `with`; the others are answered with an error.
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

fn conversation() -> TestChat {
    let mut chat = TestChat::new(Abilities::Session);
    chat.event(said("which files are there?"));
    chat.event(answered(
        "There are **three**:\n\n- `main.rs`, where everything begins\n- `lib.rs`\n- `Cargo.toml`\n",
    ));
    chat.event(Event::QueueUpdate {
        steering: vec!["only those in src".to_owned()],
        follow_up: vec!["and count them".to_owned()],
    });
    chat.event(Event::SessionInfoChanged(Some("files".to_owned())));
    chat.record(
        json!({"type": "extension_ui_request", "id": "1", "method": "setStatus",
        "statusKey": "git", "statusText": "main, 2 changed"}),
    );
    chat.record(
        json!({"type": "extension_ui_request", "id": "2", "method": "setWidget",
        "widgetKey": "todo", "widgetLines": ["1 of 3 done"]}),
    );
    chat.write("thanks");
    chat
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
fn text_in_a_rule_is_not_dimmed() {
    let mut chat = conversation();
    chat.press(KeyCode::Char('g'), KeyModifiers::CONTROL);
    let area = Rect::new(0, 0, 80, 20);
    for (title, closes) in [("Help", true), ("files", false)] {
        let mut buffer = Buffer::empty(area);
        chat.state.draw(area, &mut buffer);
        let cells: Vec<&str> = buffer.content().iter().map(|cell| cell.symbol()).collect();
        let at =
            (0..cells.len()).find(|&at| cells[at..].concat().starts_with(&format!(" {title} ─")));
        let style = buffer.content()[at.unwrap() + 1].style();
        assert!(!style.add_modifier.contains(Modifier::DIM), "{title}");
        if closes {
            chat.press(KeyCode::Esc, KeyModifiers::NONE);
        }
    }
}

#[test]
fn the_wheel_scrolls_the_focused_part() {
    let mut chat = conversation();
    let wheel = |chat: &mut TestChat, kind: MouseEventKind| {
        chat.state.terminal_event(TerminalEvent::Mouse(MouseEvent {
            kind,
            column: 1,
            row: 1,
            modifiers: KeyModifiers::NONE,
        }));
    };
    chat.press(KeyCode::Char('g'), KeyModifiers::CONTROL);
    let first = chat.screen(80, 20);
    wheel(&mut chat, MouseEventKind::ScrollDown);
    let second = chat.screen(80, 20);
    let (first, second): (Vec<_>, Vec<_>) = (first.lines().collect(), second.lines().collect());
    assert_eq!(first[4..10], second[1..7]);
    chat.press(KeyCode::Esc, KeyModifiers::NONE);
    assert!(chat.state.transcript.follows_end());
    for _ in 0..3 {
        chat.screen(80, 10);
        wheel(&mut chat, MouseEventKind::ScrollUp);
    }
    chat.screen(80, 10);
    assert!(!chat.state.transcript.follows_end());
}

#[test]
fn completion_is_separated_from_the_conversation() {
    let mut chat = conversation();
    chat.press(KeyCode::Char('c'), KeyModifiers::CONTROL);
    chat.state.ask_commands();
    chat.write("/co");
    insta::assert_snapshot!("completing", chat.screen(60, 20));
}
