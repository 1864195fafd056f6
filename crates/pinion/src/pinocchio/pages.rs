//! `help`: the pages of repositories and of commands.

use std::process::ExitCode;

use pinion_cli::{Place, tables};
use pinion_commands::{BUILT_INS, HelpLevel, HelpPage, Repository, pages_table, related_pages};
use pinion_run_command::built_ins;
use pinion_text::nearest;

use super::host::CommandHost;
use crate::commands::{self, out};
use crate::failure::Failure;
use crate::program::Program;

/// Explains what the words name: a page, a command, a group of commands, or a verb of the program itself.
pub(super) fn help(program: Program, words: &[String]) -> Result<ExitCode, Failure> {
    let Some(first) = words.first() else {
        return commands::help(&commands::place(program, &["run-command"]));
    };
    let host = CommandHost::read()?;
    let repository = Repository::load(&host.repositories(), BUILT_INS);
    if first.starts_with('-') {
        return list(program, &repository, first);
    }
    if let ([_], Some(page)) = (words, repository.help_page(first)) {
        return out(&page.text());
    }
    if let Some(found) = repository.find(words)?
        && found.line.words.is_empty()
    {
        let call = format!("{} {}", program.name(), found.path.join(" "));
        let page = found
            .command
            .help(&call, HelpLevel::Short, &built_ins(found.command));
        return out(&(page + &related_pages(&repository.related_pages(&found.path))));
    }
    let below = repository.below(words);
    if !below.is_empty() {
        let (group, commands) = (words.join(" "), below.join("\n  "));
        return out(&format!("{group}: a group of commands\n\n  {commands}\n"));
    }
    match verb(words) {
        Some(place) => commands::help(&place),
        None => Err(unknown(&repository, words)),
    }
}

/// Returns one of the program's own verbs.
fn verb(words: &[String]) -> Option<Place> {
    let words: Vec<&str> = match words {
        [word] if word == "help" => vec!["run-command"],
        words => words.iter().map(String::as_str).collect(),
    };
    // The verbs are commands of pinion, whose name their examples show.
    let known = tables::root::PINOCCHIO.command(words.first()?)?;
    let place = Place::find(&tables::root::PINION, words.iter().copied());
    let is_whole = place.name().split_whitespace().count() == words.len();
    (is_whole && !std::ptr::eq(known, &tables::prompts::COMMANDS_HELP)).then_some(place)
}

fn list(program: Program, repository: &Repository, option: &str) -> Result<ExitCode, Failure> {
    let section = match option {
        "--list" | "--all" => None,
        "--topics" => Some("GeneralTopic"),
        "--examples" => Some("Example"),
        "--applications" => Some("Application"),
        "--tutorials" => Some("Tutorial"),
        "--help" | "-h" => {
            return commands::help(&commands::place(program, &["commands"]));
        }
        other => {
            return Err(Failure::usage(format!(
                "{other} is not understood here.\nUsage: help [TOPIC | WORDS… | --list | --topics | --examples | --applications | --tutorials]"
            )));
        }
    };
    for failure in repository.failures() {
        if failure.path.extension().is_some_and(|end| end == "md") {
            eprintln!("Warning: {}: {}", failure.path.display(), failure.reason);
        }
    }
    let pages: Vec<&HelpPage> = repository
        .help_pages()
        .iter()
        .filter(|page| section.is_none_or(|section| page.section == section))
        .collect();
    if pages.is_empty() {
        eprintln!("No help pages. They are Markdown files in the directory doc of a repository.");
    }
    out(&pages_table(&pages))
}

fn unknown(repository: &Repository, words: &[String]) -> Failure {
    let shown = words.join(" ");
    let topics: Vec<String> = repository.topics().collect();
    let mut failure = Failure::failed(format!("there is no help about \"{shown}\"."));
    if let Some(meant) = nearest(&shown, topics.iter().map(String::as_str)) {
        failure = failure.hint(format!("Did you mean \"{meant}\"?"));
    }
    failure.hint("`help --list` shows the pages, `commands list` the commands.")
}
