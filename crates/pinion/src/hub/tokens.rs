//! `hub token`: manages the tokens of a hub. Changes the hub's files, whether it runs or not, or sends requests to the
//! hub that the user chose.

use std::process::ExitCode;

use pinion_access::{DEFAULT_LIFETIME, Grant, TokenKind, parse_expiry};
use pinion_hub_client::{TOKEN_HEADINGS, TokenManager, TokenRequest, minute, token_row};
use serde_json::{Value, json};

use super::caller::{self, Caller, print};
use super::show::table;
use super::{environment, root_dir};
use crate::failure::Failure;
use crate::verb::{Entry, Group, Line, Verb};
use pinion_cli::tables;

pub(super) const GROUP: Group = Group {
    above: "pinion hub",
    command: &tables::hub::TOKEN,
    entries: &[Entry::One(&CREATE), Entry::One(&LIST), Entry::One(&REVOKE)],
    takes_words: false,
};

const CREATE: Verb = Verb::new("pinion hub token", &tables::hub::TOKEN_CREATE, create);

const LIST: Verb = Verb::new("pinion hub token", &tables::hub::TOKEN_LIST, list);

const REVOKE: Verb = Verb::new("pinion hub token", &tables::hub::TOKEN_REVOKE, revoke);

/// Returns the tokens of the hub that the user chose, else those in the files of the local hub.
fn manager(line: &Line) -> Result<TokenManager, Failure> {
    match TokenManager::of_files(&root_dir(line)?, line.value("--server"), environment)? {
        Some(files) => Ok(files),
        None => Ok(TokenManager::Hub(Caller::of(line)?.client().clone())),
    }
}

fn create(line: &Line) -> Result<ExitCode, Failure> {
    line.exactly::<0>()?;
    let wrong = |failure: pinion_connect::Failure| line.wrong(failure);
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
    let token = caller::wait(async { Ok(manager.create(request).await?) })?;
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
    let tokens = caller::wait(async { Ok(manager.list().await?) })?;
    let rows: Vec<Vec<String>> = tokens.iter().map(token_row).collect();
    print(
        line,
        || format!("{:#}", json!(tokens)),
        || table(&TOKEN_HEADINGS, &rows),
    )
}

fn text<'a>(token: &'a Value, key: &str) -> &'a str {
    token[key].as_str().unwrap_or_default()
}

fn revoke(line: &Line) -> Result<ExitCode, Failure> {
    let [id] = line.exactly()?;
    let manager = manager(line)?;
    caller::wait(async { Ok(manager.revoke(id).await?) })?;
    print(
        line,
        || json!({"revoked": id}).to_string(),
        || format!("Token {id} is revoked.\n"),
    )
}
