//! A connection ends once and sends nothing afterwards.

use std::time::Duration;

use futures_util::StreamExt;
use pinion_cluster::bus::{Ended, Epoch, RequestError};
use pinion_cluster::servers::ServerList;
use pinion_testkit::NatsServers;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::stage::{connect, options};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs nats-server"]
async fn nothing_is_sent_after_the_connection_was_lost() {
    let mut servers = NatsServers::one();
    let epoch = connect(&servers, 0).await;
    // The server is paused: what is published gathers in the client and in the socket.
    servers.stop(0);
    for number in 0..200 {
        let _ = epoch
            .publish("late".into(), None, format!("{number}").into())
            .await;
    }
    let asking = epoch.request("nobody".into(), None, "x".into(), 60 * SECOND);
    servers.kill(0);
    assert_eq!(asking.await.unwrap_err(), RequestError::Ended);
    epoch.ended().cancelled().await;
    assert_eq!(epoch.reason(), "the connection was lost");
    assert_eq!(
        epoch.publish("late".into(), None, "x".into()).await,
        Err(Ended)
    );
    servers.restart(0);
    servers.wait_until_ready(0);
    let next = connect(&servers, 0).await;
    let mut late = next.subscribe("late".into()).await.unwrap();
    next.flush().await.unwrap();
    // Longer than the library's attempt to reconnect.
    let heard = tokio::time::timeout(4 * SECOND, late.next()).await;
    assert!(heard.is_err(), "{heard:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs nats-server"]
async fn a_connection_that_is_cut_stays_cut_although_its_server_lives() {
    let servers = NatsServers::three();
    let epoch = connect(&servers, 0).await;
    let page = servers.page(0, "/connz").unwrap();
    let page: serde_json::Value = serde_json::from_str(&page).unwrap();
    assert_eq!(page["connections"][0]["name"], "test");
    let no_listener = epoch
        .request("nobody".into(), None, "x".into(), SECOND)
        .await;
    assert_eq!(no_listener.unwrap_err(), RequestError::NoResponders);
    servers.lame_duck(0);
    epoch.server_leaving().cancelled().await;
    epoch.end("the test ends it");
    let refused = epoch
        .request("nobody".into(), None, "x".into(), SECOND)
        .await;
    assert_eq!(refused.unwrap_err(), RequestError::Ended);
    assert_eq!(epoch.reason(), "the test ends it");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs nats-server"]
async fn servers_that_cannot_be_used_are_named_with_the_reason() {
    let servers = NatsServers::start(1, "authorization { user: ann, password: secret }");
    let list = ServerList::parse(&servers.url(0)).unwrap();
    let refused = Epoch::open(&list.servers[0], &options()).await.unwrap_err();
    assert!(
        refused.message.contains("it rejects the credentials"),
        "{refused}"
    );
    let list = ServerList::parse("nats://127.0.0.1:1").unwrap();
    let refused = Epoch::open(&list.servers[0], &options()).await.unwrap_err();
    assert!(refused.message.contains("nats://127.0.0.1:1"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "belongs to the tests with nats-server"]
async fn a_server_that_is_too_old_is_refused_by_name() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let info = r#"INFO {"server_id":"x","version":"2.9.10","headers":true,"max_payload":1048576,"jetstream":true}"#;
        stream
            .write_all(format!("{info}\r\n").as_bytes())
            .await
            .unwrap();
        let mut heard = [0; 1024];
        let _ = stream.read(&mut heard).await.unwrap();
        stream.write_all(b"PONG\r\n").await.unwrap();
        let _ = stream.read(&mut heard).await;
    });
    let list = ServerList::parse(&address.to_string()).unwrap();
    let refused = Epoch::open(&list.servers[0], &options()).await.unwrap_err();
    let words = "nats-server 2.9.10 is too old for a cluster: 2.12.5 or newer is needed";
    assert_eq!(refused.message, words);
}
