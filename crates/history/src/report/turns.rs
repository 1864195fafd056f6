//! Reports of turns.

use std::collections::HashSet;
use std::io::Write;

use pinion_jsonl::json::to_string;
use serde_json::{Value, json};

use super::{ExportForm, ListForm, ReportError, ShowForm, beginning, table};
use crate::{BlockKind, SavedTurn, Transcript, TurnHeader, TurnQuery, TurnStore, moment};

/// The phase of a turn that is complete.
const FINAL: &str = "final";

/// The turns of a report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TurnSelection {
    pub session: Option<String>,
    /// The phase; without one, lists contain every phase and other reports only final turns.
    pub phase: Option<String>,
    pub limit: Option<usize>,
    /// An export contains every turn, not only the newest of each session.
    pub all: bool,
}

impl TurnSelection {
    fn query(&self) -> TurnQuery {
        TurnQuery {
            session: self.session.clone(),
            phase: self.phase.clone(),
            limit: self.limit,
            ..TurnQuery::default()
        }
    }

    fn final_unless_named(&self) -> Option<String> {
        self.phase.clone().or_else(|| Some(FINAL.to_owned()))
    }

    /// Returns the words that name the session after "turns".
    pub fn of_session(&self) -> String {
        match &self.session {
            Some(session) => format!(" of session \"{session}\""),
            None => String::new(),
        }
    }
}

/// Writes one row for each turn, the newest first; returns the number of rows.
pub fn list_turns(
    store: &mut dyn TurnStore,
    selection: &TurnSelection,
    form: ListForm,
    to: &mut dyn Write,
) -> Result<usize, ReportError> {
    let headers = store.headers(&selection.query())?;
    let mut rows = Vec::new();
    let mut lines = String::new();
    for header in &headers {
        let Some(saved) = store.load(header)? else {
            continue;
        };
        if form == ListForm::Json {
            lines.push_str(&to_string(&described(&saved)));
            lines.push('\n');
            continue;
        }
        rows.push([
            moment(header.at_ms),
            beginning(&header.session),
            beginning(&header.phase),
            header.blocks.to_string(),
            beginning(last_prompt(&saved)),
        ]);
    }
    let heading = [
        "saved",
        "session",
        "phase",
        "blocks",
        "last said by the user",
    ];
    lines.push_str(&table(form, heading, rows));
    to.write_all(lines.as_bytes())?;
    Ok(headers.len())
}

/// Writes the newest turn that matches.
pub fn show_turn(
    store: &mut dyn TurnStore,
    selection: &TurnSelection,
    form: ShowForm,
    to: &mut dyn Write,
) -> Result<(), ReportError> {
    let query = TurnQuery {
        phase: selection.final_unless_named(),
        limit: Some(1),
        ..selection.query()
    };
    let Some(saved) = store.list(&query)?.into_iter().next() else {
        return Err(ReportError::Missing(format!(
            "there is no {} turn{}; see `pinion turns list`.",
            query.phase.as_deref().unwrap_or_default(),
            selection.of_session()
        )));
    };
    let text = match form {
        ShowForm::Json => to_string(&whole(&saved)) + "\n",
        ShowForm::Yaml => saved.turn.to_yaml(),
        ShowForm::Text => Transcript::from(&saved).text(),
    };
    Ok(to.write_all(text.as_bytes())?)
}

/// Turns to export: the newest of each session, which holds the messages before it, or every turn.
#[derive(Debug)]
pub struct TurnExport {
    form: ExportForm,
    /// The oldest first: a page is read from its beginning.
    headers: Vec<TurnHeader>,
}

impl TurnExport {
    /// Selects the turns. Fails if the form holds one turn and there are more.
    pub fn select(
        store: &mut dyn TurnStore,
        selection: &TurnSelection,
        form: ExportForm,
    ) -> Result<Self, ReportError> {
        let query = TurnQuery {
            limit: Some(selection.limit.unwrap_or(usize::MAX)),
            phase: if selection.all {
                selection.phase.clone()
            } else {
                selection.final_unless_named()
            },
            ..selection.query()
        };
        let mut headers = store.headers(&query)?;
        if !selection.all {
            let mut seen = HashSet::new();
            headers.retain(|header| {
                seen.insert((header.conversation.clone(), header.session.clone()))
            });
        }
        headers.reverse();
        if form == ExportForm::Html && headers.len() > 1 {
            return Err(ReportError::Ambiguous(format!(
                "a web page holds one turn and there are {}; name one with --session, or use --format markdown or jsonl.",
                headers.len()
            )));
        }
        Ok(Self { form, headers })
    }

    pub fn is_empty(&self) -> bool {
        self.headers.is_empty()
    }

    /// Writes the turns, except those that were replaced since they were selected.
    pub fn write(&self, store: &mut dyn TurnStore, to: &mut dyn Write) -> Result<(), ReportError> {
        for header in &self.headers {
            let Some(saved) = store.load(header)? else {
                continue;
            };
            match self.form {
                ExportForm::Jsonl => writeln!(to, "{}", to_string(&whole(&saved)))?,
                form => write!(to, "{}", form.page(&Transcript::from(&saved)))?,
            }
        }
        Ok(())
    }
}

fn last_prompt(saved: &SavedTurn) -> &str {
    let blocks = saved.turn.blocks.iter().rev();
    let mut users = blocks.filter(|block| block.kind == BlockKind::User);
    users
        .find_map(|block| block.payload_text("text"))
        .unwrap_or_default()
}

/// Returns a turn as JSON, without its blocks.
fn described(saved: &SavedTurn) -> Value {
    json!({
        "conversation": saved.conversation,
        "session": saved.session,
        "turnId": saved.turn.id,
        "phase": saved.phase,
        "savedAt": moment(saved.at_ms),
        "savedAtMs": saved.at_ms,
        "runtimeKey": saved.runtime_key,
        "inferenceId": saved.inference_id,
        "blocks": saved.turn.blocks.len(),
    })
}

/// Returns a turn as JSON, with its blocks.
fn whole(saved: &SavedTurn) -> Value {
    let mut line = described(saved);
    line["turn"] = saved.turn.to_value();
    line
}
