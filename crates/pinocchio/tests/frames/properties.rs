//! Properties that hold for every sequence of engine events.

use std::sync::Arc;

use pinion_agent::Event;
use pinion_jsonl::Coalesce;
use pinion_message::Message;
use pinion_pinocchio::{
    Control, FrontOptions, Out, PatchMode, RunEnd, RunEndTracker, RunStart, Surface, Terminal, Text,
};
use proptest::prelude::*;
use serde_json::Value;

use crate::client::Client;
use crate::script;
use crate::stage::{self, EagerFront, SharedStore, Stage};

const APIS: [&str; 6] = [
    "openai-completions",
    "anthropic-messages",
    "openai-responses",
    "google-generative-ai",
    "offline",
    "",
];

pub fn start(number: usize) -> RunStart {
    RunStart {
        session_id: "s".into(),
        root: Text::new(&format!("chat-msg-{number}")),
        inference_id: Text::new(&format!("inference-{number}")),
        turn_id: "turn".into(),
        prompt: "ask\n\"it\"".into(),
    }
}

/// Returns the events as a model of another API would produce them.
fn behind(api: &str, events: &[Event]) -> Vec<Event> {
    let moved = |message: &Arc<Message>| match &**message {
        Message::Assistant(answer) => {
            let mut answer = answer.clone();
            answer.api = api.to_owned();
            Arc::new(Message::Assistant(answer))
        }
        _ => Arc::clone(message),
    };
    let moved = |event: &Event| match event {
        Event::MessageStart(message) => Event::MessageStart(moved(message)),
        Event::MessageEnd(message) => Event::MessageEnd(moved(message)),
        event => event.clone(),
    };
    events.iter().map(moved).collect()
}

/// Splits the events into runs.
fn as_runs(events: &[Event]) -> (Vec<Out>, Vec<RunEnd>) {
    let mut stage = Stage::new();
    stage.hello("s", Surface::Stdin);
    let mut verdict = RunEndTracker::default();
    let mut ends = Vec::new();
    let mut is_running = false;
    for event in events {
        if !is_running {
            stage.begin(start(ends.len()), &format!("r{}", ends.len()));
            verdict = RunEndTracker::default();
            is_running = true;
        }
        verdict.notice(event);
        stage.event(event.clone());
        if matches!(event, Event::Settled { .. }) {
            stage.end(verdict.end(), Terminal::No);
            ends.push(verdict.end());
            is_running = false;
        }
    }
    if is_running {
        stage.end(RunEnd::Stopped, Terminal::No);
        ends.push(RunEnd::Stopped);
    }
    stage.control("s", "last", Control::Snapshot);
    (stage.outs, ends)
}

fn options(patch_mode: PatchMode, store: Option<&SharedStore>) -> FrontOptions {
    FrontOptions {
        patch_mode,
        store: store.and_then(SharedStore::boxed),
        copy: None,
    }
}

fn patches(lines: &[Value]) -> Vec<Value> {
    let payloads = lines.iter().map(|line| line["uiEvent"]["payload"].clone());
    payloads
        .filter(|payload| !payload["mode"].is_null())
        .collect()
}

fn text(payload: &Value) -> &str {
    let text = [&payload["text"], &payload["arguments"]];
    text.iter().find_map(|text| text.as_str()).unwrap()
}

fn api() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(&APIS[..])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 160, ..ProptestConfig::default() })]

    #[test]
    fn a_client_that_follows_the_events_knows_the_snapshots(
        events in script::session(),
        api in api(),
        mode in proptest::sample::select(&[PatchMode::Append, PatchMode::Snapshot][..]),
        coalesce in proptest::sample::select(&[Coalesce::Never, Coalesce::WhenBehind][..]),
    ) {
        let store = SharedStore::default();
        let (outs, ends) = as_runs(&behind(api, &events));
        let printed = stage::printed(outs, options(mode, Some(&store)), coalesce);
        let lines = stage::lines(&printed);
        let client = Client::of(&lines);
        prop_assert_eq!(client.runs, ends.len());
        prop_assert_eq!(client.snapshots, ends.len() + 1);
        let statuses: Vec<&str> = ends.iter().map(RunEnd::done_status).collect();
        prop_assert_eq!(client.done, statuses);
        let failed = ends.iter().filter(|end| matches!(end, RunEnd::Failed(_))).count();
        prop_assert_eq!(client.errors.len(), failed);
        // The store has the state that the client saw.
        let kept = store.snapshot_of("s");
        prop_assert_eq!(kept.ordinal, client.ordinal);
        let shown = &lines.last().unwrap()["snapshot"]["entities"];
        let shown = shown.as_array().cloned().unwrap_or_default();
        prop_assert_eq!(kept.entities.len(), shown.len());
        for (kept, shown) in kept.entities.iter().zip(&shown) {
            let mut payload = shown["payload"].clone();
            payload.as_object_mut().unwrap().remove("@type");
            prop_assert_eq!(&*kept.id, shown["id"].as_str().unwrap());
            prop_assert_eq!(serde_json::from_str::<Value>(&kept.payload).unwrap(), payload);
        }
        // Another front continues where this one stopped.
        let mut again = Stage::new();
        again.control("s", "last", Control::Snapshot);
        again.begin(start(999), "again");
        let printed = stage::printed(again.outs, options(mode, Some(&store)), coalesce);
        let more = stage::lines(&printed);
        prop_assert_eq!(&more[0], lines.last().unwrap());
        let next = (client.ordinal + 1).to_string();
        prop_assert_eq!(more[1]["uiEvent"]["ordinal"].as_str(), Some(&*next));
    }

    #[test]
    fn snapshot_patches_equal_the_sum_of_append_patches(events in script::session(), api in api()) {
        let events = behind(api, &events);
        let read = |mode| {
            let outs = as_runs(&events).0;
            let printed = stage::printed(outs, options(mode, None), Coalesce::Never);
            stage::lines(&printed)
        };
        let (pieces, wholes) = (read(PatchMode::Append), read(PatchMode::Snapshot));
        prop_assert_eq!(pieces.len(), wholes.len());
        let mut sums = std::collections::BTreeMap::<String, String>::new();
        for (piece, whole) in patches(&pieces).iter().zip(&patches(&wholes)) {
            let id = format!("{}{}", piece["messageId"], piece["streamId"]);
            if piece["offset"].is_null() {
                sums.remove(&id);
            }
            let sum = sums.entry(id).or_default();
            sum.push_str(text(piece));
            prop_assert_eq!(text(whole), sum.as_str());
            prop_assert_eq!(&piece["offset"], &whole["offset"]);
        }
        let rest = |lines: &[Value]| -> Vec<Value> {
            let others = lines.iter().filter(|line| line["uiEvent"]["payload"]["mode"].is_null());
            others.cloned().collect()
        };
        prop_assert_eq!(rest(&pieces), rest(&wholes));
    }
}

#[test]
fn an_event_of_every_kind_is_survived_in_any_place() {
    for api in APIS {
        let each = behind(api, &script::one_of_each());
        for first in 0..each.len() {
            let mut events = each[first..].to_vec();
            events.extend_from_slice(&each[..first]);
            let outs = as_runs(&events).0;
            let options = options(PatchMode::Append, None);
            let printed = stage::printed(outs, options, Coalesce::Never);
            assert!(Client::of(&stage::lines(&printed)).runs > 0);
        }
    }
}

/// Writes a long answer to a reader that is never slow, and returns the bytes that the store and the reader received.
fn long_answer(pieces: usize, mode: PatchMode) -> (usize, usize, usize) {
    let store = SharedStore::default();
    let mut prompt = EagerFront::new(options(mode, Some(&store)));
    let delta = "twelve bytes";
    let mut stage = Stage::new();
    stage.begin(start(0), "");
    for event in behind("offline", &script::answer_of(pieces, delta)) {
        stage.event(event);
    }
    stage.end(RunEnd::Finished, Terminal::Yes);
    prompt.take(stage.outs);
    let state = store.0.lock().unwrap();
    assert!(state.appends > pieces);
    let printed = match mode {
        PatchMode::Append => prompt.printed().len(),
        PatchMode::Snapshot => 0,
    };
    (state.entity_bytes, state.event_bytes, printed)
}

#[test]
fn a_long_answer_costs_what_it_is_long() {
    let pieces = 20_000;
    let size = pieces * "twelve bytes".len();
    let (entities, events, printed) = long_answer(pieces, PatchMode::Append);
    // The text is in an entity twice, and the sum of the stored versions doubles it once more.
    assert!(entities < 8 * size + 4096, "{entities} bytes of entities");
    assert!(events < pieces * 600 + 4 * size, "{events} bytes of events");
    assert!(
        printed < pieces * 800 + 8 * size,
        "{printed} bytes of lines"
    );
}

#[test]
fn what_the_store_is_given_does_not_depend_on_what_the_reader_is() {
    let append = long_answer(500, PatchMode::Append);
    let snapshot = long_answer(500, PatchMode::Snapshot);
    assert_eq!((append.0, append.1), (snapshot.0, snapshot.1));
}
