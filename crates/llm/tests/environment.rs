//! Network settings of the environment: certificates and proxies. Each case runs in its own
//! process, because both are read from variables.
//!
//! The authority and the key in `tests/tls` are for this test alone; the authority's own key was
//! thrown away.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "test code"
)]

mod support;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use futures_util::StreamExt;
use pinion_llm::{HttpProvider, Provider, StreamEvent};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use support::server::{Reply, Server};
use support::{files, hello, read, request, vectors};

const BASE: &str = "PINION_TEST_BASE";

fn pem(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/tls")
        .join(name)
}

fn body() -> Vec<u8> {
    std::fs::read(vectors().join("openai-completions/01-text-plain.sse")).unwrap()
}

/// Answers one request over TLS and returns the address.
fn serve_tls() -> String {
    let certificate = CertificateDer::from_pem_file(pem("localhost.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(pem("localhost-test-only.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!(
        "https://localhost:{}",
        listener.local_addr().unwrap().port()
    );
    std::thread::spawn(move || {
        let (socket, _) = listener.accept().unwrap();
        let connection = ServerConnection::new(Arc::new(config)).unwrap();
        let mut stream = StreamOwned::new(connection, socket);
        let mut head = [0; 4096];
        if stream.read(&mut head).is_ok() {
            let body = body();
            let reply = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
            let _ = stream
                .write_all(reply.as_bytes())
                .and_then(|()| stream.write_all(&body));
        }
    });
    base
}

/// The child of the tests below, which give it an address. It does nothing by itself.
#[tokio::test]
async fn ask() {
    let Ok(base) = std::env::var(BASE) else {
        return;
    };
    let vector = read(&files("openai-completions", "01-text-plain.expected.json")[0]);
    let events: Vec<StreamEvent> = HttpProvider::new()
        .stream(request(&vector, &hello(), &base))
        .collect()
        .await;
    let Some(StreamEvent::End(message)) = events.last() else {
        panic!("no end")
    };
    let outcome = message.error_message.as_deref().unwrap_or("no error");
    println!("outcome: {outcome}");
}

/// The error of a request to `base` with these variables set, or `no error`.
fn outcome(base: &str, variables: &[(&str, &str)]) -> String {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child
        .args(["--exact", "ask", "--nocapture"])
        .env(BASE, base);
    for name in [
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "NODE_EXTRA_CA_CERTS",
        "NO_PROXY",
        "no_proxy",
    ] {
        child.env_remove(name);
    }
    let output = child.envs(variables.iter().copied()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find_map(|line| line.split_once("outcome: "));
    line.unwrap_or_else(|| panic!("{text}")).1.to_owned()
}

#[test]
fn certificates_of_ones_own_replace_or_extend_the_systems() {
    let authority = pem("test-authority.pem");
    let authority = authority.to_str().unwrap();
    assert_eq!(
        outcome(&serve_tls(), &[("SSL_CERT_FILE", authority)]),
        "no error"
    );
    assert_eq!(
        outcome(&serve_tls(), &[("NODE_EXTRA_CA_CERTS", authority)]),
        "no error"
    );
}

#[test]
fn an_unknown_authority_is_named_as_the_reason() {
    let text = outcome(&serve_tls(), &[]);
    assert!(text.contains("certificate"), "{text}");
}

#[test]
fn a_bundle_that_cannot_be_read_is_named() {
    let text = outcome(&serve_tls(), &[("NODE_EXTRA_CA_CERTS", "/missing.pem")]);
    assert!(
        text.contains("NODE_EXTRA_CA_CERTS names /missing.pem"),
        "{text}"
    );
}

#[test]
fn requests_go_through_the_proxy_except_on_loopback() {
    let proxy = Server::start(vec![Reply::stream(&[&body()])]);
    let variables = [
        ("HTTP_PROXY", proxy.base.as_str()),
        ("http_proxy", &proxy.base),
    ];
    assert_eq!(outcome("http://model.invalid", &variables), "no error");
    assert!(proxy.requests()[0].starts_with("POST http://model.invalid/v1/chat/completions "));
    let local = Server::start(vec![Reply::stream(&[&body()])]);
    assert_eq!(outcome(&local.base, &variables), "no error");
    assert_eq!((proxy.requests().len(), local.requests().len()), (1, 1));
    let excepted = [variables[0], variables[1], ("NO_PROXY", "model.invalid")];
    assert!(outcome("http://model.invalid", &excepted).starts_with("Connection error."));
}
