//! Whatever the engine tells, every dialect tells: a client of any of them ends up knowing the same.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

mod client;
mod script;

use std::io::Read;
use std::sync::OnceLock;

use jsonschema::Validator;
use pinion_agent::{Event, Listener};
use pinion_jsonl::{Coalesce, Queue, Writer, WriterEnd};
use pinion_pi::{Additions, Dialect, PiListener, Projection, schema_text};
use proptest::prelude::*;
use serde_json::Value;

use client::Knowledge;

/// The lines that a client of `dialect` reads when `events` happen.
fn lines(
    events: &[Event],
    dialect: Dialect,
    additions: Additions,
    coalesce: Coalesce,
) -> Vec<Value> {
    let queue = Queue::new(coalesce);
    let listener = PiListener::new(queue.clone(), dialect);
    for (ordinal, event) in events.iter().enumerate() {
        listener.notice(ordinal as u64 + 1, event);
    }
    queue.close();
    let (mut reader, writer) = std::io::pipe().unwrap();
    let descriptor = std::fs::File::from(std::os::fd::OwnedFd::from(writer));
    let writer = Writer::spawn(descriptor, Projection::new(dialect, additions), queue).unwrap();
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert!(matches!(writer.join(), WriterEnd::Complete));
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

const FORMS: [(Dialect, Additions); 4] = [
    (Dialect::Early, Additions::None),
    (Dialect::Classic, Additions::None),
    (Dialect::Classic, Additions::OfExtensions),
    (Dialect::Modern, Additions::None),
];

fn schema(dialect: Dialect) -> &'static Validator {
    static SCHEMAS: OnceLock<[Validator; 3]> = OnceLock::new();
    let compiled = |dialect: Dialect| {
        let schema = serde_json::from_str(&schema_text(dialect)).unwrap();
        jsonschema::validator_for(&schema).unwrap()
    };
    &SCHEMAS.get_or_init(|| Dialect::ALL.map(compiled))[dialect as usize]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn a_client_of_any_dialect_knows_what_happened(events in script::session()) {
        let happened = Knowledge::of_events(&events);
        for (dialect, additions) in FORMS {
            for coalesce in [Coalesce::Never, Coalesce::WhenBehind] {
                let lines = lines(&events, dialect, additions, coalesce);
                let known = Knowledge::of_lines(&lines, dialect);
                prop_assert_eq!(
                    &known,
                    &happened.as_far_as_told_in(dialect, additions),
                    "{:?} {:?}",
                    dialect,
                    additions
                );
            }
        }
    }

    #[test]
    fn every_line_is_as_in_the_schema_of_its_dialect(events in script::session()) {
        for (dialect, additions) in FORMS {
            let schema = schema(dialect);
            for line in lines(&events, dialect, additions, Coalesce::Never) {
                prop_assert!(schema.is_valid(&line), "{:?}: {}", dialect, line);
            }
        }
    }

    #[test]
    fn what_a_modern_client_reads_grows_with_the_answer(pieces in 1_usize..400) {
        let delta = "twelve bytes";
        let events = script::answer_of(pieces, delta);
        let printed: usize = lines(&events, Dialect::Modern, Additions::None, Coalesce::Never)
            .iter()
            .filter(|line| line["type"] == "message_update")
            .map(|line| line.to_string().len() + 1)
            .sum();
        // Each update costs its frame, and the end of the block repeats the text once.
        prop_assert!(printed <= (pieces + 2) * 400 + pieces * delta.len(), "{}", printed);
    }
}

/// How a dialect tells of an event.
#[derive(Debug, PartialEq)]
enum Told {
    /// By a line of this type.
    By(&'static str),
    /// By what other lines say; the words say which.
    Through(&'static str),
}

/// How `dialect` tells of `event`. Without a wildcard: a new event has to be thought about here.
fn told(event: &Event, dialect: Dialect) -> Told {
    use Dialect::{Classic, Early, Modern};
    use Told::{By, Through};
    match (event, dialect) {
        (Event::AgentStart, _) => By("agent_start"),
        (Event::AgentEnd { .. }, Early) => Through("the agent_end when nothing more follows"),
        (Event::AgentEnd { .. }, _) => By("agent_end"),
        (Event::TurnStart, _) => By("turn_start"),
        (Event::TurnEnd { .. }, _) => By("turn_end"),
        (Event::MessageStart(_), _) => By("message_start"),
        (Event::MessageEnd(_), _) => By("message_end"),
        (Event::BlockStart { .. } | Event::BlockDelta { .. } | Event::BlockEnd { .. }, _) => {
            By("message_update")
        }
        (Event::UsageUpdate(_), _) => Through("the next message_update"),
        (Event::ToolStart(_), _) => By("tool_execution_start"),
        (Event::ToolUpdate { .. }, Early) => Through("the tool_execution_end"),
        (Event::ToolUpdate { .. }, _) => By("tool_execution_update"),
        (Event::ToolEnd { .. }, _) => By("tool_execution_end"),
        (Event::RetryStart { .. } | Event::RetryEnd { .. }, Early) => {
            Through("the failed message_end and the run that goes on")
        }
        (Event::RetryStart { .. }, _) => By("auto_retry_start"),
        (Event::RetryEnd { .. }, _) => By("auto_retry_end"),
        (Event::CompactionStart { .. }, Early) => Through("the compaction when it is done"),
        (Event::CompactionStart { .. }, Classic) => By("auto_compaction_start"),
        (Event::CompactionStart { .. }, Modern) => By("compaction_start"),
        (Event::CompactionEnd { .. }, Early) => By("compaction"),
        (Event::CompactionEnd { .. }, Classic) => By("auto_compaction_end"),
        (Event::CompactionEnd { .. }, Modern) => By("compaction_end"),
        (Event::SummaryRetryScheduled { .. }, Modern) => By("summarization_retry_scheduled"),
        (Event::SummaryRetryStart(_), Modern) => By("summarization_retry_attempt_start"),
        (Event::SummaryRetryFinished, Modern) => By("summarization_retry_finished"),
        (
            Event::SummaryRetryScheduled { .. }
            | Event::SummaryRetryStart(_)
            | Event::SummaryRetryFinished,
            _,
        ) => Through("how the compaction ends"),
        (Event::EntryAppended(_), Modern) => By("entry_appended"),
        (Event::EntryAppended(_), Classic) => Through("get_entries"),
        (Event::EntryAppended(_), Early) => Through("the session file"),
        (Event::QueueUpdate { .. }, Modern) => By("queue_update"),
        (Event::QueueUpdate { .. }, Classic) => Through("pendingMessageCount of get_state"),
        (Event::QueueUpdate { .. }, Early) => Through("the message_start when it is delivered"),
        (Event::ThinkingLevelChanged(_), Modern) => By("thinking_level_changed"),
        (Event::SessionInfoChanged(_), Modern) => By("session_info_changed"),
        (Event::ThinkingLevelChanged(_) | Event::SessionInfoChanged(_), Classic) => {
            Through("get_state")
        }
        (Event::ThinkingLevelChanged(_) | Event::SessionInfoChanged(_), Early) => {
            Through("nothing: an early client can neither ask for it nor about it")
        }
        (Event::Fault { .. }, Early) => By("error"),
        (Event::Fault { .. }, _) => By("extension_error"),
        (Event::Settled { .. }, Early) => By("agent_end"),
        (Event::Settled { .. }, Classic) => Through("isStreaming of get_state"),
        (Event::Settled { .. }, Modern) => By("agent_settled"),
    }
}

#[test]
fn every_event_is_told_where_we_say_it_is() {
    for event in script::one_of_each() {
        for dialect in Dialect::ALL {
            // A run stands and an answer grows, so that any event makes sense.
            let before = script::opening();
            let mut events = before.clone();
            events.push(event.clone());
            let count = lines(&before, dialect, Additions::None, Coalesce::Never).len();
            let all = lines(&events, dialect, Additions::None, Coalesce::Never);
            let printed: Vec<&str> = all[count..]
                .iter()
                .filter_map(|line| line["type"].as_str())
                .collect();
            match told(&event, dialect) {
                // The run stands already; a second start belongs to it.
                Told::By("agent_start") if dialect == Dialect::Early => {
                    assert!(printed.is_empty(), "{printed:?}");
                }
                Told::By(name) => assert_eq!(printed, [name], "{dialect:?}: {event:?}"),
                Told::Through(words) => {
                    assert!(
                        printed.is_empty(),
                        "{dialect:?}: {event:?}: {words}: {printed:?}"
                    );
                }
            }
        }
    }
}
