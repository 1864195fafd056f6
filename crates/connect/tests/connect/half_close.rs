//! HTTP/1.1 clients that close their sending side: some wait for an answer, some have left.

use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::calls::invoke;
use crate::hub::{self, Serving};
use crate::raw;

/// Sends a request, closes the sending side, and leaves the other open.
async fn ask(server: &Serving, method: &str, kind: &str, body: &[u8]) -> TcpStream {
    let mut socket = TcpStream::connect(server.address).await.unwrap();
    let path = format!("/pinix.v2.HubService/{method}");
    let head = raw::head("POST", &path, &[("content-type", kind)], body.len());
    let head = String::from_utf8(head).unwrap();
    let head = head.replace("connection: close\r\n", "");
    socket
        .write_all(&[head.as_bytes(), body].concat())
        .await
        .unwrap();
    socket.shutdown().await.unwrap();
    socket
}

#[tokio::test]
async fn a_client_that_closed_its_side_is_answered() {
    let server = hub::start(hub::options()).await;
    for length in [1, 100_000, 20_000_000] {
        let input = "x".repeat(length);
        let question = hub::json(&invoke("echo", "once", input.clone()));
        let mut socket = ask(&server, "Invoke", "application/json", &question).await;
        let answer = raw::read(&mut socket).await;
        assert_eq!(answer.status, 200);
        assert!(answer.body.len() > length, "{}", answer.body.len());
    }
    let question = raw::envelope(0, &hub::json(&invoke("feed", "monitor", "")));
    for method in ["Invoke", "InvokeStream"] {
        let mut socket = ask(&server, method, "application/connect+json", &question).await;
        let answer = raw::read(&mut socket).await;
        assert_eq!(raw::envelopes(&answer.body).len(), 3, "{method}");
    }
    let mut socket = ask(&server, "Nothing", "application/json", &question).await;
    assert_eq!(raw::read(&mut socket).await.status, 404);
}

#[tokio::test]
async fn a_client_that_left_ends_silent_calls() {
    let mut options = hub::options();
    options.limits.half_close_timeout = Duration::from_millis(300);
    let server = hub::start(options).await;
    let question = hub::json(&invoke("feed", "slow", ""));
    let in_envelope = raw::envelope(0, &question);
    for (kind, body) in [
        ("application/json", &question),
        ("application/connect+json", &in_envelope),
    ] {
        let socket = ask(&server, "Invoke", kind, body).await;
        server.hub.until(|hub| hub.running() == 1).await;
        drop(socket);
        server.hub.until(|hub| hub.running() == 0).await;
    }
}

#[tokio::test]
async fn a_client_that_left_ends_sending_calls() {
    let mut options = hub::options();
    options.limits.half_close_timeout = Duration::from_secs(60);
    let server = hub::start(options).await;
    let question = raw::envelope(0, &hub::json(&invoke("", "", "")));
    let socket = ask(&server, "GetLogs", "application/connect+json", &question).await;
    server.hub.until(|hub| hub.running() == 1).await;
    drop(socket);
    server.hub.until(|hub| hub.running() == 0).await;
}

#[tokio::test]
async fn a_waiting_client_receives_all_of_a_call_that_continues_to_send() {
    let mut options = hub::options();
    options.limits.half_close_timeout = Duration::from_millis(200);
    let server = hub::start(options).await;
    let question = raw::envelope(0, &hub::json(&invoke("feed", "ticks", "")));
    let mut socket = ask(&server, "Invoke", "application/connect+json", &question).await;
    let answer = raw::read(&mut socket).await;
    assert_eq!(raw::envelopes(&answer.body).len(), 11);
}
