//! Stores in memory and in files behave alike.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use std::path::Path;

use pinion_history::{
    MemoryTimeline, MemoryTurns, Rebuild, StoreChoice, TimelineStore, TurnStore, open_timeline,
    open_turns, rebuild,
};
use proptest::prelude::*;
use support::{change, entity, event, gone};

fn file(path: &Path) -> StoreChoice<'_> {
    StoreChoice {
        db: path.to_str().unwrap(),
        ..StoreChoice::default()
    }
}

#[test]
fn timelines_in_memory() {
    support::timeline::suite(&mut || Box::new(MemoryTimeline::new()));
}

#[test]
fn timelines_in_a_file() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("a/b/timeline.db");
    support::timeline::suite(&mut || open_timeline(&file(&path)).unwrap());
}

#[test]
fn timelines_in_a_file_without_a_log() {
    let home = tempfile::tempdir().unwrap();
    let dsn = format!(
        "file:{}/timeline.db?_journal_mode=DELETE",
        home.path().display()
    );
    let choice = StoreChoice {
        dsn: &dsn,
        ..StoreChoice::default()
    };
    support::timeline::suite(&mut || open_timeline(&choice).unwrap());
}

#[test]
fn turns_in_memory() {
    support::turns::suite(&mut || Box::new(MemoryTurns::new()));
}

#[test]
fn turns_in_a_file() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("turns.db");
    support::turns::suite(&mut || open_turns(&file(&path)).unwrap().unwrap());
}

#[test]
fn both_stores_share_a_file() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("both.db");
    support::turns::suite(&mut || open_turns(&file(&path)).unwrap().unwrap());
    support::timeline::suite(&mut || open_timeline(&file(&path)).unwrap());
    let turns = open_turns(&file(&path)).unwrap().unwrap();
    let timeline = open_timeline(&file(&path)).unwrap();
    let _: (Box<dyn TurnStore>, Box<dyn TimelineStore>) = (turns, timeline);
}

#[test]
fn a_store_in_memory_may_forget_the_past() {
    for (mut store, events) in [
        (MemoryTimeline::without_versions(), 2),
        (MemoryTimeline::of_the_present(), 0),
    ] {
        let (first, second) = (entity("m", "x", "1"), entity("m", "x", "2"));
        store
            .append("s", &[event(1, "A")], &[change(1, first)])
            .unwrap();
        store
            .append("s", &[event(2, "B")], &[change(2, second)])
            .unwrap();
        let now = store.snapshot("s", None).unwrap();
        assert_eq!(support::described(&now.entities), ["m/x@1-2 2"]);
        assert_eq!(store.snapshot("s", Some(1)).unwrap(), now);
        assert_eq!(store.cursor("s").unwrap(), 2);
        assert_eq!(store.events("s", 0, 10).unwrap().len(), events);
        let session = store.sessions().unwrap().remove(0);
        assert_eq!(
            (session.ordinal, session.events, session.entities),
            (2, 2, 1)
        );
    }
}

/// Generates a history: batches of events, and for each event its effect on an entity.
fn any_history() -> impl Strategy<Value = Vec<Vec<(u8, u8)>>> {
    prop::collection::vec(prop::collection::vec((0u8..4, 0u8..3), 1..6), 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// For every batching of events, memory and SQLite agree at every event, and a rebuild equals
    /// the stored entities.
    #[test]
    fn replay_equals_what_was_stored(history in any_history()) {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("t.db");
        let mut stores: [Box<dyn TimelineStore>; 2] =
            [Box::new(MemoryTimeline::new()), open_timeline(&file(&path)).unwrap()];
        let mut ordinal = 0;
        for batch in &history {
            let (mut events, mut changes) = (Vec::new(), Vec::new());
            for (what, which) in batch {
                ordinal += 1;
                let id = which.to_string();
                events.push(event(ordinal, &format!("{what}:{which}")));
                changes.extend(made(*what, &id, ordinal).map(|entity| change(ordinal, entity)));
            }
            for store in &mut stores {
                store.append("s", &events, &changes).unwrap();
            }
        }
        let [memory, sqlite] = &mut stores;
        let past = |store: &mut Box<dyn TimelineStore>| {
            (0..=ordinal + 1).map(|at| store.snapshot("s", Some(at)).unwrap()).collect::<Vec<_>>()
        };
        let stored = past(memory);
        prop_assert_eq!(&past(sqlite), &stored);
        for store in &mut stores {
            let projected = rebuild(store.as_mut(), "s", Rebuild::FromScratch, |event, _| {
                let (what, which) = event.name.split_once(':').unwrap();
                Ok(made(what.parse().unwrap(), which, event.ordinal).into_iter().collect())
            });
            prop_assert_eq!(projected.unwrap(), ordinal);
            prop_assert_eq!(&past(store), &stored);
        }
    }
}

fn made(what: u8, id: &str, ordinal: u64) -> Option<pinion_history::TimelineEntity> {
    match what {
        0 => None,
        1 => Some(gone("message", id)),
        _ => Some(entity("message", id, &ordinal.to_string())),
    }
}
