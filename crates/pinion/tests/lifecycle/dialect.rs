//! The dialect that a client meets without naming one: that of the user's own pi. A client of pi 1.x must not wait for
//! ever in classic, either.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Output;

use pinion_testkit::Sandbox;
use serde_json::{Value, json};

use crate::support::{Client, args, offline_sandbox, pinion, script};

/// Runs one prompt and returns its lines.
fn lines_of_a_prompt(sandbox: Sandbox, flags: &[&str]) -> Vec<Value> {
    let line = [&["--mode", "rpc", "--model", "offline/demo"], flags].concat();
    let mut client = Client::start(sandbox, &line);
    client.prompt(&script(&json!({"text": "here I am"})));
    client.wait_for(0, &json!({"type": "agent_settled"}));
    client.lines()
}

/// Returns the dialect that the updates of these lines belong to.
fn spoken(lines: &[Value]) -> &'static str {
    let update = lines.iter().find(|line| line["type"] == "message_update");
    let update = update.expect("an update");
    if update.get("message").is_some() {
        "classic"
    } else {
        "modern"
    }
}

fn run(sandbox: &Sandbox, flags: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = pinion().command(sandbox, &args(flags));
    command.envs(variables.iter().copied()).output().unwrap()
}

/// Returns the line of `doctor` that names the dialect.
fn reported(sandbox: &Sandbox, variables: &[(&str, &str)]) -> String {
    let output = run(sandbox, &["doctor"], variables);
    let report = String::from_utf8(output.stdout).unwrap();
    let mut lines = report.lines().map(str::trim);
    let line = lines.find_map(|line| line.strip_prefix("dialect"));
    let line = line.unwrap_or_else(|| panic!("no dialect in\n{report}"));
    line.trim().to_owned()
}

#[test]
fn a_client_meets_the_dialect_of_the_pi_that_ran_last() {
    for (release, expected) in [
        (json!("0.52.12"), "classic"),
        (json!("0.73.1"), "classic"),
        (json!("0.87.1"), "modern"),
        (json!("1.5.0"), "modern"),
        (json!("newest"), "classic"),
        (json!(null), "classic"),
    ] {
        let settings = json!({"lastChangelogVersion": release});
        let lines = lines_of_a_prompt(offline_sandbox(&settings), &[]);
        assert_eq!(spoken(&lines), expected, "{release}");
        let reported = reported(&offline_sandbox(&settings), &[("PATH", "/nonexistent")]);
        assert!(reported.starts_with(expected), "{release}: {reported}");
    }
}

#[test]
fn a_named_dialect_wins() {
    let modern = json!({"lastChangelogVersion": "1.5.0"});
    let lines = lines_of_a_prompt(offline_sandbox(&modern), &["--rpc-dialect", "classic"]);
    assert_eq!(spoken(&lines), "classic");
    let auto = json!({"lastChangelogVersion": "1.5.0", "rpcDialect": "classic"});
    let lines = lines_of_a_prompt(offline_sandbox(&auto), &["--rpc-dialect", "auto"]);
    assert_eq!(spoken(&lines), "modern");

    let sandbox = offline_sandbox(&json!({"rpcDialect": "early"}));
    let of_settings = reported(&sandbox, &[]);
    assert_eq!(of_settings, "early (named by rpcDialect in settings.json)");
    let of_variable = reported(&sandbox, &[("PINION_RPC_DIALECT", "modern")]);
    assert_eq!(of_variable, "modern (named by PINION_RPC_DIALECT)");
}

#[test]
fn an_unknown_dialect_is_an_error_before_anything_runs() {
    let sandbox = offline_sandbox(&json!({}));
    let prompt = ["--mode", "json", "-p", "hello"];
    let flag = [&prompt[..], &["--rpc-dialect", "modren"]].concat();
    for (flags, variables) in [
        (&flag[..], &[][..]),
        (&prompt, &[("PINION_RPC_DIALECT", "modren")]),
    ] {
        let output = run(&sandbox, flags, variables);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains("\"modren\""), "{stderr}");
        assert!(
            stderr.contains("auto, early, classic or modern"),
            "{stderr}"
        );
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn the_package_of_another_pi_on_the_path_decides() {
    let sandbox = offline_sandbox(&json!({"lastChangelogVersion": null}));
    let package = sandbox.root().join("pi-package");
    fs::create_dir_all(package.join("dist")).unwrap();
    let described = json!({"name": "@earendil-works/pi-coding-agent", "version": "1.5.0"});
    fs::write(package.join("package.json"), described.to_string()).unwrap();
    fs::write(package.join("dist/cli.js"), "").unwrap();
    let programs = sandbox.root().join("programs");
    fs::create_dir(&programs).unwrap();
    symlink(package.join("dist/cli.js"), programs.join("pi")).unwrap();
    let reported = reported(&sandbox, &[("PATH", programs.to_str().unwrap())]);
    assert!(
        reported.starts_with("modern (spoken by your pi 1.5.0"),
        "{reported}"
    );
    assert!(reported.contains("package.json"), "{reported}");
}

#[test]
fn classic_reports_what_clients_of_1_x_wait_for() {
    let lines = lines_of_a_prompt(offline_sandbox(&json!({})), &["--rpc-dialect", "classic"]);
    let answer = lines.iter().find(|line| line["command"] == "prompt");
    assert_eq!(
        answer.expect("a response")["data"]["disposition"],
        "started"
    );
    let last = lines.last().expect("lines");
    assert_eq!(*last, json!({"type": "agent_settled", "aborted": false}));
}
