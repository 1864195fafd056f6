//! Command files become prompts, and errors name the position in the file.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use common::{commands, now, parse, parse_in, prompt, read, world};
use pinion_commands::{BUILT_INS, Command, CommandError, World};

fn load(name: &str) -> Command {
    Command::load(&commands(), name.as_ref(), BUILT_INS).unwrap()
}

#[test]
fn the_example_of_the_documentation() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a.go"), "package a\n").unwrap();
    let command = load("explain.yaml");
    assert_eq!(
        command.factories.as_ref().unwrap()["chat"]["temperature"],
        0.2
    );
    let mut world = world(directory.path());
    let parsed = parse_in(
        &command,
        &["what", "is, this", "--code", "a.go", "-t"],
        &mut world,
    )
    .unwrap();
    let rendered = command.render(&parsed, &world).unwrap();
    assert_eq!(
        rendered.transcript(),
        "system: You are a patient senior engineer.\n\
         user: what is, this\nUse at most three sentences.\n\nFile a.go:\npackage a\n\n\n\n"
    );
    assert_eq!(rendered.messages, Vec::<String>::new());
}

#[test]
fn mistakes_are_found_in_the_file() {
    let cases = [
        // Literal and folded blocks.
        (
            "name: x\nprompt: |\n  fine {{ .a }}\n  {{ nofunction .a }}\n",
            "4:6: unknown function `nofunction`; a field of the data is written `.nofunction`",
        ),
        (
            "name: x\nprompt: |-\n      {{ .a | joinn }}\n",
            "3:15: unknown function `joinn`; did you mean `join`?",
        ),
        (
            "name: x\nprompt: >\n  one\n  two {{ .a }}\n\n  three {{ nofunction }}\n",
            "6:12: unknown function `nofunction`; a field of the data is written `.nofunction`",
        ),
        // Plain and quoted, on the line of the key.
        (
            "name: x\nprompt: hi {{ .a\n",
            "2:12: the action has no end: expected `}}`",
        ),
        (
            "name: x\nprompt: \"a \\\"q\\\" {{ if .a }}\"\n",
            "2:18: this `if` has no end: expected `{{end}}`",
        ),
        (
            "name: x\nprompt: 'it''s {{ $y }}'\n",
            "2:19: variable $y is not defined here: declare it first with `$y := …`",
        ),
        // Over several lines.
        (
            "name: x\nprompt: one\n  two {{ end }}\n",
            "3:7: unexpected `end`: no `if`, `range`, `with`, `define` or `block` is open",
        ),
        // Other texts of the file.
        (
            "name: x\nsystem-prompt: |\n  ok\n\n  {{ range }}\n  {{ end }}\nprompt: hi\n",
            "5:3: expected a value for `range`",
        ),
        (
            "name: x\nmessages:\n  - fine\n  - |\n    {{ template }}\n",
            "5:5: expected a name in quotes after `template`",
        ),
        // While rendering.
        (
            "name: x\nprompt: |\n  {{ if true }}\n    {{ index .list 3 }}\n  {{ end }}\n",
            "4:8: index: nothing cannot be indexed: the value is missing",
        ),
        (
            "name: x\nprompt: |\n  {{ upper 3 }}\n",
            "3:6: upper: argument 1 is a whole number, expected text",
        ),
        (
            "name: x\nprompt: |\n  äö {{ lt 1 \"a\" }}\n",
            "3:9: lt: a whole number (int) and text (string) cannot be compared: expected values of one type",
        ),
        (
            "name: x\nprompt: |\n  {{ template \"a\" }}\n",
            "3:3: template \"a\" is not defined in this text",
        ),
    ];
    for (text, expected) in cases {
        let command = read(text).unwrap();
        let parsed = parse(&command, &[]).unwrap();
        let world = World::new("/nowhere").at(now());
        let error = command.render(&parsed, &world).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("failed to render templates: prompts/x.yaml:{expected}"),
            "{text}"
        );
    }
}

#[test]
fn templates_are_checked_without_values() {
    let command = read("name: x\nflags: [{name: a, required: true}]\nprompt: '{{ .a'\n").unwrap();
    let error = command.check_templates().unwrap_err();
    assert_eq!(error.code(), "template_syntax");
    read("name: x\nprompt: '{{ .a }}'\n")
        .unwrap()
        .check_templates()
        .unwrap();
}

#[test]
fn blank_texts_are_left_out() {
    let command = read("name: x\nsystem-prompt: '  {{ .none | default \"\" }} '\nmessages: ['', ' ', 'hi', '{{ if .x }}y{{ end }}']\n").unwrap();
    let parsed = parse(&command, &[]).unwrap();
    let rendered = command.render(&parsed, &World::new("/nowhere")).unwrap();
    assert_eq!(rendered.system_prompt, None);
    assert_eq!(rendered.messages, ["hi"]);
    assert_eq!(rendered.prompt, None);
    assert_eq!(rendered.transcript(), "user: hi\n");
}

#[test]
fn a_review_has_its_files_numbered() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("change.diff"), "-a\n+b").unwrap();
    std::fs::write(directory.path().join("rules.md"), "Be kind.\nBe exact.\n").unwrap();
    std::fs::write(directory.path().join("one.go"), "package one").unwrap();
    std::fs::write(directory.path().join("two.go"), "package two").unwrap();
    let command = load("code/review.yaml");
    let mut world = world(directory.path());
    let words = [
        "--diff",
        "change.diff",
        "--guidelines=rules.md",
        "--context",
        "one.go,two.go",
        "--focus",
        "security",
    ];
    let parsed = parse_in(&command, &words, &mut world).unwrap();
    let rendered = command.render(&parsed, &world).unwrap();
    assert_eq!(
        rendered.system_prompt.unwrap(),
        "You review changes to software. Sort findings by severity, at most 5 of them.\n\
         Look for ways to misuse the program first.\n"
    );
    assert_eq!(
        rendered.prompt.unwrap(),
        "\nGuidelines:\n  Be kind.\n  Be exact.\n\nChange:\n```diff\n-a\n+b\n```\n\n\
         1. one (.go):\npackage one\n\n2. two (.go):\npackage two\nThere are 2 files of context.\n"
    );
}

#[test]
fn a_report_of_records() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(
        directory.path().join("r.csv"),
        "name,amount\nink,3\n\"paper, white\",5\n",
    )
    .unwrap();
    std::fs::write(
        directory.path().join("s.yaml"),
        "title: Stock\naudience: everyone\n",
    )
    .unwrap();
    let command = load("write/report.yaml");
    let text = prompt(
        &command,
        &[
            "--records",
            "r.csv",
            "--settings",
            "s.yaml",
            "--labels",
            "team:blue,size=2",
            "--since",
            "yesterday",
            "--sections",
            "table,outlook",
        ],
        &mut world(directory.path()),
    );
    assert_eq!(
        text,
        "\n# Stock for everyone\nFrom 15 November 2026 on.\nink: 3; paper, white: 5\n`SIZE` = 2\n`TEAM` = blue\n- Table\n"
    );
    std::fs::write(directory.path().join("r.json"), "[]").unwrap();
    let text = prompt(
        &command,
        &["--records", "r.json"],
        &mut world(directory.path()),
    );
    assert_eq!(
        text,
        "\n# Report\nFrom 1 January 2026 on.\nno records\n- Summary\n- Table\n"
    );
}

#[test]
fn messages_instead_of_a_prompt() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("facts.txt"), "one\ntwo\n").unwrap();
    let command = load("write/chat.yaml");
    let mut world = world(directory.path());
    let parsed = parse_in(&command, &["--facts", "facts.txt"], &mut world).unwrap();
    let rendered = command.render(&parsed, &world).unwrap();
    assert_eq!(
        rendered.transcript(),
        "system: You are a librarian.\nuser: Hello, I have 2 facts for you.\nuser: \n* one\n* two\n\n"
    );
    let parsed = parse_in(&command, &["--notes", "x"], &mut world).unwrap();
    let rendered = command.render(&parsed, &world).unwrap();
    assert_eq!(
        rendered.messages,
        ["Hello, I have nothing for you.", "Note: x"]
    );
}

#[test]
fn every_kind_of_number() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("page.json"), "{\"title\":\"T\"}").unwrap();
    let command = load("write/numbers.yaml");
    let text = prompt(
        &command,
        &["go", "--page", "page.json", "-n7"],
        &mut world(directory.path()),
    );
    assert_eq!(
        text,
        "go      |short\n7 of 0.5, primes [2 3 5], last 5, sum 10\nNo weights: <no value>.\n[0][1]\n\
         page.json is JSON with title T.\n2 {\"a\":1} [1 two 3.5]\n"
    );
}

#[test]
fn standard_input_is_read_once_and_only_when_asked_for() {
    let command = load("stdin.yaml");
    let directory = commands();
    let mut reading = World::new(&directory).with_stdin(std::io::Cursor::new("some text"));
    assert_eq!(prompt(&command, &["-"], &mut reading), "some text\n");
    assert_eq!(prompt(&command, &["-"], &mut reading), "some text\n");
    let mut untouched = World::new(&directory).with_stdin(Untouchable);
    assert_eq!(
        prompt(&command, &[], &mut untouched),
        "Say that there was nothing to read.\n"
    );
}

struct Untouchable;

impl std::io::Read for Untouchable {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        panic!("standard input was read")
    }
}

#[test]
fn keys_of_the_environment_do_not_get_into_prompts() {
    let command = read("name: x\nprompt: '{{ env \"EDITOR\" }} {{ env \"OPENAI_API_KEY\" }} {{ expandenv \"$GH_TOKEN ${EDITOR}\" }}'\n").unwrap();
    let mut world = World::new("/nowhere").with_environment(|name| match name {
        "EDITOR" => Some("vi".to_owned()),
        "OPENAI_API_KEY" | "GH_TOKEN" => Some("hidden".to_owned()),
        _ => None,
    });
    assert_eq!(prompt(&command, &[], &mut world), "vi   vi");
}

#[test]
fn a_path_that_leads_out_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let inside = directory.path().join("inside");
    std::fs::create_dir(&inside).unwrap();
    let file = directory.path().join("x.yaml");
    std::fs::write(&file, "name: x\nprompt: hi\n").unwrap();
    let error = Command::load(&inside, "../x.yaml".as_ref(), BUILT_INS).unwrap_err();
    assert!(matches!(error, CommandError::Outside { .. }), "{error}");
    let error = Command::load(&inside, "a/../../x.yaml".as_ref(), BUILT_INS).unwrap_err();
    assert_eq!(error.code(), "command_outside_directory");
    assert_eq!(Command::load(&inside, &file, BUILT_INS).unwrap().name, "x");
    assert_eq!(
        Command::load(directory.path(), "inside/../x.yaml".as_ref(), BUILT_INS)
            .unwrap()
            .name,
        "x"
    );
    let error = Command::load(&inside, "none.yaml".as_ref(), BUILT_INS).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot read none.yaml: the file does not exist"
    );
}

#[test]
fn standard_input_that_carries_requests_is_not_read() {
    let command = load("stdin.yaml");
    let mut world = World::new(commands()).with_stdin(Untouchable);
    let error = parse_in(&command, &["-", "--stdin-rpc"], &mut world).unwrap_err();
    assert_eq!(
        error.to_string(),
        "<input>: --stdin-rpc uses standard input; name a file instead of -"
    );
}

#[test]
fn an_alias_is_not_run_by_its_file() {
    for text in [
        "name: x\naliasFor: code go\nflags: {a: b}\n",
        "name: x\naliasFor: code go\n",
    ] {
        assert_eq!(
            read(text).unwrap_err().to_string(),
            "prompts/x.yaml: it is an alias of `code go`; put it in a repository, next to that command"
        );
    }
}
