use std::sync::Mutex;

use futures_util::future::BoxFuture;
use pinion_session::SessionInfo;
use serde_json::{Map, Value, json};

use super::*;
use crate::{Feed, SessionScope, feed};

/// A host with an empty session that records the answers to dialogs.
struct TestHost {
    abilities: Abilities,
    answered: Mutex<Vec<(String, Value)>>,
    /// The commands received, without queries.
    asked: Mutex<Vec<String>>,
    /// The reply of a running shell command.
    shell: Mutex<Option<Reply>>,
    /// Prompts that are not answered yet, where they are to wait.
    held: Mutex<Option<Vec<Reply>>>,
}

/// Lines that may be typed ahead.
const TYPED: usize = 16;

impl TestHost {
    fn new(abilities: Abilities) -> Self {
        Self {
            abilities,
            answered: Mutex::default(),
            asked: Mutex::default(),
            shell: Mutex::default(),
            held: Mutex::default(),
        }
    }
}

impl Host for TestHost {
    fn send(&self, command: Command, reply: Reply) {
        match command {
            Command::GetMessages => return reply.send(Ok(Answer::Messages(Vec::new()))),
            Command::GetState => return reply.send(Ok(Answer::Done)),
            Command::GetCommands => return reply.send(Ok(Answer::Commands(json!([])))),
            _ => self.asked.lock().unwrap().push(format!("{command:?}")),
        }
        if matches!(command, Command::Prompt(_))
            && let Some(held) = &mut *self.held.lock().unwrap()
        {
            return held.push(reply);
        }
        match command {
            Command::Bash { .. } => *self.shell.lock().unwrap() = Some(reply),
            Command::AbortBash => {
                drop(self.shell.lock().unwrap().take());
                reply.done();
            }
            _ if self.abilities == Abilities::Turns => {
                reply.send(Err(EngineError::Unsupported("not there".to_owned())));
            }
            _ => reply.done(),
        }
    }

    fn answer(&self, id: &str, response: Map<String, Value>) {
        self.answered
            .lock()
            .unwrap()
            .push((id.to_owned(), Value::Object(response)));
    }

    fn sessions(
        &self,
        _scope: SessionScope,
    ) -> BoxFuture<'static, Result<Vec<SessionInfo>, String>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn abilities(&self) -> Abilities {
        self.abilities
    }
}

/// Collects the printed text.
#[derive(Clone, Default)]
struct Printed(Arc<Mutex<Vec<u8>>>);

impl Write for Printed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Printed {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    async fn shows(&self, words: &str) {
        while !self.text().contains(words) {
            tokio::task::yield_now().await;
        }
    }
}

struct TestChat {
    host: Arc<TestHost>,
    feed: Feed,
    output: Printed,
    keyboard: mpsc::Sender<String>,
}

/// Runs a plain chat beside `talk`, which reads the output and types. Returns the printed text and
/// the answers.
async fn talked(talk: impl AsyncFnOnce(&TestChat)) -> (String, Vec<(String, Value)>) {
    talked_with(Abilities::Session, &[], talk).await
}

/// Like [`talked`], with another host and first prompts.
async fn talked_with(
    abilities: Abilities,
    texts: &[&str],
    talk: impl AsyncFnOnce(&TestChat),
) -> (String, Vec<(String, Value)>) {
    let (feed, reader) = feed();
    let (keyboard, input) = mpsc::channel(TYPED);
    let host = Arc::new(TestHost::new(abilities));
    let output = Printed::default();
    let options = PlainOptions {
        output: Box::new(output.clone()),
        input,
        texts: texts.iter().map(|&text| text.to_owned()).collect(),
        images: Vec::new(),
    };
    let chat = plain_chat(options, Arc::clone(&host) as _, reader);
    let other = TestChat {
        host: Arc::clone(&host),
        feed,
        output,
        keyboard,
    };
    let both = async {
        talk(&other).await;
        other.keyboard.try_send("/quit".to_owned()).unwrap();
    };
    let (ended, ()) = tokio::join!(chat, both);
    assert_eq!(ended.unwrap().exit_code, 0);
    let answers = host.answered.lock().unwrap().clone();
    (other.output.text(), answers)
}

fn asks(talk: &TestChat, id: &str, members: Value) {
    let mut record = json!({"type": "extension_ui_request", "id": id});
    for (name, value) in members.as_object().unwrap() {
        record[name] = value.clone();
    }
    assert!(talk.feed.send(Incoming::Record(record.to_string())));
}

#[tokio::test]
async fn questions_are_answered_with_lines_in_their_turn() {
    let (printed, answers) = talked(async |talk: &TestChat| {
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
        talk.output.shows("1. One").await;
        for line in ["7", "2"] {
            talk.keyboard.try_send(line.to_owned()).unwrap();
        }
        talk.output.shows("All of it").await;
        for line in ["perhaps", "no"] {
            talk.keyboard.try_send(line.to_owned()).unwrap();
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
async fn text_of_extensions_is_sanitised_only_when_printed() {
    let evil = "x\u{1b}]0;owned\u{7}\u{1b}[2J";
    let (printed, answers) = talked(async |talk: &TestChat| {
        let question = json!({"method": "select", "title": evil, "options": [evil, "b"]});
        asks(talk, "a", question);
        talk.output.shows("2. b").await;
        talk.keyboard.try_send("1".to_owned()).unwrap();
    })
    .await;
    assert!(!printed.contains(['\u{1b}', '\u{7}']), "{printed:?}");
    assert_eq!(answers, [("a".to_owned(), json!({"value": evil}))]);
}

#[tokio::test]
async fn a_question_begins_on_its_own_line() {
    let (printed, _) = talked(async |talk: &TestChat| {
        let run = Arc::new(pinion_agent::ToolRun {
            call_id: "1".into(),
            name: "bash".into(),
            arguments: json!({"command": "rm notes.txt"}),
            parent_call_id: None,
        });
        talk.feed.send(Incoming::Event(Event::AgentStart));
        talk.feed.send(Incoming::Event(Event::ToolStart(run)));
        talk.output.shows("rm notes.txt").await;
        asks(
            talk,
            "a",
            json!({"method": "confirm", "title": "Allow bash?", "message": ""}),
        );
        talk.output.shows("Allow bash?").await;
        talk.keyboard.try_send("no".to_owned()).unwrap();
    })
    .await;
    let line = printed.lines().find(|line| line.contains("Allow bash?"));
    assert!(
        line.is_some_and(|line| line.starts_with("Question")),
        "{printed}"
    );
}

impl TestChat {
    fn say(&self, line: &str) {
        self.keyboard.try_send(line.to_owned()).unwrap();
    }

    /// Waits until the host receives this command.
    async fn asks(&self, words: &str) {
        while !self.host.asked.lock().unwrap().join(" ").contains(words) {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn shell_commands_can_be_stopped() {
    for way in ["/stop", "Ctrl-C"] {
        let (printed, _) = talked(async |talk: &TestChat| {
            talk.output.shows(">").await;
            talk.say("!sleep 1000");
            talk.asks("Bash").await;
            match way {
                "/stop" => talk.say("/stop"),
                _ => drop(talk.feed.send(Incoming::End(INTERRUPTED))),
            }
            talk.asks("AbortBash").await;
            talk.output.shows("sleep 1000").await;
        })
        .await;
        assert!(printed.trim_end().ends_with('>'), "{way}: {printed}");
    }
}

#[tokio::test]
async fn unsent_prompts_are_reported_after_stop() {
    let (printed, _) = talked_with(
        Abilities::Session,
        &["one", "two"],
        async |talk: &TestChat| {
            talk.asks("one").await;
            talk.feed.send(Incoming::Event(Event::AgentStart));
            talk.say("/stop");
            talk.asks("Abort").await;
            talk.feed
                .send(Incoming::Event(Event::Settled { aborted: true }));
            talk.output.shows("> ").await;
        },
    )
    .await;
    assert!(printed.contains("Not sent: two"), "{printed}");
}

#[tokio::test]
async fn commands_of_the_screen_say_what_to_do_instead() {
    let (printed, _) = talked(async |talk: &TestChat| {
        for line in ["/resume", "/tree", "/copy"] {
            talk.say(line);
        }
        talk.output.shows("clipboard").await;
        let asked = talk.host.asked.lock().unwrap().clone();
        assert!(asked.is_empty(), "{asked:?}");
    })
    .await;
    for words in ["pinion sessions list", "without --plain"] {
        assert!(printed.contains(words), "{printed}");
    }
}

#[tokio::test]
async fn a_host_with_turns_explains_missing_commands() {
    let (printed, _) = talked_with(Abilities::Turns, &[], async |talk: &TestChat| {
        talk.say("/model openai/gpt-4o");
        talk.asks("CycleModel").await;
        talk.say("/compact");
        talk.asks("Compact").await;
        let asked = talk.host.asked.lock().unwrap().clone();
        assert_eq!(asked.len(), 2, "{asked:?}");
    })
    .await;
    assert!(printed.contains("Error: not there"), "{printed}");
}

#[tokio::test]
async fn what_extensions_show_is_printed_in_the_next_pause() {
    let show = |talk: &TestChat, members: Value| asks(talk, "x", members);
    let (printed, _) = talked(async |talk: &TestChat| {
        talk.output.shows("> ").await;
        talk.feed.send(Incoming::Event(Event::AgentStart));
        for percent in 0..100 {
            let text = format!("{percent}% done");
            show(
                talk,
                json!({"method": "setStatus", "statusKey": "s", "statusText": text}),
            );
        }
        show(
            talk,
            json!({"method": "setWidget", "widgetKey": "w", "widgetLines": ["a", "widget"]}),
        );
        show(
            talk,
            json!({"method": "set_editor_text", "text": "say this"}),
        );
        let settled = Event::Settled { aborted: false };
        talk.feed.send(Incoming::Event(settled));
        talk.output.shows("widget").await;
    })
    .await;
    assert!(
        printed.contains("99% done") && !printed.contains("98%"),
        "{printed}"
    );
    assert!(printed.contains("say this"), "{printed}");
}

#[tokio::test]
async fn a_mistyped_command_is_sent_when_it_is_typed_again() {
    let (printed, _) = talked(async |talk: &TestChat| {
        talk.output.shows("> ").await;
        talk.say("/reveiw it");
        talk.output.shows("Unknown command \"/reveiw\".").await;
        assert!(talk.host.asked.lock().unwrap().is_empty());
        talk.say("/reveiw it");
        talk.asks("/reveiw it").await;
    })
    .await;
    assert!(printed.contains("again to send it"), "{printed}");
}

#[tokio::test]
async fn a_session_that_does_not_answer_holds_back_the_lines_and_can_still_be_aborted() {
    const LINES: usize = 200;
    talked(async |talk| {
        let asked = |of: &str| {
            let asked = talk.host.asked.lock().unwrap();
            asked.iter().filter(|one| one.contains(of)).count()
        };
        *talk.host.held.lock().unwrap() = Some(Vec::new());
        talk.output.shows("> ").await;
        talk.feed.send(Incoming::Event(Event::AgentStart));
        let typed = async {
            for number in 0..LINES {
                let line = format!("line {number}.");
                talk.keyboard.send(line).await.unwrap();
            }
        };
        let mut typed = std::pin::pin!(typed);
        let pause = std::time::Duration::from_millis(200);
        let waited = tokio::time::timeout(pause, &mut typed).await;
        assert!(waited.is_err(), "the lines wait outside");
        assert_eq!(asked("line"), OPEN_REQUESTS - OWN_REQUESTS);

        talk.feed.send(Incoming::End(INTERRUPTED));
        while asked("Abort") == 0 {
            tokio::task::yield_now().await;
        }
        let held = talk.host.held.lock().unwrap().take().unwrap();
        held.into_iter().for_each(Reply::done);
        typed.await;
        while asked("line") < LINES {
            tokio::task::yield_now().await;
        }
        for number in 0..LINES {
            assert_eq!(asked(&format!("line {number}.")), 1);
        }
    })
    .await;
}
