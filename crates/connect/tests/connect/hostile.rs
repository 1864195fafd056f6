//! Malicious and broken clients: each harms only itself.

use std::io::Write;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use pinion_connect::{ClientOptions, ServerOptions};
use pinion_proto::hub::InvokeResponse;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::calls::{client, invoke, method};
use crate::hub::{self, Serving};
use crate::raw::{self, Answer};

const INVOKE: &str = "/pinix.v2.HubService/Invoke";
const STREAM: (&str, &str) = ("content-type", "application/connect+json");
const UNARY: (&str, &str) = ("content-type", "application/json");

/// Settings with short time limits and little room.
fn strict() -> ServerOptions {
    let mut options = hub::options();
    options.limits.head_timeout = Duration::from_millis(150);
    options.limits.body_timeout = Duration::from_millis(150);
    options.limits.half_close_timeout = Duration::from_millis(50);
    options.limits.message = 100_000;
    options.limits.head = 16 * 1024;
    options
}

/// Sends bytes, leaves the connection open, and reads until the server closes it.
async fn send(server: &Serving, bytes: &[u8]) -> Vec<u8> {
    let mut socket = TcpStream::connect(server.address).await.unwrap();
    let _ = socket.write_all(bytes).await;
    let mut answer = Vec::new();
    let reading = socket.read_to_end(&mut answer);
    let read = tokio::time::timeout(Duration::from_secs(20), reading).await;
    assert!(
        read.is_ok(),
        "the server holds on to {:?}",
        String::from_utf8_lossy(bytes)
    );
    answer
}

/// Checks that the server still works.
async fn alive(server: &Serving) {
    let request = hub::json(&invoke("todo", "list", ""));
    let answer = raw::post(server.address, INVOKE, &[UNARY], &request).await;
    assert_eq!(answer.status, 200);
    server.hub.until(|hub| hub.running() == 0).await;
}

/// Returns the failure in the last envelope of a stream.
fn failure(answer: &Answer) -> (String, String) {
    assert_eq!(answer.status, 200);
    let envelopes = raw::envelopes(&answer.body);
    let [(2, end)] = &envelopes[..] else {
        panic!("no single end: {envelopes:?}");
    };
    let end: serde_json::Value = serde_json::from_slice(end).unwrap();
    let text = |key: &str| end["error"][key].as_str().unwrap().to_owned();
    (text("code"), text("message"))
}

#[tokio::test]
async fn those_who_say_nothing_or_never_finish_are_shown_out() {
    let server = hub::start(strict()).await;
    for words in [
        "",
        "P",
        "PRI * HTTP/2",
        "POST /x HT",
        "POST /x HTTP/1.1\r\nhost: a\r\nx-slow: ",
    ] {
        let answer = send(&server, words.as_bytes()).await;
        assert!(!answer.starts_with(b"HTTP/1.1 200"), "{words}");
    }
    // A client that has sent a complete request before is not exempt from the time limit.
    let asked = "GET / HTTP/1.1\r\nhost: localhost\r\n\r\nGET / HTTP/1.1\r\nhost: loc";
    let mut socket = TcpStream::connect(server.address).await.unwrap();
    let (first, second) = asked.split_at(35);
    socket.write_all(first.as_bytes()).await.unwrap();
    let mut answer = vec![0; 4096];
    assert!(socket.read(&mut answer).await.unwrap() > 0);
    socket.write_all(second.as_bytes()).await.unwrap();
    let closed = tokio::time::timeout(Duration::from_secs(20), socket.read(&mut answer)).await;
    assert!(closed.is_ok(), "the server waits for the rest of a head");
    // One byte at a time does not help.
    let mut socket = TcpStream::connect(server.address).await.unwrap();
    let mut answer = Vec::new();
    for byte in b"POST /x HTTP/1.1\r\nhost: localhost\r\nx-slow: 1\r\nx-slow: 2\r\n"
        .iter()
        .cycle()
    {
        if socket.write_all(&[*byte]).await.is_err() {
            break;
        }
        let reading = socket.read_buf(&mut answer);
        if let Ok(Ok(0) | Err(_)) = tokio::time::timeout(Duration::from_millis(10), reading).await {
            break;
        }
    }
    alive(&server).await;
}

#[tokio::test]
async fn heads_that_are_too_large_are_refused() {
    let server = hub::start(strict()).await;
    let long = format!(
        "GET / HTTP/1.1\r\nhost: localhost\r\nx-long: {}\r\n\r\n",
        "a".repeat(40_000)
    );
    assert!(
        send(&server, long.as_bytes())
            .await
            .starts_with(b"HTTP/1.1 431")
    );
    let many = format!(
        "GET / HTTP/1.1\r\nhost: localhost\r\n{}\r\n",
        "x: y\r\n".repeat(500)
    );
    assert!(
        send(&server, many.as_bytes())
            .await
            .starts_with(b"HTTP/1.1 431")
    );
    alive(&server).await;
}

#[tokio::test]
async fn torn_and_misshapen_streams_get_their_own_words() {
    let server = hub::start(strict()).await;
    let whole = hub::json(&invoke("todo", "list", ""));
    let good = raw::envelope(0, &whole);
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packer.write_all(&vec![b' '; 10_000_000]).unwrap();
    let bomb = raw::envelope(1, &packer.finish().unwrap());
    let gzip = ("connect-content-encoding", "gzip");
    let cases: [(&str, Vec<u8>, &[_], &str, &str); 9] = [
        (
            "inside a message",
            good[..good.len() - 3].to_vec(),
            &[STREAM],
            "invalid_argument",
            "ended inside",
        ),
        (
            "inside a head",
            good[..3].to_vec(),
            &[STREAM],
            "invalid_argument",
            "ended inside",
        ),
        (
            "no message",
            Vec::new(),
            &[STREAM],
            "unimplemented",
            "no message",
        ),
        (
            "two messages",
            [good.clone(), good.clone()].concat(),
            &[STREAM],
            "unimplemented",
            "second message",
        ),
        (
            "huge length",
            b"\x00\xff\xff\xff\xffrest".to_vec(),
            &[STREAM],
            "resource_exhausted",
            "4294967295",
        ),
        (
            "unknown flags",
            raw::envelope(64, &whole),
            &[STREAM],
            "invalid_argument",
            "0x40",
        ),
        (
            "end of stream in a request",
            raw::envelope(2, b"{}"),
            &[STREAM],
            "invalid_argument",
            "0x02",
        ),
        (
            "compressed without saying how",
            raw::envelope(1, &whole),
            &[STREAM],
            "internal",
            "no header names the compression",
        ),
        (
            "bomb",
            bomb,
            &[STREAM, gzip],
            "resource_exhausted",
            "100000 bytes",
        ),
    ];
    for (case, body, headers, code, words) in cases {
        let answer = raw::post(server.address, INVOKE, headers, &body).await;
        let (found, message) = failure(&answer);
        assert_eq!(found, code, "{case}: {message}");
        assert!(message.contains(words), "{case}: {message}");
        let stream = "/pinix.v2.HubService/InvokeStream";
        if !["no message", "two messages"].contains(&case) {
            let (found, _) = failure(&raw::post(server.address, stream, headers, &body).await);
            assert_eq!(found, code, "{case}");
        }
    }
    alive(&server).await;
}

#[tokio::test]
async fn bodies_that_are_too_large_are_refused_before_they_are_read() {
    let server = hub::start(strict()).await;
    // Announced and never sent: the answer comes at once.
    for kind in [UNARY, STREAM] {
        let head = raw::head("POST", INVOKE, &[kind], 100_001_000);
        let body: &[u8] = if kind == STREAM {
            b"\x00\x05\xf5\xe1\x00"
        } else {
            b""
        };
        let answer = raw::parse(&send(&server, &[&head, body].concat()).await);
        if kind == STREAM {
            assert_eq!(failure(&answer).0, "resource_exhausted")
        } else {
            assert_eq!(answer.status, 429)
        }
    }
    // Not announced: the server stops at the limit.
    let mut socket = TcpStream::connect(server.address).await.unwrap();
    let head = format!(
        "POST {INVOKE} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    let chunk = [b"2710\r\n".to_vec(), vec![b' '; 10_000], b"\r\n".to_vec()].concat();
    for _ in 0..11 {
        if socket.write_all(&chunk).await.is_err() {
            break;
        }
    }
    let mut answer = vec![0; 12];
    socket.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, b"HTTP/1.1 429");
    alive(&server).await;
}

#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let server = hub::start(strict()).await;
    let body = hub::json(&invoke("todo", "list", ""));
    let head = raw::head("POST", INVOKE, &[UNARY], body.len());
    let answer = raw::parse(&send(&server, &[head, body[..5].to_vec()].concat()).await);
    assert_eq!(answer.status, 504);
    assert!(
        answer.text().contains("no bytes of the request came"),
        "{}",
        answer.text()
    );
    let body = raw::envelope(0, &body);
    for path in [INVOKE, "/pinix.v2.HubService/InvokeStream"] {
        let head = raw::head("POST", path, &[STREAM], body.len());
        let answer = raw::parse(&send(&server, &[head, body[..9].to_vec()].concat()).await);
        assert_eq!(failure(&answer).0, "deadline_exceeded");
    }
    alive(&server).await;
}

#[tokio::test]
async fn a_request_that_is_not_complete_is_not_answered_and_not_needed_to_be_refused() {
    let server = hub::start(hub::options()).await;
    let whole = raw::envelope(0, &hub::json(&invoke("feed", "monitor", "")));
    let head = raw::head(
        "POST",
        "/pinix.v2.HubService/InvokeStream",
        &[STREAM],
        whole.len() + 8,
    );
    let mut socket = TcpStream::connect(server.address).await.unwrap();
    socket.write_all(&[head, whole].concat()).await.unwrap();
    server
        .hub
        .until(|hub| hub.begun.load(std::sync::atomic::Ordering::SeqCst) == 1)
        .await;
    let early = tokio::time::timeout(Duration::from_millis(100), socket.read_u8()).await;
    assert!(
        early.is_err(),
        "the answer began before the request was complete"
    );
    socket.write_all(&raw::envelope(0, b"{ }")).await.unwrap();
    let answer = raw::read(&mut socket).await;
    assert_eq!(raw::envelopes(&answer.body).len(), 3);
    // A handler that does not read the request need not wait for it.
    let head = raw::head("POST", "/pinix.v2.HubService/Refuse", &[STREAM], 1_000_000);
    let answer = raw::parse(&send(&server, &head).await);
    assert_eq!(failure(&answer).0, "permission_denied");
}

/// Reports whether the server closes a connection within a second.
async fn is_closed(socket: &mut TcpStream) -> bool {
    let mut byte = [0];
    let read = tokio::time::timeout(Duration::from_secs(1), socket.read(&mut byte)).await;
    matches!(read, Ok(Ok(0) | Err(_)))
}

#[tokio::test]
async fn connections_without_a_known_caller_give_way_to_others() {
    let mut options = hub::options();
    options.limits.connections = 3;
    let server = hub::start(options).await;
    let mut known = TcpStream::connect(server.address).await.unwrap();
    let request = hub::json(&invoke("todo", "list", ""));
    let bearer = ("authorization", "Bearer anything");
    let head = raw::head("POST", INVOKE, &[UNARY, bearer], request.len());
    let head = String::from_utf8(head).unwrap();
    let lasting = head.replace("connection: close\r\n", "");
    let call = [lasting.as_bytes(), &request].concat();
    let mut buffer = [0; 4096];
    known.write_all(&call).await.unwrap();
    assert_ne!(known.read(&mut buffer).await.unwrap(), 0);
    // Unauthenticated connections that look like HTTP/2 and would hold all slots as long as they are allowed to.
    let mut strangers = Vec::new();
    for _ in 0..6 {
        let mut stranger = TcpStream::connect(server.address).await.unwrap();
        let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
        stranger.write_all(preface).await.unwrap();
        strangers.push(stranger);
    }
    alive(&server).await;
    known.write_all(&call).await.unwrap();
    let count = known.read(&mut buffer).await.unwrap();
    assert!(buffer[..count].starts_with(b"HTTP/1.1 200"));
    // The oldest of them was closed, or this would not end.
    strangers[0].read_to_end(&mut Vec::new()).await.unwrap();
}

#[tokio::test]
async fn where_all_callers_are_known_more_wait_for_their_turn() {
    let mut options = hub::options();
    options.limits.connections = 1;
    let server = hub::start(options).await;
    let mut known = TcpStream::connect(server.address).await.unwrap();
    let bearer = ("authorization", "Bearer anything");
    let head = raw::head("POST", INVOKE, &[UNARY, bearer], 1000);
    known.write_all(&head).await.unwrap();
    server.hub.until(|hub| hub.running() == 1).await;
    let mut next = TcpStream::connect(server.address).await.unwrap();
    next.write_all(&raw::head("GET", "/", &[], 0))
        .await
        .unwrap();
    assert!(!is_closed(&mut known).await);
    drop(known);
    let answer = raw::read(&mut next).await;
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn over_http2_the_first_request_has_the_time_of_a_head() {
    let server = hub::start(strict()).await;
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    // `send` reads until the server closes; the time for idle connections is two minutes.
    send(&server, preface).await;
    alive(&server).await;
}

#[tokio::test]
async fn bytes_of_any_kind_leave_the_server_alive() {
    let server = hub::start(strict()).await;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let garbage = prop::collection::vec(any::<u8>(), 0..400);
    let openings: [&[u8]; 4] = [
        b"",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
        b"POST /pinix.v2.HubService/InvokeStream HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-type: application/connect+proto\r\ntransfer-encoding: chunked\r\n\r\n190\r\n",
    ];
    for round in 0..60 {
        let bytes = garbage.new_tree(&mut runner).unwrap().current();
        let mut socket = TcpStream::connect(server.address).await.unwrap();
        let _ = socket
            .write_all(&[openings[round % 4], &bytes].concat())
            .await;
        let _ = socket.shutdown().await;
        let mut answer = Vec::new();
        let reading = socket.read_to_end(&mut answer);
        assert!(
            tokio::time::timeout(Duration::from_secs(20), reading)
                .await
                .is_ok()
        );
    }
    alive(&server).await;
}

#[tokio::test]
async fn calls_that_are_reset_as_soon_as_they_are_made_leave_nothing_behind() {
    let server = hub::start(hub::options()).await;
    let client = client(&server, ClientOptions::default());
    let slow = invoke("feed", "slow", "");
    let name = method("Invoke");
    for _ in 0..2000 {
        tokio::select! {
            biased;
            _ = client.unary::<_, InvokeResponse>(&name, &slow, None) => {}
            () = async { for _ in 0..4 { tokio::task::yield_now().await } } => {}
        }
    }
    server.hub.until(|hub| hub.running() == 0).await;
    assert!(server.hub.begun.load(SeqCst) > 0);
    alive(&server).await;
}

/// Marks the process of the test below that may open few files.
const FEW: &str = "PINION_TEST_FEW_DESCRIPTORS";

#[test]
fn a_server_that_ran_out_of_descriptors_goes_on_when_there_are_some() {
    if std::env::var_os(FEW).is_some() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        return runtime.unwrap().block_on(run_out_of_descriptors());
    }
    let name = "hostile::a_server_that_ran_out_of_descriptors_goes_on_when_there_are_some";
    let child = std::process::Command::new("sh")
        .args([
            "-c",
            "ulimit -n 64 && exec \"$0\" --exact \"$1\" --nocapture",
        ])
        .arg(std::env::current_exe().unwrap())
        .arg(name)
        .env(FEW, "1")
        .output()
        .unwrap();
    assert!(
        child.status.success(),
        "{}",
        String::from_utf8_lossy(&child.stderr)
    );
}

async fn run_out_of_descriptors() {
    let server = hub::start(hub::options()).await;
    let mut sockets = Vec::new();
    while let Ok(socket) = TcpStream::connect(server.address).await {
        sockets.push(socket);
        assert!(sockets.len() < 100, "there is no limit");
        tokio::task::yield_now().await;
    }
    // One end of each connection belongs to this process, so some must be waiting to be accepted, without a descriptor
    // for them.
    tokio::time::sleep(Duration::from_millis(120)).await;
    assert!(sockets.len() > 20);
    drop(sockets);
    alive(&server).await;
}
