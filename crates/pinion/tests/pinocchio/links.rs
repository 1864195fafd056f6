//! The binary called by Pinocchio's name, and commands found in repositories.

use pinion_testkit::{Exit, Program};
use serde_json::{Value, json};

use crate::stage::Home;
use crate::support::{pinion, script};

fn pinocchio(home: &Home) -> Program {
    home.program(Program::linked(env!("CARGO_BIN_EXE_pinion"), "pinocchio"))
}

/// Returns a home with a repository: a command in a group, an alias of it, and a file that is neither.
fn with_commands() -> Home {
    let home = Home::offline();
    let said = script(&json!({"text": "by its alias"}));
    home.configure(
        "config.yaml",
        &json!({"app": {"repositories": [home.sandbox.work().join("prompts")]}}).to_string(),
    );
    home.write("prompts/code/go.yaml", "name: go\nshort: About Go\nflags:\n  - name: what\n    type: string\n    default: hello\nprompt: \"{{ .what }}\"\n");
    home.write(
        "prompts/code/gogo.yaml",
        &json!({"name": "gogo", "aliasFor": ["code", "go"], "flags": {"what": said}}).to_string(),
    );
    home.write(
        "prompts/doc/style.md",
        "---\nTitle: House style\nSlug: style\nShort: How we write Go\nCommands: [go]\n---\nShort names.\n",
    );
    home.write("prompts/broken.yaml", "name: broken\nprompt: [\n");
    home
}

#[test]
fn commands_of_repositories_are_listed_with_their_kind() {
    let home = with_commands();
    for program in [home.program(pinion()), pinocchio(&home)] {
        let ran = home.run_as(&program, &["commands", "list", "--json"], b"");
        assert_eq!(ran.exit, Exit::Code(0), "{}", ran.stderr);
        let listed: Value = serde_json::from_str(&ran.stdout).unwrap();
        let rows: Vec<(&str, &str)> = listed
            .as_array()
            .unwrap()
            .iter()
            .map(|row| {
                (
                    row["command"].as_str().unwrap(),
                    row["kind"].as_str().unwrap(),
                )
            })
            .collect();
        assert_eq!(rows, [("code go", "command"), ("code gogo", "alias")]);
        assert!(ran.stderr.contains("broken.yaml"), "{}", ran.stderr);
    }
}

#[test]
fn commands_are_run_by_their_words() {
    let home = with_commands();
    let what = script(&json!({"text": "by its words"}));
    let link = pinocchio(&home);
    let told = home
        .run_as(&link, &["code", "go", "--rpc", "--what", &what], b"")
        .told();
    assert_eq!((told.status(), told.exit), ("ok", Exit::Code(0)));
    let ran = home.run_as(&link, &["code", "gogo"], b"");
    assert_eq!(
        (ran.exit, ran.stdout.as_str()),
        (Exit::Code(0), "by its alias\n"),
        "{}",
        ran.stderr
    );
    // Arguments override the values of an alias.
    let ran = home.run_as(&link, &["code", "gogo", "--what", &what], b"");
    assert_eq!(ran.stdout, "by its words\n");
    let ran = home.run(&["commands", "run", "code", "go", "--what", &what]);
    assert_eq!(
        (ran.exit, ran.stdout.as_str()),
        (Exit::Code(0), "by its words\n"),
        "{}",
        ran.stderr
    );
    let help = home.run_as(&link, &["code", "go", "--help"], b"");
    assert!(
        help.stdout.contains("About Go") && help.stdout.contains("--what"),
        "{}",
        help.stdout
    );
    for (words, said) in [
        (&["code"][..], "go, gogo"),
        (&["code", "rust"], "code rust"),
        (&["broken"], "broken"),
    ] {
        let ran = home.run_as(&link, words, b"");
        assert_eq!(
            (ran.exit, ran.stdout.as_str()),
            (Exit::Code(1), ""),
            "{words:?}: {}",
            ran.stderr
        );
        assert!(ran.stderr.contains(said), "{words:?}: {}", ran.stderr);
    }
}

#[test]
fn options_may_stand_before_the_words_of_a_command() {
    let home = with_commands();
    let link = pinocchio(&home);
    let what = script(&json!({"text": "options first"}));
    for options in [
        &["--log-level", "error"][..],
        &["--output=text", "--non-interactive"],
        &["--ai-engine", "offline/demo", "--with-metadata=false"],
    ] {
        let line = [options, &["code", "go", "--what", &what]].concat();
        let ran = home.run_as(&link, &line, b"");
        assert_eq!(
            (ran.exit, ran.stdout.as_str()),
            (Exit::Code(0), "options first\n"),
            "{options:?}: {}",
            ran.stderr
        );
    }
    let ran = home.run_as(&link, &["--nonsense", "code", "go"], b"");
    assert_eq!((ran.exit, ran.stdout.as_str()), (Exit::Code(1), ""));
}

#[test]
fn pages_of_repositories_can_be_read() {
    let home = with_commands();
    let link = pinocchio(&home);
    let page = "# House style\n\nShort names.\n";
    for (words, told) in [
        (&["help", "style"][..], page),
        (&["help", "--list"], "  style  How we write Go\n"),
        (&["help", "--topics"], "  style  How we write Go\n"),
        (&["help", "--tutorials"], ""),
        (
            &["help", "code"],
            "code: a group of commands\n\n  go\n  gogo\n",
        ),
    ] {
        let ran = home.run_as(&link, words, b"");
        assert_eq!(
            (ran.exit, ran.stdout.as_str()),
            (Exit::Code(0), told),
            "{words:?}: {}",
            ran.stderr
        );
    }
    assert_eq!(home.run(&["commands", "help", "style"]).stdout, page);
    let help = home.run_as(&link, &["code", "go", "--help"], b"").stdout;
    assert!(
        help.contains("About Go") && help.ends_with("(help TOPIC):\n  style  How we write Go\n"),
        "{help}"
    );
    let same = home.run_as(&link, &["help", "code", "go"], b"").stdout;
    assert_eq!(same, help);
    let profiles = home.run_as(&link, &["help", "profiles"], b"").stdout;
    assert!(profiles.contains("pinion profiles"), "{profiles}");
    for (words, meant) in [
        (&["help", "stile"][..], "Did you mean \"style\"?"),
        (&["help", "code", "gp"], "Did you mean \"code go\"?"),
        (&["help", "nothing-like-it"], "`help --list` shows"),
    ] {
        let ran = home.run_as(&link, words, b"");
        assert_eq!((ran.exit, ran.stdout.as_str()), (Exit::Code(1), ""));
        assert!(ran.stderr.contains(meant), "{words:?}: {}", ran.stderr);
    }
}

#[test]
fn the_link_alone_says_what_it_can_do_and_mistakes_have_one_code() {
    let home = with_commands();
    let link = pinocchio(&home);
    let alone = home.run_as(&link, &[], b"");
    assert_eq!(alone.exit, Exit::Code(0), "{}", alone.stderr);
    assert!(alone.stdout.contains("run-command FILE.yaml"), "{alone:?}");
    for mistake in [
        &["profiles", "nonsense"][..],
        &["turns", "nonsense"],
        &["timeline", "nonsense"],
        &["commands"],
        &["help", "--nonsense"],
        &["run-command"],
    ] {
        let ran = home.run_as(&link, mistake, b"");
        assert_eq!(ran.exit, Exit::Code(1), "{mistake:?}: {}", ran.stderr);
    }
}

#[test]
fn the_link_has_the_verbs() {
    let home = with_commands();
    let link = pinocchio(&home);
    let what = script(&json!({"text": "linked"}));
    let told = home
        .run_as(
            &link,
            &[
                "run-command",
                "say.yaml",
                "--output",
                "jsonl",
                "--what",
                &what,
            ],
            b"",
        )
        .told();
    assert_eq!((told.status(), told.exit), ("ok", Exit::Code(0)));
    assert_eq!(told.lines[0]["hello"]["server"], "pinocchio");
    for arguments in [
        &["--version"][..],
        &["--help"],
        &["help"],
        &["profiles", "list"],
        &["profiles", "--help"],
        &["turns", "--help"],
        &["timeline", "--help"],
    ] {
        let ran = home.run_as(&link, arguments, b"");
        assert_eq!(ran.exit, Exit::Code(0), "{arguments:?}: {}", ran.stderr);
        assert!(
            !ran.stdout.is_empty() || arguments == ["profiles", "list"],
            "{arguments:?}"
        );
    }
}

#[test]
fn a_conversation_through_the_link_is_the_same() {
    let home = with_commands();
    let link = pinocchio(&home);
    let input = format!(
        "{}\n{}\n",
        json!({"requestId": "a", "submit": {"prompt": script(&json!({"text": "hello"}))}}),
        json!({"requestId": "b", "shutdown": {}})
    );
    let told = home
        .run_as(&link, &["code", "go", "--stdin-rpc"], input.as_bytes())
        .told();
    assert_eq!((told.status(), told.exit), ("shutdown", Exit::Code(0)));
}
