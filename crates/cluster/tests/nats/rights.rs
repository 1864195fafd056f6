//! A hub works with exactly the rights that are printed, and names the one that is missing.

use pinion_cluster::access::ClusterAccess;
use pinion_cluster::names::ClusterName;
use pinion_cluster::rights::Rights;
use pinion_status::Code;
use pinion_testkit::NatsServers;

use crate::hubs::Member;

fn servers(rights: &Rights) -> NatsServers {
    let permissions = rights.configuration();
    NatsServers::start(
        1,
        &format!("authorization {{ users: [ {{ user: hub, password: secret, {permissions} }} ] }}"),
    )
}

fn access(servers: &NatsServers) -> ClusterAccess {
    let address = servers.url(0).replace("nats://", "nats://hub:secret@");
    let environment = |name: &str| (name == "PINION_CLUSTER").then(|| address.clone());
    ClusterAccess::read(&pinion_cluster::access::AccessFlags::default(), environment)
        .unwrap()
        .unwrap()
}

#[test]
#[ignore = "needs nats-server"]
fn the_printed_rights_are_enough() {
    let servers = servers(&Rights::of_hub(&ClusterName::default()));
    let one = Member::with_access(access(&servers), "one").unwrap();
    let two = Member::with_access(access(&servers), "two").unwrap();
    two.offer("todo");
    one.sees("todo");
    assert_eq!(one.call("todo", "echo", "1").unwrap(), "1");
    two.leave();
    one.wait_for("todo", |route| route.is_none());
}

#[test]
#[ignore = "needs nats-server"]
fn a_missing_right_is_named_at_the_start() {
    let all = Rights::of_hub(&ClusterName::default());
    let mut poorer = Vec::new();
    for at in 0..all.publish.len() {
        let mut rights = all.clone();
        let missing = rights.publish.remove(at);
        poorer.push((missing, rights));
    }
    for at in 0..all.subscribe.len() {
        let mut rights = all.clone();
        let missing = rights.subscribe.remove(at);
        poorer.push((missing, rights));
    }
    for (missing, rights) in poorer {
        let servers = servers(&rights);
        let Err(refused) = Member::with_access(access(&servers), "one") else {
            panic!("without {missing} the hub starts");
        };
        let part = missing.trim_end_matches('>');
        assert_eq!(refused.code, Code::PermissionDenied, "{missing}: {refused}");
        assert!(
            refused
                .message
                .to_lowercase()
                .contains(&part.to_lowercase()),
            "{missing}: {refused}"
        );
    }
}
