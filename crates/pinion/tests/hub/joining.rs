//! Clips of one machine on the hub of another.

use serde_json::json;

use crate::stage::{Home, Hub};

/// Returns a home whose hub has the probe.
fn lender() -> Home {
    let home = Home::new();
    home.serve_probe().stop();
    home
}

fn token(host: &Home) -> String {
    let made = host.run(&["hub", "token", "create", "--scope", "@ann", "--manage"]);
    made.json()["token"].as_str().unwrap().to_owned()
}

#[test]
fn clips_are_lent_to_another_hub_by_one_that_is_a_hub_itself() {
    let (host, guest) = (Home::new(), lender());
    let hub = host.serve_with(&["--hub-only"]);
    let token = token(&host);
    let mut lent =
        guest.serve_with(&["--join", &hub.url, "--hub-token", &token, "--name", "guest"]);
    host.until("the clip of the other", || {
        host.run(&["invoke", "probe", "echo", "x"]).code == 0
    });
    assert_eq!(
        host.run(&["invoke", "probe", "echo", "x"]).json(),
        json!({"title": "x"})
    );
    assert_eq!(
        host.run(&["invoke", "probe", "count", "2", "--stream"])
            .fine(),
        "1\n2\n"
    );
    assert_eq!(
        guest.run(&["invoke", "probe", "echo", "y"]).json(),
        json!({"title": "y"})
    );
    let listed = host.run(&["clip", "list"]).fine();
    assert!(listed.contains("\"provider\":\"guest\""), "{listed}");
    lent.stop();
    let said = host.run(&["invoke", "probe", "echo", "x"]).failed(1);
    assert!(said.contains("probe"), "{said}");
}

#[test]
fn clips_are_lent_without_being_a_hub() {
    let (host, guest) = (Home::new(), lender());
    let hub = host.serve_with(&["--hub-only"]);
    let token = token(&host);
    for (program, words) in [
        (
            "pinion",
            vec!["hub", "join", &hub.url, "--hub-token", &token],
        ),
        ("pinixd", vec!["--hub", &hub.url, "--hub-token", &token]),
    ] {
        let command = guest.command(program, &words);
        let mut joined = Hub::start(command, guest.path("join.err"));
        host.until("the clip of the other", || {
            host.run(&["invoke", "probe", "echo", "x"]).code == 0
        });
        // A joined runtime is not a hub: no client calls it, and the local token is not sent.
        assert_eq!(guest.run(&["hub", "status"]).code, 1);
        assert_eq!(guest.run(&["hub", "serve", "--port", "0"]).code, 1);
        joined.stop();
        host.until("its end", || {
            host.run(&["invoke", "probe", "echo", "x"]).code == 1
        });
    }
    let said = guest.run(&["hub", "serve", "--name", "x"]).failed(2);
    assert!(said.contains("--join"), "{said}");
}

#[test]
fn what_a_lent_clip_says_is_read_at_the_hub() {
    let (host, guest) = (Home::new(), lender());
    let hub = host.serve_with(&["--hub-only"]);
    let token = token(&host);
    let command = guest.command("pinion", &["hub", "join", &hub.url, "--hub-token", &token]);
    let _joined = Hub::start(command, guest.path("join.err"));
    host.until("the line", || {
        host.run(&["invoke", "probe", "say", "--words", "warning: low on milk"]);
        let log = host.run(&["clip", "logs", "probe"]).stdout;
        log.contains("low on milk")
    });
}

#[test]
fn runtimes_of_one_machine_have_names_of_their_own() {
    let host = Home::new();
    let hub = host.serve_with(&["--hub-only"]);
    let token = token(&host);
    let mut words = vec!["--hub", &hub.url, "--hub-token", &token];
    let mut joined = Vec::new();
    for _ in 0..2 {
        let guest = Home::new();
        let log = guest.path("join.err");
        joined.push((Hub::start(guest.command("pinixd", &words), log), guest));
    }
    assert_ne!(joined[0].0.url, joined[1].0.url);
    words.extend(["--port", "9001"]);
    let guest = Home::new();
    let third = Hub::start(guest.command("pinixd", &words), guest.path("join.err"));
    assert!(third.url.ends_with("-9001"), "{}", third.url);
    for (runtime, _) in &joined {
        assert!(!runtime.said().contains("anew"), "{}", runtime.said());
    }
}

#[test]
fn a_runtime_is_started_in_the_background_and_stopped() {
    let (host, guest) = (Home::new(), lender());
    let hub = host.serve_with(&["--hub-only"]);
    let token = token(&host);
    let said = guest
        .run_as(
            "pinix",
            &["start", "--hub", &hub.url, "--hub-token", &token],
        )
        .fine();
    assert!(said.starts_with("The runtime has started"), "{said}");
    host.until("the clip of the other", || {
        host.run(&["invoke", "probe", "echo", "x"]).code == 0
    });
    let status = guest.run_as("pinix", &["status"]);
    assert_eq!(status.code, 1);
    assert!(status.stderr.contains("offers the clips to"), "{status:?}");
    let said = guest.run_as("pinix", &["start", "--port", "0"]).failed(1);
    assert!(said.contains("offered to"), "{said}");
    guest.run_as("pinix", &["stop"]).fine();
    host.until("its end", || {
        host.run(&["invoke", "probe", "echo", "x"]).code == 1
    });
}
