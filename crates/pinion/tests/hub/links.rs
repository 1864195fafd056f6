//! The binary called as `pinix` and `pinixd`.

use serde_json::json;

use crate::stage::{Home, Hub};

#[test]
fn both_forms_of_every_command_work() {
    let home = Home::new();
    let _hub = home.serve();
    home.write_probe("probe");
    let pinix = |words: &[&str]| home.run_as("pinix", words);
    pinix(&["hub", "add", "./probe"]).fine();
    pinix(&["add", "./probe", "--alias", "second"]).fine();
    let row = "probe\tlocal/probe\t1.2.0\tpinixd\tcount,echo,fail,family,say,text,wait\n";
    for words in [&["list"][..], &["hub", "list"]] {
        let listed = pinix(words).fine();
        assert!(listed.contains(row), "{listed}");
        assert!(listed.contains("\nsecond\tlocal/probe\t"), "{listed}");
    }
    for words in [&["info", "probe"][..], &["hub", "info", "probe"]] {
        let told = pinix(words).fine();
        assert!(
            told.contains("Commands:") && told.contains("--title string, required"),
            "{told}"
        );
    }
    for words in [
        &["probe", "echo", "--title", "x"][..],
        &["invoke", "probe", "echo", "--title", "x"],
    ] {
        assert_eq!(pinix(words).json(), json!({"title": "x"}));
    }
    pinix(&["hub", "bind", "probe", "store", "second"]).fine();
    assert_eq!(
        pinix(&["bindings", "probe"]).json()["bindings"]["store"]["alias"],
        "second"
    );
    pinix(&["unbind", "probe", "store"]).fine();
    pinix(&["data", "probe", "write", "a.txt", "--content", "hi"]).fine();
    assert_eq!(pinix(&["data", "probe", "read", "a.txt"]).fine(), "hi");
    assert!(pinix(&["hub", "logs"]).fine().contains("installs"));
    pinix(&["logs", "probe", "--tail", "5"]).fine();
    pinix(&["remove", "second"]).fine();
    assert_eq!(home.names(), ["probe"]);
}

#[test]
fn what_is_piped_becomes_the_member_stdin() {
    let home = Home::new();
    let _hub = home.serve_probe();
    let fed = home.run_fed("pinix", &["probe", "echo", "--n", "1"], b"42");
    assert_eq!(fed.json(), json!({"n": 1, "stdin": "42"}));
    let whole = home.run_fed("pinix", &["probe", "echo", "{\"a\":1}"], b"more");
    assert_eq!(whole.json(), json!({"a": 1}));
}

#[test]
fn flags_stand_before_the_clip() {
    let home = Home::new();
    let hub = home.serve_probe();
    let token = std::fs::read_to_string(home.root().join("local.token")).unwrap();
    let elsewhere = |words: &[&str]| {
        let mut command = home.command("pinix", words);
        command.env("PINION_HUB_DIR", home.path("elsewhere"));
        command.output().unwrap()
    };
    let called = elsewhere(&[
        "--server",
        &hub.url,
        &format!("--auth-token={}", token.trim()),
        "probe",
        "echo",
        "--server",
        "x",
    ]);
    assert_eq!(
        String::from_utf8(called.stdout).unwrap(),
        "{\"server\": \"x\"}\n"
    );
    let refused = elsewhere(&["--server", &hub.url, "list"]);
    assert_eq!(refused.status.code(), Some(1));
}

#[test]
fn the_hub_is_started_in_the_background_and_stopped() {
    let home = Home::new();
    let started = home.run_as("pinix", &["start", "--port", "0"]);
    assert!(started.stderr.contains("local.token"), "{started:?}");
    let said = started.fine();
    assert!(
        said.starts_with("The hub has started: http://127.0.0.1:"),
        "{said}"
    );
    let said = home.run_as("pinix", &["start", "--port", "0"]).failed(1);
    assert!(said.contains("running already"), "{said}");
    let status = home.run_as("pinix", &["status"]).json();
    assert_eq!(status["running"], true);
    home.run_as("pinix", &["stop"]).fine();
    assert_eq!(home.run_as("pinix", &["status"]).code, 1);
    let said = home
        .run_as("pinix", &["start", "--port", "99999"])
        .failed(1);
    assert!(said.contains("65535"), "{said}");
}

#[test]
fn hints_name_the_command_that_was_typed() {
    let home = Home::new();
    for (program, words, hint) in [
        ("pinix", &["hub", "add"][..], "`pinix hub add --help`"),
        (
            "pinix",
            &["remove", "--nothing"],
            "`pinix hub remove --help`",
        ),
        ("pinix", &["info"], "`pinix hub info --help`"),
        ("pinix", &["data", "todo"], "`pinix data --help`"),
        ("pinix", &["start", "--prot", "1"], "`pinix start --help`"),
        ("pinix", &["stop", "--now"], "`pinix stop --help`"),
        ("pinixd", &["--prot", "1"], "`pinixd --help`"),
    ] {
        let said = home.run_as(program, words).failed(1);
        assert!(said.contains(hint), "{program} {words:?}: {said}");
    }
}

#[test]
fn a_secret_is_not_on_the_command_line_of_a_hub_in_the_background() {
    let home = Home::new();
    let token = "a-token-of-24-characters";
    home.run_as("pinix", &["start", "--port", "0", "--super-token", token])
        .fine();
    let status = home.run_as("pinix", &["status"]).json();
    let line = std::fs::read(format!("/proc/{}/cmdline", status["pid"])).unwrap();
    let line = String::from_utf8_lossy(&line);
    assert!(line.contains("serve") && !line.contains(token), "{line}");
    let url = status["hubURL"].as_str().unwrap();
    let list = ["--server", url, "--auth-token", token, "hub", "list"];
    assert_eq!(home.run_as("pinix", &list).code, 0);
    home.run_as("pinix", &["stop"]).fine();
}

#[test]
fn pinixd_is_the_hub_itself() {
    let home = Home::new();
    let command = home.command("pinixd", &["--port", "0", "--hub-only"]);
    let mut hub = Hub::start(command, home.path("pinixd.err"));
    assert_eq!(home.run(&["hub", "info"]).json()["mode"], "hub-only");
    hub.stop();
    for words in [
        &["pinixd", "--hub", "http://x", "--hub-only"][..],
        &["pinix", "start", "--hub", "http://x", "--hub-only"],
    ] {
        let said = home.run_as(words[0], &words[1..]).failed(1);
        assert!(said.contains("exclude"), "{said}");
    }
    let said = home.run_as("pinixd", &["--hub", "http://x", "--auth", "none"]);
    assert!(said.failed(1).contains("--auth"));
    assert!(
        home.run_as("pinixd", &["--help"])
            .fine()
            .contains("Examples:")
    );
}

#[test]
fn what_is_configured_is_kept() {
    let home = Home::new();
    for (name, value) in [
        ("registry", "https://r.example"),
        ("hub", "http://127.0.0.1:1"),
        ("hub-token", "pnx_x"),
    ] {
        home.run_as("pinix", &["config", "set", name, value]).fine();
        assert_eq!(
            home.run_as("pinix", &["config", "get", name]).fine(),
            format!("{value}\n")
        );
    }
    assert_eq!(crate::stage::mode(&home.root().join("client.json")), 0o600);
    let said = home
        .run_as("pinix", &["config", "set", "colour", "red"])
        .failed(1);
    assert!(said.contains("hub-token"), "{said}");
    let said = home.run_as("pinix", &["list"]).failed(1);
    assert!(said.contains("127.0.0.1:1"), "{said}");
}

#[test]
fn what_is_not_here_says_so_in_one_sentence() {
    let home = Home::new();
    for words in [
        &["login"][..],
        &["whoami"],
        &["org", "list"],
        &["upgrade"],
        &["schedule", "list"],
        &["hub", "login"],
        &["hub", "whoami"],
        &["registry", "whoami"],
    ] {
        let said = home.run_as("pinix", words).failed(1);
        assert!(
            said.starts_with("Error: ") && said.lines().count() == 1,
            "{words:?}: {said}"
        );
    }
    assert!(home.run_as("pinix", &[]).fine().contains("Examples:"));
    let said = home.run_as("pinix", &["hub", "lits"]).failed(1);
    assert!(said.contains("Did you mean `pinix hub list`?"), "{said}");
}
