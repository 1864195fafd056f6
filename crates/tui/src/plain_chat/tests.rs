use std::sync::Mutex;

use futures_util::future::BoxFuture;
use pinion_session::SessionInfo;
use serde_json::{Map, Value, json};

use super::*;
use crate::{Feed, Scope, feed};

/// Answers that nothing was said so far, and keeps what it is told about dialogs.
#[derive(Default)]
struct Quiet(Mutex<Vec<(String, Value)>>);

impl Host for Quiet {
    fn send(&self, command: Command, reply: Reply) {
        reply.send(match command {
            Command::GetMessages => Ok(Answer::Messages(Vec::new())),
            _ => Ok(Answer::Done),
        });
    }

    fn answer(&self, id: &str, response: Map<String, Value>) {
        self.0
            .lock()
            .unwrap()
            .push((id.to_owned(), Value::Object(response)));
    }

    fn sessions(&self, _scope: Scope) -> BoxFuture<'static, Result<Vec<SessionInfo>, String>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn abilities(&self) -> Abilities {
        Abilities::Session
    }
}

/// What is printed, for whoever wants to look.
#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Paper {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    async fn shows(&self, words: &str) {
        while !self.text().contains(words) {
            tokio::task::yield_now().await;
        }
    }
}

struct Talk {
    feed: Feed,
    paper: Paper,
    keyboard: mpsc::UnboundedSender<String>,
}

/// Runs a plain chat beside `talk`, which sees the paper and has the keyboard; what was printed, and what was
/// answered.
async fn talked(talk: impl AsyncFnOnce(&Talk)) -> (String, Vec<(String, Value)>) {
    let (feed, reader) = feed();
    let (keyboard, input) = mpsc::unbounded_channel();
    let host = Arc::new(Quiet::default());
    let paper = Paper::default();
    let options = PlainOptions {
        output: Box::new(paper.clone()),
        input,
        texts: Vec::new(),
        images: Vec::new(),
    };
    let chat = plain_chat(options, Arc::clone(&host) as _, reader);
    let other = Talk {
        feed,
        paper,
        keyboard,
    };
    let both = async {
        talk(&other).await;
        other.keyboard.send("/quit".to_owned()).unwrap();
    };
    let (ended, ()) = tokio::join!(chat, both);
    assert_eq!(ended.unwrap().exit_code, 0);
    let answers = host.0.lock().unwrap().clone();
    (other.paper.text(), answers)
}

fn asks(talk: &Talk, id: &str, members: Value) {
    let mut record = json!({"type": "extension_ui_request", "id": id});
    for (name, value) in members.as_object().unwrap() {
        record[name] = value.clone();
    }
    assert!(talk.feed.tell(Incoming::Record(record.to_string())));
}

#[tokio::test]
async fn questions_are_answered_with_lines_in_their_turn() {
    let (printed, answers) = talked(async |talk: &Talk| {
        asks(
            talk,
            "a",
            json!({"method": "select", "title": "Which?", "options": ["One", "Two"]}),
        );
        asks(
            talk,
            "b",
            json!({"method": "confirm", "title": "Sure?", "message": "All of it"}),
        );
        talk.paper.shows("1. One").await;
        for line in ["7", "2"] {
            talk.keyboard.send(line.to_owned()).unwrap();
        }
        talk.paper.shows("All of it").await;
        for line in ["perhaps", "no"] {
            talk.keyboard.send(line.to_owned()).unwrap();
        }
    })
    .await;
    let expected = [
        ("a", json!({"value": "Two"})),
        ("b", json!({"confirmed": false})),
    ];
    assert_eq!(
        answers,
        expected.map(|(id, response)| (id.to_owned(), response))
    );
    assert!(
        printed.contains("Answer with a number from 1 to 2."),
        "{printed}"
    );
}

#[tokio::test]
async fn what_extensions_say_is_printed_harmless_and_answered_as_it_was() {
    let evil = "x\u{1b}]0;owned\u{7}\u{1b}[2J";
    let (printed, answers) = talked(async |talk: &Talk| {
        let question = json!({"method": "select", "title": evil, "options": [evil, "b"]});
        asks(talk, "a", question);
        talk.paper.shows("2. b").await;
        talk.keyboard.send("1".to_owned()).unwrap();
    })
    .await;
    assert!(!printed.contains(['\u{1b}', '\u{7}']), "{printed:?}");
    assert_eq!(answers, [("a".to_owned(), json!({"value": evil}))]);
}

#[tokio::test]
async fn a_question_begins_on_its_own_line() {
    let (printed, _) = talked(async |talk: &Talk| {
        let run = Arc::new(pinion_agent::ToolRun {
            call_id: "1".into(),
            name: "bash".into(),
            arguments: json!({"command": "rm notes.txt"}),
        });
        talk.feed.tell(Incoming::Event(Event::AgentStart));
        talk.feed.tell(Incoming::Event(Event::ToolStart(run)));
        talk.paper.shows("rm notes.txt").await;
        asks(
            talk,
            "a",
            json!({"method": "confirm", "title": "Allow bash?", "message": ""}),
        );
        talk.paper.shows("Allow bash?").await;
        talk.keyboard.send("no".to_owned()).unwrap();
    })
    .await;
    let line = printed.lines().find(|line| line.contains("Allow bash?"));
    assert!(
        line.is_some_and(|line| line.starts_with("Question")),
        "{printed}"
    );
}
