//! Every type of field, from the command line, the environment and the file.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use std::path::Path;

use common::{now, parse, parse_in, read, world};
use pinion_commands::templates::{Value, printed};
use pinion_commands::{Command, FieldType, Source, World, parse_date};

fn command(kind: &str, more: &str) -> Command {
    read(&format!(
        "name: x\nflags:\n  - name: my_field\n    type: {kind}\n{more}\nprompt: hi\n"
    ))
    .unwrap()
}

fn files() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("a.txt", "one\ntwo\n"),
        ("b.txt", "three"),
        ("o.json", "{\"k\": 1, \"l\": [true, null]}"),
        ("o.yaml", "k: v\nn: 2\n"),
        ("l.json", "[\"x\", \"y\"]"),
        ("l.yaml", "- p\n- q\n"),
        ("t.csv", "id,name\n1,Ada\n2,\"Bo, b\"\n"),
        ("t.tsv", "id\tname\n7\tEve\n"),
        ("one.csv", "id,name\n1,Ada\n"),
        ("os.json", "[{\"a\":1},{\"a\":2}]"),
        ("bad.json", "{"),
    ] {
        std::fs::write(directory.path().join(name), text).unwrap();
    }
    directory
}

#[test]
fn values_of_every_type() {
    let directory = files();
    let choices = "    choices: [red, green]";
    let cases: &[(&str, &str, &[&str], &str)] = &[
        ("string", "", &["--my-field", "a b"], "a b"),
        ("string", "", &["--my-field="], ""),
        ("string", "", &["--my-field", "x", "--my-field", "y"], "y"),
        ("secret", "", &["--my-field", "s"], "s"),
        ("int", "", &["--my-field", "-3"], "-3"),
        ("float", "", &["--my-field=2.50"], "2.5"),
        ("bool", "", &["--my-field"], "true"),
        ("bool", "", &["--my-field=false"], "false"),
        ("bool", "", &["--my-field=off"], "false"),
        (
            "date",
            "",
            &["--my-field", "2026-03-04"],
            "2026-03-04 00:00:00 +0000 UTC",
        ),
        ("choice", choices, &["--my-field", "green"], "green"),
        (
            "choiceList",
            choices,
            &["--my-field", "green,red"],
            "[green red]",
        ),
        (
            "stringList",
            "",
            &["--my-field", "a,\"b,c\"", "--my-field", "d"],
            "[a b,c d]",
        ),
        (
            "intList",
            "",
            &["--my-field", "1,2", "--my-field=3"],
            "[1 2 3]",
        ),
        ("floatList", "", &["--my-field", "1,2.5"], "[1 2.5]"),
        (
            "keyValue",
            "",
            &["--my-field", "a=1,b:2", "--my-field", "u=http://x"],
            "map[a:1 b:2 u:http://x]",
        ),
        ("keyValue", "", &["--my-field", "@o.yaml"], "map[k:v n:2]"),
        (
            "keyValue",
            "",
            &["--my-field", "@o.json"],
            "map[k:1 l:[true <nil>]]",
        ),
        (
            "keyValue",
            "",
            &["--my-field", "@one.csv"],
            "map[id:1 name:Ada]",
        ),
        ("keyValue", "", &["--my-field", "@-"], "map[in:put]"),
        ("stringFromFile", "", &["--my-field", "b.txt"], "three"),
        (
            "stringFromFile",
            "",
            &["--my-field", "-"],
            "{\"in\": \"put\"}",
        ),
        (
            "stringFromFiles",
            "",
            &["--my-field", "a.txt,b.txt"],
            "one\ntwo\nthree",
        ),
        (
            "stringListFromFile",
            "",
            &["--my-field", "a.txt"],
            "[one two]",
        ),
        ("stringListFromFile", "", &["--my-field", "l.json"], "[x y]"),
        (
            "stringListFromFile",
            "",
            &["--my-field", "t.csv"],
            "[1,Ada 2,\"Bo, b\"]",
        ),
        (
            "stringListFromFiles",
            "",
            &["--my-field", "l.yaml,a.txt"],
            "[p q one two]",
        ),
        (
            "objectFromFile",
            "",
            &["--my-field", "o.json"],
            "map[k:1 l:[true <nil>]]",
        ),
        (
            "objectFromFile",
            "",
            &["--my-field", "one.csv"],
            "map[id:1 name:Ada]",
        ),
        ("objectFromFile", "", &["--my-field", "-"], "map[in:put]"),
        (
            "objectListFromFile",
            "",
            &["--my-field", "t.csv"],
            "[map[id:1 name:Ada] map[id:2 name:Bo, b]]",
        ),
        (
            "objectListFromFile",
            "",
            &["--my-field", "os.json"],
            "[map[a:1] map[a:2]]",
        ),
        (
            "objectListFromFiles",
            "",
            &["--my-field", "os.json", "--my-field", "t.tsv"],
            "[map[a:1] map[a:2] map[id:7 name:Eve]]",
        ),
    ];
    for (kind, more, words, expected) in cases {
        let mut world =
            world(directory.path()).with_stdin(std::io::Cursor::new("{\"in\": \"put\"}"));
        let command = command(kind, more);
        let parsed = parse_in(&command, words, &mut world)
            .unwrap_or_else(|e| panic!("{kind} {words:?}: {e}"));
        assert_eq!(
            printed(&parsed.values["my_field"]),
            *expected,
            "{kind} {words:?}"
        );
        assert_eq!(parsed.sources["my_field"], Source::CommandLine);
    }
    let tested: Vec<&str> = cases.iter().map(|case| case.0).collect();
    let untested: Vec<&str> = FieldType::names()
        .filter(|name| !tested.contains(name) && !name.starts_with("file"))
        .collect();
    assert_eq!(untested, Vec::<&str>::new());
}

#[test]
fn wrong_values_name_the_expected_form() {
    let directory = files();
    let choices = "    choices: [red, green]";
    let cases: &[(&str, &str, &[&str], &str)] = &[
        (
            "int",
            "",
            &["--my-field", "x"],
            "--my-field: \"x\" is not a whole number",
        ),
        (
            "float",
            "",
            &["--my-field", "x"],
            "--my-field: \"x\" is not a number",
        ),
        (
            "bool",
            "",
            &["--my-field=perhaps"],
            "--my-field: \"perhaps\" is not true or false (on, off, yes and no work too)",
        ),
        (
            "date",
            "",
            &["--my-field", "someday"],
            "--my-field: \"someday\" is not a date such as 2026-01-31, yesterday or \"3 days ago\"",
        ),
        (
            "choice",
            choices,
            &["--my-field", "gren"],
            "--my-field: \"gren\" is not one of red, green; did you mean \"green\"?",
        ),
        (
            "choiceList",
            choices,
            &["--my-field", "red,blue"],
            "--my-field: \"blue\" is not one of red, green",
        ),
        (
            "intList",
            "",
            &["--my-field", "1,x"],
            "--my-field: \"x\" is not a whole number",
        ),
        (
            "keyValue",
            "",
            &["--my-field", "a"],
            "--my-field: \"a\" is not a pair such as key=value or key:value",
        ),
        (
            "stringFromFile",
            "",
            &["--my-field", "none"],
            "--my-field: cannot open none: No such file or directory (os error 2)",
        ),
        (
            "stringFromFile",
            "",
            &["--my-field", "."],
            "--my-field: . is a directory, expected a file",
        ),
        (
            "objectFromFile",
            "",
            &["--my-field", "l.json"],
            "--my-field: l.json does not contain exactly one object",
        ),
        (
            "objectFromFile",
            "",
            &["--my-field", "bad.json"],
            "--my-field: bad.json is not JSON from line 1, column 1 on",
        ),
        (
            "objectListFromFile",
            "",
            &["--my-field", "l.json"],
            "--my-field: l.json does not contain a list of objects",
        ),
        (
            "stringListFromFile",
            "",
            &["--my-field", "os.json"],
            "--my-field: os.json does not contain a list of texts",
        ),
        (
            "int",
            "",
            &["--my-field"],
            "--my-field needs a value: a whole number",
        ),
        (
            "choice",
            choices,
            &["--my-field"],
            "--my-field needs a value: one of red, green",
        ),
    ];
    for (kind, more, words, expected) in cases {
        let error =
            parse_in(&command(kind, more), words, &mut world(directory.path())).unwrap_err();
        assert_eq!(error.to_string(), *expected, "{kind} {words:?}");
    }
}

#[test]
fn a_file_tells_all_about_itself() {
    let directory = files();
    let command = read(
        "name: x\nflags: [{name: f, type: file}, {name: all, type: fileList}]\nprompt: |-\n  {{ with .f }}{{ .Path }} {{ .BaseName }} {{ .Extension }} {{ .FileType }} {{ .Size }} {{ .IsObject }} {{ .IsList }} {{ .IsDirectory }} {{ .RelativePath }} {{ isAbs .AbsolutePath }} {{ .ParsedContent.k }} {{ .ParseError }} {{ .Permissions | len }} {{ gt .LastModifiedTime.Year 2000 }}{{ end }}{{ range .all }}{{ .FileType }}:{{ .IsList }}:{{ if .ParseError }}broken{{ else }}{{ .ParsedContent }}{{ end }}:{{ .StringContent | len }} {{ end }}\n",
    )
    .unwrap();
    let render = |words: &[&str]| {
        let mut world = world(directory.path()).with_stdin(std::io::Cursor::new("in"));
        common::prompt(&command, words, &mut world)
    };
    assert_eq!(
        render(&["--f", "./o.json"]),
        "./o.json o.json .json JSON 27 true false false o.json true 1 <no value> 10 true"
    );
    assert_eq!(
        render(&["--all", "t.csv,bad.json,b.txt,-"]),
        "CSV:true:[map[id:1 name:Ada] map[id:2 name:Bo, b]]:24 JSON:false:broken:1 TEXT:false:<no value>:5 TEXT:false:<no value>:2 "
    );
    assert_eq!(render(&["--all", "."]), "TEXT:false:<no value>:0 ");
}

#[test]
fn the_strongest_source_wins() {
    let command = read(
        "name: x\nflags: [{name: tone, default: calm}, {name: tags, type: stringList}]\narguments: [{name: topic, default: ships}]\nprompt: hi\n",
    )
    .unwrap();
    let environment = |name: &str| match name {
        "PINOCCHIO_TONE" => Some("loud".to_owned()),
        "PINOCCHIO_TAGS" => Some("[a, b]".to_owned()),
        "PINOCCHIO_TOPIC" => Some("cars".to_owned()),
        "PINOCCHIO_OUTPUT" => Some("yaml".to_owned()),
        "PINOCCHIO_PROFILE" => Some("work".to_owned()),
        _ => None,
    };
    let read = |words: &[&str], with_environment: bool| {
        let mut world = World::new("/nowhere");
        if with_environment {
            world = world.with_environment(environment);
        }
        parse_in(&command, words, &mut world).unwrap()
    };
    let bare = read(&[], false);
    assert_eq!(printed(&bare.values["tone"]), "calm");
    assert_eq!(bare.sources["topic"], Source::Default);
    assert!(
        !bare.values.contains_key("tags"),
        "a field nobody gave is absent"
    );
    assert_eq!(bare.builtin.text("output"), "text");
    assert!(!bare.builtin.given("output"));
    assert_eq!(bare.builtin.optional("profile"), None);

    let from_environment = read(&[], true);
    assert_eq!(printed(&from_environment.values["tone"]), "loud");
    assert_eq!(printed(&from_environment.values["tags"]), "[a b]");
    assert_eq!(from_environment.sources["topic"], Source::Environment);
    assert_eq!(from_environment.builtin.text("output"), "yaml");
    assert!(from_environment.builtin.given("profile"));

    let positional = read(&["planes", "--tone", "soft", "--output=json"], true);
    assert_eq!(printed(&positional.values["topic"]), "planes");
    assert_eq!(positional.sources["topic"], Source::Argument);
    assert_eq!(printed(&positional.values["tone"]), "soft");
    assert_eq!(positional.builtin.text("output"), "json");
    assert_eq!(
        printed(&read(&["planes", "--topic", "x"], true).values["topic"]),
        "x"
    );
}

#[test]
fn defaults_are_of_their_type() {
    let defaults = [
        ("string", "5", "5"),
        ("int", "\"7\"", "7"),
        ("float", "1", "1"),
        ("bool", "on", "true"),
        ("bool", "no", "false"),
        ("string", "n", "n"),
        ("string", "on", "on"),
        ("stringList", "[a, 1]", "[a 1]"),
        ("stringList", "single", "[single]"),
        ("intList", "[1, 2]", "[1 2]"),
        ("keyValue", "{a: b}", "map[a:b]"),
        ("date", "yesterday", "2026-11-15 00:00:00 +0000 UTC"),
        ("stringFromFile", "the text itself", "the text itself"),
        ("objectFromFile", "{k: 1}", "map[k:1]"),
        ("objectListFromFile", "[{k: 1}]", "[map[k:1]]"),
    ];
    for (kind, default, expected) in defaults {
        let command = command(kind, &format!("    default: {default}"));
        let parsed = parse(&command, &[]).unwrap();
        assert_eq!(
            printed(&parsed.values["my_field"]),
            expected,
            "{kind} {default}"
        );
    }
    for (kind, default) in [
        ("int", "x"),
        ("bool", "[1]"),
        ("objectFromFile", "x"),
        ("stringList", "{a: 1}"),
    ] {
        let text = format!("name: x\nflags: [{{name: f, type: {kind}, default: {default}}}]\n");
        let error = read(&text).unwrap_err().to_string();
        assert!(
            error.starts_with("prompts/x.yaml: field `f` has a default that is invalid: "),
            "{error}"
        );
    }
}

#[test]
fn dates_as_people_write_them() {
    let cases = [
        ("2026-01-31", "2026-01-31 00:00:00 +0000 UTC"),
        ("2026-01-31 15:04", "2026-01-31 15:04:00 +0000 UTC"),
        ("2026-01-31T15:04:05Z", "2026-01-31 15:04:05 +0000 UTC"),
        (
            "2026-01-31T15:04:05.25+02:00",
            "2026-01-31 15:04:05.25 +0200 +0200",
        ),
        (
            "Mon, 02 Jan 2006 15:04:05 GMT",
            "2006-01-02 15:04:05 +0000 UTC",
        ),
        ("January 2, 2006", "2006-01-02 00:00:00 +0000 UTC"),
        ("2 jan 2006", "2006-01-02 00:00:00 +0000 UTC"),
        ("01/31/2026", "2026-01-31 00:00:00 +0000 UTC"),
        ("31.01.2026", "2026-01-31 00:00:00 +0000 UTC"),
        ("@0", "1970-01-01 00:00:00 +0000 UTC"),
        ("now", "2026-11-16 07:10:28 +0000 UTC"),
        ("Today", "2026-11-16 00:00:00 +0000 UTC"),
        ("tomorrow", "2026-11-17 00:00:00 +0000 UTC"),
        ("yesterday", "2026-11-15 00:00:00 +0000 UTC"),
        ("the day before yesterday", "2026-11-14 00:00:00 +0000 UTC"),
        ("3 days ago", "2026-11-13 07:10:28 +0000 UTC"),
        ("two weeks ago", "2026-11-02 07:10:28 +0000 UTC"),
        ("in 2 hours", "2026-11-16 09:10:28 +0000 UTC"),
        ("a month from now", "2026-12-16 07:10:28 +0000 UTC"),
        ("last week", "2026-11-09 07:10:28 +0000 UTC"),
        ("next year", "2027-11-16 07:10:28 +0000 UTC"),
        ("friday", "2026-11-20 00:00:00 +0000 UTC"),
        ("next monday", "2026-11-23 00:00:00 +0000 UTC"),
        ("last tue", "2026-11-10 00:00:00 +0000 UTC"),
        ("tomorrow at 15:30", "2026-11-17 15:30:00 +0000 UTC"),
        ("next friday 3pm", "2026-11-20 15:00:00 +0000 UTC"),
        ("noon", "2026-11-16 12:00:00 +0000 UTC"),
    ];
    for (text, expected) in cases {
        let time = parse_date(text, &now()).unwrap_or_else(|| panic!("{text}"));
        assert_eq!(printed(&Value::time(time)), expected, "{text}");
    }
    for text in [
        "",
        "someday",
        "2026-13-01",
        "2026-02-30",
        "days ago",
        "99999999999 years ago",
        "25:00",
        "13 of may",
    ] {
        assert_eq!(parse_date(text, &now()), None, "{text}");
    }
}

#[test]
fn secrets_and_schemas() {
    let command = Command::load(
        &common::commands(),
        Path::new("write/numbers.yaml"),
        pinion_commands::BUILT_INS,
    )
    .unwrap();
    let parsed = parse(
        &command,
        &["go", "--api-token", "hidden", "--openai-api-key=hidden"],
    )
    .unwrap();
    let shown = command.parsed_fields(&parsed, pinion_commands::BUILT_INS);
    assert!(!shown.contains("hidden"), "{shown}");
    assert!(
        shown.contains("api_token:\n    value: \"***\"\n    source: command line\n"),
        "{shown}"
    );
    assert!(
        shown.contains("ai-engine:\n    value: gpt-4\n    source: default\n"),
        "{shown}"
    );
    let schema = command.schema();
    assert_eq!(schema["required"], serde_json::json!(["topic"]));
    assert_eq!(
        schema["properties"]["primes"],
        serde_json::json!({"type": "array", "items": {"type": "integer"}, "description": "Numbers", "default": [2, 3, 5]})
    );
    assert_eq!(
        schema["properties"]["mode"]["enum"],
        serde_json::json!(["short", "long"])
    );
    assert_eq!(schema["properties"]["page"]["x-file"], true);
}
