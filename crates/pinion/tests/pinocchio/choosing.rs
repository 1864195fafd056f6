//! The model that a command uses, and the messages of its failures.

use pinion_testkit::{Exit, ModelServer};
use serde_json::{Value, json};

use crate::stage::Home;
use crate::support::pinion;

const ANTHROPIC: &str = "anthropic/";

/// Returns a home in which only Anthropic has a key, with this server.
fn anthropic(server: &ModelServer) -> Home {
    let mut home = Home::with_settings(&json!({}));
    home.sandbox.add_agent_files(
        &json!({"models.json": {"providers": {"anthropic": {"baseUrl": server.base_url()}}}}),
    );
    home.set("ANTHROPIC_API_KEY", "a-key-for-tests");
    home
}

#[test]
fn a_command_that_names_no_model_uses_one_that_has_a_key() {
    let server = ModelServer::start(json!({"turns": [{"steps": ["Ahoy."]}, {"steps": ["Ahoy."]}]}));
    let home = anthropic(&server);
    let ran = home.run(&["run-command", "say.yaml"]);
    assert_eq!(
        (ran.exit, &*ran.stdout),
        (Exit::Code(0), "Ahoy.\n"),
        "{ran:?}"
    );
    // Named by a part of its name; the model of the file's own settings counts less.
    let line = ["run-command", "say.yaml", "--ai-engine", "gpt-4", "--model"];
    let ran = home.run(&[&line[..], &["anthropic/claude-sonnet-4-5"]].concat());
    assert_eq!(
        (ran.exit, &*ran.stdout),
        (Exit::Code(0), "Ahoy.\n"),
        "{ran:?}"
    );
    let asked = server.requests();
    assert_eq!(asked.len(), 2, "{asked:?}");
}

#[test]
fn a_model_without_a_key_is_an_error_that_names_what_to_use() {
    let server = ModelServer::start(json!({"turns": []}));
    let home = anthropic(&server);
    for (arguments, words) in [
        (
            ["--ai-engine", "gpt-4o"],
            "set PINOCCHIO_OPENAI_API_KEY or OPENAI_API_KEY",
        ),
        (["--model", "mistral/codestral-latest"], "MISTRAL_API_KEY"),
        (
            ["--model", "no-such-model-at-all"],
            "\"no-such-model-at-all\" not found",
        ),
    ] {
        for mode in ["--output=text", "--rpc"] {
            let line = [&["run-command", "say.yaml", mode], &arguments[..]].concat();
            let ran = home.run(&line);
            assert_eq!(ran.exit, Exit::Code(1), "{ran:?}");
            assert!(ran.stderr.contains(words), "{ran:?}");
            let named = ran
                .stderr
                .contains(&format!("Models you have a key for: {ANTHROPIC}"));
            assert_eq!(named, !words.contains("not found"), "{ran:?}");
        }
    }
    assert!(server.requests().is_empty());
}

#[test]
fn without_any_model_a_script_gets_no_demo() {
    let home = Home::with_settings(&json!({}));
    for mode in ["--output=text", "--output=json", "--rpc"] {
        let ran = home.run(&["run-command", "say.yaml", mode]);
        assert_eq!(ran.exit, Exit::Code(1), "{mode}: {ran:?}");
        assert!(
            ran.stderr
                .contains("no model is configured: set ANTHROPIC_API_KEY")
                && ran.stderr.contains("--model offline/demo"),
            "{mode}: {ran:?}"
        );
        let named = home.run(&["run-command", "say.yaml", mode, "--model", "offline/demo"]);
        assert_eq!(named.exit, Exit::Code(0), "{mode}: {named:?}");
    }
}

#[test]
fn a_command_keeps_its_own_field_model() {
    let home = Home::offline();
    home.write(
        "own.yaml",
        "name: own\nshort: Own\nflags:\n  - name: model\n    type: string\nprompt: \"{{ .model }}\"\n",
    );
    let ran = home.run(&["run-command", "own.yaml", "--model", "T", "--print-prompt"]);
    assert_eq!(
        (ran.exit, ran.stdout.trim()),
        (Exit::Code(0), "user: T"),
        "{ran:?}"
    );
    let ran = home.run(&["run-command", "own.yaml", "--model", "Hello"]);
    assert_eq!(ran.exit, Exit::Code(0), "{ran:?}");
}

#[test]
fn help_shows_each_section_once_and_only_what_works() {
    let home = Home::offline();
    for level in ["--help", "--long-help"] {
        let page = home.run(&["run-command", "say.yaml", level]).stdout;
        let mut titles: Vec<&str> = page
            .lines()
            .filter(|line| line.starts_with("Options"))
            .collect();
        assert!(titles.contains(&"Options: pinion:"), "{page}");
        let all = titles.len();
        titles.sort_unstable();
        titles.dedup();
        assert_eq!(titles.len(), all, "{page}");
        assert!(!page.contains("mysql"), "{page}");
        assert!(page.contains("--model TEXT"), "{page}");
    }
    let ran = home.run(&["run-command", "say.yaml", "--turns-backend", "mysql"]);
    assert!(ran.stderr.contains("\"mysql\" is not one of"), "{ran:?}");
}

#[test]
fn a_file_without_a_prompt_is_named() {
    let home = Home::offline();
    home.write("bad.yaml", "name: bad\nshort: Bad\n");
    for mode in ["--output=text", "--rpc"] {
        let ran = home.run(&["run-command", "bad.yaml", mode]);
        assert_eq!(ran.exit, Exit::Code(1), "{ran:?}");
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(said.contains("bad.yaml has no prompt"), "{ran:?}");
        assert!(!said.contains("seed turn"), "{ran:?}");
    }
}

#[test]
fn an_unknown_request_is_named() {
    let home = Home::offline();
    let input = b"{\"requestId\":\"r\",\"submt\":{\"prompt\":\"x\"}}\n";
    let line = ["run-command", "seed.yaml", "--stdin-rpc"];
    let ran = home.run_as(&home.program(pinion()), &line, input);
    let told = ran
        .stdout
        .lines()
        .find(|line| line.contains("unknown_request"));
    let told = told.unwrap_or_else(|| panic!("{ran:?}"));
    let frame: Value = serde_json::from_str(told).unwrap();
    assert_eq!(
        frame["error"]["message"],
        "unknown request \"submt\"; use submit, cancel, snapshot or shutdown"
    );
    assert_eq!(frame["requestId"], "r");
}
