//! `pinion cluster …`: reports about the hubs of a cluster.

use std::process::ExitCode;

use pinion_cli::tables;
use pinion_cluster::names::ClusterName;
use pinion_cluster::rights::Rights;
use pinion_hub_client::cluster_report;
use serde_json::Value;

use crate::commands::out;
use crate::failure::Failure;
use crate::hub::caller::{Caller, print, wait};
use crate::hub::show::table;
use crate::verb::{Entry, Group, Line, Verb};

pub(crate) const GROUP: Group = Group {
    above: "pinion",
    command: &tables::cluster::CLUSTER,
    entries: &[Entry::One(&STATUS), Entry::One(&PERMISSIONS)],
    takes_words: false,
};

const STATUS: Verb = Verb::new("pinion cluster", &tables::cluster::STATUS, status);

const PERMISSIONS: Verb = Verb::new("pinion cluster", &tables::cluster::PERMISSIONS, permissions);

const HEADINGS: [&str; 8] = [
    "NAME",
    "ID",
    "STATE",
    "VERSION",
    "ROUTES",
    "CALLS IN",
    "CALLS OUT",
    "URL",
];

fn status(line: &Line) -> Result<ExitCode, Failure> {
    line.exactly::<0>()?;
    let caller = Caller::of(line)?;
    let report = wait(async { Ok(cluster_report(caller.client()).await?) })?;
    print(line, || report.to_string(), || text(&report))
}

fn permissions(line: &Line) -> Result<ExitCode, Failure> {
    line.exactly::<0>()?;
    let name = line.value("--cluster-name").map(str::parse).transpose();
    let cluster: ClusterName = name
        .map_err(|failure: pinion_status::Failure| line.wrong(failure))?
        .unwrap_or_default();
    out(&Rights::of_hub(&cluster).configuration())
}

fn text(report: &Value) -> String {
    let word = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".to_owned(),
        other => other.to_string(),
    };
    let members = report["members"].as_array().into_iter().flatten();
    let rows: Vec<Vec<String>> = members
        .map(|member| {
            let state = match member["presence"].as_str() {
                Some("there") => word(&member["state"]),
                presence => presence.unwrap_or("-").to_owned(),
            };
            vec![
                word(&member["name"]),
                word(&member["id"]),
                state,
                word(&member["version"]),
                word(&member["routes"]),
                word(&member["calls_in"]),
                word(&member["calls_out"]),
                word(&member["url"]),
            ]
        })
        .collect();
    format!(
        "Cluster {}, seen from {}: {}, {} routes, revision {}, at {}\n\n{}",
        word(&report["cluster"]),
        word(&report["name"]),
        word(&report["standing"]),
        word(&report["routes"]),
        word(&report["seen"]),
        word(&report["server"]["url"]),
        table(&HEADINGS, &rows)
    )
}
