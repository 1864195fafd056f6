//! Tests for every turn store.

use pinion_history::{Block, BlockKind, SavedTurn, Turn, TurnQuery, TurnSave, TurnStore};
use serde_json::{Value, json};

use super::{save, texts, turn};

/// Opens the same store repeatedly.
pub type Open<'a> = &'a mut dyn FnMut() -> Box<dyn TurnStore>;

/// Runs all checks, each in its own conversation.
pub fn suite(open: Open<'_>) {
    the_latest_turn_is_found(open().as_mut());
    a_turn_comes_back_as_it_was(open().as_mut());
    a_save_at_the_same_moment_replaces(open().as_mut());
    facts_are_the_newest_and_blocks_those_of_the_moment(open().as_mut());
    keys_are_replaced_only_by_keys(open().as_mut());
    turns_are_listed_newest_first(open().as_mut());
    names_must_be_given(open().as_mut());
}

fn in_conversation<'a>(conversation: &'a str, turn: &'a Turn, at_ms: i64) -> TurnSave<'a> {
    TurnSave {
        conversation,
        session: conversation,
        ..save(turn, at_ms)
    }
}

fn latest(store: &mut dyn TurnStore, conversation: &str) -> SavedTurn {
    store.latest(conversation, "final").unwrap().unwrap()
}

fn the_latest_turn_is_found(store: &mut dyn TurnStore) {
    assert_eq!(store.latest("latest", "final").unwrap(), None);
    let (first, second) = (turn("t", &["a"]), turn("t", &["a", "b", "c"]));
    store.save(&in_conversation("latest", &second, 20)).unwrap();
    store.save(&in_conversation("latest", &first, 10)).unwrap();
    let failed = TurnSave {
        phase: "failed",
        ..in_conversation("latest", &first, 30)
    };
    store.save(&failed).unwrap();
    let found = latest(store, "latest");
    assert_eq!((found.at_ms, texts(&found.turn)), (20, vec!["a", "b", "c"]));
    assert_eq!(store.latest("latest", "failed").unwrap().unwrap().at_ms, 30);
    assert_eq!(store.latest("other", "final").unwrap(), None);
}

fn a_turn_comes_back_as_it_was(store: &mut dyn TurnStore) {
    let object = |value: Value| value.as_object().cloned().unwrap();
    let mut full = turn("odd 'id'", &["<a> & \"b\" \u{2028} é😀\n\u{0}", ""]);
    full.blocks.push(Block {
        id: "call_1".to_owned(),
        kind: BlockKind::ToolCall,
        role: String::new(),
        payload: object(
            json!({ "id": "call_1", "args": { "deep": [1, 2.5, -3, 1e-9, null, true] } }),
        ),
        metadata: object(json!({ "x.y@v1": { "b": 1, "a": 2 } })),
    });
    full.blocks.push(Block::default());
    full.data = object(json!({ "x.data@v1": { "z": [] } }));
    store.save(&in_conversation("whole", &full, 1)).unwrap();
    let found = latest(store, "whole");
    assert_eq!(
        found.turn.blocks[3].id, "odd 'id'#3",
        "a block without an id gets one"
    );
    full.blocks[3].id = "odd 'id'#3".to_owned();
    assert_eq!(found.turn, full);
    assert_eq!(found.conversation, "whole");
    assert_eq!(found.session, "whole");
    assert_eq!(found.phase, "final");
}

fn a_save_at_the_same_moment_replaces(store: &mut dyn TurnStore) {
    store
        .save(&in_conversation("again", &turn("t", &["a", "b", "c"]), 5))
        .unwrap();
    store
        .save(&in_conversation("again", &turn("t", &["a", "x"]), 5))
        .unwrap();
    assert_eq!(texts(&latest(store, "again").turn), ["a", "x"]);
    let query = TurnQuery {
        conversation: Some("again".to_owned()),
        ..TurnQuery::default()
    };
    assert_eq!(store.list(&query).unwrap().len(), 1);
}

fn facts_are_the_newest_and_blocks_those_of_the_moment(store: &mut dyn TurnStore) {
    let (mut first, mut second) = (turn("t", &["a"]), turn("t", &["a", "b"]));
    first.metadata.insert("n".to_owned(), json!(1));
    second.metadata.insert("n".to_owned(), json!(2));
    store.save(&in_conversation("facts", &first, 1)).unwrap();
    store.save(&in_conversation("facts", &second, 2)).unwrap();
    let query = TurnQuery {
        conversation: Some("facts".to_owned()),
        ..TurnQuery::default()
    };
    let listed = store.list(&query).unwrap();
    let told: Vec<_> = listed
        .iter()
        .map(|saved| {
            (
                saved.at_ms,
                saved.turn.blocks.len(),
                saved.turn.metadata["n"].clone(),
            )
        })
        .collect();
    assert_eq!(told, [(2, 2, json!(2)), (1, 1, json!(2))]);
}

fn keys_are_replaced_only_by_keys(store: &mut dyn TurnStore) {
    let plain = turn("t", &["a"]);
    let keyed = TurnSave {
        runtime_key: "fast",
        inference_id: "run-1",
        ..in_conversation("keys", &plain, 1)
    };
    store.save(&keyed).unwrap();
    store.save(&in_conversation("keys", &plain, 2)).unwrap();
    let found = latest(store, "keys");
    assert_eq!(
        (found.runtime_key.as_str(), found.inference_id.as_str()),
        ("fast", "run-1")
    );
    let mut telling = plain.clone();
    telling
        .metadata
        .insert(Turn::INFERENCE_ID.to_owned(), json!("run-2"));
    telling
        .metadata
        .insert(Turn::RUNTIME.to_owned(), json!({ "runtime_key": "slow" }));
    store.save(&in_conversation("keys", &telling, 3)).unwrap();
    let found = latest(store, "keys");
    assert_eq!(
        (found.runtime_key.as_str(), found.inference_id.as_str()),
        ("slow", "run-2")
    );
}

fn turns_are_listed_newest_first(store: &mut dyn TurnStore) {
    let said = turn("t", &["a"]);
    for at in [3, 1, 2] {
        let other = TurnSave {
            session: "list-other",
            phase: "failed",
            ..in_conversation("list", &said, at + 10)
        };
        store.save(&in_conversation("list", &said, at)).unwrap();
        store.save(&other).unwrap();
    }
    let mut moments = |query: TurnQuery| -> Vec<i64> {
        let query = TurnQuery {
            conversation: Some("list".to_owned()),
            ..query
        };
        let listed = store.list(&query).unwrap();
        listed.iter().map(|saved| saved.at_ms).collect()
    };
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(moments(TurnQuery::default()), [13, 12, 11, 3, 2, 1]);
    assert_eq!(
        moments(TurnQuery {
            session: text("list"),
            ..TurnQuery::default()
        }),
        [3, 2, 1]
    );
    assert_eq!(
        moments(TurnQuery {
            phase: text("failed"),
            ..TurnQuery::default()
        }),
        [13, 12, 11]
    );
    assert_eq!(
        moments(TurnQuery {
            since_ms: Some(12),
            ..TurnQuery::default()
        }),
        [13, 12]
    );
    assert_eq!(
        moments(TurnQuery {
            limit: Some(2),
            ..TurnQuery::default()
        }),
        [13, 12]
    );
}

fn names_must_be_given(store: &mut dyn TurnStore) {
    let (named, nameless) = (turn("t", &["a"]), turn(" ", &["a"]));
    let good = save(&named, 1);
    for (bad, what) in [
        (
            TurnSave {
                conversation: " ",
                ..good
            },
            "conversation id is empty",
        ),
        (
            TurnSave {
                session: "",
                ..good
            },
            "session id is empty",
        ),
        (
            TurnSave {
                phase: "\t",
                ..good
            },
            "phase is empty",
        ),
        (
            TurnSave {
                turn: &nameless,
                ..good
            },
            "turn id is empty",
        ),
    ] {
        assert_eq!(store.save(&bad).unwrap_err().to_string(), what);
    }
}
