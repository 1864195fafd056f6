//! `--jq`: the results of a filter, and its end.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::stage::Home;

#[test]
fn a_filter_says_what_is_printed() {
    let home = Home::new();
    let _hub = home.serve_probe();
    let echo = |flags: &[&str]| {
        let mut line = vec![
            "invoke", "probe", "echo", "--t", "a", "--t", "b", "--n", "1.50",
        ];
        line.extend(flags);
        home.run(&line).fine()
    };
    assert_eq!(echo(&["--jq", ".t[]"]), "a\nb\n");
    assert_eq!(echo(&["--jq=.t | length, ."]), "2\n[\"a\",\"b\"]\n");
    assert_eq!(echo(&["--jq", ".t[]", "--json"]), "\"a\"\n\"b\"\n");
    assert_eq!(echo(&["--jq", "empty"]), "");
    let before = ["invoke", "--jq", ".title", "probe", "echo", "Buy milk"];
    assert_eq!(home.run(&before).fine(), "Buy milk\n");
    // Each part is filtered when it comes, a whole answer at once.
    let parts = [
        "invoke", "--stream", "probe", "count", "3", "--jq", ". * 10",
    ];
    assert_eq!(home.run(&parts).fine(), "10\n20\n30\n");
    let whole = ["invoke", "probe", "count", "3", "--jq", "add"];
    assert_eq!(home.run(&whole).fine(), "6\n");
    let halted = [
        "invoke", "--stream", "probe", "count", "9", "--jq", "., halt",
    ];
    assert_eq!(home.run(&halted).fine(), "1\n");
    let member = ["invoke", "probe", "echo", "--", "--jq", ".t"];
    assert_eq!(home.run(&member).json()["jq"], ".t");
}

#[test]
fn pinix_has_filters_too() {
    let home = Home::new();
    let _hub = home.serve_probe();
    for line in [
        &["probe", "echo", "--title", "x", "--jq", ".title"][..],
        &["invoke", "probe", "echo", "--title", "x", "--jq=.title"],
        &["invoke", "--jq", ".title", "probe", "echo", "--title", "x"],
    ] {
        assert_eq!(home.run_as("pinix", line).fine(), "x\n", "{line:?}");
    }
    let wrong = ["probe", "echo", "--jq", "(.title"];
    let said = home.run_as("pinix", &wrong).failed(1);
    assert!(said.contains("closing parenthesis"), "{said}");
    assert!(said.contains("`pinix invoke --help`"), "{said}");
    let line = ["invoke", "probe", "echo", "--", "--jq", ".title"];
    assert_eq!(home.run_as("pinix", &line).json()["jq"], ".title");
}

#[test]
fn a_wrong_filter_is_refused_before_the_call() {
    let home = Home::new();
    let hub = home.serve_probe();
    for (filter, words) in [
        (".a | nothing", "unknown function nothing/0"),
        ("(.a", "closing parenthesis is missing"),
        ("", "missing at its end"),
    ] {
        let line = ["invoke", "probe", "say", "--words", "heard", "--jq", filter];
        let said = home.run(&line).failed(2);
        assert!(said.contains(words) && said.contains("--jq"), "{said}");
    }
    let line = ["invoke", "probe", "say", "--words", "heard", "--jq"];
    assert!(home.run(&line).failed(2).contains("--jq needs a filter"));
    let log = home.run(&["clip", "logs", "probe", "-n", "100"]).fine();
    assert!(!log.contains("heard"), "{log}");
    drop(hub);
}

#[test]
fn a_filter_that_fails_is_exit_code_1() {
    let home = Home::new();
    let _hub = home.serve_probe();
    let line = ["invoke", "probe", "text", "--jq", ".a"];
    let said = home.run(&line).failed(1);
    assert!(said.starts_with("Error: --jq: cannot index"), "{said}");
    let line = [
        "invoke",
        "probe",
        "count",
        "3",
        "--stream",
        "--jq",
        "if . == 2 then error(\"enough\") else . end",
    ];
    let ran = home.run(&line);
    assert_eq!((ran.code, ran.stdout.as_str()), (1, "1\n"), "{ran:?}");
    assert_eq!(ran.stderr, "Error: --jq: enough\n");
    // The error of a clip is not filtered.
    let line = ["invoke", "probe", "fail", "--jq", "."];
    assert_eq!(home.run(&line).failed(1), "Error: it is too early\n");
}

#[test]
fn a_filter_that_takes_too_much_memory_ends_with_an_error() {
    let home = Home::new();
    let _hub = home.serve_probe();
    for filter in [
        "[range(1e18) | \"x\" * 100000] | length",
        "\"x\" * 1000000000000 | length",
        "def f: 1 + f; f",
        "def f: [f]; f",
    ] {
        let said = home
            .run(&["invoke", "probe", "text", "--jq", filter])
            .failed(1);
        let words =
            "Error: --jq: the filter needs more than 1024 MB of memory, or calls itself too deeply";
        assert!(said.contains(words), "{filter}: {said}");
    }
    let line = [
        "invoke",
        "probe",
        "text",
        "--jq",
        "[range(100000)] | length",
    ];
    assert_eq!(home.run(&line).fine(), "100000\n");
}

#[test]
fn an_interrupt_ends_a_filter_that_does_not() {
    let home = Home::new();
    let _hub = home.serve_probe();
    for filter in ["1, (last(repeat(1)))", "repeat(1)"] {
        let line = ["invoke", "probe", "text", "--jq", filter];
        let mut command = home.command("pinion", &line);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut first = String::new();
        output.read_line(&mut first).unwrap();
        assert_eq!(first, "1\n");
        let pid = Pid::from_raw(child.id().try_into().unwrap());
        kill(pid, Signal::SIGINT).unwrap();
        // The output is not read any more: a blocked write must not delay the exit.
        assert_eq!(child.wait().unwrap().code(), Some(130), "{filter}");
    }
    // A reader that goes away ends it as well.
    let mut command = home.command("pinion", &["invoke", "probe", "text", "--jq", "repeat(1)"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(1));
}
