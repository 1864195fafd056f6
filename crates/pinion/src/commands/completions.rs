//! `completions`: prints the words that a shell may complete.

use std::process::ExitCode;

use super::{out, words};
use crate::cli::FLAGS;
use crate::failure::Failure;
use crate::help;
use crate::verb::{ALL_FLAGS, Line, Verb};

pub(super) const VERB: Verb = Verb {
    name: "completions",
    flags: &[],
    raw_after: ALL_FLAGS,
    help: help::COMPLETIONS,
    run,
};

fn run(line: &Line) -> Result<ExitCode, Failure> {
    let [shell] = line.exactly()?;
    let words: Vec<&str> = words().chain(FLAGS.iter().copied()).collect();
    let words = words.join(" ");
    out(&match shell {
        "bash" => format!("complete -o default -W '{words}' pinion\n"),
        "zsh" => format!("#compdef pinion\ncompadd -- {words}\n_files\n"),
        "fish" => words
            .split(' ')
            .map(|word| match word.strip_prefix("--") {
                Some(flag) => format!("complete -c pinion -l {flag}\n"),
                None => format!("complete -c pinion -n __fish_use_subcommand -a {word}\n"),
            })
            .collect(),
        other => {
            return Err(line.wrong(&format!("unknown shell {other:?}; use bash, zsh or fish")));
        }
    })
}
