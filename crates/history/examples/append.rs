//! Measures the events per second of a timeline, by batch size:
//! `cargo run --release -p pinion-history --example append [DSN]`.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a measurement, not the program"
)]

use std::time::Instant;

use pinion_history::{
    EntityChange, MemoryTimeline, StoreChoice, TimelineEntity, TimelineEvent, TimelineStore,
    open_timeline,
};

const EVENTS: u64 = 50_000;

fn main() {
    let home = tempfile::tempdir().unwrap();
    let dsn = std::env::args().nth(1);
    println!(
        "{:>8} {:>12} {:>12} {:>12}",
        "batch", "memory/s", "database/s", "one text/s"
    );
    for batch in [1, 16, 64, 128, 256] {
        let file = home.path().join(format!("{batch}.db"));
        let database = || {
            let choice = StoreChoice {
                dsn: dsn.as_deref().unwrap_or_default(),
                db: if dsn.is_some() {
                    ""
                } else {
                    file.to_str().unwrap()
                },
                ..StoreChoice::default()
            };
            open_timeline(&choice).unwrap()
        };
        let events = if batch == 1 { EVENTS / 10 } else { EVENTS };
        let session = std::process::id();
        println!(
            "{batch:>8} {:>12.0} {:>12.0} {:>12.0}",
            rate(&mut MemoryTimeline::new(), "memory", events, batch, spread),
            rate(
                database().as_mut(),
                &format!("spread-{session}-{batch}"),
                events,
                batch,
                spread
            ),
            rate(
                database().as_mut(),
                &format!("text-{session}-{batch}"),
                events,
                batch,
                growing
            ),
        );
    }
}

fn rate(
    store: &mut dyn TimelineStore,
    session: &str,
    events: u64,
    batch: u64,
    entity: fn(u64) -> TimelineEntity,
) -> f64 {
    let name = "ChatTextPatch".into();
    let started = Instant::now();
    for first in (1..=events).step_by(batch as usize) {
        let ordinals = first..(first + batch).min(events + 1);
        let event = |ordinal| {
            TimelineEvent {
            ordinal,
            name: std::sync::Arc::clone(&name),
            payload: format!("{{\"messageId\":\"chat-msg-1:text:1\",\"text\":\"word {ordinal} \",\"mode\":\"CHAT_STREAM_PATCH_MODE_APPEND\",\"sequence\":\"{ordinal}\"}}").into(),
        }
        };
        let facts: Vec<_> = ordinals.clone().map(event).collect();
        let changes: Vec<_> = ordinals
            .map(|ordinal| EntityChange {
                ordinal,
                entity: entity(ordinal),
            })
            .collect();
        store.append(session, &facts, &changes).unwrap();
    }
    events as f64 / started.elapsed().as_secs_f64()
}

/// Creates small entities, a new one with every tenth event.
fn spread(ordinal: u64) -> TimelineEntity {
    made(
        ordinal / 10,
        format!(
            "{{\"role\":\"assistant\",\"content\":\"word {ordinal}\",\"status\":\"streaming\"}}"
        ),
    )
}

/// Creates one message that grows to 2 KB, then the next.
fn growing(ordinal: u64) -> TimelineEntity {
    let text = "word ".repeat(ordinal as usize % 400);
    made(
        ordinal / 400,
        format!("{{\"role\":\"assistant\",\"content\":\"{text}\",\"status\":\"streaming\"}}"),
    )
}

fn made(id: u64, payload: String) -> TimelineEntity {
    TimelineEntity {
        kind: "ChatMessage".into(),
        id: format!("chat-msg-1:text:{id}").into(),
        created_ordinal: 0,
        last_event_ordinal: 0,
        tombstone: false,
        payload: payload.into(),
    }
}
