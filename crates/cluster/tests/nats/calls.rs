//! Calls of clips that other hubs hold.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use pinion_access::Principal;
use pinion_hub::{HubCall, InputPart};
use pinion_status::Code;
use pinion_testkit::NatsServers;

use crate::hubs::{Member, outcome};

fn pair(servers: &NatsServers) -> (Member, Member) {
    let one = Member::start(&servers.urls(), "one");
    let two = Member::start(&servers.urls(), "two");
    two.offer("todo");
    one.sees("todo");
    (one, two)
}

#[test]
#[ignore = "needs nats-server"]
fn calls_reach_the_hub_that_holds_the_clip() {
    let servers = NatsServers::one();
    let (one, two) = pair(&servers);
    assert_eq!(
        one.call("todo", "echo", r#"{"a":1}"#).unwrap(),
        r#"{"a":1}"#
    );
    assert_eq!(one.call("@acme/test", "echo", "1").unwrap(), "1");
    // Beyond one frame, and beyond the window.
    for size in [70_000, 3_000_000] {
        let input = vec![b'7'; size];
        assert_eq!(one.call("todo", "echo", input.clone()).unwrap(), input);
        let large = one.call("todo", "large", size.to_string()).unwrap();
        assert_eq!(large.len(), size);
    }
    let failure = one.call("todo", "boom", "{}").unwrap_err();
    assert_eq!((failure.code, &*failure.message), (Code::Aborted, "boom"));
    assert_eq!(outcome(&failure), "");
    let failure = one.call("todo", "nothing", "{}").unwrap_err();
    assert_eq!(failure.code, Code::NotFound);
    let mut anonymous = HubCall::new(Principal::Anonymous, "echo", "1");
    anonymous.deadline = None;
    assert!(one.ask("todo", anonymous).is_err());
    drop(two);
}

#[test]
#[ignore = "needs nats-server"]
fn streams_are_complete_and_in_order_in_both_directions() {
    let servers = NatsServers::three();
    let (one, two) = pair(&servers);
    let count = 20_000;
    let read = one.block_on(async {
        let call = HubCall::new(Principal::Super, "count", count.to_string());
        let mut answers = one.hub.invoke("todo", call);
        let mut next = 0;
        while let Some(part) = answers.next().await {
            assert_eq!(part.unwrap(), Bytes::from(next.to_string()));
            next += 1;
        }
        next
    });
    assert_eq!(read, count);
    let mut call = HubCall::new(Principal::Super, "sum", "");
    let parts = (0..500).map(|_| Ok(InputPart::new(Bytes::from(vec![b'x'; 3_000]), false)));
    call.more = Some(Box::pin(stream::iter(parts)));
    assert_eq!(one.ask("todo", call).unwrap(), "1500000");
    drop(two);
}

#[test]
#[ignore = "needs nats-server"]
fn a_caller_that_leaves_cancels_the_call_at_the_clip() {
    let servers = NatsServers::one();
    let (one, two) = pair(&servers);
    let waiting = || two.clip.waiting.load(Ordering::SeqCst);
    let wait_for = |count: usize| {
        let until = Instant::now() + Duration::from_secs(20);
        while waiting() != count {
            assert!(Instant::now() < until, "{} calls wait", waiting());
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    let hub = one.hub.clone();
    let task = one.spawn(async move {
        let call = HubCall::new(Principal::Super, "wait", "{}");
        hub.invoke("todo", call).count().await
    });
    wait_for(1);
    task.abort();
    wait_for(0);
    // A deadline cancels too, and the caller knows nothing about the work that was done.
    let mut call = HubCall::new(Principal::Super, "wait", "{}");
    call.deadline = Some(tokio::time::Instant::now() + Duration::from_millis(300));
    let failure = one.ask("todo", call).unwrap_err();
    assert_eq!(failure.code, Code::DeadlineExceeded);
    wait_for(0);
}

#[test]
#[ignore = "needs nats-server"]
fn a_call_ends_soon_after_its_hub_was_lost() {
    let servers = NatsServers::one();
    let (one, two) = pair(&servers);
    let hub = one.hub.clone();
    let task = one.spawn(async move {
        let call = HubCall::new(Principal::Super, "wait", "{}");
        hub.ask("todo", call).await
    });
    while two.clip.waiting.load(Ordering::SeqCst) == 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    two.crash();
    let lost = one.block_on(task).unwrap().unwrap_err();
    assert_eq!((lost.code, outcome(&lost)), (Code::Unavailable, "unknown"));
    let failure = one.call("todo", "echo", "1").unwrap_err();
    assert_eq!(
        (failure.code, outcome(&failure)),
        (Code::Unavailable, "not-started")
    );
}

#[test]
#[ignore = "needs nats-server"]
fn a_call_ends_at_once_when_its_own_server_is_lost() {
    let mut servers = NatsServers::three();
    let one = Member::start(&servers.url(0), "one");
    let two = Member::start(&format!("{},{}", servers.url(1), servers.url(2)), "two");
    two.offer("todo");
    one.sees("todo");
    let hub = one.hub.clone();
    let task = one.spawn(async move {
        let call = HubCall::new(Principal::Super, "wait", "{}");
        hub.ask("todo", call).await
    });
    while two.clip.waiting.load(Ordering::SeqCst) == 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    servers.kill(0);
    let lost = one.block_on(task).unwrap().unwrap_err();
    assert_eq!((lost.code, outcome(&lost)), (Code::Unavailable, "unknown"));
    // The addresses of the other servers are known from the lost one.
    let until = Instant::now() + Duration::from_secs(60);
    while one.call("todo", "echo", "1").is_err() {
        assert!(Instant::now() < until, "the hub has not come back");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
#[ignore = "needs nats-server"]
fn a_call_that_lay_in_a_paused_hub_is_not_begun() {
    let mut servers = NatsServers::three();
    // The callee's server is paused: openings lie there until the caller has long been told.
    let one = Member::start(&servers.url(0), "one");
    let two = Member::start(&servers.url(1), "two");
    two.offer("todo");
    one.sees("todo");
    one.call("todo", "note", "before").unwrap();
    servers.stop(1);
    let late = one.call("todo", "note", "late").unwrap_err();
    assert_eq!(late.code, Code::Unavailable);
    // What lies in the server is now older than an opening may be.
    std::thread::sleep(Duration::from_millis(1_500));
    servers.go_on(1);
    let until = Instant::now() + Duration::from_secs(60);
    while one.call("todo", "note", "after").is_err() {
        assert!(Instant::now() < until, "the hub has not come back");
        std::thread::sleep(Duration::from_millis(20));
    }
    let notes = two.clip.notes.lock().unwrap().clone();
    assert!(!notes.contains(&"late".to_owned()), "{notes:?}");
    assert_eq!(notes.iter().filter(|note| *note == "before").count(), 1);
    servers.kill(2);
}
