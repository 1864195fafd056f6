//! What is refused before a hub becomes a member.

use crate::stage::Home;

#[test]
#[ignore = "belongs to the tests with nats-server"]
fn flags_that_cannot_work_are_refused_before_anything_runs() {
    let home = Home::new();
    for (flags, part) in [
        (
            &["--cluster", "nats://ann:secret@127.0.0.1"][..],
            "PINION_CLUSTER",
        ),
        (&["--cluster", "http://127.0.0.1"], "neither nats nor tls"),
        (&["--cluster", "nats://10.0.0.1"], "tls://10.0.0.1:4222"),
        (
            &["--cluster", "127.0.0.1", "--cluster-name", "A b"],
            "a-z, 0-9",
        ),
        (
            &["--cluster", "127.0.0.1", "--cluster-replicas", "2"],
            "1, 3 or 5",
        ),
        (&["--cluster-name", "x"], "--cluster-name needs --cluster"),
        (
            &["--cluster", "127.0.0.1", "--cluster-key", "x"],
            "go together",
        ),
    ] {
        let mut line = vec!["hub", "serve", "--port", "0"];
        line.extend(flags);
        let said = home.run(&line).failed(2);
        assert!(said.contains(part), "{flags:?}: {said}");
        assert!(!said.contains("secret"), "{said}");
    }
    let said = home
        .run(&["hub", "serve", "--port", "0", "--cluster", "127.0.0.1:1"])
        .failed(1);
    assert!(
        said.contains("cannot connect to the NATS server nats://127.0.0.1:1"),
        "{said}"
    );
}

#[test]
#[ignore = "belongs to the tests with nats-server"]
fn the_rights_of_hubs_are_printed_without_a_server() {
    let home = Home::new();
    let rights = home
        .run(&["cluster", "permissions", "--cluster-name", "prod"])
        .fine();
    assert!(
        rights.contains("\"pn.prod.>\"") && rights.contains("\"$KV.PN_prod.>\""),
        "{rights}"
    );
    let said = home
        .run(&["cluster", "permissions", "--cluster-name", "A"])
        .failed(2);
    assert!(said.contains("a-z, 0-9"), "{said}");
}

#[test]
#[ignore = "belongs to the tests with nats-server"]
fn a_hub_without_a_cluster_has_no_members() {
    let home = Home::new();
    let _hub = home.serve();
    let said = home.run(&["cluster", "status"]).failed(1);
    assert!(said.contains("belongs to no cluster"), "{said}");
}
