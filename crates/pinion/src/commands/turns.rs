//! `turns`: reads the prompts and answers of models in a turns database.

use std::process::ExitCode;

use pinion_cli::tables::databases as tables;
use pinion_history::{
    TurnExport, TurnSelection, TurnStore, check_turns, list_turns, read_turns, show_turn,
};

use super::databases::{Arguments, Store, report_problems};
use crate::failure::Failure;
use crate::verb::{Entry, Group, Line, Verb};

const LIST: Verb = Verb::new("pinion turns", &tables::TURNS_LIST, list);
const SHOW: Verb = Verb::new("pinion turns", &tables::TURNS_SHOW, show);
const EXPORT: Verb = Verb::new("pinion turns", &tables::TURNS_EXPORT, export);
const CHECK: Verb = Verb::new("pinion turns", &tables::TURNS_CHECK, |line| {
    let arguments = Arguments::read(Store::Turns, line)?;
    report_problems(&check_turns(&arguments.choice())?)
});

pub(super) const GROUP: Group = Group {
    above: "pinion",
    command: &tables::TURNS,
    entries: &[
        Entry::One(&LIST),
        Entry::One(&SHOW),
        Entry::One(&EXPORT),
        Entry::One(&CHECK),
    ],
    takes_words: false,
};

type Opened = (Arguments, Box<dyn TurnStore>, TurnSelection);

fn open(line: &Line) -> Result<Opened, Failure> {
    let arguments = Arguments::read(Store::Turns, line)?;
    let store = read_turns(&arguments.choice())?;
    let selection = TurnSelection {
        session: arguments.session.clone(),
        phase: arguments.phase.clone(),
        limit: arguments.limit,
        all: line.has("--all"),
    };
    Ok((arguments, store, selection))
}

fn list(line: &Line) -> Result<ExitCode, Failure> {
    let (arguments, mut store, selection) = open(line)?;
    arguments.write(|to| {
        let count = list_turns(&mut *store, &selection, arguments.list_form(), to)?;
        if count == 0 {
            eprintln!("No turns here.");
        }
        Ok(())
    })
}

fn show(line: &Line) -> Result<ExitCode, Failure> {
    let (arguments, mut store, selection) = open(line)?;
    arguments.write(|to| show_turn(&mut *store, &selection, arguments.form, to))
}

fn export(line: &Line) -> Result<ExitCode, Failure> {
    let (arguments, mut store, selection) = open(line)?;
    let export = TurnExport::select(&mut *store, &selection, arguments.export_form())?;
    if export.is_empty() {
        eprintln!("No turns to export{}.", selection.of_session());
    }
    arguments.write(|to| export.write(&mut *store, to))
}
