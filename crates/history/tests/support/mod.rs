//! Tests for every kind of store.
#![allow(dead_code, clippy::unwrap_used, clippy::panic, reason = "tests")]

pub mod timeline;
pub mod turns;

use pinion_history::{
    Block, BlockKind, EntityChange, TimelineEntity, TimelineEvent, Turn, TurnSave,
};
use serde_json::json;

/// Creates an event whose payload contains its number.
pub fn event(ordinal: u64, name: &str) -> TimelineEvent {
    TimelineEvent {
        ordinal,
        name: name.into(),
        payload: format!("{{\"n\":{ordinal}}}").into(),
    }
}

/// Creates an entity that leaves its numbers to the store.
pub fn entity(kind: &str, id: &str, payload: &str) -> TimelineEntity {
    TimelineEntity {
        kind: kind.into(),
        id: id.into(),
        created_ordinal: 0,
        last_event_ordinal: 0,
        tombstone: false,
        payload: payload.into(),
    }
}

/// Creates a removed entity.
pub fn gone(kind: &str, id: &str) -> TimelineEntity {
    TimelineEntity {
        tombstone: true,
        ..entity(kind, id, "ignored")
    }
}

/// Creates a change of an entity by an event.
pub fn change(ordinal: u64, entity: TimelineEntity) -> EntityChange {
    EntityChange { ordinal, entity }
}

/// Returns `kind/id@created-last payload` of each entity.
pub fn described(entities: &[TimelineEntity]) -> Vec<String> {
    let tell = |entity: &TimelineEntity| {
        format!(
            "{}/{}@{}-{} {}",
            entity.kind,
            entity.id,
            entity.created_ordinal,
            entity.last_event_ordinal,
            entity.payload
        )
    };
    entities.iter().map(tell).collect()
}

/// Creates a turn with these texts.
pub fn turn(id: &str, texts: &[&str]) -> Turn {
    let mut turn = Turn {
        id: id.to_owned(),
        ..Turn::default()
    };
    for (index, text) in texts.iter().enumerate() {
        let kind = match index % 2 {
            0 => BlockKind::User,
            _ => BlockKind::LlmText,
        };
        turn.blocks
            .push(Block::text(format!("b{index}"), kind, *text));
    }
    turn.metadata
        .insert(Turn::SESSION_ID.to_owned(), json!("s"));
    turn
}

/// Creates a save of the final turn of session `s`.
pub fn save(turn: &Turn, at_ms: i64) -> TurnSave<'_> {
    TurnSave {
        conversation: "s",
        session: "s",
        turn,
        phase: "final",
        at_ms,
        runtime_key: "",
        inference_id: "",
    }
}

/// Returns the texts of a turn.
pub fn texts(turn: &Turn) -> Vec<&str> {
    let text = |block| Block::payload_text(block, "text");
    turn.blocks.iter().filter_map(text).collect()
}
