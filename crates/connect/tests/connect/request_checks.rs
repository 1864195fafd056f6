//! Checks before a call begins: path, HTTP method, content type, origin and host name.

use std::io::Write;

use http::{HeaderMap, Request, Version};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use pinion_connect::{Origins, Piece};
use tokio::net::TcpStream;

use crate::calls::invoke;
use crate::hub::{self, Serving};
use crate::raw::{self, Answer};

const INVOKE: &str = "/pinix.v2.HubService/Invoke";

async fn post(server: &Serving, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
    raw::post(server.address, path, headers, body).await
}

#[tokio::test]
async fn a_request_that_is_not_a_call_is_answered_in_plain_http() {
    let server = hub::start(hub::options()).await;
    let json = [("content-type", "application/json")];
    let answer = raw::request(server.address, "GET", INVOKE, &json, b"").await;
    assert_eq!((answer.status, answer.header("allow")), (405, Some("POST")));
    let answer = post(&server, "/pinix.v2.HubService/Nothing", &json, b"{}").await;
    assert_eq!((answer.status, answer.text().as_str()), (404, ""));
    for path in [
        "/",
        "/pinix.v2.HubService",
        "/pinix.v3.HubService/Invoke",
        "/healthz",
    ] {
        let answer = post(&server, path, &json, b"{}").await;
        assert_eq!(
            (answer.status, answer.text()),
            (200, format!("POST {path} false"))
        );
    }
    let wrong = [
        ("Invoke", "text/plain"),
        ("Invoke", "application/x-www-form-urlencoded"),
        ("ListClips", "application/connect+proto"),
        ("GetLogs", "application/json"),
        ("InvokeStream", "application/proto"),
        ("ProviderStream", "application/json"),
    ];
    for (method, kind) in wrong {
        let path = format!("/pinix.v2.HubService/{method}");
        let answer = post(&server, &path, &[("content-type", kind)], b"{}").await;
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (415, ""),
            "{method} {kind}"
        );
        assert!(
            answer
                .header("accept-post")
                .unwrap()
                .contains("application/json")
        );
    }
    assert_eq!(post(&server, INVOKE, &[], b"{}").await.status, 415);
    let newer = [
        ("ProviderStream", "application/connect+json"),
        ("Invoke", "application/grpc"),
    ];
    for (method, kind) in newer {
        let path = format!("/pinix.v2.HubService/{method}");
        let answer = post(&server, &path, &[("content-type", kind)], b"").await;
        assert_eq!(answer.status, 505, "{method} {kind}");
    }
}

#[tokio::test]
async fn answers_have_the_content_type_of_the_request() {
    let server = hub::start(hub::options()).await;
    let request = hub::json(&invoke("todo", "list", ""));
    for kind in [
        "application/json",
        "application/json; charset=utf-8",
        "Application/JSON",
    ] {
        let answer = post(&server, INVOKE, &[("content-type", kind)], &request).await;
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (200, Some(kind))
        );
    }
    let answer = post(
        &server,
        INVOKE,
        &[("content-type", "application/proto")],
        b"\x0a\x05ghost",
    )
    .await;
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (404, Some("application/json"))
    );
}

#[tokio::test]
async fn invalid_limits_and_encodings_are_reported() {
    let server = hub::start(hub::options()).await;
    let body = hub::json(&invoke("todo", "list", ""));
    let ask = |kind: &'static str, more: (&'static str, &'static str), body: Vec<u8>| {
        let server = &server;
        async move { post(server, INVOKE, &[("content-type", kind), more], &body).await }
    };
    let answer = ask(
        "application/json",
        ("connect-timeout-ms", "soon"),
        body.clone(),
    )
    .await;
    assert_eq!(answer.status, 400);
    assert!(answer.text().starts_with(r#"{"code":"invalid_argument","#));
    let answer = ask("application/json", ("content-encoding", "br"), body.clone()).await;
    assert_eq!(answer.status, 501);
    assert!(answer.text().contains(r#""code":"unimplemented""#));
    let enveloped = raw::envelope(0, &body);
    let answer = ask(
        "application/connect+json",
        ("connect-content-encoding", "br"),
        enveloped.clone(),
    )
    .await;
    assert_eq!(answer.status, 200);
    let end = raw::envelopes(&answer.body);
    assert_eq!((end.len(), end[0].0), (1, 2));
    assert!(String::from_utf8_lossy(&end[0].1).contains(r#""code":"unimplemented""#));
    let answer = ask(
        "application/grpc-web+json",
        ("grpc-encoding", "br"),
        enveloped.clone(),
    )
    .await;
    assert!(answer.text().contains("grpc-status: 12\r\n"));
    let answer = ask(
        "application/grpc-web+json",
        ("grpc-timeout", "1"),
        enveloped,
    )
    .await;
    assert!(answer.text().contains("grpc-status: 3\r\n"));
    let answer = ask("application/json", ("x", "y"), b"{\"clipName\":".to_vec()).await;
    assert_eq!(answer.status, 400);
    assert!(
        answer
            .text()
            .contains("the request is not pinix.v2.InvokeRequest")
    );
}

#[tokio::test]
async fn gzip_is_unpacked_in_every_protocol() {
    let server = hub::start(hub::options()).await;
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer
        .write_all(&hub::json(&invoke("todo", "list", "")))
        .unwrap();
    let packed = packer.finish().unwrap();
    let ways = [
        ("application/json", "content-encoding", packed.clone()),
        (
            "application/connect+json",
            "connect-content-encoding",
            raw::envelope(1, &packed),
        ),
        (
            "application/grpc-web+json",
            "grpc-encoding",
            raw::envelope(1, &packed),
        ),
    ];
    for (kind, header, body) in ways {
        let headers = [
            ("content-type", kind),
            (header, "gzip"),
            ("accept-encoding", "gzip"),
        ];
        let answer = post(&server, INVOKE, &headers, &body).await;
        assert_eq!(answer.status, 200);
        assert!(
            answer.text().contains(r#"{"output":"eyJpdGVtcyI6W119"}"#),
            "{kind}: {answer:?}"
        );
        assert_eq!(answer.header("content-encoding"), None);
    }
}

/// Makes one gRPC call over HTTP/2 by hand.
async fn grpc(
    server: &Serving,
    method: &str,
    body: &[u8],
) -> (HeaderMap, Vec<u8>, Option<HeaderMap>) {
    let stream = TcpStream::connect(server.address).await.unwrap();
    let (mut line, speaking) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(speaking);
    let request = Request::post(format!("http://localhost/pinix.v2.HubService/{method}"))
        .version(Version::HTTP_2)
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(Full::new(Piece::from(bytes::Bytes::copy_from_slice(body))))
        .unwrap();
    let response = line.send_request(request).await.unwrap();
    assert_eq!(response.status(), 200);
    let headers = response.headers().clone();
    let body = response.into_body().collect().await.unwrap();
    let trailers = body.trailers().cloned();
    (headers, body.to_bytes().to_vec(), trailers)
}

#[tokio::test]
async fn grpc_says_how_a_call_ended_in_its_trailers() {
    let server = hub::start(hub::options()).await;
    let request = b"\x00\x00\x00\x00\x10\x0a\x04todo\x12\x04list\x1a\x02{}";
    let (headers, body, trailers) = grpc(&server, "Invoke", request).await;
    assert_eq!(headers["content-type"], "application/grpc");
    assert_eq!(body, b"\x00\x00\x00\x00\x0e\x0a\x0c{\"items\":[]}");
    assert_eq!(trailers.unwrap()["grpc-status"], "0");
    // A failure may come before the headers are sent; then it is in the headers.
    let unknown = raw::envelope(0, b"\x0a\x05ghost\x12\x01x");
    let (headers, body, trailers) = grpc(&server, "Invoke", &unknown).await;
    assert_eq!(headers["content-type"], "application/grpc");
    assert!(body.is_empty());
    let status = trailers.unwrap_or(headers);
    assert_eq!(status["grpc-status"], "5");
    assert_eq!(status["grpc-message"], "Clip 'ghost' not found");
    let (headers, ..) = grpc(&server, "Nothing", &unknown).await;
    assert_eq!(headers["grpc-status"], "12");
    let (headers, ..) = grpc(&server, "ListClips", &raw::envelope(0, b"")).await;
    assert_eq!(headers["grpc-status"], "16");
}

#[tokio::test]
async fn pages_of_others_are_refused_before_anything_runs() {
    let mut options = hub::options();
    options.origins = Origins::Listed(vec!["https://app.example".into()]);
    let server = hub::start(options).await;
    let body = hub::json(&invoke("todo", "list", ""));
    let own = format!("http://{}", server.address);
    let host = server.address.to_string();
    let ask = async |origin: &str| {
        let headers = [
            ("content-type", "application/json"),
            ("host", &host),
            ("origin", origin),
        ];
        raw::post(server.address, INVOKE, &headers, &body).await
    };
    for foreign in ["https://evil.example", "null", "http://127.0.0.1"] {
        let answer = ask(foreign).await;
        assert_eq!(answer.status, 403);
        assert_eq!(answer.header("access-control-allow-origin"), None);
    }
    assert_eq!(
        server.hub.begun.load(std::sync::atomic::Ordering::SeqCst),
        0
    );
    for fine in ["https://app.example", own.as_str()] {
        let answer = ask(fine).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("access-control-allow-origin"), Some(fine));
        assert_eq!(answer.header("vary"), Some("Origin"));
    }
    let preflight = async |origin: &str| {
        let headers = [
            ("origin", origin),
            ("access-control-request-method", "POST"),
        ];
        raw::request(server.address, "OPTIONS", "/any/path", &headers, b"").await
    };
    let answer = preflight("https://app.example").await;
    assert_eq!(answer.status, 204);
    assert_eq!(
        answer.header("access-control-allow-origin"),
        Some("https://app.example")
    );
    assert_eq!(
        answer.header("access-control-allow-methods"),
        Some("GET, POST, OPTIONS")
    );
    assert!(
        answer
            .header("access-control-allow-headers")
            .unwrap()
            .contains("Connect-Protocol-Version")
    );
    let answer = preflight("https://evil.example").await;
    assert_eq!(
        (answer.status, answer.header("access-control-allow-origin")),
        (204, None)
    );
}

#[tokio::test]
async fn names_of_others_are_refused_before_anything_runs() {
    let server = hub::start(hub::options().loopback_and(["hub.example"])).await;
    let body = hub::json(&invoke("todo", "list", ""));
    for (host, status) in [
        ("evil.example", 403),
        ("127.0.0.1.nip.io", 403),
        ("localhost:1", 200),
        ("hub.example", 200),
    ] {
        let headers = [("content-type", "application/json"), ("host", host)];
        assert_eq!(
            post(&server, INVOKE, &headers, &body).await.status,
            status,
            "{host}"
        );
        let headers = [("content-type", "application/connect+json"), ("host", host)];
        let enveloped = raw::envelope(0, &body);
        assert_eq!(
            post(&server, INVOKE, &headers, &enveloped).await.status,
            status,
            "{host}"
        );
        let plain = raw::request(server.address, "GET", "/", &[("host", host)], b"").await;
        assert_eq!(plain.status, status, "{host}");
    }
}

#[tokio::test]
async fn files_and_streams_are_bodies_too() {
    let server = hub::start(hub::options()).await;
    let answer = raw::request(server.address, "GET", "/file", &[], b"").await;
    assert_eq!(answer.header("content-length"), Some("200000"));
    assert!(answer.body.len() == 200_000 && answer.body.iter().all(|byte| *byte == b'f'));
    let answer = raw::request(server.address, "GET", "/stream", &[], b"").await;
    assert_eq!(answer.text(), "one two");
    let answer = raw::request(server.address, "HEAD", "/file", &[], b"").await;
    assert_eq!(
        (answer.header("content-length"), answer.body.len()),
        (Some("200000"), 0)
    );
}
