//! Callers that do not read: their calls still end when they should.

use bytes::Bytes;
use http::{Method, Request};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::calls::invoke;
use crate::hub::{self, Serving};
use crate::raw;

const LOGS: &str = "/pinix.v2.HubService/GetLogs";

/// Waits until the call is over.
async fn is_over(server: &Serving) {
    server.hub.until(|hub| hub.running() == 0).await;
}

#[tokio::test]
async fn the_clock_ends_a_stream_that_nobody_reads_over_http_2() {
    let server = hub::start(hub::options()).await;
    let stream = TcpStream::connect(server.address).await.unwrap();
    let (mut asking, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    let asked = Request::builder()
        .method(Method::POST)
        .uri(format!("http://{}{LOGS}", server.address))
        .header("content-type", "application/connect+json")
        .header("connect-timeout-ms", "1500")
        .body(())
        .unwrap();
    let (answer, mut question) = asking.send_request(asked, false).unwrap();
    let message = raw::envelope(0, &hub::json(&invoke("", "", "")));
    question.send_data(Bytes::from(message), true).unwrap();
    let mut answer = answer.await.unwrap().into_body();
    server.hub.stands_still().await;
    is_over(&server).await;
    // A caller that reads later finds the end.
    let mut bytes = Vec::new();
    while let Some(piece) = answer.data().await {
        let piece = piece.unwrap();
        answer.flow_control().release_capacity(piece.len()).unwrap();
        bytes.extend_from_slice(&piece);
    }
    let (flags, end) = raw::envelopes(&bytes).pop().unwrap();
    let end = String::from_utf8(end).unwrap();
    assert_eq!(flags, 2);
    assert!(end.contains("deadline_exceeded"), "{end}");
}

#[tokio::test]
async fn the_clock_ends_a_stream_that_nobody_reads_over_http_1() {
    let server = hub::start(hub::options()).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let message = raw::envelope(0, &hub::json(&invoke("", "", "")));
    let headers = [
        ("content-type", "application/connect+json"),
        ("connect-timeout-ms", "1500"),
    ];
    let head = raw::head("POST", LOGS, &headers, message.len());
    stream.write_all(&[head, message].concat()).await.unwrap();
    server.hub.stands_still().await;
    is_over(&server).await;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.unwrap();
    let (flags, end) = raw::envelopes(&raw::parse(&bytes).body).pop().unwrap();
    let end = String::from_utf8(end).unwrap();
    assert_eq!(flags, 2);
    assert!(end.contains("deadline_exceeded"), "{end}");
}
