//! The stored data of a command: turns and timelines in databases, through the real binary.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

#[path = "../support/mod.rs"]
mod support;

mod damage;
mod kills;
mod resume;
mod sharing;

use pinion_history::{StoreChoice, TimelineEvent, TimelineStore, TurnStore};
use pinion_testkit::{Exit, Frames, Sandbox};
use serde_json::{Value, json};

use crate::support::{HANG, args, offline_sandbox, pinion};

/// A command that repeats its argument.
const SAY: &str = "name: say\nflags:\n  - name: what\n    type: string\n    default: hello\nsystem-prompt: Be brief.\nprompt: \"{{ .what }}\"\n";

/// The directory of a test's databases.
struct Home {
    sandbox: Sandbox,
}

impl Home {
    fn new() -> Self {
        let sandbox = offline_sandbox(&json!({}));
        sandbox.add_files(&json!({"say.yaml": SAY}));
        Self { sandbox }
    }

    fn path(&self, name: &str) -> String {
        self.sandbox.work().join(name).display().to_string()
    }

    /// Starts the command in `session` and stores turns and timeline.
    fn start(&self, session: &str, more: &[&str]) -> Frames {
        Frames::start(&pinion(), &self.sandbox, &self.arguments(session, more))
    }

    fn arguments(&self, session: &str, more: &[&str]) -> Vec<String> {
        let (turns, timeline) = (self.path("turns.db"), self.path("timeline.db"));
        let kept = [
            "run-command",
            "say.yaml",
            "--ai-engine",
            "offline/demo",
            "--session-id",
            session,
            "--turns-db",
            &turns,
            "--timeline-db",
            &timeline,
            "--patch-mode",
            "append",
        ];
        args(&[&kept[..], more].concat())
    }

    /// Runs one prompt to its end.
    fn say(&self, session: &str, what: &str, more: &[&str]) -> (Vec<Value>, Exit) {
        let process = self.start(session, &[&["--rpc", "--what", what], more].concat());
        finish(process)
    }

    fn timeline(&self) -> Box<dyn TimelineStore> {
        let db = self.path("timeline.db");
        pinion_history::read_timeline(&StoreChoice {
            db: &db,
            ..StoreChoice::default()
        })
        .unwrap()
    }

    fn turns(&self) -> Box<dyn TurnStore> {
        let db = self.path("turns.db");
        pinion_history::read_turns(&StoreChoice {
            db: &db,
            ..StoreChoice::default()
        })
        .unwrap()
    }

    /// Returns the events of a session, which must be numbered without a gap.
    fn events(&self, session: &str) -> Vec<TimelineEvent> {
        let events = self.timeline().events(session, 0, 1_000_000).unwrap();
        for (at, event) in events.iter().enumerate() {
            assert_eq!(event.ordinal, at as u64 + 1, "{event:?}");
        }
        events
    }
}

/// Waits for the end and returns the frames and the exit.
fn finish(mut process: Frames) -> (Vec<Value>, Exit) {
    process.close_stdin();
    let exit = process.wait(HANG).expect("it ends");
    process.drain(HANG);
    (frames(&process), exit)
}

fn frames(process: &Frames) -> Vec<Value> {
    process.lines().into_iter().map(|line| line.value).collect()
}

/// Returns the status of the last frame, which must be `done`.
fn status(frames: &[Value]) -> &str {
    let last = frames.last().expect("there are frames");
    last["done"]["status"]
        .as_str()
        .unwrap_or_else(|| panic!("{last}"))
}

/// Returns the codes of all error frames.
fn errors(frames: &[Value]) -> Vec<&str> {
    let errors = frames.iter().filter_map(|frame| frame.get("error"));
    errors.filter_map(|error| error["code"].as_str()).collect()
}

/// Returns the numbers of all events.
fn ordinals(frames: &[Value]) -> Vec<u64> {
    let ordinal = |frame: &Value| frame["uiEvent"]["ordinal"].as_str()?.parse().ok();
    frames.iter().filter_map(ordinal).collect()
}

/// Returns the answers of the model, in order.
fn answers(frames: &[Value]) -> Vec<String> {
    let finished = |frame: &&Value| frame["uiEvent"]["name"] == "ChatTextSegmentFinished";
    let text = |frame: &Value| {
        frame["uiEvent"]["payload"]["content"]
            .as_str()
            .map(str::to_owned)
    };
    frames.iter().filter(finished).filter_map(text).collect()
}
