//! `turns`: reads the prompts and answers of models in a turns database.

use std::collections::HashSet;
use std::io::Write;
use std::process::ExitCode;

use pinion_history::{
    BlockKind, SavedTurn, Transcript, TurnHeader, TurnQuery, TurnStore, check_turns, moment,
    read_turns,
};
use pinion_jsonl::json::to_string;
use serde_json::json;

use super::databases::{
    Asked, Format, Shape, Stopped, Store, What, beginning, checked, failed, table,
};
use super::out;
use crate::failure::Failure;
use crate::verb::{Entry, Group, Line, Verb};
use pinion_cli::tables;

/// The phase of a turn that is complete.
const FINAL: &str = "final";

const LIST: Verb = Verb::new("pinion turns", &tables::databases::TURNS_LIST, |line| {
    run(What::List, line)
});

const SHOW: Verb = Verb::new("pinion turns", &tables::databases::TURNS_SHOW, |line| {
    run(What::Show, line)
});

const EXPORT: Verb = Verb::new("pinion turns", &tables::databases::TURNS_EXPORT, |line| {
    run(What::Export, line)
});

const CHECK: Verb = Verb::new("pinion turns", &tables::databases::TURNS_CHECK, |line| {
    run(What::Check, line)
});

pub(super) const GROUP: Group = Group {
    above: "pinion",
    command: &tables::databases::TURNS,
    entries: &[
        Entry::One(&LIST),
        Entry::One(&SHOW),
        Entry::One(&EXPORT),
        Entry::One(&CHECK),
    ],
};

fn run(what: What, line: &Line) -> Result<ExitCode, Failure> {
    let asked = Asked::read(Store::Turns, line)?;
    if what == What::Check {
        return checked(check_turns(&asked.choice()));
    }
    let mut store = read_turns(&asked.choice()).map_err(failed)?;
    match what {
        What::List => list(&asked, store.as_mut()),
        What::Show => show(&asked, store.as_mut()),
        What::Export | What::Check => export(&asked, store.as_mut()),
    }
}

fn query(asked: &Asked) -> TurnQuery {
    TurnQuery {
        session: asked.session.clone(),
        phase: asked.phase.clone(),
        limit: asked.limit,
        ..TurnQuery::default()
    }
}

fn list(asked: &Asked, store: &mut dyn TurnStore) -> Result<ExitCode, Failure> {
    let headers = store.headers(&query(asked)).map_err(failed)?;
    if headers.is_empty() {
        eprintln!("No turns here.");
    }
    let mut rows = Vec::new();
    let mut lines = String::new();
    for header in &headers {
        let Some(saved) = store.load(header).map_err(failed)? else {
            continue;
        };
        if asked.shape == Shape::Json {
            lines.push_str(&to_string(&described(&saved)));
            lines.push('\n');
            continue;
        }
        rows.push([
            moment(header.at_ms),
            beginning(&header.session),
            beginning(&header.phase),
            header.blocks.to_string(),
            beginning(last_words(&saved)),
        ]);
    }
    match asked.shape {
        Shape::Json => out(&lines),
        _ => out(&table(
            [
                "saved",
                "session",
                "phase",
                "blocks",
                "last said by the user",
            ],
            rows,
        )),
    }
}

fn last_words(saved: &SavedTurn) -> &str {
    let blocks = saved.turn.blocks.iter().rev();
    let mut users = blocks.filter(|block| block.kind == BlockKind::User);
    users
        .find_map(|block| block.payload_text("text"))
        .unwrap_or_default()
}

/// Returns a turn as JSON, without its blocks.
fn described(saved: &SavedTurn) -> serde_json::Value {
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
fn whole(saved: &SavedTurn) -> serde_json::Value {
    let mut line = described(saved);
    line["blocks"] = json!(saved.turn.blocks.len());
    line["turn"] = saved.turn.to_value();
    line
}

/// Prints the newest turn that matches; a final one unless a phase is named.
fn show(asked: &Asked, store: &mut dyn TurnStore) -> Result<ExitCode, Failure> {
    let wanted = TurnQuery {
        phase: asked.phase.clone().or_else(|| Some(FINAL.to_owned())),
        limit: Some(1),
        ..query(asked)
    };
    let Some(saved) = store.list(&wanted).map_err(failed)?.into_iter().next() else {
        return Err(Failure::failed(format!(
            "Error: there is no {} turn{}; see `pinion turns list`.",
            wanted.phase.as_deref().unwrap_or_default(),
            of_session(asked)
        )));
    };
    match asked.shape {
        Shape::Json => out(&(to_string(&whole(&saved)) + "\n")),
        Shape::Yaml => out(&saved.turn.to_yaml()),
        Shape::Text => out(&Transcript::from(&saved).text()),
    }
}

fn of_session(asked: &Asked) -> String {
    match &asked.session {
        Some(session) => format!(" of session \"{session}\""),
        None => String::new(),
    }
}

/// Exports the newest turn of each session, which holds the messages before it; every turn with `--all`.
fn export(asked: &Asked, store: &mut dyn TurnStore) -> Result<ExitCode, Failure> {
    let wanted = TurnQuery {
        limit: Some(asked.limit.unwrap_or(usize::MAX)),
        phase: match asked.everything {
            true => asked.phase.clone(),
            false => asked.phase.clone().or_else(|| Some(FINAL.to_owned())),
        },
        ..query(asked)
    };
    let mut headers = store.headers(&wanted).map_err(failed)?;
    if !asked.everything {
        let mut seen = HashSet::new();
        headers.retain(|header| seen.insert((header.conversation.clone(), header.session.clone())));
    }
    // Oldest first: a page is read from its beginning.
    headers.reverse();
    if headers.is_empty() {
        eprintln!("No turns to export{}.", of_session(asked));
    }
    let format = asked.format();
    if format == Format::Html && headers.len() > 1 {
        return Err(Failure::usage(format!(
            "Error: a web page holds one turn and there are {}; name one with --session, or use --format markdown or jsonl.",
            headers.len()
        )));
    }
    asked.write(|to| write(to, format, store, &headers))
}

fn write(
    to: &mut dyn Write,
    format: Format,
    store: &mut dyn TurnStore,
    headers: &[TurnHeader],
) -> Result<(), Stopped> {
    for header in headers {
        let Some(saved) = store.load(header)? else {
            continue;
        };
        match format {
            Format::Jsonl => writeln!(to, "{}", to_string(&whole(&saved)))?,
            page => write!(to, "{}", Asked::page(page, &Transcript::from(&saved)))?,
        }
    }
    Ok(())
}
