//! Revoking a token ends the caller's calls, even if their answers are not read.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use bytes::Bytes;
use common::Running;
use futures_util::StreamExt;
use pinion_access::{Grant, Mode, NewToken};
use pinion_clip::{ClipState, Snapshot, Status};
use pinion_hub::{Answers, Endpoint, HubCall};

/// An endpoint that answers without end while its answer is read.
#[derive(Debug, Default)]
struct Flood {
    going: Arc<AtomicUsize>,
    sent: Arc<AtomicUsize>,
}

/// Counts a call while it runs.
struct Guard(Arc<AtomicUsize>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

impl Endpoint for Flood {
    fn snapshot(&self) -> Snapshot {
        let status = Status {
            state: ClipState::Running,
            message: String::new(),
        };
        Snapshot {
            status,
            manifest: Arc::default(),
        }
    }

    fn invoke(self: Arc<Self>, _: HubCall) -> Answers {
        self.going.fetch_add(1, SeqCst);
        let guard = Guard(Arc::clone(&self.going));
        let part = Bytes::from(format!("\"{}\"", "x".repeat(60_000)));
        Box::pin(futures_util::stream::repeat(part).map(move |part| {
            let _as_long_as_the_stream = &guard;
            self.sent.fetch_add(1, SeqCst);
            Ok(part)
        }))
    }
}

#[test]
fn a_revoked_token_ends_a_call_whose_answer_is_not_read() {
    let hub = Running::start(Mode::Secured);
    let flood = Arc::new(Flood::default());
    hub.hub.add_builtin("flood", flood.clone()).unwrap();
    let store = hub.hub.gate().store();
    let minted = store.mint(NewToken::new(Grant::Super)).unwrap();
    let call = br#"{"clip":"flood","command":"all"}"#;
    let length = u32::try_from(call.len()).unwrap().to_be_bytes();
    let body = [&[0][..], &length, call].concat();
    let head = format!(
        "POST /pinix.v2.HubService/Invoke HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\
         content-type: application/connect+json\r\ncontent-length: {}\r\n\r\n",
        minted.token.reveal(),
        body.len()
    );
    let mut socket = TcpStream::connect(hub.address).unwrap();
    socket
        .write_all(&[head.as_bytes(), &body].concat())
        .unwrap();
    let mut sent = 0;
    while sent == 0 || sent != flood.sent.load(SeqCst) {
        sent = flood.sent.load(SeqCst);
        std::thread::sleep(Duration::from_millis(300));
    }
    assert_eq!(flood.going.load(SeqCst), 1);
    store.revoke(&minted.record.id).unwrap();
    let begun = Instant::now();
    while flood.going.load(SeqCst) > 0 {
        assert!(begun.elapsed() < Duration::from_secs(30), "it continues");
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(socket);
}
