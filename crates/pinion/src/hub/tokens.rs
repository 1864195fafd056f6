//! `hub token`: who may call the hub. Works on the hub's files, whether it runs or not.

use std::process::ExitCode;

use jiff::Timestamp;
use pinion_access::{Grant, Kind, Minted, NewToken, Record, TokenId, TokenStore, parse_lifetime};
use serde_json::json;

use super::caller::Shape;
use super::show::table;
use super::{failed, help, place};
use crate::commands::out;
use crate::failure::Failure;
use crate::verb::{Flag, Group, Line, Verb};

const PLACE: &[Flag] = &[Flag::valued("--root"), Flag::bare("--json")];

const GROUP: Group = Group {
    name: "hub token",
    help: help::TOKEN,
    verbs: &[&CREATE, &LIST, &REVOKE],
    otherwise: None,
};

pub(super) const VERB: Verb = Verb {
    name: "hub token",
    flags: &[],
    raw_after: 0,
    help: help::TOKEN,
    run: |line| GROUP.run(&line.raw),
};

const CREATE: Verb = Verb {
    name: "hub token create",
    flags: &[
        PLACE,
        &[
            Flag::valued("--kind"),
            Flag::valued("--scope"),
            Flag::valued("--alias"),
            Flag::bare("--manage"),
            Flag::valued("--ttl"),
            Flag::valued("--label"),
        ],
    ],
    raw_after: usize::MAX,
    help: help::TOKEN_CREATE,
    run: create,
};

const LIST: Verb = Verb {
    name: "hub token list",
    flags: &[PLACE],
    raw_after: usize::MAX,
    help: help::TOKEN_LIST,
    run: list,
};

const REVOKE: Verb = Verb {
    name: "hub token revoke",
    flags: &[PLACE],
    raw_after: usize::MAX,
    help: help::TOKEN_REVOKE,
    run: revoke,
};

fn store(line: &Line) -> Result<TokenStore, Failure> {
    let root = place::root(line)?;
    if !root.is_dir() {
        return Err(Failure::failed(format!(
            "Error: there is no hub in {}. `pinion hub serve` makes one; --root names another place.",
            root.display()
        )));
    }
    TokenStore::open(&root).map_err(failed)
}

fn create(line: &Line) -> Result<ExitCode, Failure> {
    line.exactly::<0>()?;
    let kind: Kind = match line.value("--kind") {
        None => Kind::Hub,
        Some(kind) => kind
            .parse()
            .map_err(|failure: pinion_connect::Failure| line.wrong(&failure.message))?,
    };
    let manage = line.has("--manage");
    let grant = Grant::from_words(kind, line.value("--scope"), line.value("--alias"), manage);
    let grant = grant.map_err(|failure| line.wrong(&failure.message))?;
    let mut new = NewToken::new(grant);
    if let Some(ttl) = line.value("--ttl") {
        let lifetime = parse_lifetime(ttl).map_err(|failure| line.wrong(&failure.message))?;
        new = new.lasting(lifetime);
    }
    if let Some(label) = line.value("--label") {
        new = new.labelled(label);
    }
    let Minted { token, record } = store(line)?.mint(new).map_err(failed)?;
    match Shape::of(line) {
        Shape::Json => {
            let mut told = json!(record);
            told["token"] = token.reveal().into();
            out(&format!("{told}\n"))
        }
        Shape::Table => {
            eprintln!("Token {}. It is shown this once:", record.id);
            out(&format!("{}\n", token.reveal()))
        }
    }
}

fn list(line: &Line) -> Result<ExitCode, Failure> {
    line.exactly::<0>()?;
    let records = store(line)?.list().map_err(failed)?;
    if Shape::of(line) == Shape::Json {
        return out(&format!("{:#}\n", json!(records)));
    }
    let rows: Vec<Vec<String>> = records.iter().map(row).collect();
    let headings = ["ID", "KIND", "FOR", "MAY", "EXPIRES", "LAST USED", "LABEL"];
    out(&table(&headings, &rows))
}

fn row(record: &Record) -> Vec<String> {
    let (who, may) = match &record.grant {
        Grant::Super => (String::new(), "everything"),
        Grant::Hub {
            scope,
            manage: true,
        } => (scope.to_string(), "call, manage"),
        Grant::Hub { scope, .. } => (scope.to_string(), "call"),
        Grant::Clip { alias, .. } => (alias.clone(), "call"),
    };
    let time = |millis: Option<i64>, otherwise: &str| match millis.map(Timestamp::from_millisecond)
    {
        Some(Ok(time)) => time.strftime("%Y-%m-%d %H:%M").to_string(),
        _ => otherwise.to_owned(),
    };
    vec![
        record.id.to_string(),
        record.kind().to_string(),
        who,
        may.to_owned(),
        time(record.expires, "never"),
        time(record.last_used, "-"),
        record.label.clone(),
    ]
}

fn revoke(line: &Line) -> Result<ExitCode, Failure> {
    let [id] = line.exactly()?;
    let record = store(line)?.revoke(&TokenId::from(id));
    let record = record.map_err(failed)?;
    match Shape::of(line) {
        Shape::Json => out(&format!("{}\n", json!(record))),
        Shape::Table => out(&format!("Token {} is revoked.\n", record.id)),
    }
}
