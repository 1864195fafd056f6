//! Reports of denials, the environment, flags and settings.

use std::fs;

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::ground::{Ground, User};

type Check = fn(&Ground) -> Result<(), String>;

const CHECKS: &[(&str, Check)] = &[
    ("a_denied_write_is_a_record", a_denied_write_is_a_record),
    (
        "ordinary_refusals_are_no_records",
        ordinary_refusals_are_no_records,
    ),
    (
        "secrets_leave_the_environment",
        secrets_leave_the_environment,
    ),
    ("read_only_writes_nothing", read_only_writes_nothing),
    ("strict_reads_a_list", strict_reads_a_list),
    ("flags_open_places", flags_open_places),
    ("projects_only_narrow", projects_only_narrow),
    ("mistakes_end_the_program", mistakes_end_the_program),
    ("off_confines_nothing", off_confines_nothing),
];

pub fn trials(user: User) -> Vec<Trial> {
    let trial = |&(name, check): &(&'static str, Check)| {
        let name = format!("{}::{name}", user.name());
        Trial::test(name, move || Ok(check(&Ground::new(user))?))
    };
    CHECKS.iter().map(trial).collect()
}

fn expect(what: &str, found: &Value, expected: &Value) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    Err(format!("{what}: {found}\nexpected {expected}"))
}

fn a_denied_write_is_a_record(ground: &Ground) -> Result<(), String> {
    let file = ground.path("outside/file").display().to_string();
    let script = format!(
        "echo x > {file}; echo y > {file}; ln -s {file} l; echo z > l; echo h > .git/hooks/x; true"
    );
    let (code, report) = ground.report(&[], &["sh", "-c", &script]);
    expect("code", &json!(code), &json!(0))?;
    expect("mode", &report["mode"], &json!("workspace"))?;
    expect("level", &report["level"], &json!("L"))?;
    let first = json!({"op": "write", "path": file, "count": 3, "program": "sh", "ask": format!("write:{file}")});
    expect("write", &report["denied"][0], &first)?;
    expect("protected", &report["denied"][1]["op"], &json!("protected"))?;
    let output = ground.run(&[], &["sh", "-c", &script]);
    let errors = String::from_utf8_lossy(&output.stderr);
    match errors.contains(&format!("[The sandbox refused: write {file};")) {
        true => Ok(()),
        false => Err(errors.into_owned()),
    }
}

fn ordinary_refusals_are_no_records(ground: &Ground) -> Result<(), String> {
    fs::create_dir(ground.path("outside/missing")).unwrap();
    let script = "echo x > /no/such/directory; echo x > /proc/self/comm; rmdir nothing; mkdir file; cat nothing; true";
    let (_, report) = ground.report(&[], &["sh", "-c", script]);
    expect("denied", &report["denied"], &json!([]))
}

fn secrets_leave_the_environment(ground: &Ground) -> Result<(), String> {
    let mut command = ground.command(&[], &["sh", "-c", "env"]);
    command
        .env("TEST_API_KEY", "k")
        .env("SSH_AUTH_SOCK", "/x")
        .env("PLAIN", "p");
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    for (part, expected) in [
        ("TEST_API_KEY", false),
        ("SSH_AUTH_SOCK", false),
        ("PLAIN=p", true),
        ("PINION_SANDBOX=workspace", true),
        ("TMPDIR=", true),
    ] {
        if text.contains(part) != expected {
            return Err(format!("{part}: {text}"));
        }
    }
    Ok(())
}

fn read_only_writes_nothing(ground: &Ground) -> Result<(), String> {
    let script = "cat file && echo x > $TMPDIR/x && cat $TMPDIR/x && ! echo y > new";
    let (code, report) = ground.report(&["--sandbox", "read-only"], &["sh", "-c", script]);
    expect("code", &json!(code), &json!(0))?;
    expect("mode", &report["mode"], &json!("read-only"))?;
    expect("op", &report["denied"][0]["op"], &json!("create"))
}

fn strict_reads_a_list(ground: &Ground) -> Result<(), String> {
    let file = ground.path("outside/file");
    let file = file.to_str().unwrap();
    let script = format!(
        "cat file && ! cat {file} && echo x > $HOME/x && echo y > new && ls /usr/bin > /dev/null"
    );
    let strict = ["--sandbox", "strict"];
    let output = ground.run(&strict, &["sh", "-c", &script]);
    if output.status.code() != Some(0) {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let flags = ["--sandbox=strict", "--sandbox-read", file];
    let output = ground.run(&flags, &["cat", file]);
    expect("shown", &json!(output.status.code()), &json!(0))
}

fn flags_open_places(ground: &Ground) -> Result<(), String> {
    let file = ground.path("outside/file");
    let file = file.to_str().unwrap();
    let script = format!("echo changed > {file}");
    let output = ground.run(&["--sandbox-write", file], &["sh", "-c", &script]);
    expect("write", &json!(output.status.code()), &json!(0))?;
    let output = ground.run(&["--sandbox-hide", file], &["cat", file]);
    expect("hide", &json!(output.status.code()), &json!(1))
}

/// Escape test 58.
fn projects_only_narrow(ground: &Ground) -> Result<(), String> {
    let file = ground.path("outside/file").display().to_string();
    let project = ground.path("work/.pi");
    fs::create_dir(&project).unwrap();
    let settings = json!({"sandbox": {
        "mode": "off", "write": ["/"], "show": ["~/.ssh"], "network": {"mode": "open"},
        "tools": {"bash": {"mode": "off"}}, "hide": ["file"],
    }});
    fs::write(project.join("settings.json"), settings.to_string()).unwrap();
    let secret = ground.path("home/.ssh/id_test").display().to_string();
    let script = format!("! echo x > {file} && ! cat {secret} && ! cat file");
    let output = ground.run(&[], &["sh", "-c", &script]);
    expect("narrowed", &json!(output.status.code()), &json!(0))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    match errors.contains("a project can only narrow the sandbox") {
        true => Ok(()),
        false => Err(errors.into_owned()),
    }
}

fn mistakes_end_the_program(ground: &Ground) -> Result<(), String> {
    let ends = |flags: &[&str], words: &str| {
        let output = ground.run(flags, &["touch", "ran"]);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        let is_expected = output.status.code() == Some(2) && errors.contains(words);
        match is_expected && !ground.path("work/ran").exists() {
            true => Ok(()),
            false => Err(format!("{flags:?}: {}: {errors}", output.status)),
        }
    };
    ends(&["--sandbox", "workspcae"], "Did you mean workspace?")?;
    ends(&["--sandbox-write", "*.txt"], "is a pattern")?;
    ends(&["--sandbox-network", "proxy"], "not available")?;
    let settings = ground.path("home/.pi/agent");
    fs::create_dir_all(&settings).unwrap();
    fs::write(
        settings.join("settings.json"),
        r#"{"sandbox": {"wirte": []}}"#,
    )
    .unwrap();
    ends(&[], "no member \"wirte\"")
}

fn off_confines_nothing(ground: &Ground) -> Result<(), String> {
    let file = ground.path("outside/free").display().to_string();
    let output = ground.run(
        &["--sandbox=off"],
        &["sh", "-c", &format!("echo x > {file}")],
    );
    expect("code", &json!(output.status.code()), &json!(0))?;
    match ground.path("outside/free").exists() {
        true => Ok(()),
        false => Err("nothing was written".into()),
    }
}
