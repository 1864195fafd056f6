//! Checks of all tables: what the parser, the help and the completions rely on.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

use std::collections::HashSet;

use pinion_cli::complete::{Shell, script};
use pinion_cli::{Place, help, manual, tables};

fn places() -> Vec<Place> {
    let roots = tables::PROGRAMS.into_iter();
    roots.flat_map(|root| Place::root(root).all()).collect()
}

#[test]
fn every_command_and_flag_is_explained_in_one_line() {
    for place in places() {
        let words = place.words();
        let command = place.command;
        assert!(!command.about.is_empty(), "{words}");
        assert!(
            !command.about.ends_with('.') && !command.about.contains('\n'),
            "{words}"
        );
        assert!(!command.examples.is_empty(), "{words}");
        for flag in command.all_flags() {
            let name = flag.name;
            assert!(name.starts_with("--") && name.len() > 2, "{words} {name}");
            assert!(!flag.help.is_empty(), "{words} {name}");
            assert!(
                !flag.help.ends_with('.') && !flag.help.contains('\n'),
                "{words} {name}"
            );
        }
    }
}

#[test]
fn every_command_has_the_flags_of_the_log() {
    for place in Place::root(&tables::root::PINION).all() {
        let mut names = place.all_flags().map(|flag| flag.name);
        let expected = match place.name() {
            // They parse their arguments themselves; `run-command` has Pinocchio's --log-file.
            "run-command" | "commands run" | "commands help" => false,
            _ => place.command.commands.is_empty() || place.command.otherwise.is_some(),
        };
        let is_root = place.name().is_empty();
        assert_eq!(
            names.any(|name| name == "--log"),
            expected || is_root,
            "{}",
            place.words()
        );
    }
    for root in tables::PROGRAMS
        .into_iter()
        .filter(|root| root.name != "pinion")
    {
        for place in Place::root(root).all() {
            assert!(
                place.all_flags().all(|flag| flag.name != "--log"),
                "{}",
                place.words()
            );
        }
    }
}

#[test]
fn no_spelling_stands_for_two_things() {
    for place in places() {
        let mut seen = HashSet::new();
        for spelling in place.all_flags().flat_map(|flag| flag.spellings()) {
            assert!(seen.insert(spelling), "{} {spelling}", place.words());
        }
        let mut seen = HashSet::new();
        for word in place.command.words() {
            assert!(seen.insert(word), "{} {word}", place.words());
        }
    }
}

#[test]
fn conflicts_and_requirements_name_flags_of_the_command() {
    for place in places() {
        let command = place.command;
        let conflicts = command
            .conflicts
            .iter()
            .flat_map(|flags| flags.iter().copied());
        let requirements = command
            .requirements
            .iter()
            .flat_map(|(flag, other)| [*flag, *other]);
        for flag in conflicts.chain(requirements) {
            let known = command.all_flags().any(|known| known.name == flag);
            assert!(known, "{} {flag}", place.words());
        }
    }
}

#[test]
fn the_help_shows_every_flag_and_command_in_120_columns() {
    for place in places() {
        let text = help::text(&place);
        let words = place.words();
        assert!(
            text.contains("\nUsage:\n") && text.contains("\nExamples:\n"),
            "{words}: {text}"
        );
        for flag in place.command.all_flags() {
            assert!(
                text.contains(&flag.shown()),
                "{words} {}: {text}",
                flag.name
            );
        }
        let flowing = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for child in place.command.commands {
            assert!(
                flowing.contains(child.about),
                "{words} {}: {text}",
                child.name
            );
        }
        let examples = text.split("\nExamples:\n").next().unwrap_or_default();
        let long = examples.lines().find(|line| line.chars().count() > 122);
        assert_eq!(long, None, "{words}");
    }
}

#[test]
fn manuals_and_completions_hold_every_flag_and_command() {
    for place in places() {
        let page = manual::page(&place, "1.0");
        for flag in place.command.all_flags() {
            let escaped = flag.name.replace('-', "\\-");
            assert!(page.contains(&escaped), "{} {}", place.words(), flag.name);
        }
    }
    for root in tables::PROGRAMS {
        for shell in Shell::NAMES {
            let text = script(Shell::named(shell).unwrap(), root);
            for place in Place::root(root).all() {
                assert!(text.contains(place.words()), "{shell}: {}", place.words());
                for flag in place.command.all_flags() {
                    let bare = flag.name.trim_start_matches('-');
                    assert!(text.contains(bare), "{shell}: {} {bare}", place.words());
                }
            }
        }
    }
}
