//! `timeline`: reads the conversations in a timeline database as users saw them.

use std::io::Write;
use std::process::ExitCode;

use pinion_history::{
    TimelineEntity, TimelineEvent, TimelineSnapshot, TimelineStore, Transcript, check_timeline,
    read_timeline,
};
use pinion_jsonl::json::to_string;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::databases::{
    Asked, Format, Shape, Stopped, Store, What, beginning, checked, failed, table,
};
use super::out;
use crate::failure::Failure;
use crate::verb::{Entry, Group, Line, Verb};
use pinion_cli::tables;

/// The number of events read at a time.
const PAGE: usize = 500;

const LIST: Verb = Verb::new(
    "pinion timeline",
    &tables::databases::TIMELINE_LIST,
    |line| run(What::List, line),
);

const SHOW: Verb = Verb::new(
    "pinion timeline",
    &tables::databases::TIMELINE_SHOW,
    |line| run(What::Show, line),
);

const EXPORT: Verb = Verb::new(
    "pinion timeline",
    &tables::databases::TIMELINE_EXPORT,
    |line| run(What::Export, line),
);

const CHECK: Verb = Verb::new(
    "pinion timeline",
    &tables::databases::TIMELINE_CHECK,
    |line| run(What::Check, line),
);

pub(super) const GROUP: Group = Group {
    above: "pinion",
    command: &tables::databases::TIMELINE,
    entries: &[
        Entry::One(&LIST),
        Entry::One(&SHOW),
        Entry::One(&EXPORT),
        Entry::One(&CHECK),
    ],
};

fn run(what: What, line: &Line) -> Result<ExitCode, Failure> {
    let asked = Asked::read(Store::Timeline, line)?;
    if what == What::Check {
        return checked(check_timeline(&asked.choice()));
    }
    let mut store = read_timeline(&asked.choice()).map_err(failed)?;
    match what {
        What::List => list(&asked, store.as_mut()),
        What::Show => show(&asked, store.as_mut()),
        What::Export | What::Check => export(&asked, store.as_mut()),
    }
}

fn list(asked: &Asked, store: &mut dyn TimelineStore) -> Result<ExitCode, Failure> {
    let mut sessions = store.sessions().map_err(failed)?;
    if let Some(wanted) = &asked.session {
        sessions.retain(|session| session.id == *wanted);
    }
    sessions.truncate(asked.limit.unwrap_or(usize::MAX));
    if sessions.is_empty() {
        eprintln!("No sessions here.");
    }
    if asked.shape == Shape::Json {
        let line = |session: &pinion_history::TimelineSession| {
            to_string(&json!({
                "session": session.id,
                "ordinal": session.ordinal,
                "events": session.events,
                "entities": session.entities,
                "firstAt": session.first_at,
                "lastAt": session.last_at,
            })) + "\n"
        };
        return out(&sessions.iter().map(line).collect::<String>());
    }
    let row = |session: &pinion_history::TimelineSession| {
        [
            session.last_at.clone(),
            beginning(&session.id),
            session.events.to_string(),
            session.entities.to_string(),
        ]
    };
    out(&table(
        ["last event", "session", "events", "entities"],
        sessions.iter().map(row).collect(),
    ))
}

/// Returns the session that was named, or the only one there is.
fn session(asked: &Asked, store: &mut dyn TimelineStore) -> Result<String, Failure> {
    let sessions = store.sessions().map_err(failed)?;
    let known = |id: &String| sessions.iter().any(|session| session.id == *id);
    match (&asked.session, &sessions[..]) {
        (Some(wanted), _) if known(wanted) => Ok(wanted.clone()),
        (Some(wanted), _) => Err(Failure::failed(format!(
            "Error: there is no session \"{wanted}\"; see `pinion timeline list`."
        ))),
        (None, [only]) => Ok(only.id.clone()),
        (None, []) => Err(Failure::failed("Error: there are no sessions in it.")),
        (None, all) => Err(Failure::usage(format!(
            "Error: there are {} sessions; name one with --session. `pinion timeline list` shows them.",
            all.len()
        ))),
    }
}

fn show(asked: &Asked, store: &mut dyn TimelineStore) -> Result<ExitCode, Failure> {
    let session = session(asked, store)?;
    if asked.everything {
        return asked.write(|to| {
            each_event(store, &session, asked.as_of, &mut |event| {
                match asked.shape {
                    Shape::Json => writeln!(to, "{}", event_line(&session, event))?,
                    _ => writeln!(
                        to,
                        "{:>6}  {}  {}",
                        event.ordinal, event.name, event.payload
                    )?,
                }
                Ok(())
            })
        });
    }
    let snapshot = store.snapshot(&session, asked.as_of).map_err(failed)?;
    match asked.shape {
        Shape::Json => {
            let line = |entity| entity_line(&session, entity) + "\n";
            out(&snapshot.entities.iter().map(line).collect::<String>())
        }
        _ => out(&Transcript::of_timeline(&session, &snapshot).text()),
    }
}

fn export(asked: &Asked, store: &mut dyn TimelineStore) -> Result<ExitCode, Failure> {
    let format = asked.format();
    let sessions = match (format, &asked.session) {
        (Format::Jsonl, None) => {
            let sessions = store.sessions().map_err(failed)?;
            sessions.into_iter().map(|session| session.id).collect()
        }
        _ => vec![session(asked, store)?],
    };
    asked.write(|to| {
        for session in &sessions {
            let snapshot = store.snapshot(session, asked.as_of)?;
            match format {
                Format::Jsonl => lines(to, store, session, asked.as_of, &snapshot)?,
                page => {
                    let transcript = Transcript::of_timeline(session, &snapshot);
                    write!(to, "{}", Asked::page(page, &transcript))?;
                }
            }
        }
        Ok(())
    })
}

/// Writes all events, then the entities that result from them.
fn lines(
    to: &mut dyn Write,
    store: &mut dyn TimelineStore,
    session: &str,
    as_of: Option<u64>,
    snapshot: &TimelineSnapshot,
) -> Result<(), Stopped> {
    each_event(store, session, as_of, &mut |event| {
        Ok(writeln!(to, "{}", event_line(session, event))?)
    })?;
    for entity in &snapshot.entities {
        writeln!(to, "{}", entity_line(session, entity))?;
    }
    Ok(())
}

fn each_event(
    store: &mut dyn TimelineStore,
    session: &str,
    as_of: Option<u64>,
    each: &mut dyn FnMut(&TimelineEvent) -> Result<(), Stopped>,
) -> Result<(), Stopped> {
    let last = as_of.filter(|last| *last > 0).unwrap_or(u64::MAX);
    let mut after = 0;
    loop {
        let events = store.events(session, after, PAGE)?;
        for event in events.iter().filter(|event| event.ordinal <= last) {
            each(event)?;
        }
        match events.last() {
            Some(event) if events.len() == PAGE && event.ordinal < last => after = event.ordinal,
            _ => return Ok(()),
        }
    }
}

fn event_line(session: &str, event: &TimelineEvent) -> String {
    format!(
        "{{\"type\":\"event\",\"session\":{},\"ordinal\":{},\"name\":{},\"payload\":{}}}",
        to_string(session),
        event.ordinal,
        to_string(&*event.name),
        payload(&event.payload)
    )
}

fn entity_line(session: &str, entity: &TimelineEntity) -> String {
    format!(
        "{{\"type\":\"entity\",\"session\":{},\"kind\":{},\"id\":{},\"createdOrdinal\":{},\"lastEventOrdinal\":{},\"payload\":{}}}",
        to_string(session),
        to_string(&*entity.kind),
        to_string(&*entity.id),
        entity.created_ordinal,
        entity.last_event_ordinal,
        payload(&entity.payload)
    )
}

/// Returns a payload as it is stored, on one line; a payload that is not JSON becomes a string.
fn payload(text: &str) -> String {
    match serde_json::from_str::<&RawValue>(text) {
        Ok(_) if !text.contains('\n') => text.to_owned(),
        Ok(_) => to_string(&serde_json::from_str::<Value>(text).unwrap_or_default()),
        Err(_) => to_string(text),
    }
}
