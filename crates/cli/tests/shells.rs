//! The completion scripts in real shells. zsh and fish are skipped where they are not installed.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use pinion_cli::complete::{Shell, script};
use pinion_cli::{Place, tables};

/// Writes the script, and a program that answers requests for values with the kind and the prefix.
fn prepare(shell: Shell, name: &str, directory: &Path) -> String {
    let path = directory.join("script");
    let root = tables::program(name).unwrap();
    std::fs::write(&path, script(shell, root)).unwrap();
    let program = directory.join(name);
    let answer = "#!/bin/sh\ncase $3 in -*) exit;; esac\n[ \"$1\" = __complete ] && echo \"$3$2-a\" && echo \"$3$2-b\"\n";
    std::fs::write(&program, answer).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

fn output(mut command: Command, directory: &Path) -> Vec<String> {
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{path}", directory.display()));
    command.env("HOME", directory);
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert_eq!(errors, "");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// Returns what bash offers for the last of these words.
fn bash(name: &str, words: &[&str]) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let script = prepare(Shell::Bash, name, directory.path());
    let mut command = Command::new("bash");
    let ask = format!(
        "source '{script}'; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _{name}; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    );
    command
        .args(["--norc", "-c", &ask, "bash", name])
        .args(words);
    output(command, directory.path())
}

#[test]
fn bash_completes_every_command_and_flag() {
    for root in tables::PROGRAMS {
        for place in Place::root(root).all() {
            let words: Vec<&str> = place.name().split_whitespace().collect();
            let flags = bash(root.name, &[&words[..], &["-"]].concat());
            for spelling in place.command.all_flags().flat_map(|flag| flag.spellings()) {
                assert!(
                    flags.iter().any(|it| it == spelling),
                    "{}: {flags:?}",
                    place.words()
                );
            }
            let commands = bash(root.name, &[&words[..], &[""]].concat());
            for word in place.command.words() {
                assert!(
                    commands.iter().any(|it| it == word),
                    "{}: {commands:?}",
                    place.words()
                );
            }
        }
    }
}

#[test]
fn bash_completes_values() {
    for (words, expected) in [
        (
            &["hub", "serve", "--auth", ""][..],
            &["token", "manage", "none"][..],
        ),
        (&["hub", "serve", "--auth", "=", "m"], &["manage"]),
        (
            &["hub", "serve", "--auth", "none", "--p"],
            &["--port", "--pid", "--provider"],
        ),
        (&["--model", "x"], &["xmodel-a", "xmodel-b"]),
        (&["--model", "hub", "ses"], &["sessions"]),
        (&["sessions", "show", ""], &["session-a", "session-b"]),
        (&["clip", "show", "t"], &["tclip-a", "tclip-b"]),
        (&["fleet", "resume", ""], &["run-a", "run-b"]),
        (&["hub", "--port", "1", "--au"], &["--auth"]),
        (&["uninstall", "--loc"], &["--local"]),
        (&["completions", "z"], &["zsh"]),
    ] {
        assert_eq!(bash("pinion", words), expected, "{words:?}");
    }
}

fn is_installed(shell: &str) -> bool {
    Command::new(shell).arg("--version").output().is_ok()
}

/// Returns what zsh offers: the functions that add matches are replaced by ones that print them.
fn zsh(words: &[&str]) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let script = prepare(Shell::Zsh, "pinion", directory.path());
    let ask = format!(
        "compdef() {{ }}; _files() {{ print files }}; _describe() {{ print -l -- ${{found%%:*}} }}; \
         compadd() {{ shift; print -l -- \"$@\" }}; source '{script}'; words=(\"$@\"); CURRENT=$#; _pinion"
    );
    let mut command = Command::new("zsh");
    command
        .args(["-f", "-c", &ask, "zsh", "pinion"])
        .args(words);
    output(command, directory.path())
}

#[test]
fn zsh_completes_commands_flags_and_values() {
    if !is_installed("zsh") {
        return;
    }
    for (words, expected) in [
        (
            &["hub", "token", ""][..],
            &["create", "list", "revoke", "files"][..],
        ),
        (
            &["hub", "serve", "--auth", ""],
            &["token", "manage", "none"],
        ),
        (
            &["fleet", "resume", "-"],
            &[
                "--output",
                "--quiet",
                "-q",
                "--log",
                "--log-format",
                "--log-file",
                "--help",
            ],
        ),
        (&["fleet", "resume", "x"], &["xrun-a", "xrun-b", "files"]),
        (&["hub", "serve", "--port", ""], &["files"]),
    ] {
        assert_eq!(zsh(words), expected, "{words:?}");
    }
}

/// Returns what fish offers, without descriptions.
fn fish(line: &str) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let script = prepare(Shell::Fish, "pinion", directory.path());
    let ask = format!("source '{script}'; complete -C '{line}'");
    let mut command = Command::new("fish");
    command.args(["--no-config", "-c", &ask]);
    let lines = output(command, directory.path());
    let word = |line: String| line.split('\t').next().unwrap_or_default().to_owned();
    lines.into_iter().map(word).collect()
}

#[test]
fn fish_completes_commands_flags_and_values() {
    if !is_installed("fish") {
        return;
    }
    for (line, expected) in [
        ("pinion hub token ", &["create", "list", "revoke"][..]),
        ("pinion hub serve --auth ", &["manage", "none", "token"]),
        ("pinion fleet resume --q", &["--quiet"]),
        ("pinion fleet resume ", &["run-a", "run-b"]),
        ("pinion uninstall --loc", &["--local"]),
    ] {
        assert_eq!(fish(line), expected, "{line:?}");
    }
}
