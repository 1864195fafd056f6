//! Tokens of an external issuer, from their acceptance until they expire.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use pinion_access::{
    Clock, Gate, Grant, Method, Mode, Peer, TOKENS, TokenStore, Transport, VerifiedGrant,
};
use pinion_status::Code;
use tempfile::{TempDir, tempdir};

const START: i64 = 1_790_000_000_000;

fn gate() -> (TempDir, Clock, Gate) {
    let (root, clock) = (tempdir().unwrap(), Clock::manual(START));
    let store = TokenStore::open_at(root.path(), clock.clone()).unwrap();
    (root, clock, Gate::new(Mode::Secured, store))
}

fn ada(seconds: i64) -> VerifiedGrant {
    let scope = "@ada".parse().unwrap();
    VerifiedGrant {
        grant: Grant::Hub {
            scope,
            manage: false,
        },
        expires: START + seconds * 1000,
    }
}

#[test]
fn they_are_known_until_they_end_and_never_written() {
    let (root, clock, gate) = gate();
    let store = gate.store();
    assert!(!store.is_known("a.b.c") && gate.authenticate(Some("a.b.c"), Peer::LOCAL).is_err());
    for _ in 0..2 {
        store.accept_signed("a.b.c", ada(60)).unwrap();
    }
    assert!(store.is_known("a.b.c") && !store.is_known("a.b.d"));
    let caller = gate.authenticate(Some("a.b.c"), Peer::LOCAL).unwrap();
    assert_eq!(caller.principal.to_string(), "@ada");
    assert!(caller.may(Method::Invoke).is_ok() && caller.may(Method::AddClip).is_err());
    assert!(store.list().unwrap().is_empty());
    store.write_last_use().unwrap();
    assert!(!root.path().join(TOKENS).exists());
    let cookie = gate.open_session(&caller, Transport::Plain).unwrap();
    let cookie = cookie.split(';').next();
    assert!(
        gate.admit(None, cookie, Peer::LOCAL)
            .unwrap()
            .may(Method::Invoke)
            .is_ok()
    );
    clock.advance(Duration::from_secs(60));
    let failure = gate.authenticate(Some("a.b.c"), Peer::LOCAL).unwrap_err();
    assert_eq!(
        (failure.code, &*failure.message),
        (Code::Unauthenticated, "token expired")
    );
    let after = gate.admit(None, cookie, Peer::LOCAL).unwrap();
    assert!(after.may(Method::Invoke).is_err());
}

#[tokio::test(start_paused = true)]
async fn open_streams_end_with_signed_tokens() {
    let (_root, clock, gate) = gate();
    gate.store().accept_signed("a.b.c", ada(3)).unwrap();
    let caller = gate.authenticate(Some("a.b.c"), Peer::LOCAL).unwrap();
    let lease = tokio::spawn(gate.watch(&caller).ended());
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(!lease.is_finished());
    clock.advance(Duration::from_secs(3));
    let start = tokio::time::Instant::now();
    assert_eq!(lease.await.unwrap().message, "token expired");
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[test]
fn those_that_ended_make_room_and_then_those_nobody_uses() {
    let (_root, clock, gate) = gate();
    let store = gate.store();
    for count in 0..500 {
        store
            .accept_signed(&format!("old.{count}"), ada(10))
            .unwrap();
    }
    clock.advance(Duration::from_secs(20));
    store.accept_signed("used", ada(60)).unwrap();
    assert!(!store.is_known("old.0") && !store.is_known("old.499"));
    gate.authenticate(Some("used"), Peer::LOCAL).unwrap();
    for count in 0..10_001 {
        store
            .accept_signed(&format!("new.{count}"), ada(60))
            .unwrap();
    }
    assert!(store.is_known("used") && store.is_known("new.10000"));
    let known = (0..10_001).filter(|count| store.is_known(&format!("new.{count}")));
    assert_eq!(known.count(), 9_999);
}
