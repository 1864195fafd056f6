//! `completions`: words a shell may complete.

use std::process::ExitCode;

use super::{WORDS, out};
use crate::cli::FLAGS;
use crate::failure::Failure;

pub(super) fn run(shell: &str) -> Result<ExitCode, Failure> {
    let words: Vec<&str> = WORDS.iter().chain(FLAGS).copied().collect();
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
            return Err(Failure::usage(format!(
                "Error: unknown shell {other}. Use bash, zsh or fish."
            )));
        }
    })
}
