//! Mistyped command lines, through the real binary: a command line that pinion does not understand must not run
//! anything, trust anything or ask a model.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

mod support;

use std::process::Stdio;

use pinion_cli::complete::{Shell, script};
use pinion_cli::{Count, Place, Value, tables};
use pinion_testkit::{Exit, Program, Sandbox};
use serde_json::json;
use support::{args, offline_sandbox, pinion};

struct Ran {
    code: Exit,
    out: String,
    err: String,
}

fn run_as(program: &Program, sandbox: &Sandbox, arguments: &[&str]) -> Ran {
    let output = program
        .command(sandbox, &args(arguments))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Ran {
        code: Exit::of(output.status),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

fn run(sandbox: &Sandbox, arguments: &[&str]) -> Ran {
    run_as(&pinion(), sandbox, arguments)
}

/// Checks that the command line is refused with these words, prints nothing and leaves no session.
fn refused(sandbox: &Sandbox, arguments: &[&str], said: &str) {
    let ran = run(sandbox, arguments);
    assert_eq!(ran.code, Exit::Code(2), "{arguments:?}: {}", ran.err);
    assert!(ran.err.contains(said), "{arguments:?}: {}", ran.err);
    assert_eq!(ran.out, "", "{arguments:?}");
    assert!(sandbox.session_files().is_empty(), "{arguments:?}");
}

const DEMO: [&str; 2] = ["--model", "offline/demo"];

#[test]
fn a_misspelled_mode_of_approve_neither_trusts_nor_runs() {
    let sandbox = offline_sandbox(&json!({}));
    sandbox.add_files(&json!({".pi/settings.json": {"shellCommandPrefix": "touch ran;"}}));
    let call = support::script(&json!({"turns": [
        [{"tool": "bash", "args": {"command": "true"}}],
        [{"text": "done"}],
    ]}));
    for mode in ["aks", "Ask", "-p", "yes"] {
        let line = [&DEMO[..], &["--approve", mode, "-p", &call]].concat();
        refused(&sandbox, &line, "for --approve");
    }
    refused(&sandbox, &["-p", "hello there", "--approve"], "use --trust");
    refused(&sandbox, &["--no-approve", "-p", "hello"], "use --no-trust");
    assert!(!sandbox.work().join("ran").exists());
    let line = [&DEMO[..], &["--trust", "-p", &call]].concat();
    let ran = run(&sandbox, &line);
    assert_eq!(ran.code, Exit::Code(0), "{}", ran.err);
    assert!(sandbox.work().join("ran").exists(), "{}", ran.err);
}

#[test]
fn called_as_pi_approve_trusts_and_takes_no_word() {
    let sandbox = offline_sandbox(&json!({}));
    sandbox.add_files(&json!({".pi/settings.json": {"shellCommandPrefix": "touch ran;"}}));
    let pi = Program::linked(env!("CARGO_BIN_EXE_pinion"), "pi");
    let call = support::script(&json!({"turns": [
        [{"tool": "bash", "args": {"command": "true"}}],
        [{"text": "done"}],
    ]}));
    let wrong = run_as(&pi, &sandbox, &["--approve=aks", "-p", &call]);
    assert_eq!(wrong.code, Exit::Code(1), "{}", wrong.err);
    assert!(!sandbox.work().join("ran").exists());
    let line = [&DEMO[..], &["-p", "--approve", &call]].concat();
    let ran = run_as(&pi, &sandbox, &line);
    assert_eq!(ran.code, Exit::Code(0), "{}", ran.err);
    assert!(sandbox.work().join("ran").exists(), "{}", ran.err);
}

#[test]
fn mistyped_commands_are_refused_with_the_nearest_one() {
    let sandbox = offline_sandbox(&json!({}));
    for (line, said) in [
        (&["trust", "--revok"][..], "Did you mean --revoke?"),
        (&["trust", "--list"], "unknown option --list"),
        (&["trust", "revoke"], "is not a directory"),
        (&["trust", ".", "again"], "one word too many"),
        (&["doctor", "now"], "one word too many"),
        (&["fleet", "check", "plan.yaml"], "the plan cannot be read"),
        (&["fleet", "verify"], "unknown command `fleet verify`"),
        (&["fleet", "rn"], "Did you mean `pinion fleet run`?"),
        (&["fleet", "run"], "pinion fleet run PLAN.yaml"),
        (&["sessions", "lst"], "Did you mean `pinion sessions list`?"),
        (&["commands", "lst"], "Did you mean `commands list`?"),
        (&["list", "the", "files"], "pinion -p \"list the files\""),
        (&["help", "flet"], "pinion help fleet"),
    ] {
        refused(&sandbox, line, said);
    }
    assert!(!sandbox.agent().join("trust.json").exists());
    let help = run(&sandbox, &["help", "fleet"]);
    assert!(help.out.contains("pinion fleet resume"), "{}", help.out);
}

/// Commands whose arguments belong to command files: a wrong one is refused there.
const OTHER_GRAMMAR: [&str; 3] = ["run-command", "commands run", "commands help"];

#[test]
fn every_command_and_flag_is_documented_and_unknown_ones_are_refused() {
    let sandbox = offline_sandbox(&json!({}));
    for place in Place::root(&tables::root::PINION).all() {
        let name = place.name();
        let words: Vec<&str> = name.split_whitespace().collect();
        let with = |more: &[&'static str]| [&words[..], more].concat();
        let help = run(&sandbox, &with(&["--help"]));
        assert_eq!(help.code, Exit::Code(0), "{name}: {}", help.err);
        if name == "commands run" || name == "commands help" {
            continue;
        }
        assert_eq!(help.out, pinion_cli::help::text(&place), "{name}");
        let same = run(&sandbox, &[&["help"], &words[..]].concat());
        assert_eq!(same.out, help.out, "help {name}");
        if OTHER_GRAMMAR.contains(&name) {
            continue;
        }
        let words = match name {
            "run" => vec!["run", "--format", "json"],
            _ => words,
        };
        let with = |more: &[&'static str]| [&words[..], more].concat();
        refused(&sandbox, &with(&["--bogus"]), "--bogus");
        for flag in place.all_flags() {
            let slip = format!("{}x", flag.name);
            let line = [&words[..], &[&slip]].concat();
            refused(&sandbox, &line, "Did you mean --");
            if matches!(flag.value, Value::Required(..)) {
                let line = [&words[..], &[flag.name]].concat();
                let said = format!("{} needs a ", flag.name);
                refused(&sandbox, &line, &said);
            }
        }
        let arguments = place.command.arguments.first();
        let needed = arguments.filter(|argument| argument.count == Count::One);
        if let Some(argument) = needed.filter(|_| !["install", "remove"].contains(&name)) {
            refused(&sandbox, &words, argument.name);
        }
        if !place.command.commands.is_empty() && !name.is_empty() {
            refused(&sandbox, &with(&["lisst"]), "unknown command");
        }
    }
    assert!(!sandbox.agent().join("trust.json").exists());
}

#[test]
fn an_unknown_option_of_a_command_file_is_refused() {
    let sandbox = offline_sandbox(&json!({}));
    sandbox.add_files(&json!({"greet.yaml": "name: greet\nshort: Greets\nprompt: Hello\n"}));
    for name in ["pinion", "pinocchio"] {
        let program = Program::linked(env!("CARGO_BIN_EXE_pinion"), name);
        for (option, said) in [("--bogus", "--bogus"), ("--print-promt", "--print-prompt")] {
            let ran = run_as(&program, &sandbox, &["run-command", "greet.yaml", option]);
            assert_eq!(ran.code, Exit::Code(1), "{name} {option}: {}", ran.err);
            assert!(ran.err.contains(said), "{name} {option}: {}", ran.err);
        }
    }
}

#[test]
fn every_command_explains_itself_under_every_name() {
    let sandbox = offline_sandbox(&json!({}));
    for root in [
        &tables::root::PI,
        &tables::root::PINOCCHIO,
        &tables::pinix::PINIX,
        &tables::pinix::PINIXD,
    ] {
        let program = Program::linked(env!("CARGO_BIN_EXE_pinion"), root.name);
        for place in Place::root(root).all() {
            let words: Vec<&str> = place.name().split_whitespace().collect();
            if words.contains(&"schedule") || words.last() == Some(&"help") {
                continue;
            }
            let ran = run_as(&program, &sandbox, &[&words[..], &["--help"]].concat());
            assert_eq!(ran.code, Exit::Code(0), "{}: {}", place.words(), ran.err);
            assert!(ran.out.contains("Usage:"), "{}: {}", place.words(), ran.out);
        }
    }
}

/// Under these names a wrong command line has the exit code of every other failure, as in the programs of these names.
/// pi itself ignores an unknown flag of a prompt, so that one gives only a warning.
#[test]
fn unknown_flags_are_refused_under_every_name() {
    let sandbox = offline_sandbox(&json!({}));
    for root in [
        &tables::root::PI,
        &tables::pinix::PINIX,
        &tables::pinix::PINIXD,
    ] {
        let program = Program::linked(env!("CARGO_BIN_EXE_pinion"), root.name);
        for place in Place::root(root).all() {
            let words: Vec<&str> = place.name().split_whitespace().collect();
            if words.contains(&"schedule") || words.last() == Some(&"help") {
                continue;
            }
            let is_prompt = root.name == "pi" && words.is_empty();
            let (prefix, more) = if is_prompt {
                ("Warning", &["-p", "hello"][..])
            } else {
                ("Error", &[][..])
            };
            let refused = |flag: &str, hint: &str| {
                let ran = run_as(&program, &sandbox, &[&words[..], &[flag], more].concat());
                let said = format!("{prefix}: unknown option {flag}");
                let called = format!("{} {flag}: {}", place.words(), ran.err);
                assert_eq!(ran.code, Exit::Code(1), "{called}");
                assert!(ran.err.starts_with(&said), "{called}");
                assert!(ran.err.contains(hint), "{called}");
                assert_eq!(ran.out, "", "{called}");
            };
            refused("--bogus", "--help`.");
            for flag in place.all_flags() {
                refused(&format!("{}x", flag.name), "Did you mean --");
            }
        }
    }
    assert!(sandbox.session_files().is_empty());
}

#[test]
fn completions_and_manuals_exist_under_every_name() {
    let sandbox = offline_sandbox(&json!({}));
    for root in tables::PROGRAMS {
        for shell in Shell::NAMES {
            let ran = run(&sandbox, &["completions", shell, root.name]);
            assert_eq!(
                ran.out,
                script(Shell::named(shell).unwrap(), root),
                "{}",
                ran.err
            );
        }
        for place in Place::root(root).all() {
            let words: Vec<&str> = place.words().split_whitespace().collect();
            let ran = run(&sandbox, &[&["man"], &words[..]].concat());
            assert_eq!(ran.code, Exit::Code(0), "{}: {}", place.words(), ran.err);
            assert!(
                ran.out.starts_with(".TH "),
                "{}: {}",
                place.words(),
                ran.out
            );
        }
    }
    refused(&sandbox, &["completions", "bashh"], "did you mean bash?");
    refused(
        &sandbox,
        &["completions", "bash", "pinon"],
        "did you mean pinion?",
    );
    refused(&sandbox, &["man", "hbu"], "did you mean hub?");
}

#[test]
fn values_are_listed_for_shells() {
    let sandbox = offline_sandbox(&json!({}));
    let listed = |kind: &str, prefix: &str| run(&sandbox, &["__complete", kind, prefix]);
    assert_eq!(listed("model", "offline/d").out, "offline/demo\n");
    assert_eq!(listed("model", "nothing").out, "");
    assert_eq!(listed("session", "").out, "");
    let ran = run(&sandbox, &[&DEMO[..], &["-p", "hello"]].concat());
    assert_eq!(ran.code, Exit::Code(0), "{}", ran.err);
    let id = listed("session", "").out;
    assert_eq!(listed("session", &id[..4]).out, id);
    assert_eq!(listed("run", "").code, Exit::Code(0));
    let clips = listed("clip", "");
    assert_eq!((clips.out.as_str(), clips.err.as_str()), ("", ""));
    assert_eq!(listed("word", "").code, Exit::Code(2));
}

#[test]
fn unknown_names_of_tools_are_refused() {
    let sandbox = offline_sandbox(&json!({}));
    for (flags, said) in [
        (
            &["-xt", "bahs"][..],
            "unknown tool \"bahs\". Did you mean bash?",
        ),
        (
            &["--tools", "read,Bash"],
            "unknown tool \"Bash\". Did you mean bash?",
        ),
        (
            &["--deny", "bsh"],
            "--deny: unknown tool \"bsh\". Did you mean bash?",
        ),
        (
            &["--deny", "Bash"],
            "--deny: unknown tool \"Bash\". Did you mean bash?",
        ),
        (
            &["--allow", "raed"],
            "--allow: unknown tool \"raed\". Did you mean read?",
        ),
        (&["--deny", "frobnicate"], "Valid tools: read, bash"),
    ] {
        let line = [&DEMO[..], flags, &["-p", "hello"]].concat();
        refused(&sandbox, &line, said);
    }
    let line = [
        &DEMO[..],
        &["-xt", "bash", "--deny", "write(.env)", "-p", "hello"],
    ]
    .concat();
    let ran = run(&sandbox, &line);
    assert_eq!(ran.code, Exit::Code(0), "{}", ran.err);
    let sandbox = offline_sandbox(&json!({"approvals": {"deny": ["bsh"]}}));
    let ran = run(&sandbox, &[&DEMO[..], &["-p", "hello"]].concat());
    assert_eq!(ran.code, Exit::Code(1), "{}", ran.err);
    assert!(ran.err.contains("Did you mean bash?"), "{}", ran.err);
}

#[test]
fn changes_of_the_default_tools_name_known_tools() {
    let sandbox = offline_sandbox(&json!({}));
    for (change, said) in [
        ("+bahs", "unknown tool \"bahs\". Did you mean bash?"),
        (
            "+grep,read",
            "--tools: names, and names with + or -, exclude each other",
        ),
    ] {
        let line = [&DEMO[..], &["--tools", change, "-p", "hello"]].concat();
        refused(&sandbox, &line, said);
    }
    let line = [&DEMO[..], &["--tools", "+grep,-bash", "-p", "hello"]].concat();
    let ran = run(&sandbox, &line);
    assert_eq!((ran.code, ran.err.as_str()), (Exit::Code(0), ""));
}

#[test]
fn ids_of_sessions_are_checked() {
    let sandbox = offline_sandbox(&json!({}));
    for id in ["../evil", "", "-a", "a.", "a b"] {
        let id = format!("--session-id={id}");
        let line = [&DEMO[..], &[&id, "-p", "hello"]].concat();
        refused(&sandbox, &line, "session id");
    }
    let both = ["--session-id", "a", "--session", "b", "-p", "hello"];
    refused(&sandbox, &[&DEMO[..], &both].concat(), "Use one of them.");
    for first in [true, false] {
        let line = [&DEMO[..], &["--session-id", "my-1", "-p", "hello"]].concat();
        let ran = run(&sandbox, &line);
        assert_eq!(ran.code, Exit::Code(0), "{}", ran.err);
        let announced = ran.err.contains("no session has the id \"my-1\"");
        assert_eq!(announced, first, "{}", ran.err);
    }
}

#[test]
fn a_tool_of_an_extension_is_known() {
    let sandbox = offline_sandbox(&json!({}));
    sandbox.add_files(&json!({"greet.ts": "export default (pi) => pi.registerTool({name: \"greet\", label: \"g\", description: \"g\", parameters: {type: \"object\", properties: {}}, execute: async () => ({content: [], details: {}})});"}));
    let line = [
        &DEMO[..],
        &[
            "-e",
            "greet.ts",
            "--deny",
            "greet",
            "--no-session",
            "-p",
            "hello",
        ],
    ]
    .concat();
    let ran = run(&sandbox, &line);
    assert_eq!(ran.code, Exit::Code(0), "{}", ran.err);
    let line = [
        &DEMO[..],
        &[
            "-e",
            "greet.ts",
            "--deny",
            "greeet",
            "--no-session",
            "-p",
            "hello",
        ],
    ]
    .concat();
    refused(&sandbox, &line, "Did you mean greet?");
}

#[test]
fn words_that_are_not_prompts_are_not_sent() {
    let sandbox = offline_sandbox(&json!({}));
    for (line, said) in [
        (&["hbu", "serve"][..], "Did you mean `hub`?"),
        (&["whoami"], "ANTHROPIC_API_KEY"),
        (&["configure"], "settings.json"),
        (&["init"], "settings.json"),
        (&["serve"], "pinion hub serve"),
        (&["version"], "pinion --version"),
        (
            &["-p", "list", "the", "files"],
            "pinion -p \"list the files\"",
        ),
        (&["hub", "serv"], "Did you mean `pinion hub serve`?"),
    ] {
        refused(&sandbox, line, said);
        if line[0] != "hub" {
            refused(&sandbox, &[&DEMO[..], line].concat(), said);
        }
    }
    let pi = Program::linked(env!("CARGO_BIN_EXE_pinion"), "pi");
    // A verb of pi is never a prompt, also with a flag before it or without what it needs.
    for words in [
        &["--no-session", "auth", "print-api-key"][..],
        &["auth", "print-api-key"],
    ] {
        let ran = run_as(&pi, &sandbox, words);
        assert_ne!(ran.code, Exit::Code(0), "{words:?}: {}", ran.err);
        assert!(sandbox.session_files().is_empty(), "{words:?}");
    }
    let ran = run(&sandbox, &[&DEMO[..], &["-p", "--", "login"]].concat());
    assert_eq!(ran.code, Exit::Code(0), "{}", ran.err);
}

#[test]
fn wrong_values_and_values_of_flags_without_one_are_refused() {
    let sandbox = offline_sandbox(&json!({}));
    for (line, said) in [
        (
            &["--modle", "x", "-p", "hello"][..],
            "Did you mean --model?",
        ),
        (&["--thinking", "hgih", "-p", "hello"], "Did you mean high?"),
        (&["--mode", "jsn", "hello"], "Did you mean json?"),
        (&["--theme", "drak", "-p", "hello"], "Did you mean dark?"),
        (&["--no-session=yes", "-p"], "--no-session takes no value"),
        (&["--print=hello"], "--print takes no value"),
        (
            &["--system-prompt", "--no-tools", "-p", "hello"],
            "--system-prompt needs a value",
        ),
    ] {
        refused(&sandbox, line, said);
    }
}

#[test]
fn without_a_model_nothing_answers() {
    let sandbox = offline_sandbox(&json!({}));
    for line in [
        &["-p", "hello"][..],
        &["hello there"],
        &["--mode", "json", "hello"],
        &["--mode", "rpc"],
        &["run", "--format", "json", "hello"],
    ] {
        let ran = run(&sandbox, line);
        assert_eq!(ran.code, Exit::Code(1), "{line:?}: {}{}", ran.out, ran.err);
        assert_eq!(ran.out, "", "{line:?}");
        for said in [
            "No models available.",
            "ANTHROPIC_API_KEY",
            "--model offline/demo",
        ] {
            assert!(ran.err.contains(said), "{line:?}: {}", ran.err);
        }
    }
    let ran = run(&sandbox, &[&DEMO[..], &["-p", "hello"]].concat());
    assert_eq!(ran.code, Exit::Code(0), "{}", ran.err);
}

#[test]
fn a_fleet_without_a_model_fails() {
    for isolation in ["task", "process"] {
        let sandbox = offline_sandbox(&json!({}));
        let plan = format!(
            "children: [{{name: a, agent: pinion, isolation: {isolation}, prompt: {{text: hello}}}}]\n"
        );
        sandbox.add_files(&json!({ "plan.yaml": plan }));
        let ran = run(&sandbox, &["fleet", "run", "plan.yaml"]);
        assert_eq!(
            ran.code,
            Exit::Code(1),
            "{isolation}: {}{}",
            ran.out,
            ran.err
        );
        let said = format!("{}{}", ran.out, ran.err);
        assert!(said.contains("ANTHROPIC_API_KEY"), "{isolation}: {said}");
    }
}
