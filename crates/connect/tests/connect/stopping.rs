//! The shutdown of a server: calls may end by themselves, and the others fail with a reason.

use std::sync::Arc;
use std::time::Duration;

use pinion_connect::{
    Client, ClientOptions, Code, Failure, HttpVersion, Protocol, Receiver, Server,
};
use pinion_proto::hub::InvokeResponse;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::calls::{invoke, method};
use crate::hub::{self, Hub};
use crate::raw;

const WHY: &str = "the hub is shutting down";

fn options(http: HttpVersion) -> ClientOptions {
    ClientOptions {
        http,
        ..ClientOptions::default()
    }
}

/// Starts a server that can be stopped.
async fn stoppable(
    grace: Duration,
) -> (
    Arc<Hub>,
    String,
    CancellationToken,
    tokio::task::JoinHandle<()>,
) {
    let hub = Arc::new(Hub::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = Server::new(Arc::clone(&hub), hub::options());
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    let task = tokio::spawn(async move { server.run(listener, stopped.cancelled(), grace).await });
    (hub, url, stop, task)
}

#[tokio::test]
async fn a_server_that_stops_lets_calls_end_and_takes_no_more() {
    for http in [HttpVersion::One, HttpVersion::Two] {
        let (hub, url, stop, task) = stoppable(Duration::from_secs(20)).await;
        let client = Client::new(&url, options(http)).unwrap();
        let mut patient = options(http);
        let limit = http::HeaderValue::from_static("300");
        patient.headers.insert("connect-timeout-ms", limit);
        let patient = Client::new(&url, patient).unwrap();
        let in_flight = tokio::spawn(async move {
            let request = invoke("feed", "slow", "");
            patient
                .unary::<_, InvokeResponse>(&method("Invoke"), &request, None)
                .await
        });
        hub.until(|hub| hub.running() == 1).await;
        stop.cancel();
        // The call continues to its own end, here the time limit of its caller.
        assert_eq!(
            in_flight.await.unwrap().unwrap_err().code,
            Code::DeadlineExceeded
        );
        task.await.unwrap();
        let late = client
            .unary::<_, InvokeResponse>(&method("Invoke"), &invoke("echo", "", ""), None)
            .await;
        assert_eq!(late.unwrap_err().code, Code::Unavailable);
    }
}

#[tokio::test]
async fn a_server_that_stops_fails_calls_that_do_not_end() {
    for http in [HttpVersion::One, HttpVersion::Two] {
        let (hub, url, stop, task) = stoppable(Duration::from_millis(20)).await;
        let client = Client::new(&url, options(http)).unwrap();
        let request = invoke("feed", "slow", "");
        let mut receiver: Receiver<InvokeResponse> = client
            .server_stream(&method("Invoke"), &request, None)
            .await
            .unwrap();
        let unary = tokio::spawn(async move {
            client
                .unary::<_, InvokeResponse>(&method("Invoke"), &request, None)
                .await
        });
        hub.until(|hub| hub.running() == 2).await;
        stop.cancel();
        task.await.unwrap();
        hub.until(|hub| hub.running() == 0).await;
        let failures = [
            receiver.next().await.unwrap_err(),
            unary.await.unwrap().unwrap_err(),
        ];
        for failure in failures {
            assert_eq!(failure, Failure::new(Code::Unavailable, WHY));
        }
    }
}

/// Returns what a caller reads to the end of its connection after the server was stopped.
async fn last_words(headers: &[(&str, &str)], body: &[u8]) -> raw::Answer {
    let (hub, url, stop, task) = stoppable(Duration::ZERO).await;
    let mut socket = TcpStream::connect(url.trim_start_matches("http://"))
        .await
        .unwrap();
    let head = raw::head("POST", "/pinix.v2.HubService/Invoke", headers, body.len());
    socket.write_all(&[&head, body].concat()).await.unwrap();
    hub.until(|hub| hub.running() == 1).await;
    stop.cancel();
    let answer = raw::read(&mut socket).await;
    task.await.unwrap();
    assert_eq!(hub.running(), 0);
    answer
}

#[tokio::test]
async fn every_protocol_has_its_end() {
    let question = hub::json(&invoke("feed", "slow", ""));
    let answer = last_words(&[("content-type", "application/json")], &question).await;
    assert_eq!(answer.status, 503);
    assert!(answer.text().contains(WHY), "{}", answer.text());
    for (kind, last, words) in [
        ("application/connect+json", 2, "\"code\":\"unavailable\""),
        ("application/grpc-web+json", 128, "grpc-status: 14"),
    ] {
        let body = raw::envelope(0, &question);
        let answer = last_words(&[("content-type", kind)], &body).await;
        let (flags, end) = raw::envelopes(&answer.body).pop().unwrap();
        let end = String::from_utf8(end).unwrap();
        assert_eq!((answer.status, flags), (200, last), "{kind}");
        assert!(end.to_lowercase().contains(words), "{kind}: {end}");
    }
    let (hub, url, stop, task) = stoppable(Duration::ZERO).await;
    let grpc = ClientOptions {
        protocol: Protocol::Grpc,
        ..ClientOptions::default()
    };
    let client = Client::new(&url, grpc).unwrap();
    let mut receiver: Receiver<InvokeResponse> = client
        .server_stream(&method("Invoke"), &invoke("feed", "slow", ""), None)
        .await
        .unwrap();
    hub.until(|hub| hub.running() == 1).await;
    stop.cancel();
    let failure = receiver.next().await.unwrap_err();
    assert_eq!(failure, Failure::new(Code::Unavailable, WHY));
    task.await.unwrap();
}

#[tokio::test]
async fn shutdown_does_not_wait_for_callers_that_do_not_read() {
    let (hub, url, stop, task) = stoppable(Duration::ZERO).await;
    let mut socket = TcpStream::connect(url.trim_start_matches("http://"))
        .await
        .unwrap();
    let body = raw::envelope(0, &hub::json(&invoke("", "", "")));
    let headers = [("content-type", "application/connect+json")];
    let head = raw::head("POST", "/pinix.v2.HubService/GetLogs", &headers, body.len());
    socket.write_all(&[head, body].concat()).await.unwrap();
    hub.stands_still().await;
    stop.cancel();
    let ended = tokio::time::timeout(Duration::from_secs(20), task).await;
    ended.expect("it waits for the caller").unwrap();
    assert_eq!(hub.running(), 0);
    let _ = socket.read(&mut [0; 1]).await;
}

#[tokio::test]
async fn shutdown_may_end_calls_at_once() {
    let hub = Arc::new(Hub::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = Server::new(Arc::clone(&hub), hub::options());
    let (stop, cut) = (CancellationToken::new(), CancellationToken::new());
    let (stopped, hurried) = (stop.clone(), cut.clone());
    let mut task = tokio::spawn(async move {
        let (stop, cut) = (stopped.cancelled(), hurried.cancelled());
        server.run_until(listener, stop, cut).await;
    });
    let client = Client::new(&url, ClientOptions::default()).unwrap();
    let in_flight = tokio::spawn(async move {
        let request = invoke("feed", "slow", "");
        client
            .unary::<_, InvokeResponse>(&method("Invoke"), &request, None)
            .await
    });
    hub.until(|hub| hub.running() == 1).await;
    stop.cancel();
    let early = tokio::time::timeout(Duration::from_millis(200), &mut task).await;
    assert!(early.is_err(), "it did not wait");
    assert_eq!(hub.running(), 1);
    cut.cancel();
    let failure = in_flight.await.unwrap().unwrap_err();
    assert_eq!(failure, Failure::new(Code::Unavailable, WHY));
    task.await.unwrap();
}
