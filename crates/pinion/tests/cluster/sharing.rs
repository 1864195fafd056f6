//! Every method of the service reaches the hub that holds the clip.

use pinion_testkit::NatsServers;
use serde_json::{Value, json};

use crate::stage::{Home, Hub};

/// Starts a hub of the cluster in this home.
pub fn member(home: &Home, servers: &str, flags: &[&str]) -> Hub {
    let mut all = vec!["--cluster", servers, "--no-agent", "--no-scheduler"];
    all.extend(flags);
    home.serve_with(&all)
}

/// Waits until a hub lists this alias.
pub fn until_listed(home: &Home, alias: &str) {
    home.until(&format!("the listing of {alias}"), || {
        listed(home).contains(&alias.to_owned())
    });
}

pub fn listed(home: &Home) -> Vec<String> {
    let clips = home.run(&["clip", "list"]).json();
    let clips = clips.as_array().unwrap().iter();
    clips
        .map(|clip| clip["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
#[ignore = "needs nats-server and Python"]
fn a_clip_of_one_hub_is_used_at_another() {
    let servers = NatsServers::one();
    let (one, two) = (Home::new(), Home::new());
    let mut holder = member(&one, &servers.urls(), &[]);
    let mut other = member(&two, &servers.urls(), &[]);
    one.write_probe("probe");
    one.run(&["clip", "add", "./probe"]).fine();
    until_listed(&two, "probe");
    assert_eq!(
        two.run(&["invoke", "probe", "echo", "x"]).json(),
        json!({"title": "x"})
    );
    let counted = two
        .run(&["invoke", "probe", "count", "3", "--stream"])
        .fine();
    assert_eq!(counted, "1\n2\n3\n");
    let failed = two.run(&["invoke", "probe", "fail"]);
    assert!(failed.stderr.contains("it is too early"), "{failed:?}");
    let unknown = two.run(&["invoke", "probe", "ecko"]);
    assert!(unknown.stderr.contains("echo"), "{unknown:?}");
    // Manifest, files, bindings and log.
    let shown = two.run(&["clip", "show", "probe", "--json"]).json();
    assert!(
        shown.to_string().contains("Shows what it was told"),
        "{shown}"
    );
    two.run(&[
        "clip",
        "data",
        "probe",
        "write",
        "note.txt",
        "--content",
        "hello",
    ])
    .fine();
    assert_eq!(
        one.run(&["clip", "data", "probe", "read", "note.txt"])
            .fine(),
        "hello"
    );
    assert_eq!(
        two.run(&["clip", "data", "probe", "read", "note.txt"])
            .fine(),
        "hello"
    );
    two.run(&["clip", "bind", "probe", "store", "probe"]).fine();
    let bound = one.run(&["clip", "bindings", "probe", "--json"]).fine();
    assert!(bound.contains("\"store\""), "{bound}");
    assert_eq!(
        two.run(&["clip", "bindings", "probe", "--json"]).fine(),
        bound
    );
    two.run(&["invoke", "probe", "say", "--words", "heard everywhere"])
        .fine();
    two.until("the line of the log", || {
        two.run(&["clip", "logs", "probe"])
            .stdout
            .contains("heard everywhere")
    });
    // Members.
    let report = two.run(&["cluster", "status", "--json"]).json();
    assert_eq!(report["standing"], "ok");
    let members = report["members"].as_array().unwrap();
    assert_eq!(members.len(), 2, "{report}");
    assert!(
        members
            .iter()
            .all(|it| it["presence"] == "there" && it["lease"] == true),
        "{report}"
    );
    let routes: Vec<&Value> = members.iter().map(|it| &it["routes"]).collect();
    assert!(
        routes.contains(&&json!(1)) && routes.contains(&&json!(0)),
        "{report}"
    );
    // Removed from afar, and gone everywhere.
    two.run(&["clip", "remove", "probe"]).fine();
    two.until("the removal", || {
        !listed(&two).contains(&"probe".to_owned())
    });
    assert!(!listed(&one).contains(&"probe".to_owned()));
    holder.stop();
    other.stop();
}

#[test]
#[ignore = "needs nats-server and Python"]
fn a_clip_is_installed_at_a_hub_that_another_names() {
    let servers = NatsServers::one();
    let (one, two) = (Home::new(), Home::new());
    let _runs = member(&one, &servers.urls(), &[]);
    let _routes = member(&two, &servers.urls(), &["--hub-only"]);
    one.write_probe("probe");
    let report = one.run(&["cluster", "status", "--json"]).json();
    let name = report["name"].as_str().unwrap();
    let source = format!("local/probe:{}", one.path("probe").display());
    let provider = format!("pinixd@{name}");
    let added = two.run(&["clip", "add", &source, "--provider", &provider]);
    assert_eq!(added.code, 0, "{added:?}");
    until_listed(&two, "probe");
    assert_eq!(
        two.run(&["invoke", "probe", "echo", "x"]).json(),
        json!({"title": "x"})
    );
    // The alias is taken in the whole cluster.
    let three = Home::new();
    let _runs_too = member(&three, &servers.urls(), &[]);
    three.write_probe("again");
    until_listed(&three, "probe");
    let refused = three.run(&["clip", "add", "./again", "--alias", "probe"]);
    assert_ne!(refused.code, 0, "{refused:?}");
    assert!(refused.stderr.contains("already exists"), "{refused:?}");
}

#[test]
#[ignore = "needs nats-server"]
fn a_token_of_the_cluster_is_good_at_every_hub_until_it_is_revoked() {
    let servers = NatsServers::one();
    let (one, two) = (Home::new(), Home::new());
    let first = member(&one, &servers.urls(), &["--hub-only"]);
    let second = member(&two, &servers.urls(), &["--hub-only"]);
    let made = one
        .run(&["hub", "token", "create", "--scope", "@ann"])
        .json();
    let (id, token) = (
        made["id"].as_str().unwrap(),
        made["token"].as_str().unwrap(),
    );
    let ask = |hub: &Hub| {
        let command = ["clip", "list", "--server", &hub.url, "--auth-token", token];
        one.run(&command).code
    };
    assert_eq!(ask(&first), 0);
    one.until("the acceptance at the other hub", || ask(&second) == 0);
    let tokens = two.run(&["hub", "token", "list", "--json"]).fine();
    assert!(tokens.contains(id), "{tokens}");
    two.run(&["hub", "token", "revoke", id]).fine();
    assert_ne!(ask(&second), 0);
    one.until("the refusal at the first hub", || ask(&first) != 0);
    // The token is in no file of a hub, and the next start of a hub knows what is left.
    let text = std::fs::read_to_string(one.root().join("tokens.json")).unwrap();
    assert!(!text.contains(id), "{text}");
    let kept = one
        .run(&["hub", "token", "create", "--scope", "@bob"])
        .json();
    let kept = kept["token"].as_str().unwrap();
    drop(second);
    let again = member(&two, &servers.urls(), &["--hub-only"]);
    let listed = two.run(&["clip", "list", "--server", &again.url, "--auth-token", kept]);
    assert_eq!(listed.code, 0, "{listed:?}");
}
