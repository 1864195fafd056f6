//! TLS: the handshake selects the version of HTTP, and unknown certificates are rejected.

use pinion_connect::{Client, ClientOptions, Code, HttpVersion, Protocol, Roots, Tls};
use pinion_proto::hub::InvokeResponse;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::calls::{all, invoke, method};
use crate::hub::{self, Serving};

const CERTIFICATE: &[u8] = include_bytes!("tls/server.pem");
const KEY: &[u8] = include_bytes!("tls/server.key");
const AUTHORITY: &[u8] = include_bytes!("tls/ca.pem");

async fn server() -> Serving {
    let mut options = hub::options();
    options.tls = Some(Tls::from_pem(CERTIFICATE, KEY).unwrap());
    options.limits.head_timeout = std::time::Duration::from_millis(200);
    hub::start(options).await
}

fn client(server: &Serving, host: &str, options: ClientOptions) -> Client {
    Client::new(
        &format!("https://{host}:{}", server.address.port()),
        options,
    )
    .unwrap()
}

#[tokio::test]
async fn calls_pass_over_tls_in_both_versions_of_http() {
    let server = server().await;
    let ways = [
        (HttpVersion::One, Protocol::Connect),
        (HttpVersion::Two, Protocol::Connect),
        (HttpVersion::Two, Protocol::Grpc),
    ];
    for (http, protocol) in ways {
        let options = ClientOptions {
            http,
            protocol,
            roots: Roots::Pem(AUTHORITY.to_vec()),
            ..ClientOptions::default()
        };
        let client = client(&server, "localhost", options);
        let large = vec![b'1'; 300_000];
        let request = invoke("echo", "twice", large.clone());
        let receiver = client
            .server_stream(&method("Invoke"), &request, None)
            .await
            .unwrap();
        assert_eq!(all(receiver).await.unwrap(), [&large[..], &large[..]]);
        let stream = client.bidi(&method("ProviderStream"), None).await;
        assert_eq!(stream.is_ok(), http == HttpVersion::Two);
        if let Ok((mut sender, mut receiver)) = stream {
            sender.send(&invoke("", "", "1")).await.unwrap();
            let answer: InvokeResponse = receiver.next().await.unwrap().unwrap();
            assert_eq!(answer.output, "1");
        }
    }
}

#[tokio::test]
async fn a_server_nobody_vouches_for_is_shown_no_token() {
    let server = server().await;
    let foreign = ClientOptions {
        token: Some("pnx_secret".into()),
        ..ClientOptions::default()
    };
    let wrong_name = ClientOptions {
        roots: Roots::Pem(AUTHORITY.to_vec()),
        ..foreign.clone()
    };
    for (host, options) in [("localhost", foreign), ("127.0.0.2", wrong_name)] {
        let client = client(&server, host, options);
        let request = invoke("echo", "once", "1");
        let asked = client
            .unary::<_, InvokeResponse>(&method("Invoke"), &request, None)
            .await;
        let failure = asked.unwrap_err();
        assert_eq!(failure.code, Code::Unavailable, "{host}");
        assert!(!failure.message.contains("pnx_secret"));
    }
    assert_eq!(
        server.hub.begun.load(std::sync::atomic::Ordering::SeqCst),
        0
    );
}

#[tokio::test]
async fn plain_words_to_a_tls_server_and_a_handshake_that_stops_end() {
    let server = server().await;
    for words in [
        &b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"[..],
        b"\x16\x03\x01",
        b"",
    ] {
        let mut socket = TcpStream::connect(server.address).await.unwrap();
        socket.write_all(words).await.unwrap();
        let mut answer = Vec::new();
        let _ = socket.read_to_end(&mut answer).await;
        assert!(!answer.starts_with(b"HTTP"));
    }
}

#[test]
fn an_invalid_certificate_is_refused_with_a_message() {
    for (certificate, key) in [
        (&b""[..], KEY),
        (CERTIFICATE, b""),
        (AUTHORITY, KEY),
        (KEY, CERTIFICATE),
    ] {
        let failure = Tls::from_pem(certificate, key).unwrap_err();
        assert_eq!(failure.code, Code::InvalidArgument);
        assert!(
            failure.message.contains("cannot be used for TLS"),
            "{failure}"
        );
    }
}

#[test]
fn options_do_not_print_their_token() {
    let options = ClientOptions {
        token: Some("pnx_secret".into()),
        ..ClientOptions::default()
    };
    let client = Client::new("http://localhost", options.clone()).unwrap();
    assert!(!format!("{options:?} {client:?}").contains("pnx_secret"));
    let options = ClientOptions {
        token: Some("pnx_\n".into()),
        ..ClientOptions::default()
    };
    let failure = Client::new("http://localhost", options).unwrap_err();
    assert!(!failure.message.contains("pnx_"));
}
