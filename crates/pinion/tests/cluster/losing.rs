//! Kills, pauses and departures.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use pinion_testkit::NatsServers;
use serde_json::json;

use crate::sharing::{listed, member, until_listed};
use crate::stage::{Home, Hub};

#[test]
#[ignore = "needs nats-server and Python"]
fn a_provider_that_connects_to_another_hub_takes_its_clips_along() {
    let servers = NatsServers::one();
    let (one, two) = (Home::new(), Home::new());
    let open = ["--auth", "none"];
    let first = member(&one, &servers.urls(), &open);
    let second = member(&two, &servers.urls(), &open);
    let join = |guest: &Home, hub: &Hub| {
        guest.serve_probe().stop();
        let command = guest.command("pinion", &["hub", "join", &hub.url, "--name", "guest"]);
        Hub::start(command, guest.path("join.err"))
    };
    let (guest, twin) = (Home::new(), Home::new());
    let earlier = join(&guest, &first);
    until_listed(&two, "probe");
    assert_eq!(
        two.run(&["invoke", "probe", "echo", "x"]).json(),
        json!({"title": "x"})
    );
    // The machine of the earlier connection is cut off: its hub still believes in it.
    earlier.signal(Signal::SIGSTOP);
    let _later = join(&twin, &second);
    one.until("the call through the other hub", || {
        let ran = one.run(&["invoke", "probe", "echo", "y"]);
        ran.code == 0 && ran.json() == json!({"title": "y"})
    });
    assert!(
        first.said().contains("has connected to another hub"),
        "{}",
        first.said()
    );
    earlier.signal(Signal::SIGCONT);
}

#[test]
#[ignore = "needs nats-server and Python"]
fn a_hub_that_ends_in_order_is_forgotten_at_once() {
    let servers = NatsServers::one();
    let (one, two) = (Home::new(), Home::new());
    let _stays = member(&one, &servers.urls(), &[]);
    let mut leaves = member(&two, &servers.urls(), &[]);
    two.write_probe("probe");
    two.run(&["clip", "add", "./probe"]).fine();
    until_listed(&one, "probe");
    leaves.stop();
    one.until("the departure", || {
        !listed(&one).contains(&"probe".to_owned())
    });
    one.until("the end of the membership", || {
        let report = one.run(&["cluster", "status", "--json"]).json();
        report["members"].as_array().unwrap().len() == 1
    });
    // The same hub comes back and has its alias again.
    let _back = member(&two, &servers.urls(), &[]);
    until_listed(&one, "probe");
    assert_eq!(
        one.run(&["invoke", "probe", "echo", "x"]).json(),
        json!({"title": "x"})
    );
}

#[test]
#[ignore = "needs nats-server and Python"]
fn a_killed_hub_that_starts_again_has_its_aliases_at_once() {
    let servers = NatsServers::one();
    let (one, two) = (Home::new(), Home::new());
    let _stays = member(&one, &servers.urls(), &[]);
    let mut killed = member(&two, &servers.urls(), &[]);
    two.write_probe("probe");
    two.run(&["clip", "add", "./probe"]).fine();
    until_listed(&one, "probe");
    killed.signal(Signal::SIGKILL);
    assert_eq!(killed.end(), 137);
    let begun = Instant::now();
    let _back = member(&two, &servers.urls(), &[]);
    one.until("the call of the clip", || {
        one.run(&["invoke", "probe", "echo", "x"]).code == 0
    });
    // The lease of the killed hub alone would last for twenty seconds.
    assert!(
        begun.elapsed() < Duration::from_secs(15),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
#[ignore = "needs nats-server and Python"]
fn a_paused_hub_answers_again_and_runs_nothing_late() {
    let servers = NatsServers::one();
    let (one, two) = (Home::new(), Home::new());
    let _calls = member(&one, &servers.urls(), &[]);
    let paused = member(&two, &servers.urls(), &[]);
    two.write_probe("probe");
    two.run(&["clip", "add", "./probe"]).fine();
    until_listed(&one, "probe");
    one.run(&["invoke", "probe", "say", "--words", "before"])
        .fine();
    paused.signal(Signal::SIGSTOP);
    let failed = one.run(&["invoke", "probe", "say", "--words", "during"]);
    assert_ne!(failed.code, 0, "{failed:?}");
    // What lies in the hub's socket is now older than an opening may be.
    std::thread::sleep(Duration::from_millis(1_500));
    paused.signal(Signal::SIGCONT);
    one.until("the answers after the pause", || {
        one.run(&["invoke", "probe", "say", "--words", "after"])
            .code
            == 0
    });
    let log = two.run(&["clip", "logs", "probe"]).stdout;
    assert!(log.contains("before") && !log.contains("during"), "{log}");
}
