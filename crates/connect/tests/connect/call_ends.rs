//! The end of calls: by themselves, by the caller, by a deadline, by the server.

use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use pinion_connect::{ClientOptions, Code, HttpVersion, Protocol, Receiver};
use pinion_proto::hub::InvokeResponse;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::calls::{client, invoke, method};
use crate::hub::{self, Hub};
use crate::raw;

fn options(http: HttpVersion) -> ClientOptions {
    ClientOptions {
        http,
        ..ClientOptions::default()
    }
}

#[tokio::test]
async fn a_caller_that_leaves_ends_its_unary_call() {
    let server = hub::start(hub::options()).await;
    for http in [HttpVersion::One, HttpVersion::Two] {
        let client = client(&server, options(http));
        let request = invoke("feed", "slow", "");
        let name = method("Invoke");
        let asking = client.unary::<_, InvokeResponse>(&name, &request, None);
        tokio::select! {
            _ = asking => panic!("it answered"),
            () = server.hub.until(|hub| hub.running() == 1) => {}
        }
        server.hub.until(|hub| hub.running() == 0).await;
    }
}

#[tokio::test]
async fn a_caller_that_leaves_ends_its_stream() {
    let server = hub::start(hub::options()).await;
    for http in [HttpVersion::One, HttpVersion::Two] {
        for protocol in [Protocol::Connect, Protocol::GrpcWeb] {
            let options = ClientOptions {
                protocol,
                ..options(http)
            };
            let client = client(&server, options);
            let request = invoke("feed", "slow", "");
            let receiver: Receiver<InvokeResponse> = client
                .server_stream(&method("Invoke"), &request, None)
                .await
                .unwrap();
            server.hub.until(|hub| hub.running() == 1).await;
            drop(receiver);
            server.hub.until(|hub| hub.running() == 0).await;
        }
    }
}

#[tokio::test]
async fn a_caller_that_drops_its_receiver_ends_a_stream_it_still_sends_into() {
    let server = hub::start(hub::options()).await;
    let client = client(&server, ClientOptions::default());
    let (mut sender, mut receiver) = client.bidi(&method("ProviderStream"), None).await.unwrap();
    sender.send(&invoke("", "", "1")).await.unwrap();
    let answer: InvokeResponse = receiver.next().await.unwrap().unwrap();
    assert_eq!(answer.output, "1");
    drop(receiver);
    server.hub.until(|hub| hub.running() == 0).await;
    let refused = sender.send(&invoke("", "", "2")).await;
    assert_eq!(refused.unwrap_err().code, Code::Canceled);
}

#[tokio::test]
async fn a_handler_that_ends_first_ends_what_is_sent() {
    let server = hub::start(hub::options()).await;
    let client = client(&server, ClientOptions::default());
    let (mut sender, mut receiver) = client.bidi(&method("InvokeStream"), None).await.unwrap();
    sender.send(&invoke("ghost", "x", "1")).await.unwrap();
    let failure = receiver
        .next()
        .await
        .map(|_: Option<InvokeResponse>| ())
        .unwrap_err();
    assert_eq!(failure.message, "Clip 'ghost' not found");
    let refused = sender.send(&invoke("", "", "2")).await;
    assert_eq!(refused.unwrap_err().code, Code::Canceled);
}

#[tokio::test]
async fn a_socket_that_is_closed_ends_the_call() {
    let server = hub::start(hub::options()).await;
    let body = hub::json(&invoke("feed", "slow", ""));
    let unary = raw::head(
        "POST",
        "/pinix.v2.HubService/Invoke",
        &[("content-type", "application/json")],
        body.len(),
    );
    let streaming = [("content-type", "application/connect+json")];
    let enveloped = raw::envelope(0, &body);
    let stream = raw::head(
        "POST",
        "/pinix.v2.HubService/Invoke",
        &streaming,
        enveloped.len(),
    );
    for request in [[unary, body].concat(), [stream, enveloped].concat()] {
        let mut socket = TcpStream::connect(server.address).await.unwrap();
        socket.write_all(&request).await.unwrap();
        server.hub.until(|hub| hub.running() == 1).await;
        drop(socket);
        server.hub.until(|hub| hub.running() == 0).await;
    }
}

#[tokio::test]
async fn the_clock_ends_calls_that_take_too_long() {
    let mut serving = hub::options();
    serving.limits.unary_timeout = Some(Duration::from_millis(30));
    let server = hub::start(serving).await;
    let slow = invoke("feed", "slow", "");
    let post = |kind: &'static str,
                limit: &'static [(&'static str, &'static str)],
                body: Vec<u8>| async move {
        let headers = [&[("content-type", kind)], limit].concat();
        raw::post(
            server.address,
            "/pinix.v2.HubService/Invoke",
            &headers,
            &body,
        )
        .await
    };
    let answer = post(
        "application/json",
        &[("connect-timeout-ms", "20")],
        hub::json(&slow),
    )
    .await;
    assert_eq!(answer.status, 504);
    assert!(answer.text().contains("invocation timed out after 20 ms"));
    let answer = post("application/json", &[], hub::json(&slow)).await;
    assert!(answer.text().contains("invocation timed out after 30 ms"));
    let limit = &[("connect-timeout-ms", "20")];
    let answer = post(
        "application/connect+json",
        limit,
        raw::envelope(0, &hub::json(&slow)),
    )
    .await;
    let end = raw::envelopes(&answer.body).pop().unwrap();
    let expected =
        r#"{"error":{"code":"deadline_exceeded","message":"invocation timed out after 20 ms"}}"#;
    assert_eq!(
        (end.0, String::from_utf8(end.1).unwrap().as_str()),
        (2, expected)
    );
    let limit = &[("grpc-timeout", "20m")];
    let answer = post(
        "application/grpc-web+json",
        limit,
        raw::envelope(0, &hub::json(&slow)),
    )
    .await;
    assert!(answer.text().contains("grpc-status: 4\r\n"), "{answer:?}");
    server.hub.until(|hub| hub.running() == 0).await;
}

#[tokio::test]
async fn a_client_does_not_wait_longer_than_it_said() {
    // Accepts and never answers.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut kept = Vec::new();
        while let Ok((socket, _)) = listener.accept().await {
            kept.push(socket);
        }
    });
    for http in [HttpVersion::One, HttpVersion::Two] {
        let client =
            pinion_connect::Client::new(&format!("http://{address}"), options(http)).unwrap();
        let limit = Some(Duration::from_millis(30));
        let request = invoke("", "", "");
        let asked = client
            .unary::<_, InvokeResponse>(&method("Invoke"), &request, limit)
            .await;
        assert_eq!(asked.unwrap_err().code, Code::DeadlineExceeded);
        let asked = client
            .server_stream::<_, InvokeResponse>(&method("Invoke"), &request, limit)
            .await;
        assert_eq!(asked.unwrap_err().code, Code::DeadlineExceeded);
    }
}

#[tokio::test]
async fn a_reader_that_stops_stops_the_handler() {
    let server = hub::start(hub::options()).await;
    for http in [HttpVersion::One, HttpVersion::Two] {
        let client = client(&server, options(http));
        let request = invoke("", "", "");
        let mut receiver: Receiver<InvokeResponse> = client
            .server_stream(&method("GetLogs"), &request, None)
            .await
            .unwrap();
        receiver.next().await.unwrap().unwrap();
        // The numbers grow while buffers fill, then stand still.
        let mut seen = usize::MAX;
        let begin = Instant::now();
        while server.hub.sent.load(SeqCst) != seen {
            seen = server.hub.sent.load(SeqCst);
            tokio::time::sleep(Duration::from_millis(200)).await;
            assert!(
                begin.elapsed() < Duration::from_secs(30),
                "it never stands still"
            );
        }
        assert!(
            seen * 8192 < 32 << 20,
            "{seen} messages are waiting somewhere"
        );
        assert_eq!(server.hub.running(), 1);
        // A caller that starts to read receives more.
        for _ in 0..seen {
            receiver.next().await.unwrap().unwrap();
        }
        server.hub.until(|hub| hub.sent.load(SeqCst) > seen).await;
        drop(receiver);
        server.hub.until(|hub| hub.running() == 0).await;
        server.hub.sent.store(0, SeqCst);
    }
}

#[tokio::test]
async fn answers_may_come_from_another_task_until_the_call_is_over() {
    let server = hub::start(hub::options()).await;
    let client = client(&server, ClientOptions::default());
    let left = |hub: &Hub| {
        let seen = hub.seen.lock().unwrap();
        seen.as_ref()
            .is_some_and(|failure| failure.code == Code::Canceled)
    };
    // The caller sends its last message, and the handler ends.
    let (sender, mut receiver) = client
        .bidi::<InvokeResponse, InvokeResponse>(&method("RuntimeStream"), None)
        .await
        .unwrap();
    for _ in 0..2000 {
        assert_eq!(receiver.next().await, Ok(Some(InvokeResponse::default())));
    }
    sender.finish();
    while receiver.next().await.unwrap().is_some() {}
    server.hub.until(left).await;
    // The caller leaves.
    *server.hub.seen.lock().unwrap() = None;
    let (sender, mut receiver) = client
        .bidi::<InvokeResponse, InvokeResponse>(&method("RuntimeStream"), None)
        .await
        .unwrap();
    assert_eq!(receiver.next().await, Ok(Some(InvokeResponse::default())));
    drop((sender, receiver));
    server.hub.until(left).await;
}

#[tokio::test]
async fn a_panic_costs_one_call() {
    let server = hub::start(hub::options()).await;
    let client = client(&server, ClientOptions::default());
    let request = invoke("echo", "once", "1");
    let failed = client
        .unary::<_, InvokeResponse>(&method("Panic"), &request, None)
        .await;
    assert_eq!(failed.unwrap_err().code, Code::Internal);
    let answer = client
        .unary::<_, InvokeResponse>(&method("Invoke"), &request, None)
        .await;
    assert_eq!(answer.unwrap().output, "1");
    assert_eq!(server.hub.running(), 0);
}

#[tokio::test]
async fn a_thousand_calls_at_a_time_are_answered() {
    let server = hub::start(hub::options()).await;
    for http in [HttpVersion::One, HttpVersion::Two] {
        let client = client(&server, options(http));
        let count = if http == HttpVersion::One { 100 } else { 1000 };
        let calls: Vec<_> = (0..count)
            .map(|number| {
                let client = client.clone();
                tokio::spawn(async move {
                    let input = format!("{{\"n\":{number}}}");
                    let request = invoke("echo", "once", input.clone());
                    let answer: InvokeResponse = client
                        .unary(&method("Invoke"), &request, None)
                        .await
                        .unwrap();
                    assert_eq!(answer.output, input);
                })
            })
            .collect();
        for call in calls {
            call.await.unwrap();
        }
    }
    assert_eq!(server.hub.begun.load(SeqCst), 1100);
    server.hub.until(|hub| hub.running() == 0).await;
}

#[tokio::test]
async fn idle_connections_are_closed_and_busy_ones_kept() {
    let mut serving = hub::options();
    serving.limits.idle_timeout = Duration::from_millis(100);
    serving.limits.head_timeout = Duration::from_millis(100);
    let server = hub::start(serving).await;
    let mut idle = TcpStream::connect(server.address).await.unwrap();
    let head = raw::head("GET", "/", &[], 0);
    let head = String::from_utf8(head)
        .unwrap()
        .replace("connection: close\r\n", "");
    idle.write_all(head.as_bytes()).await.unwrap();
    let client = client(&server, ClientOptions::default());
    let request = invoke("feed", "slow", "");
    let receiver: Receiver<InvokeResponse> = client
        .server_stream(&method("Invoke"), &request, None)
        .await
        .unwrap();
    let mut bytes = Vec::new();
    idle.read_to_end(&mut bytes).await.unwrap();
    assert!(bytes.starts_with(b"HTTP/1.1 200"), "{bytes:?}");
    // Time to close the connection, if calls did not count.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(server.hub.running(), 1);
    drop(receiver);
    server.hub.until(|hub| hub.running() == 0).await;
    // Time to close the connection.
    tokio::time::sleep(Duration::from_millis(300)).await;
    // The connection is gone, the client opens another.
    let echo = invoke("echo", "once", "1");
    let answer: InvokeResponse = client.unary(&method("Invoke"), &echo, None).await.unwrap();
    assert_eq!(answer.output, "1");
}

/// Reads one answer from a connection that stays open and returns its status.
async fn read_one(stream: &mut TcpStream) -> u16 {
    let mut bytes = Vec::new();
    let reading = async {
        loop {
            if let Some(status) = whole(&bytes) {
                return status;
            }
            let read = stream.read_buf(&mut bytes).await.unwrap();
            let so_far = String::from_utf8_lossy(&bytes);
            assert_ne!(read, 0, "closed after {so_far:?}");
        }
    };
    let read = tokio::time::timeout(Duration::from_secs(10), reading).await;
    read.expect("no answer")
}

/// Returns the status of an answer that is complete.
fn whole(bytes: &[u8]) -> Option<u16> {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let is_whole = match length {
        Some(length) => body.len() >= length.parse().unwrap(),
        None => body.ends_with("0\r\n\r\n"),
    };
    is_whole.then(|| head[9..12].parse().unwrap())
}

#[tokio::test]
async fn a_client_answered_early_may_send_the_rest_and_another_request() {
    let server = hub::start(hub::options().loopback_and(["localhost"])).await;
    let body = vec![b'x'; 100_000];
    for (method, path, host, kind, status) in [
        (
            "POST",
            "/pinix.v2.HubService/Nothing",
            "localhost",
            "application/json",
            404,
        ),
        (
            "PUT",
            "/pinix.v2.HubService/Invoke",
            "localhost",
            "application/json",
            405,
        ),
        (
            "POST",
            "/pinix.v2.HubService/Invoke",
            "localhost",
            "text/plain",
            415,
        ),
        (
            "POST",
            "/pinix.v2.HubService/ProviderStream",
            "localhost",
            "application/connect+json",
            505,
        ),
        (
            "POST",
            "/pinix.v2.HubService/Invoke",
            "elsewhere",
            "application/json",
            403,
        ),
        (
            "POST",
            "/pinix.v2.HubService/Panic",
            "localhost",
            "application/json",
            500,
        ),
        (
            "POST",
            "/pinix.v2.HubService/Refuse",
            "localhost",
            "application/connect+json",
            200,
        ),
        (
            "POST",
            "/pinix.v2.HubService/Refuse",
            "localhost",
            "application/grpc-web+proto",
            200,
        ),
        ("POST", "/somewhere", "localhost", "application/json", 200),
    ] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        for _ in 0..2 {
            let head = format!(
                "{method} {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            stream.write_all(head.as_bytes()).await.unwrap();
            assert_eq!(
                read_one(&mut stream).await,
                status,
                "{method} {path} {kind}"
            );
            // Long enough for a server that closes the connection to have done so.
            tokio::time::sleep(Duration::from_millis(20)).await;
            stream.write_all(&body).await.unwrap();
        }
        let question = b"{\"clipName\":\"todo\",\"command\":\"list\"}";
        let head = format!(
            "POST /pinix.v2.HubService/Invoke HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            question.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(question).await.unwrap();
        assert_eq!(read_one(&mut stream).await, 200, "after {path}");
    }
}

#[tokio::test]
async fn a_client_answered_early_that_sends_nothing_is_disconnected() {
    let server = hub::start(hub::options()).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head = "POST /pinix.v2.HubService/Nothing HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(read_one(&mut stream).await, 404);
    let mut byte = [0; 1];
    let read = tokio::time::timeout(Duration::from_secs(20), stream.read(&mut byte)).await;
    assert_eq!(read.expect("the connection stays").unwrap(), 0);
}
