//! Aliases: one holder at a time, and another one once the first is gone.

use std::sync::atomic::{AtomicUsize, Ordering};

use pinion_hub::Owner;
use pinion_status::Code;
use pinion_testkit::NatsServers;

use crate::hubs::Member;

fn is_remote(owner: &Owner) -> bool {
    matches!(owner, Owner::Hub(_))
}

#[test]
#[ignore = "needs nats-server"]
fn a_hub_that_leaves_gives_its_aliases_up() {
    let servers = NatsServers::one();
    let one = Member::start(&servers.urls(), "one");
    let two = Member::start(&servers.urls(), "two");
    two.offer("todo");
    one.sees("todo");
    two.leave();
    one.wait_for("todo", |route| route.is_none());
    let code = one.call("todo", "echo", "1").unwrap_err().code;
    assert_eq!(code, Code::NotFound);
    one.offer("todo");
    let three = Member::start(&servers.urls(), "three");
    three.wait_for("todo", |route| {
        route.is_some_and(|route| is_remote(&route.owner))
    });
    assert_eq!(three.call("todo", "echo", "1").unwrap(), "1");
}

#[test]
#[ignore = "needs nats-server"]
fn a_clip_whose_alias_is_held_elsewhere_is_offered_under_another() {
    let servers = NatsServers::one();
    let one = Member::start(&servers.urls(), "one");
    let two = Member::start(&servers.urls(), "two");
    one.offer("todo");
    two.sees("todo");
    // As a hub that had the clip before it joined.
    two.hub
        .table()
        .retract("todo", pinion_hub::Departure::InOrder);
    two.offer("todo");
    two.sees("todo-two");
    two.wait_for("todo", |route| {
        route.is_some_and(|route| is_remote(&route.owner))
    });
    one.sees("todo-two");
    two.call("todo", "note", "first").unwrap();
    one.call("todo-two", "note", "second").unwrap();
    assert_eq!(*one.clip.notes.lock().unwrap(), ["first"]);
    assert_eq!(*two.clip.notes.lock().unwrap(), ["second"]);
}

#[test]
#[ignore = "needs nats-server"]
fn the_aliases_of_a_crashed_hub_are_free_after_its_lease() {
    let servers = NatsServers::one();
    let one = Member::start(&servers.urls(), "one");
    let two = Member::start(&servers.urls(), "two");
    two.offer("todo");
    one.sees("todo");
    two.crash();
    let begun = std::time::Instant::now();
    // Lost, and expected back: never "not found" before the others may take it.
    let mut refusals = 0;
    loop {
        match one.hub.table().get("todo") {
            None => break,
            Some(_) => {
                let failure = one.call("todo", "echo", "1").unwrap_err();
                assert_eq!(failure.code, Code::Unavailable, "{failure}");
                refusals += 1;
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(begun.elapsed().as_secs() < 60, "the route stays");
    }
    assert!(refusals > 10);
    assert!(
        begun.elapsed().as_secs() >= 10,
        "freed after {:?}",
        begun.elapsed()
    );
    one.offer("todo");
    let three = Member::start(&servers.urls(), "three");
    three.sees("todo");
    assert_eq!(three.call("todo", "echo", "1").unwrap(), "1");
}

#[test]
#[ignore = "needs nats-server"]
fn hubs_that_claim_one_alias_at_the_same_time_agree_on_its_holder() {
    let servers = NatsServers::three();
    let one = Member::start(&servers.url(0), "one");
    let two = Member::start(&servers.url(1), "two");
    let rounds = AtomicUsize::new(0);
    for round in 0..20 {
        let alias = format!("duel{round}");
        std::thread::scope(|scope| {
            scope.spawn(|| one.offer(&alias));
            scope.spawn(|| two.offer(&alias));
        });
        // The loser offers its clip under another alias and sees the winner's.
        one.wait_for(&alias, |route| route.is_some());
        let loser = |member: &Member, name: &str| {
            member.hub.table().get(&format!("{alias}-{name}")).is_some()
        };
        let until = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while !loser(&one, "one") && !loser(&two, "two") {
            assert!(std::time::Instant::now() < until, "{alias}");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        one.call(&alias, "note", alias.clone()).unwrap();
        two.wait_for(&alias, |route| {
            route.is_some_and(|route| is_remote(&route.owner) == loser(&two, "two"))
        });
        two.call(&alias, "note", alias.clone()).unwrap();
        let notes = |member: &Member| {
            let notes = member.clip.notes.lock().unwrap();
            notes.iter().filter(|note| **note == alias).count()
        };
        let found = [notes(&one), notes(&two)];
        assert!(found == [2, 0] || found == [0, 2], "{alias}: {found:?}");
        rounds.fetch_add(1, Ordering::Relaxed);
    }
}
