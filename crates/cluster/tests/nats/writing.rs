//! Writes with expectations, leases that expire, and the configuration of the bucket.

use std::time::Duration;

use pinion_cluster::names::ClusterName;
use pinion_cluster::store::{Expected, KeyState, Lifetime, Store, WriteError};
use pinion_cluster::stream::Replicas;
use pinion_status::Code;
use pinion_testkit::NatsServers;

use crate::stage::{connect, store};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs nats-server"]
async fn one_of_many_writers_wins() {
    let servers = NatsServers::three();
    let store = store(&servers, 0).await;
    let writers = (0..20).map(|number| {
        let store = store.clone();
        async move {
            let value = format!("{number}").into();
            store
                .put("a.todo", value, Expected::Nothing, Lifetime::Endless)
                .await
        }
    });
    let written = futures_util::future::join_all(writers).await;
    let winners: Vec<u64> = written
        .iter()
        .filter_map(|it| it.as_ref().ok().copied())
        .collect();
    assert_eq!(winners.len(), 1, "{written:?}");
    let conflict = Err(WriteError::Conflict(winners[0]));
    assert_eq!(
        written.iter().filter(|it| **it == conflict).count(),
        19,
        "{written:?}"
    );
    let revision = store
        .remove("a.todo", winners[0], Some("lost"))
        .await
        .unwrap();
    let last = store.last("a.todo").await.unwrap().unwrap();
    assert_eq!((last.revision, last.state), (revision, KeyState::Removed));
    assert_eq!(last.departure.as_deref(), Some("lost"));
    let refused = store
        .put("a.todo", "x".into(), Expected::Nothing, Lifetime::Endless)
        .await;
    assert_eq!(refused, Err(WriteError::Conflict(revision)));
    let again = store.put(
        "a.todo",
        "x".into(),
        Expected::Revision(revision),
        Lifetime::Endless,
    );
    again.await.unwrap();
    assert_eq!(store.last("a.nothing").await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs nats-server"]
async fn leases_expire_also_after_they_were_made_again() {
    let servers = NatsServers::one();
    let store = store(&servers, 0).await;
    let mut expected = Expected::Nothing;
    for round in 0..3 {
        let lifetime = Lifetime::Seconds(1);
        let made = store
            .put("hub.h1", "{}".into(), expected, lifetime)
            .await
            .unwrap();
        let renewed = store
            .put("hub.h1", "{}".into(), Expected::Revision(made), lifetime)
            .await
            .unwrap();
        let mut last = store.last("hub.h1").await.unwrap().unwrap();
        assert_eq!(last.revision, renewed);
        while last.state != KeyState::Expired {
            tokio::time::sleep(Duration::from_millis(50)).await;
            last = store.last("hub.h1").await.unwrap().unwrap();
        }
        assert!(last.revision > renewed, "round {round}");
        expected = Expected::Revision(last.revision);
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs nats-server"]
async fn a_bucket_of_another_configuration_is_refused_by_name() {
    let servers = NatsServers::one();
    let epoch = connect(&servers, 0).await;
    let bucket = ClusterName::default().control_bucket();
    let other = serde_json::json!({ "name": bucket.stream(), "subjects": [bucket.subjects()] });
    let subject = format!("$JS.API.STREAM.CREATE.{}", bucket.stream());
    let second = Duration::from_secs(1);
    let made = epoch.request(subject, None, other.to_string().into(), second);
    made.await.unwrap();
    let store = Store::new(epoch, bucket);
    let refused = store.ensure(None).await.unwrap_err();
    assert_eq!(refused.code, Code::FailedPrecondition);
    assert!(
        refused
            .message
            .contains("KV_PN_pinion has another configuration"),
        "{refused}"
    );
    assert!(refused.message.contains(" instead of "), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs nats-server"]
async fn the_bucket_has_as_many_copies_as_the_servers_allow() {
    let one = NatsServers::one();
    let alone = Store::new(
        connect(&one, 0).await,
        ClusterName::default().control_bucket(),
    );
    assert_eq!(alone.ensure(None).await.unwrap(), Replicas(1));
    assert_eq!(alone.ensure(None).await.unwrap(), Replicas(1));
    let three = NatsServers::three();
    let store = Store::new(
        connect(&three, 2).await,
        ClusterName::default().control_bucket(),
    );
    assert_eq!(store.ensure(None).await.unwrap(), Replicas(3));
}
