//! Every dialect reports all events of the engine, so that clients of all dialects get the same information.

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

use client::ClientView;

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
    fn a_client_of_any_dialect_gets_the_same_information(events in script::session()) {
        let happened = ClientView::of_events(&events);
        for (dialect, additions) in FORMS {
            for coalesce in [Coalesce::Never, Coalesce::WhenBehind] {
                let lines = lines(&events, dialect, additions, coalesce);
                let known = ClientView::of_lines(&lines, dialect);
                prop_assert_eq!(
                    &known,
                    &happened.as_reported_in(dialect, additions),
                    "{:?} {:?}",
                    dialect,
                    additions
                );
            }
        }
    }

    #[test]
    fn every_line_is_valid_in_the_schema_of_its_dialect(events in script::session()) {
        for (dialect, additions) in FORMS {
            let schema = schema(dialect);
            for line in lines(&events, dialect, additions, Coalesce::Never) {
                prop_assert!(schema.is_valid(&line), "{:?}: {}", dialect, line);
            }
        }
    }

    #[test]
    fn modern_output_is_linear_in_the_length_of_the_answer(pieces in 1_usize..400) {
        let delta = "twelve bytes";
        let events = script::answer_of(pieces, delta);
        let printed: usize = lines(&events, Dialect::Modern, Additions::None, Coalesce::Never)
            .iter()
            .filter(|line| line["type"] == "message_update")
            .map(|line| line.to_string().len() + 1)
            .sum();
        // Each update has a frame, and the end of the block repeats the text once.
        prop_assert!(printed <= (pieces + 2) * 400 + pieces * delta.len(), "{}", printed);
    }
}

/// The way in which a dialect reports an event.
#[derive(Debug, PartialEq)]
enum Reported {
    /// With a line of this type.
    ByLine(&'static str),
    /// With other lines or commands, which the text names.
    Indirectly(&'static str),
}

/// Returns the way in which `dialect` reports `event`. It has no wildcard, so that a new event must be added here.
fn report_of(event: &Event, dialect: Dialect) -> Reported {
    use Dialect::{Classic, Early, Modern};
    use Reported::{ByLine, Indirectly};
    match (event, dialect) {
        (Event::AgentStart, _) => ByLine("agent_start"),
        (Event::AgentEnd { .. }, Early) => Indirectly("the agent_end when nothing more follows"),
        (Event::AgentEnd { .. }, _) => ByLine("agent_end"),
        (Event::TurnStart, _) => ByLine("turn_start"),
        (Event::TurnEnd { .. }, _) => ByLine("turn_end"),
        (Event::MessageStart(_), _) => ByLine("message_start"),
        (Event::MessageEnd(_), _) => ByLine("message_end"),
        (Event::BlockStart { .. } | Event::BlockDelta { .. } | Event::BlockEnd { .. }, _) => {
            ByLine("message_update")
        }
        (Event::UsageUpdate(_), _) => Indirectly("the next message_update"),
        (Event::ToolStart(_), _) => ByLine("tool_execution_start"),
        (Event::ToolUpdate { .. }, Early) => Indirectly("the tool_execution_end"),
        (Event::ToolUpdate { .. }, _) => ByLine("tool_execution_update"),
        (Event::ToolEnd { .. }, _) => ByLine("tool_execution_end"),
        (Event::CallDetail(_), _) => {
            Indirectly("the tool_execution lines; this front does not request it")
        }
        (Event::RetryStart { .. } | Event::RetryEnd { .. }, Early) => {
            Indirectly("the failed message_end and the continued run")
        }
        (Event::RetryStart { .. }, _) => ByLine("auto_retry_start"),
        (Event::RetryEnd { .. }, _) => ByLine("auto_retry_end"),
        (Event::CompactionStart { .. }, Early) => Indirectly("the compaction when it is done"),
        (Event::CompactionStart { .. }, Classic) => ByLine("auto_compaction_start"),
        (Event::CompactionStart { .. }, Modern) => ByLine("compaction_start"),
        (Event::CompactionEnd { .. }, Early) => ByLine("compaction"),
        (Event::CompactionEnd { .. }, Classic) => ByLine("auto_compaction_end"),
        (Event::CompactionEnd { .. }, Modern) => ByLine("compaction_end"),
        (Event::SummaryRetryScheduled { .. }, Modern) => ByLine("summarization_retry_scheduled"),
        (Event::SummaryRetryStart(_), Modern) => ByLine("summarization_retry_attempt_start"),
        (Event::SummaryRetryFinished, Modern) => ByLine("summarization_retry_finished"),
        (
            Event::SummaryRetryScheduled { .. }
            | Event::SummaryRetryStart(_)
            | Event::SummaryRetryFinished,
            _,
        ) => Indirectly("how the compaction ends"),
        (Event::EntryAppended(_), Modern) => ByLine("entry_appended"),
        (Event::EntryAppended(_), Classic) => Indirectly("get_entries"),
        (Event::EntryAppended(_), Early) => Indirectly("the session file"),
        (Event::QueueUpdate { .. }, Modern) => ByLine("queue_update"),
        (Event::QueueUpdate { .. }, Classic) => Indirectly("pendingMessageCount of get_state"),
        (Event::QueueUpdate { .. }, Early) => Indirectly("the message_start when it is delivered"),
        (Event::ThinkingLevelChanged(_), Modern) => ByLine("thinking_level_changed"),
        (Event::SessionInfoChanged(_), Modern) => ByLine("session_info_changed"),
        (Event::ThinkingLevelChanged(_) | Event::SessionInfoChanged(_), Classic) => {
            Indirectly("get_state")
        }
        (Event::ThinkingLevelChanged(_) | Event::SessionInfoChanged(_), Early) => {
            Indirectly("nothing: an early client can neither ask for it nor about it")
        }
        (Event::Fault { .. }, Early) => ByLine("error"),
        (Event::Fault { .. }, _) => ByLine("extension_error"),
        (Event::Settled { .. }, Early) => ByLine("agent_end"),
        (Event::Settled { .. }, Classic | Modern) => ByLine("agent_settled"),
    }
}

#[test]
fn every_event_is_reported_as_described() {
    for event in script::one_of_each() {
        for dialect in Dialect::ALL {
            // A run is active and an answer streams, so that any event is possible.
            let before = script::opening();
            let mut events = before.clone();
            events.push(event.clone());
            let count = lines(&before, dialect, Additions::None, Coalesce::Never).len();
            let all = lines(&events, dialect, Additions::None, Coalesce::Never);
            let printed: Vec<&str> = all[count..]
                .iter()
                .filter_map(|line| line["type"].as_str())
                .collect();
            match report_of(&event, dialect) {
                // The run is active already; a second start belongs to it.
                Reported::ByLine("agent_start") if dialect == Dialect::Early => {
                    assert!(printed.is_empty(), "{printed:?}");
                }
                Reported::ByLine(name) => assert_eq!(printed, [name], "{dialect:?}: {event:?}"),
                Reported::Indirectly(words) => {
                    assert!(
                        printed.is_empty(),
                        "{dialect:?}: {event:?}: {words}: {printed:?}"
                    );
                }
            }
        }
    }
}
