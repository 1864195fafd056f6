//! Conversations without a screen: the chat's commands, the events it receives, and the stored turns and frames.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use pinion_agent::{
    Answer, Command, Disposition, EngineError, EngineSettings, Event, Prompt, Reply, StateView,
};
use pinion_commands::{BUILT_INS, Command as CommandFile, CommandLine, World};
use pinion_history::{StoreChoice, TimelineStore, TurnStore};
use pinion_llm::{Providers, Registry, RegistryOptions};
use pinion_message::{Block, Mask, Message, StopReason};
use pinion_profiles::{HostContext, ProfileError, ProfileRequest, Resolved, Unnamed};
use pinion_tools::ToolSettings;
use pinion_tui::{Abilities, SessionScope};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::oneshot;

use super::*;
use crate::host::{EngineParts, EngineRequest, RunHost};
use crate::options::{Options, built_ins};

const COMMAND: &str = "name: say\nsystem-prompt: Be brief.\nprompt: \"{{ .what }}\"\nflags:\n  - name: what\n    type: string\n    default: \"\"\n";

/// A directory in which the tests run commands.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        std::fs::write(home.path("say.yaml"), COMMAND).unwrap();
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Makes the command in session `s`, with stores of turns and timeline, and more options.
    fn job(&self, more: &[&str]) -> Job {
        let (turns, timeline) = (self.path("turns.db"), self.path("timeline.db"));
        let kept = ["--session-id", "s", "--turns-db", turns.to_str().unwrap()];
        let timeline = ["--timeline-db", timeline.to_str().unwrap()];
        self.job_without_stores(&[&kept[..], &timeline, more].concat())
    }

    fn job_without_stores(&self, more: &[&str]) -> Job {
        let root = self.0.path();
        let file = CommandFile::load(root, Path::new("say.yaml"), BUILT_INS).unwrap();
        let line = CommandLine::new([&["--chat", "--ai-engine", "offline/demo"], more].concat());
        let mut world = World::new(root);
        let parsed = file.parse(&line, &built_ins(&file), &mut world).unwrap();
        let options = Options::read(&parsed.builtin).unwrap();
        let rendered = file.render(&parsed, &world).unwrap();
        let host = Box::new(TestHost(root.to_owned()));
        Job::prepare(host, &file, rendered, &parsed.builtin, options).unwrap()
    }

    fn turns(&self) -> Box<dyn TurnStore> {
        let db = self.path("turns.db").display().to_string();
        pinion_history::read_turns(&StoreChoice {
            db: &db,
            ..StoreChoice::default()
        })
        .unwrap()
    }

    fn timeline(&self) -> Box<dyn TimelineStore> {
        let db = self.path("timeline.db").display().to_string();
        pinion_history::read_timeline(&StoreChoice {
            db: &db,
            ..StoreChoice::default()
        })
        .unwrap()
    }

    /// Returns the number of stored turns of this phase, and the texts of the last one.
    fn kept(&self, phase: &str) -> (usize, Vec<String>) {
        let mut turns = self.turns();
        let query = pinion_history::TurnQuery {
            phase: Some(phase.to_owned()),
            ..Default::default()
        };
        let times = turns.headers(&query).unwrap().len();
        let last = turns.latest("s", phase).unwrap();
        let texts = last.map(|saved| {
            let blocks = saved.turn.blocks.into_iter();
            let text = |block: pinion_history::Block| {
                let text = block.payload_text("text").unwrap_or_default().to_owned();
                format!("{}: {text}", block.kind.name())
            };
            blocks.map(text).collect()
        });
        (times, texts.unwrap_or_default())
    }
}

/// A host without settings, whose home is the directory in which the tests run commands.
struct TestHost(PathBuf);

impl TestHost {
    fn look<T>(&self, look: impl FnOnce(&HostContext<'_>) -> T) -> T {
        look(&HostContext {
            home: &self.0,
            cwd: &self.0,
            environment: &|_| None,
            trusts: &|_| false,
            system: &self.0.join("etc"),
        })
    }
}

impl RunHost for TestHost {
    fn cwd(&self) -> &Path {
        &self.0
    }

    fn home(&self) -> &Path {
        &self.0
    }

    fn theme(&self) -> Option<&str> {
        None
    }

    fn resolve(&self, request: &ProfileRequest) -> Result<Resolved, ProfileError> {
        self.look(|surroundings| pinion_profiles::resolve(surroundings, request))
    }

    fn engine_parts(
        &self,
        request: &EngineRequest<'_>,
        _runtime: &Runtime,
    ) -> Result<EngineParts, String> {
        let (registry, _) = Registry::load(&self.0, RegistryOptions::default());
        let (resolved, now) = (request.resolved, std::time::SystemTime::now());
        let unnamed = Unnamed {
            saved: None,
            demo: request.allows_demo,
        };
        let chosen = self.look(|surroundings| {
            pinion_profiles::engine(resolved, &registry, surroundings, unnamed, now)
        });
        Ok(EngineParts {
            chosen: chosen.map_err(|error| error.to_string())?,
            registry,
            providers: Providers::from_environment().0,
            clip_tools: Vec::new(),
            tool_settings: ToolSettings::default(),
            settings: EngineSettings::default(),
            mask: Mask::default(),
        })
    }
}

/// A user of the chat.
struct Person {
    host: Arc<dyn Host>,
    reader: FeedReader,
    /// The received items that the test has not looked at.
    told: Mutex<Vec<Incoming>>,
}

impl Person {
    async fn ask(&self, command: Command) -> Result<Answer, EngineError> {
        let (sender, answer) = oneshot::channel();
        let reply = Reply::new(move |result| drop(sender.send(result)));
        self.host.send(command, reply);
        answer.await.unwrap()
    }

    async fn start(&self, text: &str) {
        let answer = self.ask(Command::Prompt(Prompt::new(text))).await;
        assert!(
            matches!(answer, Ok(Answer::Taken(Disposition::Started))),
            "{answer:?}"
        );
    }

    /// Waits for an event; returns all events up to it.
    async fn until(&self, wanted: impl Fn(&Event) -> bool) -> Vec<Event> {
        let mut events = Vec::new();
        loop {
            let mut told = std::mem::take(&mut *self.told.lock().unwrap());
            told.extend(self.reader.take());
            let mut told = told.into_iter();
            while let Some(incoming) = told.next() {
                if let Incoming::Event(event) = incoming {
                    let is_wanted = wanted(&event);
                    events.push(event);
                    if is_wanted {
                        self.told.lock().unwrap().extend(told);
                        return events;
                    }
                }
            }
            self.reader.arrived().await;
        }
    }

    async fn settled(&self) -> Vec<Event> {
        self.until(|event| matches!(event, Event::Settled { .. }))
            .await
    }

    /// Sends a prompt and waits for the end; returns the events of the run.
    async fn say(&self, text: &str) -> Vec<Event> {
        self.start(text).await;
        self.settled().await
    }

    /// Returns an outline of the messages on the screen.
    async fn screen(&self) -> Vec<String> {
        match self.ask(Command::GetMessages).await {
            Ok(Answer::Messages(messages)) => messages.iter().map(|it| outline(it)).collect(),
            other => panic!("{other:?}"),
        }
    }

    async fn state(&self) -> StateView {
        match self.ask(Command::GetState).await {
            Ok(Answer::State(state)) => *state,
            other => panic!("{other:?}"),
        }
    }
}

fn outline(message: &Message) -> String {
    match message {
        Message::User(user) => format!("user: {}", user.content.joined_text("|")),
        Message::Assistant(answer) => match (answer.stop_reason, &answer.error_message) {
            (StopReason::Error, words) => format!("error: {}", words.as_deref().unwrap_or("")),
            (StopReason::Aborted, _) => "stopped".to_owned(),
            _ => format!("assistant: {}", answer.joined_text("|")),
        },
        other => other.role().to_owned(),
    }
}

/// Runs a conversation in the chat of a command.
fn chat<F: Future<Output = ()>>(mut job: Job, talk: impl FnOnce(Arc<Person>) -> F) -> End {
    let parts = prepare(&mut job).unwrap();
    let (_runtime, chat_end) = parts.run(&job, |host, _feed, reader| {
        let person = Arc::new(Person {
            host,
            reader,
            told: Mutex::default(),
        });
        let talking = talk(person);
        async {
            talking.await;
            Ok(0)
        }
    });
    chat_end.report()
}

fn script(script: &Value) -> String {
    format!("offline: {script}")
}

fn says(text: &str) -> String {
    script(&json!({ "text": text }))
}

#[test]
fn a_conversation_is_kept_turn_by_turn_and_resumed() {
    let home = Home::new();
    let end = chat(home.job(&[]), async |person| {
        assert_eq!(person.host.abilities(), Abilities::Turns);
        assert!(person.screen().await.is_empty());
        person.say(&says("One.")).await;
        assert_eq!(home.kept("final").0, 1, "kept before it settles");
        person.say(&says("Two.")).await;
        assert_eq!(
            person.screen().await,
            [
                format!("user: {}", says("One.")),
                "assistant: One.".into(),
                format!("user: {}", says("Two.")),
                "assistant: Two.".into(),
            ]
        );
        let state = person.state().await;
        assert_eq!((&*state.session_id, state.message_count), ("s", 4));
        assert!(!state.is_streaming);
    });
    assert_eq!(end, End::Done);
    let (times, last) = home.kept("final");
    assert_eq!((times, last.len()), (2, 5));
    let events = home.timeline().events("s", 0, 1000).unwrap();
    assert!(events.len() > 10);

    // With both databases, the screen and the model have all of it.
    chat(home.job(&["--resume"]), async |person| {
        assert_eq!(person.screen().await.len(), 4);
        person.say(&says("Three.")).await;
        assert_eq!(person.screen().await.len(), 6);
    });
    let (times, last) = home.kept("final");
    assert_eq!(times, 3);
    assert_eq!(last[0], "system: Be brief.");
    assert_eq!(last.len(), 7);
    let ordinals = home.timeline().events("s", 0, 1000).unwrap();
    assert_eq!(ordinals.last().unwrap().ordinal, ordinals.len() as u64);

    // Without --resume, the screen shows the old messages and the model starts without them.
    chat(home.job(&[]), async |person| {
        assert_eq!(person.screen().await.len(), 6);
        person.say(&says("Fresh.")).await;
    });
    assert_eq!(home.kept("final").1.len(), 3);
}

#[test]
fn with_turns_only_the_screen_shows_what_the_model_knows() {
    let home = Home::new();
    let turns = home.path("turns.db").display().to_string();
    let stores = ["--session-id", "s", "--turns-db", &turns];
    chat(home.job_without_stores(&stores), async |person| {
        person.say(&says("One.")).await;
    });
    let resumed = [&stores[..], &["--resume"]].concat();
    chat(home.job_without_stores(&resumed), async |person| {
        assert_eq!(person.screen().await[1], "assistant: One.");
    });
}

#[test]
fn a_stopped_prompt_stays_in_the_context_and_is_not_kept() {
    let home = Home::new();
    let slow = script(&json!({"deltas": 3000, "size": 8, "paceMs": 5}));
    let end = chat(home.job(&[]), async |person| {
        person.start(&slow).await;
        person
            .until(|event| matches!(event, Event::BlockDelta { .. }))
            .await;
        assert!(person.state().await.is_streaming);
        let busy = person.ask(Command::Prompt(Prompt::new("more"))).await;
        assert!(
            busy.unwrap_err()
                .to_string()
                .contains("One prompt at a time")
        );
        assert!(matches!(person.ask(Command::Abort).await, Ok(Answer::Done)));
        // The answer to an abort arrives when the run is over.
        assert!(!person.state().await.is_streaming);
        let events = person.settled().await;
        assert!(matches!(
            events.last(),
            Some(Event::Settled { aborted: true })
        ));
        assert_eq!(home.kept("final").0 + home.kept("failed").0, 0);
        person.say(&says("Later.")).await;
    });
    assert_eq!(end, End::Done);
    let (_, last) = home.kept("final");
    assert_eq!(
        last,
        [
            "system: Be brief.".to_owned(),
            format!("user: {slow}"),
            format!("user: {}", says("Later.")),
            "llm_text: Later.".into(),
        ]
    );
}

#[test]
fn the_failure_of_the_last_run_is_that_of_the_program() {
    let home = Home::new();
    let fails = script(&json!({"error": "the model is out"}));
    let file = home.path("frames.jsonl").display().to_string();
    let end = chat(home.job(&["--debug-events-jsonl", &file]), async |person| {
        person.say(&says("One.")).await;
        person.say(&fails).await;
        let screen = person.screen().await;
        assert_eq!(screen.last().unwrap(), "error: the model is out");
        assert_eq!(screen.len(), 4, "a failure is shown once: {screen:?}");
    });
    assert_eq!(end, End::Failed);
    assert_eq!(home.kept("final").0, 1);
    assert_eq!(home.kept("failed").0, 1);
    let frames = frames(&file);
    let kinds: Vec<&str> = frames.iter().filter_map(kind).collect();
    assert_eq!(kinds, ["hello", "snapshot", "snapshot", "error", "done"]);
    assert_eq!(frames.last().unwrap()["done"]["status"], "failed");
    assert_eq!(
        frames[0]["hello"]["capabilities"],
        json!(["ui-events", "snapshot", "done", "debug-log"])
    );
    // The next chat has the messages, answered or not; the last run decides how the chat ends.
    let end = chat(home.job(&["--resume"]), async |person| {
        person.say(&fails).await;
        person.say(&says("Well.")).await;
    });
    assert_eq!(end, End::Done);
    let users = home.kept("final").1;
    let users = users.iter().filter(|text| text.starts_with("user: "));
    assert_eq!(users.count(), 3);
}

#[test]
fn a_turn_that_cannot_be_kept_is_told_and_not_built_upon() {
    let home = Home::new();
    let end = chat(home.job(&[]), async |person| {
        person.say(&says("One.")).await;
        let database = rusqlite::Connection::open(home.path("turns.db")).unwrap();
        database
            .execute_batch("DROP TABLE turn_block_membership")
            .unwrap();
        person.say(&says("Two.")).await;
        let screen = person.screen().await;
        assert!(
            screen
                .last()
                .unwrap()
                .starts_with("error: the answer could not be kept"),
            "{screen:?}"
        );
    });
    assert_eq!(end, End::Failed);
}

#[test]
fn leaving_in_the_middle_stops_the_run() {
    let home = Home::new();
    let file = home.path("frames.jsonl").display().to_string();
    let slow = script(&json!({"deltas": 3000, "size": 8, "paceMs": 5}));
    let end = chat(home.job(&["--debug-events-jsonl", &file]), async |person| {
        person.start(&slow).await;
        person
            .until(|event| matches!(event, Event::BlockDelta { .. }))
            .await;
    });
    assert_eq!(end, End::Done);
    assert_eq!(frames(&file).last().unwrap()["done"]["status"], "stopped");
    assert_eq!(home.kept("final").0, 0);
}

#[test]
fn nothing_said_is_nothing_kept() {
    let home = Home::new();
    let file = home.path("frames.jsonl").display().to_string();
    let end = chat(home.job(&["--debug-events-jsonl", &file]), async |_| {});
    assert_eq!(end, End::Done);
    let frames = frames(&file);
    let kinds: Vec<&str> = frames.iter().filter_map(kind).collect();
    assert_eq!(kinds, ["hello", "snapshot", "snapshot", "done"]);
    assert_eq!(frames.last().unwrap()["done"]["status"], "ok");
    assert_eq!(home.kept("final").0, 0);
    assert_eq!(home.timeline().cursor("s").unwrap(), 0);
}

#[test]
fn what_such_a_chat_cannot_do_is_said() {
    let home = Home::new();
    chat(home.job_without_stores(&[]), async |person| {
        for (command, words) in [
            (Command::CycleModel, "--profile"),
            (Command::GetTree, "--session-id"),
            (Command::Compact { instructions: None }, "does not compact"),
            (Command::ExportHtml { path: None }, "pinion turns export"),
            (Command::AbortRetry, "nothing of the kind"),
            (Command::Prompt(Prompt::new(" \n")), "nothing in the prompt"),
        ] {
            let error = person.ask(command).await.unwrap_err();
            assert_eq!(error.code(), "unsupported");
            assert!(error.to_string().contains(words), "{error}");
        }
        assert!(person.host.sessions(SessionScope::Project).await.is_err());
        assert!(matches!(
            person.ask(Command::GetCommands).await,
            Ok(Answer::Commands(commands)) if commands == json!([])
        ));
        assert!(matches!(person.ask(Command::Abort).await, Ok(Answer::Done)));
        assert!(matches!(
            person.ask(Command::WaitForIdle).await,
            Ok(Answer::Done)
        ));
        person.say(&says("Counted.")).await;
        match person.ask(Command::GetStats).await {
            Ok(Answer::Stats(stats)) => {
                assert_eq!((stats.user_messages, stats.assistant_messages), (1, 1));
                assert!(stats.context_usage.unwrap().tokens.unwrap() > 0);
            }
            other => panic!("{other:?}"),
        }
        match person.ask(Command::GetLastAssistantText).await {
            Ok(Answer::Text(text)) => assert_eq!(text.as_deref(), Some("Counted.")),
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn pictures_are_part_of_what_is_said() {
    let home = Home::new();
    chat(home.job(&[]), async |person| {
        let picture = Block::Image {
            data: "AQI=".into(),
            mime_type: "image/png".into(),
        };
        let prompt = Prompt {
            images: vec![picture],
            ..Prompt::new(says("Seen."))
        };
        person.ask(Command::Prompt(prompt)).await.unwrap();
        person.settled().await;
    });
    let kept = home.turns().latest("s", "final").unwrap().unwrap();
    let said = &kept.turn.blocks[1].payload;
    assert_eq!(said["images"][0]["media_type"], "image/png");
}

#[test]
fn the_prompt_of_the_command_is_not_part_of_what_a_chat_begins_with() {
    let home = Home::new();
    let job = home.job(&["--what", "Hello."]);
    let opening = job.opening();
    assert_eq!(opening.blocks.len(), 1);
    assert_eq!(opening.id, job.seed.id);
    assert_eq!(job.rendered.prompt.as_deref(), Some("Hello."));
}

#[test]
fn after_a_run_without_it_the_chat_shows_that_run() {
    let text = |kind, text: &str| pinion_history::Block::text("id", kind, text);
    use pinion_history::BlockKind::{LlmText, System, User};
    let turn = Turn {
        blocks: vec![
            text(System, "Be brief."),
            text(User, "first"),
            text(LlmText, "One."),
            text(User, "second"),
            text(LlmText, "Two."),
        ],
        ..Turn::default()
    };
    let outlines = |messages: Vec<Message>| messages.iter().map(outline).collect::<Vec<_>>();
    assert_eq!(
        outlines(shown_after(Vec::new(), &turn)),
        [
            "user: first",
            "assistant: One.",
            "user: second",
            "assistant: Two."
        ]
    );
    // The timeline holds what the user saw, which may be more than the model received.
    let seen = vec![Message::User(pinion_message::UserMessage::now(vec![
        Block::text("seen"),
    ]))];
    assert_eq!(
        outlines(shown_after(seen, &turn)),
        ["user: seen", "user: second", "assistant: Two."]
    );
}

fn frames(file: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap();
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Returns the kind of a frame, unless it is an event.
fn kind(frame: &Value) -> Option<&'static str> {
    let kinds = ["hello", "snapshot", "error", "done"];
    kinds.into_iter().find(|kind| !frame[kind].is_null())
}
