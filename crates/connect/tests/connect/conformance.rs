//! Expectations of other implementations of Connect, gRPC and gRPC-Web: when the head of an answer is sent, the number
//! of messages, the contents of a failure, and calls made with GET.

use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use pinion_connect::{
    CallOptions, Client, ClientOptions, Code, Codec, Failure, HttpVersion, IncomingCall,
    MethodKind, Protocol, Server, ServerOptions, Service,
};
use pinion_proto::Binary;
use pinion_proto::hub::{InvokeRequest, InvokeResponse};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::calls::{invoke, ways};
use crate::hub::json;
use crate::raw;

const PATH: &str = "/lab.v1.LabService/";
/// The longest message the server accepts, in bytes.
const LIMIT: usize = 10_000;

/// A service with a method of every kind. The command of the first request decides the answer.
struct Lab;

impl Service for Lab {
    fn method(&self, name: &str) -> Option<MethodKind> {
        match name {
            "Unary" | "Get" => Some(MethodKind::Unary),
            "Server" => Some(MethodKind::ServerStream),
            "Client" => Some(MethodKind::ClientStream),
            "Both" => Some(MethodKind::BidiOrSingle),
            _ => None,
        }
    }

    fn has_no_side_effects(&self, name: &str) -> bool {
        name == "Get"
    }

    async fn serve(self: Arc<Self>, mut call: IncomingCall) -> Result<(), Failure> {
        let first: InvokeRequest = call.requests.message().await?;
        let mut all = first.input.to_vec();
        if call.context.method() == "Client" {
            while let Some(next) = call.requests.next::<InvokeRequest>().await? {
                all.extend_from_slice(&next.input);
            }
        }
        let name = HeaderName::from_static;
        let value = HeaderValue::from_static;
        call.answers.header(name("x-late"), value("one"));
        call.answers.header(name("x-late"), value("two"));
        call.answers.trailer(name("x-end"), value("three"));
        // The call is suspended between its headers and its answer.
        tokio::time::sleep(Duration::from_millis(5)).await;
        match first.command.as_str() {
            "fail" => Err(detailed()),
            "nothing" => Ok(()),
            _ => {
                let answer = InvokeResponse {
                    output: all.into(),
                    ..InvokeResponse::default()
                };
                call.answers.send(&answer).await
            }
        }
    }
}

/// A failure with details for programs.
fn detailed() -> Failure {
    Failure::new(Code::Aborted, "try again")
        .with_detail("google.rpc.RetryInfo", *b"\x0a\x02\x08\x01")
        .with_detail("lab.v1.Nothing", [])
}

async fn start() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut options = ServerOptions::at([PATH]);
    options.limits.message = LIMIT;
    let server = Server::new(Arc::new(Lab), options);
    tokio::spawn(async move { server.run(listener, pending(), Duration::ZERO).await });
    address
}

fn client(address: SocketAddr, options: ClientOptions) -> Client {
    Client::new(&format!("http://{address}"), options).unwrap()
}

async fn post(address: SocketAddr, method: &str, kind: &str, body: &[u8]) -> raw::Answer {
    let path = format!("{PATH}{method}");
    raw::post(address, &path, &[("content-type", kind)], body).await
}

fn wire(command: &str) -> Vec<u8> {
    raw::envelope(0, &json(&invoke("lab", command, "1")))
}

#[tokio::test]
async fn the_head_of_a_stream_waits_for_the_first_message() {
    let address = start().await;
    for method in ["Server", "Both"] {
        let path = format!("{PATH}{method}");
        let headers = [("content-type", "application/connect+json")];
        let body = wire("echo");
        let mut socket = TcpStream::connect(address).await.unwrap();
        let head = raw::head("POST", &path, &headers, body.len());
        socket.write_all(&head).await.unwrap();
        socket.write_all(&body[..7]).await.unwrap();
        let early = tokio::time::timeout(Duration::from_millis(150), socket.read_u8()).await;
        assert!(early.is_err(), "{method}: the answer begins too early");
        socket.write_all(&body[7..]).await.unwrap();
        let answer = raw::read(&mut socket).await;
        assert_eq!(raw::envelopes(&answer.body).len(), 2, "{method}");
    }
    // Over HTTP/2 the first message is enough: more of the request may follow.
    let client = client(address, ClientOptions::default());
    let opened = client.bidi::<InvokeRequest, InvokeResponse>(
        "lab.v1.LabService/Both",
        Some(Duration::from_secs(20)),
    );
    let (mut sender, mut receiver) = opened.await.unwrap();
    let early = tokio::time::timeout(Duration::from_millis(150), receiver.headers()).await;
    assert!(early.is_err(), "the answer begins before the first message");
    sender.send(&invoke("lab", "echo", "1")).await.unwrap();
    let headers = receiver.headers().await.unwrap().unwrap();
    assert_eq!(headers["x-late"], "one");
}

#[tokio::test]
async fn headers_set_after_the_request_was_read_arrive_in_every_way() {
    let address = start().await;
    for options in ways() {
        let way = format!("{options:?}");
        let client = client(address, options);
        for (method, command) in [("Unary", "echo"), ("Unary", "fail"), ("Get", "echo")] {
            let method = format!("lab.v1.LabService/{method}");
            let request = invoke("lab", command, "1");
            let options = CallOptions::default();
            let reply = client
                .call::<_, InvokeResponse>(&method, &request, &options)
                .await;
            let late: Vec<_> = reply.headers.get_all("x-late").iter().collect();
            assert_eq!(late, ["one", "two"], "{way} {method} {command}");
            assert_eq!(reply.trailers["x-end"], "three", "{way} {method} {command}");
            match command {
                "fail" => assert_eq!(reply.answer, Err(detailed()), "{way}"),
                _ => assert_eq!(reply.answer.unwrap().output, "1", "{way}"),
            }
        }
        for method in ["Server", "Client", "Both"] {
            for command in ["echo", "fail"] {
                let method = format!("lab.v1.LabService/{method}");
                let options = CallOptions {
                    timeout: Some(Duration::from_secs(20)),
                    ..CallOptions::default()
                };
                let opened = client.open::<InvokeRequest, InvokeResponse>(&method, &options);
                let (mut sender, mut receiver) = opened.await.unwrap();
                let request = invoke("lab", command, "1");
                sender.send(&request).await.unwrap();
                sender.finish();
                let answer = receiver.single().await;
                match command {
                    "fail" => assert_eq!(answer, Err(detailed()), "{way} {method}"),
                    _ => assert_eq!(answer.unwrap().output, "1", "{way} {method}"),
                }
                assert_eq!(receiver.trailers()["x-end"], "three", "{way} {method}");
                let headers = receiver.headers().await.unwrap().unwrap();
                let late: Vec<_> = headers.get_all("x-late").iter().collect();
                assert_eq!(late, ["one", "two"], "{way} {method} {command}");
            }
        }
    }
}

#[tokio::test]
async fn a_stream_of_requests_gets_one_answer_over_both_versions_of_http() {
    let address = start().await;
    for options in ways() {
        for gzip in [false, true] {
            let options = ClientOptions {
                gzip,
                ..options.clone()
            };
            let way = format!("{options:?} {gzip}");
            let client = client(address, options);
            let options = CallOptions::default();
            let opened = client.open("lab.v1.LabService/Client", &options).await;
            let (mut sender, mut receiver) = opened.unwrap();
            // Together they are longer than one message may be.
            let part = Bytes::from(vec![b'7'; LIMIT / 4]);
            for _ in 0..8 {
                let request = invoke("lab", "echo", part.clone());
                sender.send(&request).await.unwrap();
            }
            sender.finish();
            let answer: InvokeResponse = receiver.single().await.unwrap();
            assert_eq!(answer.output.len(), 8 * part.len(), "{way}");
        }
    }
    let quiet = post(
        address,
        "Client",
        "application/connect+json",
        &wire("nothing"),
    )
    .await;
    let end = raw::envelopes(&quiet.body).pop().unwrap();
    assert!(String::from_utf8_lossy(&end.1).contains(r#""code":"internal""#));
}

#[tokio::test]
async fn the_limit_is_one_of_messages_also_where_the_request_comes_first() {
    let address = start().await;
    let large = |length: usize| raw::envelope(0, &json(&invoke("lab", "echo", vec![b'7'; length])));
    let kind = "application/connect+json";
    let several = [large(LIMIT / 2), large(LIMIT / 2), large(LIMIT / 2)].concat();
    for method in ["Client", "Both"] {
        let answer = post(address, method, kind, &several).await;
        assert_eq!(raw::envelopes(&answer.body).len(), 2, "{method}");
    }
    let last = [large(1), large(LIMIT)].concat();
    let answer = post(address, "Client", kind, &last).await;
    let end = raw::envelopes(&answer.body).pop().unwrap();
    assert!(String::from_utf8_lossy(&end.1).contains("resource_exhausted"));
}

#[tokio::test]
async fn a_wrong_number_of_messages_is_unimplemented() {
    let address = start().await;
    let two = [wire("echo"), wire("echo")].concat();
    for (method, kind) in [
        ("Server", "application/connect+json"),
        ("Server", "application/grpc-web+json"),
        ("Unary", "application/grpc-web+json"),
    ] {
        for body in [&b""[..], &two] {
            let answer = post(address, method, kind, body).await;
            let (_, end) = raw::envelopes(&answer.body).pop().unwrap();
            let end = String::from_utf8_lossy(&end).into_owned();
            let said = end.contains(r#""code":"unimplemented""#) || end.contains("grpc-status: 12");
            assert!(said, "{method} {kind}: {end}");
        }
    }
}

#[tokio::test]
async fn details_of_failures_are_written_as_each_protocol_has_them() {
    let address = start().await;
    let request = json(&invoke("lab", "fail", ""));
    let answer = post(address, "Unary", "application/json", &request).await;
    let object = r#"{"code":"aborted","message":"try again","details":[{"type":"google.rpc.RetryInfo","value":"CgIIAQ"},{"type":"lab.v1.Nothing","value":""}]}"#;
    assert_eq!((answer.status, answer.text().as_str()), (409, object));
    let answer = post(address, "Server", "application/connect+json", &wire("fail")).await;
    let (flags, end) = raw::envelopes(&answer.body).pop().unwrap();
    let expected = format!(r#"{{"error":{object},"metadata":{{"x-end":["three"]}}}}"#);
    assert_eq!((flags, String::from_utf8(end).unwrap()), (2, expected));
    let answer = post(
        address,
        "Server",
        "application/grpc-web+json",
        &wire("fail"),
    )
    .await;
    let (_, end) = raw::envelopes(&answer.body).pop().unwrap();
    let end = String::from_utf8(end).unwrap();
    let status = end
        .lines()
        .find_map(|line| line.strip_prefix("grpc-status-details-bin: "));
    let status = STANDARD_NO_PAD.decode(status.unwrap()).unwrap();
    assert!(status.starts_with(b"\x08\x0a\x12\x09try again\x1a"));
    assert!(
        status
            .windows(40)
            .any(|part| part == b"type.googleapis.com/google.rpc.RetryInfo")
    );
}

#[tokio::test]
async fn grpc_to_a_service_that_is_not_there_is_unimplemented() {
    let address = start().await;
    for kind in ["application/grpc-web", "application/grpc-web+json"] {
        for path in ["/other.v1.OtherService/Say", "/lab.v1.LabService/Other"] {
            let answer = raw::post(address, path, &[("content-type", kind)], b"").await;
            assert_eq!(answer.status, 200, "{path} {kind}");
            assert!(
                answer.text().contains("grpc-status: 12\r\n"),
                "{path} {kind}"
            );
        }
    }
    let options = ClientOptions {
        protocol: Protocol::Grpc,
        ..ClientOptions::default()
    };
    let called = client(address, options)
        .unary::<_, InvokeResponse>("other.v1.Other/Say", &invoke("", "", ""), None)
        .await;
    assert_eq!(called.unwrap_err().code, Code::Unimplemented);
    // Connect has an HTTP status for it, and pages may be there.
    let other = [("content-type", "application/json")];
    let answer = raw::post(address, "/other.v1.OtherService/Say", &other, b"{}").await;
    assert_eq!(answer.status, 404);
}

#[tokio::test]
async fn versions_of_connect_that_are_not_known_are_refused() {
    let address = start().await;
    let path = format!("{PATH}Unary");
    let body = json(&invoke("lab", "echo", "1"));
    for (version, status) in [("1", 200), ("2", 400), ("", 400)] {
        let headers = [
            ("content-type", "application/json"),
            ("connect-protocol-version", version),
        ];
        let answer = raw::post(address, &path, &headers, &body).await;
        assert_eq!(answer.status, status, "{version:?}");
    }
}

async fn get(address: SocketAddr, method: &str, query: &str) -> raw::Answer {
    let path = format!("{PATH}{method}?{query}");
    raw::request(address, "GET", &path, &[], b"").await
}

#[tokio::test]
async fn methods_without_side_effects_are_called_with_get() {
    let address = start().await;
    let request = invoke("lab", "echo", "\"+%\"");
    let text = String::from_utf8(json(&request)).unwrap();
    let escaped: String = text.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let binary: String = request
        .to_bytes()
        .iter()
        .map(|b| format!("%{b:02X}"))
        .collect();
    let base64 = URL_SAFE_NO_PAD.encode(request.to_bytes());
    let padded = URL_SAFE.encode(request.to_bytes());
    assert_ne!(base64, padded);
    for query in [
        format!("connect=v1&encoding=json&message={escaped}"),
        format!("message={escaped}&encoding=json"),
        format!("encoding=proto&message={binary}&compression=identity"),
        format!("encoding=proto&base64=1&message={base64}"),
        format!("encoding=proto&base64=1&message={padded}"),
    ] {
        let answer = get(address, "Get", &query).await;
        assert_eq!(answer.status, 200, "{query}: {}", answer.text());
        let kind = if query.contains("encoding=json") {
            "application/json"
        } else {
            "application/proto"
        };
        assert_eq!(answer.header("content-type"), Some(kind));
        assert!(!answer.body.is_empty());
    }
    // The order of the parameters does not matter.
    let parts = [
        format!("message={base64}"),
        "base64=1".to_owned(),
        "encoding=proto".to_owned(),
        "connect=v1".to_owned(),
        "compression=identity".to_owned(),
    ];
    for first in 0..parts.len() {
        let (after, before) = parts.split_at(first);
        for query in [[before, after].concat(), [after, before].concat()] {
            let reversed: Vec<_> = query.iter().rev().cloned().collect();
            for query in [query.join("&"), reversed.join("&")] {
                let answer = get(address, "Get", &query).await;
                assert_eq!(answer.status, 200, "{query}: {}", answer.text());
            }
        }
    }
    let long = "x".repeat(2 * LIMIT);
    for (query, status) in [
        ("encoding=json", 400),
        ("encoding=json&message=%7B%7D&connect=v2", 400),
        ("encoding=json&base64=1&message=*", 400),
        ("encoding=json&message=%7B", 400),
        ("encoding=json&message=%7B%7D&compression=br", 501),
        ("encoding=xml&message=", 415),
        ("message=%7B%7D", 415),
        (&format!("encoding=json&message={long}"), 429),
    ] {
        assert_eq!(get(address, "Get", query).await.status, status, "{query}");
    }
    let refused = get(address, "Unary", "encoding=json&message=%7B%7D").await;
    assert_eq!(
        (refused.status, refused.header("allow")),
        (405, Some("POST"))
    );
    let path = format!("{PATH}Get");
    let refused = raw::request(address, "PUT", &path, &[], b"").await;
    assert_eq!(refused.header("allow"), Some("GET, POST"));
    for options in ways().filter(|options| options.protocol == Protocol::Connect) {
        for gzip in [false, true] {
            let options = ClientOptions {
                gzip,
                ..options.clone()
            };
            let get = CallOptions {
                get: true,
                ..CallOptions::default()
            };
            let method = "lab.v1.LabService/Get";
            let client = client(address, options);
            let reply = client
                .call::<_, InvokeResponse>(method, &request, &get)
                .await;
            assert_eq!(reply.answer.unwrap().output, request.input);
            let method = "lab.v1.LabService/Unary";
            let reply = client
                .call::<_, InvokeResponse>(method, &request, &get)
                .await;
            assert!(reply.answer.is_err());
        }
    }
}

#[tokio::test]
async fn headers_of_one_call_are_sent_with_it() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let options = ClientOptions {
        http: HttpVersion::One,
        codec: Codec::Json,
        ..ClientOptions::default()
    };
    let calling = tokio::spawn(async move {
        let mut options_of_call = CallOptions::default();
        let name = HeaderName::from_static("x-mine");
        options_of_call
            .headers
            .append(&name, HeaderValue::from_static("a"));
        options_of_call
            .headers
            .append(&name, HeaderValue::from_static("b"));
        let request = invoke("lab", "echo", "1");
        client(address, options)
            .call::<_, InvokeResponse>("lab.v1.LabService/Unary", &request, &options_of_call)
            .await
    });
    let (mut socket, _) = listener.accept().await.unwrap();
    let mut seen = vec![0; 4096];
    let length = socket.read(&mut seen).await.unwrap();
    let seen = String::from_utf8_lossy(&seen[..length]).into_owned();
    assert!(seen.contains("x-mine: a\r\nx-mine: b\r\n"), "{seen}");
    let answer = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-a: 1\r\ntrailer-x-b: 2\r\ncontent-length: 2\r\n\r\n{}";
    socket.write_all(answer).await.unwrap();
    let reply = calling.await.unwrap();
    assert_eq!(
        (&reply.headers["x-a"], &reply.trailers["x-b"]),
        (&"1".parse().unwrap(), &"2".parse().unwrap())
    );
    assert!(reply.answer.is_ok() && !reply.headers.contains_key("trailer-x-b"));
}
