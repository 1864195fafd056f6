//! The feed: everything in order, each once, also around lost servers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pinion_cluster::feed::{self, Cursor, Sink};
use pinion_cluster::store::{Change, Expected, KeyState, Lifetime, Store};
use pinion_testkit::NatsServers;
use tokio::sync::watch;

use crate::stage::{connect, store};

/// Applies changes and checks their order.
#[derive(Debug, Default)]
struct Applied {
    keys: BTreeMap<String, String>,
    last: u64,
    replaced: usize,
}

#[derive(Clone)]
struct Recorder {
    applied: Arc<Mutex<Applied>>,
    seen: watch::Sender<u64>,
}

impl Recorder {
    fn new() -> Self {
        Self {
            applied: Arc::default(),
            seen: watch::Sender::new(0),
        }
    }

    async fn wait_for(&self, revision: u64) {
        let mut seen = self.seen.subscribe();
        let waiting = seen.wait_for(|seen| *seen >= revision);
        tokio::time::timeout(Duration::from_secs(30), waiting)
            .await
            .unwrap()
            .unwrap();
    }

    fn keys(&self) -> BTreeMap<String, String> {
        self.applied.lock().unwrap().keys.clone()
    }
}

impl Applied {
    fn set(&mut self, change: Change) {
        match change.state {
            KeyState::Value(value) => {
                let text = String::from_utf8(value.to_vec()).unwrap();
                self.keys.insert(change.key, text);
            }
            KeyState::Removed | KeyState::Expired => {
                self.keys.remove(&change.key);
            }
        }
    }
}

impl Sink for Recorder {
    fn apply(&mut self, change: Change) {
        let mut applied = self.applied.lock().unwrap();
        assert!(
            change.revision > applied.last,
            "{change:?} after {}",
            applied.last
        );
        applied.last = change.revision;
        applied.set(change);
    }

    fn replace(&mut self, changes: Vec<Change>) {
        let mut applied = self.applied.lock().unwrap();
        applied.keys.clear();
        applied.replaced += 1;
        for change in changes {
            applied.last = change.revision;
            applied.set(change);
        }
    }

    fn seen(&mut self, revision: u64) {
        self.seen.send_replace(revision);
    }
}

async fn put(store: &Store, key: &str, value: &str) -> u64 {
    let expected = match store.last(key).await.unwrap() {
        Some(last) => Expected::Revision(last.revision),
        None => Expected::Nothing,
    };
    store
        .put(key, value.to_owned().into(), expected, Lifetime::Endless)
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs nats-server"]
async fn what_was_there_comes_first_and_changes_follow() {
    let servers = NatsServers::one();
    let store = store(&servers, 0).await;
    for number in 0..20 {
        put(&store, &format!("a.k{number}"), "old").await;
    }
    let recorder = Recorder::new();
    let (_told, told) = watch::channel(0);
    let (follower, mut sink) = (store.clone(), recorder.clone());
    let following = tokio::spawn(async move {
        let mut cursor = Cursor::new();
        feed::follow(&follower, &mut cursor, told, &mut sink).await
    });
    recorder.wait_for(20).await;
    assert_eq!(recorder.keys().len(), 20);
    put(&store, "a.k3", "new").await;
    let last = store.last("a.k4").await.unwrap().unwrap().revision;
    let removed = store.remove("a.k4", last, None).await.unwrap();
    recorder.wait_for(removed).await;
    let keys = recorder.keys();
    assert_eq!(keys["a.k3"], "new");
    assert!(!keys.contains_key("a.k4"));
    store.epoch().end("the test ends it");
    let failure = following.await.unwrap();
    assert!(failure.message.contains("connection"), "{failure}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs nats-server"]
async fn a_new_epoch_continues_where_the_last_one_ended() {
    let servers = NatsServers::one();
    let writer = store(&servers, 0).await;
    put(&writer, "a.first", "1").await;
    let recorder = Recorder::new();
    let mut cursor = Cursor::new();
    for round in 0..3 {
        let epoch = connect(&servers, 0).await;
        let store = Store::new(epoch.clone(), writer.bucket().clone());
        let (_told, told) = watch::channel(0);
        let mut sink = recorder.clone();
        let following = feed::follow(&store, &mut cursor, told, &mut sink);
        let changing = async {
            let revision = put(&writer, "a.first", &format!("{round}")).await;
            recorder.wait_for(revision).await;
            epoch.end("the test ends it");
        };
        tokio::join!(following, changing);
        // Nothing follows the bucket meanwhile.
        put(&writer, &format!("a.missed{round}"), "x").await;
    }
    let applied = recorder.applied.lock().unwrap();
    assert_eq!(applied.replaced, 1);
    assert!(applied.keys.contains_key("a.missed1"), "{:?}", applied.keys);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs nats-server"]
async fn the_loss_of_the_leader_loses_no_change() {
    let mut servers = NatsServers::three();
    let store_at_0 = store(&servers, 0).await;
    let leader = servers.leader_of("KV_PN_pinion").unwrap();
    let others: Vec<usize> = (0..3).filter(|at| *at != leader).collect();
    drop(store_at_0);
    let writer = store(&servers, others[0]).await;
    let follower = store(&servers, others[1]).await;
    let recorder = Recorder::new();
    let (told_by, told) = watch::channel(0);
    let mut sink = recorder.clone();
    tokio::spawn(async move {
        let mut cursor = Cursor::new();
        feed::follow(&follower, &mut cursor, told, &mut sink).await
    });
    let mut last = 0;
    for number in 0..60 {
        if number == 20 {
            servers.kill(leader);
        }
        last = put(&writer, &format!("a.k{number}"), "x").await;
    }
    told_by.send_replace(last);
    recorder.wait_for(last).await;
    assert_eq!(recorder.keys().len(), 60);
}
