//! HTTP/2 by hand: a client that looks at frames, or sends some of its own.

use std::time::Duration;

use bytes::Bytes;
use h2::client::{Connection, SendRequest};
use http::{Method, Request, StatusCode};
use tokio::net::TcpStream;
use tokio::process::Command;

use crate::hub::{self, Serving};

const INVOKE: &str = "/pinix.v2.HubService/Invoke";

/// A connection that answers pings for as long as it is polled.
async fn connect(server: &Serving) -> (SendRequest<Bytes>, Connection<TcpStream>) {
    let stream = TcpStream::connect(server.address).await.unwrap();
    h2::client::handshake(stream).await.unwrap()
}

fn get(server: &Serving, path: &str) -> http::request::Builder {
    Request::builder()
        .method(Method::GET)
        .uri(format!("http://{}{path}", server.address))
}

#[tokio::test]
async fn a_connection_without_a_call_is_closed_although_it_answers_pings() {
    let mut options = hub::options();
    options.limits.idle_timeout = Duration::from_millis(400);
    options.limits.ping_interval = Duration::from_millis(50);
    let server = hub::start(options).await;
    let (mut idle, connection) = connect(&server).await;
    let connection = tokio::spawn(connection);
    let asked = get(&server, "/").body(()).unwrap();
    let (answer, _) = idle.send_request(asked, true).unwrap();
    assert_eq!(answer.await.unwrap().status(), StatusCode::OK);
    let closed = tokio::time::timeout(Duration::from_secs(20), connection).await;
    assert!(closed.is_ok(), "it is kept open");
    drop(idle);
}

#[tokio::test]
async fn more_than_a_hundred_headers_are_refused() {
    let server = hub::start(hub::options()).await;
    let (mut asking, connection) = connect(&server).await;
    tokio::spawn(connection);
    for (count, status) in [(100, 200), (101, 431), (1200, 431)] {
        let headers = (0..count).map(|number| (format!("x-{number}"), "y"));
        let asked = headers.fold(get(&server, "/"), |asked, (name, value)| {
            asked.header(name, value)
        });
        let (answer, _) = asking.send_request(asked.body(()).unwrap(), true).unwrap();
        assert_eq!(answer.await.unwrap().status(), status, "{count} headers");
    }
}

#[tokio::test]
async fn a_client_refused_early_may_send_the_rest() {
    let server = hub::start(hub::options()).await;
    let (mut asking, connection) = connect(&server).await;
    tokio::spawn(connection);
    for path in ["Nothing", "Refuse", "Panic"] {
        let asked = get(&server, &format!("/pinix.v2.HubService/{path}"))
            .method(Method::POST)
            .header("content-type", "application/connect+json")
            .body(())
            .unwrap();
        let (answer, mut body) = asking.send_request(asked, false).unwrap();
        let mut answer = answer.await.unwrap().into_body();
        while let Some(piece) = answer.data().await {
            piece.unwrap();
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        for last in [false, true] {
            let sent = body.send_data(Bytes::from_static(b"what nobody reads"), last);
            sent.unwrap_or_else(|error| panic!("{path}: {error}"));
        }
        let reset = std::future::poll_fn(|context| body.poll_reset(context));
        let reset = tokio::time::timeout(Duration::from_millis(100), reset).await;
        assert!(!matches!(reset, Ok(Ok(_))), "{path}: {reset:?}");
    }
}

#[tokio::test]
async fn a_client_refused_early_that_sends_too_much_is_stopped() {
    let mut options = hub::options();
    options.limits.message = 10_000;
    let server = hub::start(options).await;
    let (mut asking, connection) = connect(&server).await;
    tokio::spawn(connection);
    let asked = get(&server, "/pinix.v2.HubService/Nothing").method(Method::POST);
    let (answer, mut body) = asking.send_request(asked.body(()).unwrap(), false).unwrap();
    assert_eq!(answer.await.unwrap().status(), StatusCode::NOT_FOUND);
    for _ in 0..3 {
        body.send_data(Bytes::from(vec![b'x'; 10_000]), false)
            .unwrap();
    }
    let reset = std::future::poll_fn(|context| body.poll_reset(context));
    let reset = tokio::time::timeout(Duration::from_secs(20), reset).await;
    assert_eq!(reset.unwrap().unwrap(), h2::Reason::NO_ERROR);
}

/// Returns curl's report of an answer: the status, and curl's exit code.
async fn curl(server: &Serving, path: &str) -> Option<(String, Option<i32>)> {
    let asked = Command::new("curl")
        .args(["--http2-prior-knowledge", "-s", "-o", "/dev/null"])
        .args(["-w", "%{http_code}", "-d", "{}", "-H"])
        .arg("content-type: text/plain")
        .arg(format!("http://{}{path}", server.address))
        .output()
        .await
        .ok()?;
    let status = String::from_utf8_lossy(&asked.stdout).into_owned();
    Some((status, asked.status.code()))
}

#[tokio::test]
async fn curl_reads_refusals_to_their_end() {
    let server = hub::start(hub::options()).await;
    for _ in 0..20 {
        for (path, status) in [(INVOKE, "415"), ("/pinix.v2.HubService/Nothing", "404")] {
            let Some(seen) = curl(&server, path).await else {
                return;
            };
            assert_eq!(seen, (status.to_owned(), Some(0)), "{path}");
        }
    }
}
