//! `hub token`: manages the tokens of a hub. Changes the hub's files, whether it runs or not, or sends requests to the
//! hub that the user chose.

use std::process::ExitCode;

use pinion_access::{DEFAULT_LIFETIME, Grant, TokenKind, parse_expiry};
use pinion_hub_client::{TokenManager, TokenRequest};
use serde_json::{Value, json};

use super::caller::{self, Caller, print};
use super::show::table;
use super::{environment, failed, root_dir};
use crate::failure::Failure;
use crate::verb::{Entry, Group, Line, Verb};
use pinion_cli::tables;

pub(super) const GROUP: Group = Group {
    above: "pinion hub",
    command: &tables::hub::TOKEN,
    entries: &[Entry::One(&CREATE), Entry::One(&LIST), Entry::One(&REVOKE)],
};

const CREATE: Verb = Verb::new("pinion hub token", &tables::hub::TOKEN_CREATE, create);

const LIST: Verb = Verb::new("pinion hub token", &tables::hub::TOKEN_LIST, list);

const REVOKE: Verb = Verb::new("pinion hub token", &tables::hub::TOKEN_REVOKE, revoke);

/// Returns the tokens of the hub that the user chose, else those in the files of the local hub.
fn manager(line: &Line) -> Result<TokenManager, Failure> {
    let files = TokenManager::of_files(&root_dir(line)?, line.value("--server"), environment);
    match files.map_err(failed)? {
        Some(files) => Ok(files),
        None => Ok(TokenManager::Hub(Caller::of(line)?.client().clone())),
    }
}

fn create(line: &Line) -> Result<ExitCode, Failure> {
    line.exactly::<0>()?;
    let wrong = |failure: pinion_connect::Failure| line.wrong(&failure.message);
    let kind: TokenKind = match line.value("--kind") {
        None => TokenKind::Hub,
        Some(kind) => kind.parse().map_err(wrong)?,
    };
    let manage = line.has("--manage");
    let grant = Grant::from_words(kind, line.value("--scope"), line.value("--alias"), manage);
    if line.has("--expires") && line.has("--ttl") {
        return Err(line.wrong("--expires and --ttl are the same; give one of them"));
    }
    let lifetime = match line.value("--expires").or(line.value("--ttl")) {
        Some(text) => parse_expiry(text).map_err(wrong)?,
        None => Some(DEFAULT_LIFETIME),
    };
    let request = TokenRequest {
        grant: grant.map_err(wrong)?,
        lifetime,
        label: line.value("--label").unwrap_or_default().to_owned(),
    };
    let manager = manager(line)?;
    let token = caller::wait(async { manager.create(request).await.map_err(failed) })?;
    let text = || {
        let id = text(&token, "id");
        let expires = minute(text(&token, "expires"), "never");
        eprintln!("Token {id}, expires: {expires}. It is shown this once:");
        format!("{}\n", text(&token, "token"))
    };
    print(line, || token.to_string(), text)
}

fn list(line: &Line) -> Result<ExitCode, Failure> {
    line.exactly::<0>()?;
    let manager = manager(line)?;
    let tokens = caller::wait(async { manager.list().await.map_err(failed) })?;
    let rows: Vec<Vec<String>> = tokens.iter().map(row).collect();
    let headings = ["ID", "KIND", "FOR", "MAY", "EXPIRES", "LAST USED", "LABEL"];
    print(
        line,
        || format!("{:#}", json!(tokens)),
        || table(&headings, &rows),
    )
}

fn text<'a>(token: &'a Value, key: &str) -> &'a str {
    token[key].as_str().unwrap_or_default()
}

fn row(token: &Value) -> Vec<String> {
    let kind = text(token, "kind");
    let may = match (kind, token["manage"].as_bool()) {
        ("super", _) => "everything",
        (_, Some(true)) => "call, manage",
        _ => "call",
    };
    let who = match text(token, "alias") {
        "" => text(token, "scope"),
        alias => alias,
    };
    let time = |key: &str, otherwise: &str| minute(text(token, key), otherwise);
    vec![
        text(token, "id").to_owned(),
        kind.to_owned(),
        who.to_owned(),
        may.to_owned(),
        time("expires", "never"),
        time("lastUsed", "-"),
        text(token, "label").to_owned(),
    ]
}

/// Returns an RFC 3339 time to the minute, or `otherwise` if it is empty.
fn minute(time: &str, otherwise: &str) -> String {
    match time {
        "" => otherwise.to_owned(),
        time => time.chars().take(16).collect::<String>().replace('T', " "),
    }
}

fn revoke(line: &Line) -> Result<ExitCode, Failure> {
    let [id] = line.exactly()?;
    let manager = manager(line)?;
    caller::wait(async { manager.revoke(id).await.map_err(failed) })?;
    print(
        line,
        || json!({"revoked": id}).to_string(),
        || format!("Token {id} is revoked.\n"),
    )
}
