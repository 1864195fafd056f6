//! HTTP/2 by hand: what a client sees that looks at frames, or sends some of its own.

use std::time::Duration;

use bytes::Bytes;
use h2::client::{Connection, SendRequest};
use http::{Method, Request, StatusCode};
use tokio::net::TcpStream;

use crate::hub::{self, Serving};

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
    options.limits.idle_time = Duration::from_millis(400);
    options.limits.ping_every = Duration::from_millis(50);
    let server = hub::start(options).await;
    let (mut idle, connection) = connect(&server).await;
    let connection = tokio::spawn(connection);
    let asked = get(&server, "/").body(()).unwrap();
    let (answer, _) = idle.send_request(asked, true).unwrap();
    assert_eq!(answer.await.unwrap().status(), StatusCode::OK);
    let closed = tokio::time::timeout(Duration::from_secs(4), connection).await;
    assert!(closed.is_ok(), "it is kept open");
    drop(idle);
}
