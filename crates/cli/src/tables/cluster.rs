//! The tables of `pinion cluster`.

use super::CALLER;
use crate::table::{Command, Flag, Section};

pub static CLUSTER: Command = Command {
    commands: &[&STATUS, &PERMISSIONS],
    notes: "A hub becomes a member with `pinion hub serve --cluster URLS`. docs/cluster.md describes what a cluster promises.",
    examples: &[
        "pinion cluster status",
        "pinion cluster status --json | jq .members",
    ],
    ..Command::new("cluster", "Show the hubs that share one namespace of clips")
};

pub static STATUS: Command = Command {
    flags: &[&CALLER],
    notes: "It asks a hub of the cluster, which requires a super token. The exit code is 1 if the hub belongs to no cluster.",
    examples: &[
        "pinion cluster status",
        "pinion cluster status --server http://127.0.0.1:9000 --json",
    ],
    ..Command::new("status", "List the members of the cluster and their routes")
};

static NAME: Section = Section {
    title: "Flags",
    flags: &[Flag::valued(
        "--cluster-name",
        "NAME",
        "the name of the cluster: pinion",
    )],
};

pub static PERMISSIONS: Command = Command {
    flags: &[&NAME],
    notes: "It prints a block for the user of the hubs in the configuration of nats-server, and asks no server.",
    examples: &[
        "pinion cluster permissions",
        "pinion cluster permissions --cluster-name prod",
    ],
    ..Command::new(
        "permissions",
        "Print the rights that hubs need at the servers",
    )
};
