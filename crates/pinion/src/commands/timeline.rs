//! `timeline`: reads the conversations in a timeline database as users saw them.

use std::process::ExitCode;

use pinion_cli::tables::databases as tables;
use pinion_history::{
    TimelineExport, TimelineSelection, TimelineStore, check_timeline, list_sessions, read_timeline,
    show_events, show_timeline,
};

use super::databases::{Arguments, Store, report_problems};
use crate::failure::Failure;
use crate::verb::{Entry, Group, Line, Verb};

const LIST: Verb = Verb::new("pinion timeline", &tables::TIMELINE_LIST, list);
const SHOW: Verb = Verb::new("pinion timeline", &tables::TIMELINE_SHOW, show);
const EXPORT: Verb = Verb::new("pinion timeline", &tables::TIMELINE_EXPORT, export);
const CHECK: Verb = Verb::new("pinion timeline", &tables::TIMELINE_CHECK, |line| {
    let arguments = Arguments::read(Store::Timeline, line)?;
    report_problems(&check_timeline(&arguments.choice())?)
});

pub(super) const GROUP: Group = Group {
    above: "pinion",
    command: &tables::TIMELINE,
    entries: &[
        Entry::One(&LIST),
        Entry::One(&SHOW),
        Entry::One(&EXPORT),
        Entry::One(&CHECK),
    ],
    takes_words: false,
};

type Opened = (Arguments, Box<dyn TimelineStore>, TimelineSelection);

fn open(line: &Line) -> Result<Opened, Failure> {
    let arguments = Arguments::read(Store::Timeline, line)?;
    let store = read_timeline(&arguments.choice())?;
    let selection = TimelineSelection {
        session: arguments.session.clone(),
        limit: arguments.limit,
        as_of: arguments.as_of,
    };
    Ok((arguments, store, selection))
}

fn list(line: &Line) -> Result<ExitCode, Failure> {
    let (arguments, mut store, selection) = open(line)?;
    arguments.write(|to| {
        let count = list_sessions(&mut *store, &selection, arguments.list_form(), to)?;
        if count == 0 {
            eprintln!("No sessions here.");
        }
        Ok(())
    })
}

fn show(line: &Line) -> Result<ExitCode, Failure> {
    let (arguments, mut store, selection) = open(line)?;
    arguments.write(|to| {
        if line.has("--events") {
            show_events(&mut *store, &selection, arguments.form, to)
        } else {
            show_timeline(&mut *store, &selection, arguments.form, to)
        }
    })
}

fn export(line: &Line) -> Result<ExitCode, Failure> {
    let (arguments, mut store, selection) = open(line)?;
    let export = TimelineExport::select(&mut *store, &selection, arguments.export_form())?;
    arguments.write(|to| export.write(&mut *store, to))
}
