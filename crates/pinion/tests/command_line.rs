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

/// Every command, with the arguments it needs.
const COMMANDS: &[&[&str]] = &[
    &["trust"],
    &["doctor"],
    &["models"],
    &["sessions", "list"],
    &["sessions", "show"],
    &["sessions", "export"],
    &["schema", "pi"],
    &["install"],
    &["remove"],
    &["uninstall"],
    &["update"],
    &["list"],
    &["extensions", "list"],
    &["profiles", "list"],
    &["profiles", "show"],
    &["profiles", "debug"],
    &["turns", "list"],
    &["turns", "show"],
    &["turns", "export"],
    &["turns", "check"],
    &["timeline", "list"],
    &["timeline", "show"],
    &["timeline", "export"],
    &["timeline", "check"],
    &["fleet", "run"],
    &["fleet", "resume"],
    &["fleet", "show"],
    &["fleet", "list"],
    &["fleet", "clean"],
    &["completions"],
    &["help"],
    &["hub"],
    &["hub", "serve"],
    &["hub", "status"],
    &["hub", "stop"],
    &["hub", "info"],
    &["hub", "join"],
    &["hub", "token"],
    &["clip", "add"],
    &["clip", "list"],
    &["clip", "show"],
    &["clip", "remove"],
    &["clip", "update"],
    &["clip", "logs"],
    &["clip", "data"],
    &["clip", "new"],
    &["clip", "bind"],
    &["clip", "unbind"],
    &["clip", "bindings"],
    &["invoke"],
    &["mcp"],
    &["commands", "list"],
];

#[test]
fn every_command_refuses_unknown_options_and_explains_itself() {
    let sandbox = offline_sandbox(&json!({}));
    for command in COMMANDS {
        refused(&sandbox, &[command, &["--bogus"][..]].concat(), "--bogus");
        let help = run(&sandbox, &[command, &["--help"][..]].concat());
        assert_eq!(help.code, Exit::Code(0), "{command:?}: {}", help.err);
        assert!(help.out.contains("Usage:"), "{command:?}: {}", help.out);
    }
    assert!(!sandbox.agent().join("trust.json").exists());
    for (line, said) in [
        (&["trust", "--revok"][..], "did you mean --revoke?"),
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
        (&["login"], "ANTHROPIC_API_KEY"),
        (&["config"], "settings.json"),
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
    let ran = run_as(&pi, &sandbox, &["auth", "print-api-key"]);
    assert_eq!(ran.code, Exit::Code(2), "{}", ran.err);
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
