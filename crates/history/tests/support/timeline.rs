//! Tests for every timeline store.

use std::sync::Arc;

use pinion_history::{
    Fault, HistoryError, Rebuild, TimelineEntity, TimelineEvent, TimelineSnapshot, TimelineStore,
    View, rebuild,
};

use super::{change, described, entity, event, gone};

/// Opens the same store repeatedly.
pub type Open<'a> = &'a mut dyn FnMut() -> Box<dyn TimelineStore>;

/// Runs all checks, each in its own session.
pub fn suite(open: Open<'_>) {
    numbers_go_on(open().as_mut());
    the_same_event_twice_is_one_and_another_is_a_conflict(open().as_mut());
    a_batch_is_stored_as_a_whole_or_not_at_all(open().as_mut());
    entities_keep_the_event_they_came_with(open().as_mut());
    snapshots_of_the_past_are_as_they_were(open().as_mut());
    what_is_gone_is_gone_and_may_come_back(open().as_mut());
    a_snapshot_moves_on_without_entities(open().as_mut());
    events_are_read_in_pages(open().as_mut());
    large_numbers_are_refused(open().as_mut());
    sessions_do_not_see_each_other(open().as_mut());
    faults_are_kept(open().as_mut());
    odd_words_survive(open().as_mut());
    entities_are_rebuilt_from_events(open().as_mut());
    a_failing_projection_can_be_retried(open().as_mut());
    assert!(open().cursor(" ").is_err(), "a session has a name");
}

fn numbers_go_on(store: &mut dyn TimelineStore) {
    assert_eq!(store.cursor("numbers").unwrap(), 0);
    assert_eq!(
        store.snapshot("numbers", None).unwrap(),
        TimelineSnapshot::default()
    );
    store
        .append("numbers", &[event(1, "A"), event(2, "B")], &[])
        .unwrap();
    store.append("numbers", &[event(3, "C")], &[]).unwrap();
    assert_eq!(store.cursor("numbers").unwrap(), 3);
    store.append("numbers", &[], &[]).unwrap();
    assert_eq!(store.cursor("numbers").unwrap(), 3);
}

fn the_same_event_twice_is_one_and_another_is_a_conflict(store: &mut dyn TimelineStore) {
    let session = "conflict";
    store
        .append(session, &[event(1, "A"), event(2, "B")], &[])
        .unwrap();
    store
        .append(session, &[event(2, "B"), event(3, "C")], &[])
        .unwrap();
    let spaced = TimelineEvent {
        payload: "{ \"n\": 3 }".into(),
        ..event(3, "C")
    };
    store.append(session, &[spaced], &[]).unwrap();
    assert_eq!(store.events(session, 0, 10).unwrap().len(), 3);
    for other in [
        event(3, "D"),
        TimelineEvent {
            payload: "{\"n\":4}".into(),
            ..event(3, "C")
        },
    ] {
        let error = store
            .append(session, &[other, event(4, "E")], &[])
            .unwrap_err();
        let HistoryError::Conflict { ordinal, .. } = &error else {
            panic!("{error}")
        };
        assert_eq!(*ordinal, 3);
        assert!(
            error
                .to_string()
                .starts_with("event conflict for session conflict ordinal 3"),
            "{error}"
        );
    }
}

fn a_batch_is_stored_as_a_whole_or_not_at_all(store: &mut dyn TimelineStore) {
    let session = "whole";
    store
        .append(
            session,
            &[event(1, "A")],
            &[change(1, entity("m", "x", "1"))],
        )
        .unwrap();
    let failed = store.append(
        session,
        &[event(2, "B"), event(1, "other")],
        &[
            change(2, entity("m", "x", "2")),
            change(2, entity("m", "y", "2")),
        ],
    );
    assert_eq!(failed.unwrap_err().code(), "history_conflict");
    assert_eq!(store.cursor(session).unwrap(), 1);
    let snapshot = store.snapshot(session, None).unwrap();
    assert_eq!(snapshot.ordinal, 1);
    assert_eq!(described(&snapshot.entities), ["m/x@1-1 1"]);
    store.append(session, &[event(2, "B")], &[]).unwrap();
}

fn entities_keep_the_event_they_came_with(store: &mut dyn TimelineStore) {
    let session = "created";
    store
        .append(
            session,
            &[event(1, "A"), event(2, "B")],
            &[
                change(1, entity("m", "x", "1")),
                change(2, entity("m", "x", "2")),
            ],
        )
        .unwrap();
    store
        .append(
            session,
            &[event(3, "C")],
            &[
                change(3, entity("m", "x", "3")),
                change(3, entity("a", "y", "3")),
            ],
        )
        .unwrap();
    let given = TimelineEntity {
        created_ordinal: 2,
        last_event_ordinal: 2,
        ..entity("z", "given", "4")
    };
    store
        .append(session, &[event(4, "D")], &[change(4, given)])
        .unwrap();
    let snapshot = store.snapshot(session, None).unwrap();
    assert_eq!(snapshot.ordinal, 4);
    assert_eq!(
        described(&snapshot.entities),
        ["m/x@1-3 3", "z/given@2-2 4", "a/y@3-3 3"]
    );
}

fn snapshots_of_the_past_are_as_they_were(store: &mut dyn TimelineStore) {
    let session = "past";
    for ordinal in 1..=4 {
        let changes = match ordinal {
            3 => vec![change(3, gone("m", "x"))],
            4 => vec![change(4, entity("n", "z", "4"))],
            _ => vec![
                change(ordinal, entity("m", "x", &ordinal.to_string())),
                change(ordinal, entity("m", "y", &ordinal.to_string())),
            ],
        };
        store
            .append(session, &[event(ordinal, "E")], &changes)
            .unwrap();
    }
    let mut at = |as_of| {
        let snapshot = store.snapshot(session, as_of).unwrap();
        (snapshot.ordinal, described(&snapshot.entities).join(", "))
    };
    assert_eq!(at(Some(1)), (1, "m/x@1-1 1, m/y@1-1 1".to_owned()));
    assert_eq!(at(Some(2)), (2, "m/x@1-2 2, m/y@1-2 2".to_owned()));
    assert_eq!(at(Some(3)), (3, "m/y@1-2 2".to_owned()));
    assert_eq!(at(Some(99)), (4, "m/y@1-2 2, n/z@4-4 4".to_owned()));
    assert_eq!(at(None), at(Some(0)));
    assert_eq!(at(None), at(Some(4)));
}

fn what_is_gone_is_gone_and_may_come_back(store: &mut dyn TimelineStore) {
    let session = "gone";
    store
        .append(
            session,
            &[event(1, "A")],
            &[change(1, entity("m", "x", "1"))],
        )
        .unwrap();
    store
        .append(
            session,
            &[event(2, "B"), event(3, "C")],
            &[change(2, gone("m", "x")), change(3, entity("m", "x", "3"))],
        )
        .unwrap();
    assert_eq!(
        described(&store.snapshot(session, None).unwrap().entities),
        ["m/x@3-3 3"]
    );
    assert_eq!(store.snapshot(session, Some(2)).unwrap().entities, []);
    store
        .append(
            session,
            &[event(4, "D"), event(5, "E")],
            &[change(4, entity("m", "x", "4")), change(5, gone("m", "x"))],
        )
        .unwrap();
    assert_eq!(store.snapshot(session, None).unwrap().entities, []);
    store
        .append(session, &[event(6, "F")], &[change(6, gone("m", "never"))])
        .unwrap();
    assert_eq!(store.snapshot(session, None).unwrap().ordinal, 6);
}

fn a_snapshot_moves_on_without_entities(store: &mut dyn TimelineStore) {
    let session = "empty";
    store
        .append(session, &[event(1, "A"), event(7, "B")], &[])
        .unwrap();
    assert_eq!(store.snapshot(session, None).unwrap().ordinal, 7);
    assert_eq!(store.projected(session).unwrap(), 7);
    // An older batch does not change newer facts.
    store.append(session, &[event(2, "C")], &[]).unwrap();
    assert_eq!(store.snapshot(session, None).unwrap().ordinal, 7);
    assert_eq!(store.projected(session).unwrap(), 7);
}

fn events_are_read_in_pages(store: &mut dyn TimelineStore) {
    let session = "pages";
    let events: Vec<_> = (1..=250).map(|ordinal| event(ordinal, "E")).collect();
    store.append(session, &events, &[]).unwrap();
    assert_eq!(store.events(session, 0, 100).unwrap(), events[..100]);
    assert_eq!(store.events(session, 100, 100).unwrap(), events[100..200]);
    assert_eq!(store.events(session, 200, 100).unwrap(), events[200..]);
    assert_eq!(store.events(session, 250, 100).unwrap(), []);
    assert_eq!(store.events(session, 0, usize::MAX).unwrap(), events);
}

fn large_numbers_are_refused(store: &mut dyn TimelineStore) {
    let session = "large";
    let largest = i64::MAX as u64;
    store.append(session, &[event(largest, "A")], &[]).unwrap();
    assert_eq!(store.cursor(session).unwrap(), largest);
    let error = store
        .append(session, &[event(largest + 1, "B")], &[])
        .unwrap_err();
    assert_eq!(error.code(), "history_ordinal");
}

fn sessions_do_not_see_each_other(store: &mut dyn TimelineStore) {
    for session in ["one", "two"] {
        let made = change(1, entity("m", "x", &format!("\"{session}\"")));
        store.append(session, &[event(1, "A")], &[made]).unwrap();
    }
    assert_eq!(
        described(&store.snapshot("one", None).unwrap().entities),
        ["m/x@1-1 \"one\""]
    );
    store.forget_entities("one").unwrap();
    assert_eq!(
        store.snapshot("one", None).unwrap(),
        TimelineSnapshot::default()
    );
    assert_eq!(
        described(&store.snapshot("two", None).unwrap().entities),
        ["m/x@1-1 \"two\""]
    );
    let sessions = store.sessions().unwrap();
    let two = sessions.iter().find(|session| session.id == "two").unwrap();
    assert_eq!((two.ordinal, two.events, two.entities), (1, 1, 1));
}

fn faults_are_kept(store: &mut dyn TimelineStore) {
    let full = Fault {
        kind: "decode".to_owned(),
        session: Some("faults".to_owned()),
        ordinal: Some(7),
        event_name: Some("E".to_owned()),
        error: "could not be read".to_owned(),
        raw_message: Some(vec![0, 255, 10]),
        metadata: "{\"a\":1}".to_owned(),
    };
    let sparse = Fault {
        kind: "store".to_owned(),
        session: Some("faults".to_owned()),
        error: "full".to_owned(),
        metadata: "{}".to_owned(),
        ..Fault::default()
    };
    store.record_error(&full).unwrap();
    store.record_error(&sparse).unwrap();
    store.record_error(&Fault::default()).unwrap();
    assert_eq!(store.faults("faults").unwrap(), [full, sparse]);
}

fn odd_words_survive(store: &mut dyn TimelineStore) {
    let session = "s'; DROP TABLE x; -- \"é😀\u{2028}";
    let payload: Arc<str> = format!("{{\"text\":\"{}\"}}", "ü\\u0000 ".repeat(50_000)).into();
    let odd = TimelineEvent {
        ordinal: 1,
        name: "Odd'\"%$1?".into(),
        payload: payload.clone(),
    };
    let made = change(1, entity("k'\"", "i\n\t", &payload));
    store
        .append(session, std::slice::from_ref(&odd), &[made])
        .unwrap();
    assert_eq!(store.events(session, 0, 1).unwrap(), [odd]);
    let snapshot = store.snapshot(session, None).unwrap();
    assert_eq!(snapshot.entities[0].payload, payload);
    assert_eq!(&*snapshot.entities[0].id, "i\n\t");
}

/// A projection that uses every feature: growing text, removal, a counter of events.
pub fn project(event: &TimelineEvent, view: &View) -> Result<Vec<TimelineEntity>, String> {
    let id = format!("{}", event.ordinal % 3);
    let counted = view.list("message").len();
    Ok(match &*event.name {
        "Say" => {
            let before = view.get("message", &id).map_or("", |known| &known.payload);
            let grown = format!("{before}{}", event.ordinal);
            vec![
                entity("message", &id, &grown),
                entity("count", "all", &counted.to_string()),
            ]
        }
        "Remove" => vec![gone("message", &id)],
        _ => Vec::new(),
    })
}

fn entities_are_rebuilt_from_events(store: &mut dyn TimelineStore) {
    let session = "rebuild";
    let name = |ordinal| match ordinal % 7 {
        0 => "Remove",
        3 => "Nothing",
        _ => "Say",
    };
    let events: Vec<_> = (1..=333)
        .map(|ordinal| event(ordinal, name(ordinal)))
        .collect();
    store.append(session, &events, &[]).unwrap();
    assert_eq!(
        rebuild(store, session, Rebuild::FromScratch, project).unwrap(),
        333
    );
    let made = store.snapshot(session, None).unwrap();
    assert_eq!(made.ordinal, 333);
    assert_eq!(made.entities.len(), 3, "two messages and a count");
    let halfway = store.snapshot(session, Some(150)).unwrap();
    assert_ne!(made.entities, halfway.entities);
    assert_eq!(
        rebuild(store, session, Rebuild::FromCursor, project).unwrap(),
        0
    );
    assert_eq!(
        rebuild(store, session, Rebuild::FromScratch, project).unwrap(),
        333
    );
    assert_eq!(store.snapshot(session, None).unwrap(), made);
    assert_eq!(store.snapshot(session, Some(150)).unwrap(), halfway);
}

fn a_failing_projection_can_be_retried(store: &mut dyn TimelineStore) {
    let session = "retry";
    let events: Vec<_> = (1..=120).map(|ordinal| event(ordinal, "Say")).collect();
    store.append(session, &events, &[]).unwrap();
    store.forget_entities(session).unwrap();
    let failing = |event: &TimelineEvent, view: &View| match event.ordinal {
        110 => Err("not today".to_owned()),
        _ => project(event, view),
    };
    let error = rebuild(store, session, Rebuild::FromCursor, failing).unwrap_err();
    assert_eq!(
        error.to_string(),
        "could not project event 110 of session retry: not today"
    );
    assert_eq!(store.projected(session).unwrap(), 109);
    assert_eq!(
        rebuild(store, session, Rebuild::FromCursor, project).unwrap(),
        11
    );
    let retried = store.snapshot(session, None).unwrap();
    assert_eq!(
        rebuild(store, session, Rebuild::FromScratch, project).unwrap(),
        120
    );
    assert_eq!(store.snapshot(session, None).unwrap(), retried);
}
