//! Tests of the parser for a command's own fields and the program's options.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use common::{commands, parse, read};
use pinion_commands::templates::printed;
use pinion_commands::{BUILT_INS, Command, CommandError, FieldType, HelpLevel};

fn explain() -> Command {
    Command::load(&commands(), "explain.yaml".as_ref(), BUILT_INS).unwrap()
}

#[test]
fn options_and_arguments_may_stand_in_any_order() {
    let command = explain();
    for words in [
        &["--rpc", "what", "-t", "is", "--ai-engine", "m", "this"][..],
        &[
            "what",
            "is",
            "this",
            "--terse=true",
            "--rpc=true",
            "--ai-engine=m",
        ],
        &[
            "--ai-engine=m",
            "--rpc",
            "--terse",
            "--",
            "what",
            "is",
            "this",
        ],
    ] {
        let parsed = parse(&command, words).unwrap();
        assert_eq!(
            printed(&parsed.values["query"]),
            "[what is this]",
            "{words:?}"
        );
        assert_eq!(printed(&parsed.values["terse"]), "true");
        assert!(parsed.builtin.flag("rpc"));
        assert_eq!(parsed.builtin.text("ai-engine"), "m");
        assert!(parsed.builtin.given("ai-engine"));
        let mut given: Vec<&str> = parsed.builtin.given_names().collect();
        given.sort_unstable();
        assert_eq!(given, ["ai-engine", "rpc"]);
    }
    let parsed = parse(&command, &["--", "--rpc", "-x"]).unwrap();
    assert_eq!(printed(&parsed.values["query"]), "[--rpc -x]");
    assert!(!parsed.builtin.flag("rpc"));
    let parsed = parse(&command, &["-5", "-"]).unwrap();
    assert_eq!(printed(&parsed.values["query"]), "[-5 -]");
}

#[test]
fn values_of_built_in_options_have_types() {
    let command = explain();
    let parsed = parse(
        &command,
        &[
            "q",
            "--images",
            "a.png,b.png",
            "--images",
            "c.png",
            "--timeout",
            "5",
            "--ai-temperature=0.25",
            "--ai-stop",
            "x",
            "--openai-logit-bias",
            "50256=-100",
            "--patch-mode",
            "append",
            "--tools",
            "read,grep",
            "--proxy-from-environment=false",
        ],
    )
    .unwrap();
    let options = &parsed.builtin;
    assert_eq!(options.list("images"), ["a.png", "b.png", "c.png"]);
    assert_eq!(options.int("timeout"), Some(5));
    assert_eq!(options.float("ai-temperature"), Some(0.25));
    assert_eq!(options.float("ai-top-p"), Some(1.0));
    assert_eq!(options.list("ai-stop"), ["x"]);
    assert_eq!(options.pairs("openai-logit-bias")["50256"], "-100");
    assert_eq!(options.text("patch-mode"), "append");
    assert_eq!(options.list("tools"), ["read", "grep"]);
    assert!(!options.flag("proxy-from-environment"));
    assert_eq!(options.int("inference-seed"), None);
    assert_eq!(options.list("profile-registries"), Vec::<String>::new());
    assert_eq!(options.text("turns-backend"), "");
}

#[test]
fn choices_of_the_program_are_read_in_any_case() {
    let parsed = parse(&explain(), &["--output", "JSONL", "why"]).unwrap();
    assert_eq!(parsed.builtin.text("output"), "jsonl");
}

#[test]
fn mistakes_on_the_command_line() {
    let command = explain();
    let cases: &[(&[&str], &str)] = &[
        (
            &["q", "--ters"],
            "unknown option --ters; did you mean --terse?; --help lists all options",
        ),
        (
            &["q", "--ai-engin=x"],
            "unknown option --ai-engin; did you mean --ai-engine?; --help lists all options",
        ),
        (
            &["q", "--qqqqqq"],
            "unknown option --qqqqqq; --help lists all options",
        ),
        (
            &["q", "-terse"],
            "unknown option -terse; did you mean --terse?; --help lists all options",
        ),
        (&["q", "-x"], "unknown option -x; --help lists all options"),
        (
            &["--terse"],
            "missing <query>; --help shows what the command needs",
        ),
        (
            &["q", "--output", "xml"],
            "--output: \"xml\" is not one of text, json, yaml, jsonl",
        ),
        (
            &["q", "--output"],
            "--output needs a value: one of text, json, yaml, jsonl",
        ),
        (
            &["q", "--timeout", "soon"],
            "--timeout: \"soon\" is not a whole number",
        ),
        (
            &["q", "--rpc=maybe"],
            "--rpc: \"maybe\" is not true or false (on, off, yes and no work too)",
        ),
    ];
    for (words, expected) in cases {
        assert_eq!(
            parse(&command, words).unwrap_err().to_string(),
            *expected,
            "{words:?}"
        );
    }
    let two = read("name: x\narguments: [{name: a, required: true}, {name: b}]\nflags: [{name: must_have, required: true}]\n").unwrap();
    assert_eq!(
        parse(&two, &[]).unwrap_err().to_string(),
        "missing --must-have, <a>; --help shows what the command needs"
    );
    assert_eq!(
        parse(&two, &["1", "2", "3"]).unwrap_err().to_string(),
        "unexpected argument \"3\": the command takes <a> <b>"
    );
    let none = read("name: x\n").unwrap();
    assert_eq!(
        parse(&none, &["3"]).unwrap_err().to_string(),
        "unexpected argument \"3\": the command takes no arguments"
    );
}

#[test]
fn looking_at_a_command_needs_no_values() {
    for option in [
        "--help",
        "-h",
        "--long-help",
        "--print-yaml",
        "--print-schema",
        "--version",
    ] {
        let parsed = parse(&explain(), &[option]).unwrap();
        assert_eq!(parsed.values.len(), 0, "{option}");
    }
    assert!(matches!(
        parse(&explain(), &["--print-prompt"]),
        Err(CommandError::Required { .. })
    ));
}

#[test]
fn letters_may_be_joined() {
    let command = read("name: x\nflags: [{name: all, type: bool, shortFlag: a}, {name: best, type: bool, shortFlag: b}, {name: count, type: int, shortFlag: c}]\n").unwrap();
    let show = |words: &[&str]| {
        let parsed = parse(&command, words).unwrap();
        let shown: Vec<String> = parsed
            .values
            .iter()
            .map(|(k, v)| format!("{k}={}", printed(v)))
            .collect();
        shown.join(" ")
    };
    assert_eq!(show(&["-abc3"]), "all=true best=true count=3");
    assert_eq!(show(&["-c", "4", "-a"]), "all=true count=4");
    assert_eq!(show(&["-c=5"]), "count=5");
    assert_eq!(show(&["-a=false"]), "all=false");
}

#[test]
fn fields_that_cannot_be_are_refused() {
    let cases = [
        (
            "flags: [{name: output}]",
            "prompts/x.yaml: field `output` clashes with the built-in option --output; give the field another name",
        ),
        (
            "arguments: [{name: ai_engine}]",
            "prompts/x.yaml: field `ai_engine` clashes with the built-in option --ai-engine; give the field another name",
        ),
        (
            "flags: [{name: here, shortFlag: h}]",
            "prompts/x.yaml: field `here` clashes with the built-in option -h (--help); give the field another name",
        ),
        (
            "flags: [{name: a_b}, {name: a-b}]",
            "prompts/x.yaml: field `a-b` occurs twice",
        ),
        (
            "flags: [{name: a, shortFlag: z}, {name: b, shortFlag: z}]",
            "prompts/x.yaml: field `b` has the `shortFlag` of another field",
        ),
        (
            "flags: [{name: a, shortFlag: zz}]",
            "prompts/x.yaml: field `a` has a `shortFlag` that is not one letter",
        ),
        (
            "flags: [{type: string}]",
            "prompts/x.yaml: field `` has no `name`",
        ),
        (
            "flags: [{name: a, type: strin}]",
            "prompts/x.yaml: field `a` has the unknown type `strin`; did you mean `string`?",
        ),
        (
            "flags: [{name: a, type: choice}]",
            "prompts/x.yaml: field `a` has no `choices`",
        ),
        (
            "arguments: [{name: a}, {name: b, required: true}]",
            "prompts/x.yaml: field `b` is required, but `a` before it is not",
        ),
        (
            "arguments: [{name: a, type: stringList}, {name: b}]",
            "prompts/x.yaml: field `a` is a list and must be the last argument",
        ),
        (
            "prompt: a\nmessages: [b]",
            "prompts/x.yaml:3:1: Prompt and messages are mutually exclusive",
        ),
        (
            "layers: [{a: b}]",
            "prompts/x.yaml:2:1: `layers` cannot be used; remove it",
        ),
    ];
    for (text, expected) in cases {
        let error = read(&format!("name: x\n{text}\n")).unwrap_err();
        assert_eq!(error.to_string(), expected, "{text}");
    }
    let error = read("name: x\nprompt: [1\n").unwrap_err();
    assert_eq!(error.code(), "command_malformed");
    assert!(error.to_string().starts_with("prompts/x.yaml:"), "{error}");
    let error = read("name: x\nflags: 3\n").unwrap_err().to_string();
    assert!(error.starts_with("prompts/x.yaml:2:8: "), "{error}");
}

#[test]
fn mistakes_in_a_command_file_are_explained_in_plain_words() {
    for (text, words) in [
        ("prompt: a: b", "put text that contains a colon in quotes"),
        ("tags: [a", "a \"[\" or \"{\" is not closed"),
        ("prompt: {a: b}", "text is expected here"),
        ("prompt: [a]", "text is expected here"),
        ("messages: a", "a list is expected here"),
        ("flags: 3", "a list is expected here"),
        ("flags: [a]", "a mapping is expected here"),
        ("flags: [{name: [a]}]", "expected"),
        ("flags: [{name: a, choices: 3}]", "expected"),
        ("flags: [{name: a, choices: [{b: c}]}]", "expected"),
        ("tags: {a: b}", "a list is expected here"),
        ("name: y", "\"name\" appears twice; remove one of them"),
        ("prompt: *a", "an alias names an anchor that does not exist"),
        ("\tprompt: a", "use spaces"),
        ("--- \nname: y", "more than one document"),
    ] {
        let error = read(&format!("name: x\n{text}\n")).unwrap_err().to_string();
        assert!(error.starts_with("prompts/x.yaml:"), "{text}: {error}");
        assert!(error.contains(words), "{text}: {error}");
        assert_plain(&error);
    }
    let bomb = (1..=5).fold("a0: &a0 [x, x]\n".to_owned(), |text, level| {
        let before = vec![format!("*a{}", level - 1); 20].join(", ");
        format!("{text}a{level}: &a{level} [{before}]\n")
    });
    let error = read(&format!("name: x\n{bomb}")).unwrap_err().to_string();
    assert!(error.contains("it holds too many values"), "{error}");
    assert_plain(&error);
}

#[test]
fn mistakes_in_a_data_file_are_explained_in_plain_words() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("bad.yaml"), "a: 1\nb: c: d\n").unwrap();
    let command =
        read("name: x\nprompt: a\nflags: [{name: data, type: objectFromFile}]\n").unwrap();
    let mut world = common::world(directory.path());
    let error = common::parse_in(&command, &["--data", "bad.yaml"], &mut world);
    let error = error.unwrap_err().to_string();
    assert!(
        error.starts_with("--data: bad.yaml is not YAML from line 2, column "),
        "{error}"
    );
    assert!(
        error.contains("put text that contains a colon in quotes"),
        "{error}"
    );
    assert_plain(&error);
}

/// Fails if a message has words of the YAML library or of the types that are read.
fn assert_plain(message: &str) {
    for word in [
        "scalar",
        "sequence",
        "event",
        "token",
        "budget",
        "breach",
        "variant",
        "enum",
        "struct",
        "untagged",
        "invalid type",
        "Document",
        "serde",
        "<",
        " at line ",
    ] {
        assert!(!message.contains(word), "{word}: {message}");
    }
}

#[test]
fn keys_without_effect_are_noticed() {
    let command = read("name: x\nsystem_prompt: hi\nfoo: 1\nflags:\n  - name: a\n    typ: int\n    description: idle\n").unwrap();
    let warnings: Vec<String> = command.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "prompts/x.yaml:3:1: key `foo` has no effect",
            "prompts/x.yaml:2:1: key `system_prompt` has no effect; did you mean `system-prompt`?",
            "prompts/x.yaml: key `typ` of field `a` has no effect; did you mean `type`?",
        ]
    );
    assert_eq!(explain().warnings, []);
}

#[test]
fn the_table_of_options_is_sound() {
    let command = read("name: x\n").unwrap();
    let parsed = parse(&command, &[]).unwrap();
    let mut names: Vec<&str> = BUILT_INS.iter().map(|option| option.name).collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count, "an option occurs twice");
    for option in BUILT_INS {
        assert!(!option.help.is_empty(), "{}", option.name);
        assert_eq!(
            option.choices.is_empty(),
            option.kind != FieldType::Choice,
            "{}",
            option.name
        );
        assert_eq!(
            option.default.is_some(),
            parsed.builtin.value(option.name).is_some(),
            "{}",
            option.name
        );
    }
    // Groups are contiguous: a help page shows each once.
    let mut groups: Vec<_> = BUILT_INS.iter().map(|option| option.group).collect();
    groups.dedup();
    let mut sorted = groups.clone();
    sorted.sort();
    sorted.dedup();
    assert_eq!(sorted.len(), groups.len());
}

const PAGE: &str = "\
explain: Explain a piece of code

Reads source files and explains what was asked about them,
in three sentences or at length.

Usage:
  pinion run-command explain.yaml [options] <query>…

Arguments:
  <query>…                        What to explain (stringList; required)

Options of this command:
      --code FILE,…               Source files (fileList)
  -t, --terse                     Use at most three sentences (bool; default false)

Options: geppetto-helpers:
      --print-prompt              Print the rendered prompt and exit
";

#[test]
fn a_help_page_is_made_from_the_file() {
    let command = explain();
    let page = command.help(
        "pinion run-command explain.yaml",
        HelpLevel::Short,
        BUILT_INS,
    );
    assert!(page.starts_with(PAGE), "{page}");
    assert!(page.contains("      --output CHOICE             The format of the output (one of text, json, yaml, jsonl; default text)\n"), "{page}");
    assert!(page.contains("postgres://"), "{page}");
    assert!(page.contains("--patch-mode"), "{page}");
    assert!(!page.contains("--ai-engine"), "{page}");
    assert!(page.lines().all(|line| line == line.trim_end()), "{page}");
    let long = command.help("x", HelpLevel::Long, BUILT_INS);
    for option in BUILT_INS {
        assert!(
            long.contains(&format!("--{}", option.name)),
            "{}",
            option.name
        );
    }
    assert!(
        long.contains("      --ai-engine TEXT            The model (default gpt-4)\n"),
        "{long}"
    );
    assert!(!long.contains("--long-help. The"), "{long}");
}
