//! Ends of answers as other servers send them: resets at the deadline, streams without an end, bodies after a status.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use h2::server::SendResponse;
use http::{HeaderMap, HeaderValue, Request, Response};
use pinion_connect::{
    CallOptions, Client, ClientOptions, Code, Codec, Failure, HttpVersion, Protocol, Receiver,
};
use pinion_proto::hub::{InvokeRequest, InvokeResponse};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::Instant;

use crate::calls::invoke;
use crate::raw;

const LIMIT: Duration = Duration::from_millis(300);
const METHOD: &str = "lab.v1.LabService/Both";

/// Answers each request of one HTTP/2 connection with `answer`.
async fn serve(
    mut answer: impl FnMut(Request<h2::RecvStream>, SendResponse<Bytes>) + Send + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (socket, _) = listener.accept().await.unwrap();
        let mut connection = h2::server::handshake(socket).await.unwrap();
        while let Some(Ok((request, response))) = connection.accept().await {
            answer(request, response);
        }
    });
    address
}

fn client(address: SocketAddr, protocol: Protocol) -> Client {
    let options = ClientOptions {
        protocol,
        codec: Codec::Proto,
        ..ClientOptions::default()
    };
    Client::new(&format!("http://{address}"), options).unwrap()
}

fn head() -> Response<()> {
    let head = Response::builder().header("content-type", "application/grpc+proto");
    head.body(()).unwrap()
}

/// A gRPC head that is its own trailers.
fn only_status(status: u8) -> Response<()> {
    let mut head = head();
    let value = HeaderValue::from(u16::from(status));
    head.headers_mut().insert("grpc-status", value);
    head
}

async fn open(client: &Client, timeout: Duration) -> Receiver<InvokeResponse> {
    let options = CallOptions {
        timeout: Some(timeout),
        ..CallOptions::default()
    };
    let opened = client.open::<InvokeRequest, _>(METHOD, &options).await;
    let (mut sender, receiver) = opened.unwrap();
    let _ = sender.send(&invoke("", "", "")).await;
    sender.finish();
    receiver
}

/// Makes a call that is answered after everything before it on the connection was read.
async fn catch_up(client: &Client) {
    let request = invoke("", "", "");
    let called = client.unary::<_, InvokeResponse>("lab.v1.LabService/Now", &request, None);
    assert_eq!(called.await.unwrap_err().code, Code::Unimplemented);
}

/// Starts a server that resets each stream at once, after its head if `begins`, and refuses calls to `Now`.
async fn resets(begins: bool) -> SocketAddr {
    serve(move |request, mut response| {
        if request.uri().path().ends_with("/Now") {
            response.send_response(only_status(12), true).unwrap();
        } else if begins {
            let mut stream = response.send_response(head(), false).unwrap();
            stream.send_reset(h2::Reason::CANCEL);
        } else {
            response.send_reset(h2::Reason::CANCEL);
        }
    })
    .await
}

#[tokio::test]
async fn a_reset_read_after_the_deadline_is_the_deadline() {
    for begins in [false, true] {
        let client = client(resets(begins).await, Protocol::Grpc);
        let called = Instant::now();
        let mut receiver = open(&client, LIMIT).await;
        catch_up(&client).await;
        tokio::time::sleep_until(called + LIMIT * 2).await;
        let failure = receiver.next().await.unwrap_err();
        assert_eq!(failure.code, Code::DeadlineExceeded, "{begins} {failure:?}");
        let mut receiver = open(&client, LIMIT).await;
        catch_up(&client).await;
        tokio::time::sleep_until(Instant::now() + LIMIT * 2).await;
        let failure = receiver.headers().await.err();
        let failure = failure.unwrap_or_else(|| Failure::new(Code::DeadlineExceeded, ""));
        assert_eq!(failure.code, Code::DeadlineExceeded, "{begins} {failure:?}");
        // Before the deadline, the failure stays as it is.
        let mut receiver = open(&client, Duration::from_secs(600)).await;
        let failure = receiver.next().await.unwrap_err();
        assert_eq!(failure.code, Code::Unavailable, "{begins} {failure:?}");
    }
}

/// Waits until the deadline the request asks for, as servers of gRPC do, and resets the stream.
#[tokio::test]
async fn a_server_that_resets_at_the_deadline_never_makes_a_call_unavailable() {
    let address = serve(|request, mut response| {
        let limit = request.headers()["grpc-timeout"].to_str().unwrap();
        let millis = limit.strip_suffix('m').unwrap().parse().unwrap();
        let at = Instant::now() + Duration::from_millis(millis);
        let begins = request.uri().path().ends_with("Begins");
        let mut begun = begins.then(|| response.send_response(head(), false).unwrap());
        tokio::spawn(async move {
            tokio::time::sleep_until(at).await;
            match &mut begun {
                Some(stream) => stream.send_reset(h2::Reason::CANCEL),
                None => response.send_reset(h2::Reason::CANCEL),
            }
        });
    })
    .await;
    let client = client(address, Protocol::Grpc);
    let request = invoke("", "", "");
    for round in 0..40_u64 {
        let limit = Duration::from_micros(5_000 + 37 * round);
        let mut receiver = open(&client, limit).await;
        let both = receiver.next().await.unwrap_err();
        let unary = client.unary::<_, InvokeResponse>(METHOD, &request, Some(limit));
        let unary = unary.await.unwrap_err();
        let begins = "lab.v1.LabService/Begins";
        let stream = client.server_stream::<_, InvokeResponse>(begins, &request, Some(limit));
        let stream = match stream.await {
            Ok(mut stream) => stream.next().await.unwrap_err(),
            Err(failure) => failure,
        };
        for failure in [both, unary, stream] {
            assert_eq!(
                failure.code,
                Code::DeadlineExceeded,
                "{limit:?} {failure:?}"
            );
        }
    }
}

/// Returns the number of messages a stream delivers, and its result.
async fn drain(receiver: &mut Receiver<InvokeResponse>) -> (usize, Result<(), Failure>) {
    let mut count = 0;
    loop {
        match receiver.next().await {
            Ok(Some(_)) => count += 1,
            Ok(None) => return (count, Ok(())),
            Err(failure) => return (count, Err(failure)),
        }
    }
}

#[tokio::test]
async fn a_grpc_stream_without_a_status_and_a_status_before_a_body_are_errors() {
    for (status, messages) in [(None, 0), (None, 2), (Some(0), 1), (Some(0), 2)] {
        let address = serve(move |_, mut response| {
            let head = status.map_or_else(head, only_status);
            let mut stream = response.send_response(head, false).unwrap();
            for _ in 0..messages {
                let message = raw::envelope(0, b"");
                stream.send_data(message.into(), false).unwrap();
            }
            stream.send_data(Bytes::new(), true).unwrap();
        })
        .await;
        let client = client(address, Protocol::Grpc);
        let mut receiver = open(&client, Duration::from_secs(600)).await;
        let (count, end) = drain(&mut receiver).await;
        assert_eq!(count, messages, "{status:?}");
        assert_eq!(
            end.unwrap_err().code,
            Code::Internal,
            "{status:?} {messages}"
        );
        let request = invoke("", "", "");
        let called = client.unary::<_, InvokeResponse>(METHOD, &request, None);
        assert!(called.await.is_err(), "{status:?} {messages}");
    }
    // With trailers the same messages are an answer.
    let address = serve(|_, mut response| {
        let mut stream = response.send_response(head(), false).unwrap();
        let message = raw::envelope(0, b"");
        stream.send_data(message.into(), false).unwrap();
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", HeaderValue::from_static("0"));
        stream.send_trailers(trailers).unwrap();
    })
    .await;
    let client = client(address, Protocol::Grpc);
    let mut receiver = open(&client, Duration::from_secs(600)).await;
    assert_eq!(drain(&mut receiver).await, (1, Ok(())));
}

/// Answers the first request of HTTP/1.1 with these headers and bytes.
async fn serve_once(kind: &str, extra: &str, body: &[u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let length = body.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n{extra}content-length: {length}\r\n\r\n"
    );
    let answer = [head.as_bytes(), body].concat();
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut seen = Vec::new();
        // The request ends with its last chunk, or with its head and one envelope.
        while !seen.ends_with(b"0\r\n\r\n") {
            assert_ne!(socket.read_buf(&mut seen).await.unwrap(), 0);
        }
        socket.write_all(&answer).await.unwrap();
        socket.read_to_end(&mut seen).await.unwrap();
    });
    address
}

#[tokio::test]
async fn a_stream_without_its_last_envelope_is_an_error() {
    let message = raw::envelope(0, b"");
    let connect = ("application/connect+proto", Protocol::Connect);
    let web = ("application/grpc-web+proto", Protocol::GrpcWeb);
    let status = "grpc-status: 0\r\n";
    let connect_end = raw::envelope(2, b"{}");
    let web_end = raw::envelope(0x80, b"grpc-status: 0\r\n");
    for ((kind, protocol), extra, end, messages, is_good) in [
        (connect, "", None, 0, false),
        (connect, "", None, 2, false),
        (connect, "", Some(&connect_end), 2, true),
        (web, "", None, 0, false),
        (web, "", None, 2, false),
        (web, status, None, 1, false),
        (web, "", Some(&web_end), 2, true),
    ] {
        let mut body = message.repeat(messages);
        body.extend_from_slice(end.map_or(&[], |end| end.as_slice()));
        let options = ClientOptions {
            protocol,
            codec: Codec::Proto,
            http: HttpVersion::One,
            ..ClientOptions::default()
        };
        let address = serve_once(kind, extra, &body).await;
        let client = Client::new(&format!("http://{address}"), options).unwrap();
        let mut receiver = open(&client, Duration::from_secs(600)).await;
        let (count, end) = drain(&mut receiver).await;
        assert_eq!(count, messages, "{kind} {extra}");
        assert_eq!(end.is_ok(), is_good, "{kind} {extra} {messages}: {end:?}");
    }
}
