//! Reports of timelines.

use std::io::Write;

use pinion_jsonl::json::to_string;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{ExportForm, ListForm, ReportError, ShowForm, beginning, table};
use crate::{
    TimelineEntity, TimelineEvent, TimelineSession, TimelineSnapshot, TimelineStore, Transcript,
};

/// The number of events read at a time.
const PAGE: usize = 500;

/// The sessions of a report, and the event until which they are read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TimelineSelection {
    pub session: Option<String>,
    pub limit: Option<usize>,
    /// The last event; all events without one.
    pub as_of: Option<u64>,
}

impl TimelineSelection {
    /// Returns the session that is named, or the only one there is.
    fn session(&self, store: &mut dyn TimelineStore) -> Result<String, ReportError> {
        let sessions = store.sessions()?;
        let is_known = |id: &String| sessions.iter().any(|session| session.id == *id);
        match (&self.session, &sessions[..]) {
            (Some(wanted), _) if is_known(wanted) => Ok(wanted.clone()),
            (Some(wanted), _) => Err(ReportError::Missing(format!(
                "there is no session \"{wanted}\"; see `pinion timeline list`."
            ))),
            (None, [only]) => Ok(only.id.clone()),
            (None, []) => Err(ReportError::Missing(
                "there are no sessions in it.".to_owned(),
            )),
            (None, all) => Err(ReportError::Ambiguous(format!(
                "there are {} sessions; name one with --session. `pinion timeline list` shows them.",
                all.len()
            ))),
        }
    }
}

/// Writes one row for each session; returns the number of rows.
pub fn list_sessions(
    store: &mut dyn TimelineStore,
    selection: &TimelineSelection,
    form: ListForm,
    to: &mut dyn Write,
) -> Result<usize, ReportError> {
    let mut sessions = store.sessions()?;
    if let Some(wanted) = &selection.session {
        sessions.retain(|session| session.id == *wanted);
    }
    sessions.truncate(selection.limit.unwrap_or(usize::MAX));
    if form == ListForm::Json {
        for session in &sessions {
            writeln!(to, "{}", session_line(session))?;
        }
        return Ok(sessions.len());
    }
    let row = |session: &TimelineSession| {
        [
            session.last_at.clone(),
            beginning(&session.id),
            session.events.to_string(),
            session.entities.to_string(),
        ]
    };
    let heading = ["last event", "session", "events", "entities"];
    let rows = sessions.iter().map(row).collect();
    to.write_all(table(form, heading, rows).as_bytes())?;
    Ok(sessions.len())
}

/// Writes the entities of one session.
pub fn show_timeline(
    store: &mut dyn TimelineStore,
    selection: &TimelineSelection,
    form: ShowForm,
    to: &mut dyn Write,
) -> Result<(), ReportError> {
    let session = selection.session(store)?;
    let snapshot = store.snapshot(&session, selection.as_of)?;
    match form {
        ShowForm::Json => write_entities(to, &session, &snapshot),
        ShowForm::Text | ShowForm::Yaml => {
            let text = Transcript::of_timeline(&session, &snapshot).text();
            Ok(to.write_all(text.as_bytes())?)
        }
    }
}

/// Writes the events of one session.
pub fn show_events(
    store: &mut dyn TimelineStore,
    selection: &TimelineSelection,
    form: ShowForm,
    to: &mut dyn Write,
) -> Result<(), ReportError> {
    let session = selection.session(store)?;
    each_event(store, &session, selection.as_of, &mut |event| {
        if form == ShowForm::Json {
            writeln!(to, "{}", event_line(&session, event))?;
        } else {
            let TimelineEvent {
                ordinal,
                name,
                payload,
            } = event;
            writeln!(to, "{ordinal:>6}  {name}  {payload}")?;
        }
        Ok(())
    })
}

/// Sessions to export: every one as JSON lines, one as a page.
#[derive(Debug)]
pub struct TimelineExport {
    form: ExportForm,
    sessions: Vec<String>,
    as_of: Option<u64>,
}

impl TimelineExport {
    /// Selects the sessions. Fails if the form holds one session and there are more.
    pub fn select(
        store: &mut dyn TimelineStore,
        selection: &TimelineSelection,
        form: ExportForm,
    ) -> Result<Self, ReportError> {
        let sessions = if form == ExportForm::Jsonl && selection.session.is_none() {
            let sessions = store.sessions()?;
            sessions.into_iter().map(|session| session.id).collect()
        } else {
            vec![selection.session(store)?]
        };
        Ok(Self {
            form,
            sessions,
            as_of: selection.as_of,
        })
    }

    /// Writes the sessions; JSON lines are all events and then the entities that result from them.
    pub fn write(
        &self,
        store: &mut dyn TimelineStore,
        to: &mut dyn Write,
    ) -> Result<(), ReportError> {
        for session in &self.sessions {
            let snapshot = store.snapshot(session, self.as_of)?;
            if self.form == ExportForm::Jsonl {
                each_event(store, session, self.as_of, &mut |event| {
                    Ok(writeln!(to, "{}", event_line(session, event))?)
                })?;
                write_entities(to, session, &snapshot)?;
            } else {
                let transcript = Transcript::of_timeline(session, &snapshot);
                to.write_all(self.form.page(&transcript).as_bytes())?;
            }
        }
        Ok(())
    }
}

fn write_entities(
    to: &mut dyn Write,
    session: &str,
    snapshot: &TimelineSnapshot,
) -> Result<(), ReportError> {
    for entity in &snapshot.entities {
        writeln!(to, "{}", entity_line(session, entity))?;
    }
    Ok(())
}

fn each_event(
    store: &mut dyn TimelineStore,
    session: &str,
    as_of: Option<u64>,
    each: &mut dyn FnMut(&TimelineEvent) -> Result<(), ReportError>,
) -> Result<(), ReportError> {
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

fn session_line(session: &TimelineSession) -> String {
    to_string(&json!({
        "session": session.id,
        "ordinal": session.ordinal,
        "events": session.events,
        "entities": session.entities,
        "firstAt": session.first_at,
        "lastAt": session.last_at,
    }))
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
