//! Stores that fail, writers that are killed, and copies of the stream.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use pinion_history::{TimelineEntity, TimelineEvent, TimelineStore};
use pinion_jsonl::Coalesce;
use pinion_pinocchio::{
    Control, FrontOptions, PatchMode, RunEnd, SessionStream, Surface, Terminal,
};

use crate::client::Client;
use crate::properties::start;
use crate::script;
use crate::stage::{self, EagerFront, SharedStore, Stage};

fn run(stage: &mut Stage, number: usize, pieces: usize) {
    stage.begin(start(number), &format!("r{number}"));
    for event in script::answer_of(pieces, "twelve bytes") {
        stage.event(event);
    }
    stage.end(RunEnd::Finished, Terminal::No);
}

fn options(store: &SharedStore) -> FrontOptions {
    FrontOptions {
        patch_mode: PatchMode::Append,
        store: store.boxed(),
        copy: None,
    }
}

#[test]
fn a_store_that_fails_is_told_once_and_the_runs_go_on() {
    for works in [0, 1, 3, 40] {
        let store = SharedStore::default();
        store.0.lock().unwrap().fails_after = Some(works);
        let mut stage = Stage::new();
        stage.hello("s", Surface::Stdin);
        run(&mut stage, 0, 50);
        run(&mut stage, 1, 50);
        let mut prompt = EagerFront::new(options(&store));
        prompt.take(stage.outs);
        let client = Client::of(&stage::lines(&prompt.printed()));
        assert_eq!(client.done, ["ok", "ok"]);
        assert_eq!(client.errors, ["store_failed"]);
        assert_eq!(client.runs, 2);
        let mut state = store.0.lock().unwrap();
        let faults = state.timeline.faults("s").unwrap();
        assert_eq!(faults.len(), 1);
        assert_eq!(faults[0].kind, "store");
        assert_eq!(state.appends, works + 1);
    }
}

#[test]
fn a_store_that_cannot_be_read_is_told_to_who_asked() {
    let store = SharedStore::default();
    store.0.lock().unwrap().unreadable = true;
    let mut stage = Stage::new();
    stage.hello("s", Surface::OneShot);
    stage.control("s", "look", Control::Snapshot);
    run(&mut stage, 0, 3);
    let mut prompt = EagerFront::new(options(&store));
    prompt.take(stage.outs);
    let lines = stage::lines(&prompt.printed());
    let error = lines.iter().find(|line| line.get("error").is_some());
    let error = error.unwrap();
    assert_eq!(error["error"]["code"], "store_failed");
    assert_eq!(error["error"].get("terminal"), None);
    assert_eq!(
        (&error["sessionId"], &error["requestId"]),
        (&"s".into(), &"look".into())
    );
    assert_eq!(Client::of(&lines).done, ["ok"]);
}

#[test]
fn bytes_go_out_after_what_they_tell_is_kept() {
    /// Reads the store at every write.
    struct Watch(SharedStore, Arc<Mutex<Vec<(u64, u64)>>>);
    impl Write for Watch {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let text = std::str::from_utf8(bytes).unwrap();
            let events_between = stage::lines(text)
                .iter()
                .filter_map(|line| line["uiEvent"]["ordinal"].as_str()?.parse::<u64>().ok())
                .max();
            let kept = self.0.0.lock().unwrap().timeline.cursor("s").unwrap();
            self.1
                .lock()
                .unwrap()
                .push((events_between.unwrap_or(0), kept));
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let store = SharedStore::default();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut stage = Stage::new();
    run(&mut stage, 0, 2000);
    let options = FrontOptions {
        copy: Some(Box::new(Watch(store.clone(), Arc::clone(&seen)))),
        ..options(&store)
    };
    stage::printed(stage.outs, options, Coalesce::Never);
    let seen = seen.lock().unwrap();
    assert!(seen.len() > 5, "{} writes", seen.len());
    for (events_between, kept) in &*seen {
        assert!(events_between <= kept, "told {events_between}, kept {kept}");
    }
}

#[test]
fn what_was_growing_when_the_writer_was_ended_is_whole_again() {
    let store = SharedStore::default();
    let mut stage = Stage::new();
    stage.begin(start(0), "r");
    let mut events = script::answer_of(1000, "twelve bytes");
    events.pop();
    for event in events {
        stage.event(event);
    }
    EagerFront::new(options(&store)).take(stage.outs);
    let kept = store.snapshot_of("s");
    let whole = "twelve bytes".repeat(1000);
    let is_whole = |payload: &str| payload.contains(&whole);
    assert!(
        !kept.entities.iter().any(|it| is_whole(&it.payload)),
        "it is kept when it doubles"
    );
    let stream = SessionStream::hydrate("s", &mut store.clone()).unwrap();
    assert_eq!(stream.ordinal(), kept.ordinal);
    let entities = stream.entities();
    let grown = entities.iter().find(|it| is_whole(&it.payload)).unwrap();
    assert_eq!(grown.last_event_ordinal, kept.ordinal);
}

#[test]
fn a_timeline_that_cannot_be_read_is_gone_around_and_recorded() {
    let mut store = SharedStore::default();
    let event = TimelineEvent {
        ordinal: 1,
        name: "ChatSomethingElse".into(),
        payload: "{}".into(),
    };
    let broken = TimelineEntity {
        kind: "ChatMessage".into(),
        id: "chat-msg-0:text:a:response-1:output:0".into(),
        created_ordinal: 1,
        last_event_ordinal: 1,
        tombstone: false,
        payload: r#"{"messageId":7,"streaming":true}"#.into(),
    };
    let change = pinion_history::EntityChange {
        ordinal: 1,
        entity: broken,
    };
    store.append("s", &[event], &[change]).unwrap();
    let mut stage = Stage::new();
    run(&mut stage, 0, 5);
    stage.control("s", "", Control::Snapshot);
    let mut prompt = EagerFront::new(options(&store));
    prompt.take(stage.outs);
    let lines = stage::lines(&prompt.printed());
    assert_eq!(
        lines.last().unwrap()["snapshot"]["snapshotOrdinal"].as_str(),
        Some("13")
    );
    let faults = store.faults("s").unwrap();
    assert_eq!(faults.len(), 1, "told once, not with every patch");
    assert_eq!(faults[0].kind, "timeline-projection");
    assert_eq!(
        faults[0].event_name.as_deref(),
        Some("ChatTextSegmentStarted")
    );
}

#[test]
fn the_copy_has_the_same_bytes() {
    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);
    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let kept = Kept::default();
    let mut stage = Stage::new();
    stage.hello("s", Surface::OneShot);
    run(&mut stage, 0, 3000);
    let options = FrontOptions {
        copy: Some(Box::new(kept.clone())),
        ..FrontOptions::default()
    };
    let printed = stage::printed(stage.outs, options, Coalesce::WhenBehind);
    assert_eq!(
        String::from_utf8(kept.0.lock().unwrap().clone()).unwrap(),
        printed
    );
}

#[test]
fn a_copy_that_fails_does_not_stop_the_stream() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut stage = Stage::new();
    run(&mut stage, 0, 3);
    let options = FrontOptions {
        copy: Some(Box::new(Full)),
        ..FrontOptions::default()
    };
    let printed = stage::printed(stage.outs, options, Coalesce::Never);
    assert_eq!(Client::of(&stage::lines(&printed)).done, ["ok"]);
}
