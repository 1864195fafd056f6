//! `hub login`, `logout`, `whoami`: store, remove and show the token and the hub that later commands use.
//!
//! `pinix login` also stores its token here.

use std::process::ExitCode;

use pinion_access::Token;
use pinion_access::client::{ClientConfig, User};
use pinion_clip::registry::{Accounts, Address, Login};
use pinion_connect::Code;
use pinion_text::harmless_line;

use super::ask::{Answer, given_or_asked};
use super::{caller, failed, place};
use crate::commands::out;
use crate::failure::Failure;
use crate::verb::{Line, Verb};
use pinion_cli::tables;

pub(super) const LOGIN: Verb = Verb::new("pinion hub", &tables::hub::LOGIN, login);

pub(super) const LOGOUT: Verb = Verb::new("pinion hub", &tables::hub::LOGOUT, logout);

pub(super) const WHOAMI: Verb = Verb::new("pinion hub", &tables::hub::WHOAMI, whoami);

fn login(line: &Line) -> Result<ExitCode, Failure> {
    line.exactly::<0>()?;
    let root = place::root(line)?;
    let hub = caller::pointed_at(line.value("--server"), &root)?.ok_or_else(|| {
        line.wrong("hub login needs the address of the hub, as in --server https://hub.example.org")
    })?;
    let address: Address = hub.parse().map_err(failed)?;
    let token = given_or_asked(line.value("--token"), "token", "--token", Answer::Hidden)?;
    let mut login = with_token(&token, Some(&address))?;
    login.hub = Some(hub);
    keep(line, login)
}

/// Creates a login with an existing token. The service or hub, if given, provides the user's name.
pub(crate) fn with_token(token: &str, service: Option<&Address>) -> Result<Login, Failure> {
    let token = pinion_clip::Token::new(token.trim());
    let username = match service {
        Some(service) => {
            let accounts = Accounts::at(service, Some(token.clone())).map_err(failed)?;
            caller::wait(async {
                accounts
                    .name()
                    .await
                    .map_err(|error| refused(service, error))
            })?
        }
        None => String::new(),
    };
    Ok(Login {
        token,
        username,
        scope: None,
        hub: None,
    })
}

fn refused(service: &Address, error: pinion_clip::ClipError) -> Failure {
    match error.code {
        Code::Unauthenticated => Failure::failed(format!(
            "Error: {service} does not accept this token ({}). It may be mistyped, expired or revoked; \
             the owner of the hub makes another with `pinion hub token create`.",
            error.message
        )),
        _ => failed(error),
    }
}

/// Stores a login in `client.json`.
pub(crate) fn keep(line: &Line, login: Login) -> Result<ExitCode, Failure> {
    let root = place::root(line)?;
    std::fs::create_dir_all(&root)?;
    let token = Token::given(login.token.reveal())
        .ok_or_else(|| Failure::failed("Error: the token is empty."))?;
    let Login {
        username,
        scope,
        hub,
        ..
    } = login;
    let scope = scope.and_then(|scope| scope.parse().ok());
    let user = (!username.is_empty()).then(|| User {
        username: username.clone(),
        scope,
    });
    let kept = ClientConfig::update(&root, |config| {
        config.hub_token = Some(token);
        config.user = user;
        if let Some(hub) = hub {
            config.hub = Some(hub);
        }
    });
    kept.map_err(failed)?;
    match username.as_str() {
        "" => out("The token is kept. Nobody was asked whose it is.\n"),
        name => out(&format!("Logged in as {}.\n", at(name))),
    }
}

pub(crate) fn logout(line: &Line) -> Result<ExitCode, Failure> {
    line.exactly::<0>()?;
    let root = place::root(line)?;
    if !root.exists() {
        return out("Nobody was logged in.\n");
    }
    let mut was_there = false;
    let forgotten = ClientConfig::update(&root, |config| {
        was_there = config.hub_token.take().is_some();
        config.user = None;
    });
    forgotten.map_err(failed)?;
    out(if was_there {
        "Logged out.\n"
    } else {
        "Nobody was logged in.\n"
    })
}

pub(crate) fn whoami(line: &Line) -> Result<ExitCode, Failure> {
    line.exactly::<0>()?;
    let config = ClientConfig::load(&place::root(line)?).map_err(failed)?;
    match (config.hub_token, config.user) {
        (Some(_), Some(user)) => out(&format!("{}\n", at(&user.username))),
        (Some(_), None) => Err(Failure::failed(
            "Error: there is a token, but it is not known whose. `pinion hub login --token` with --server asks.",
        )),
        (None, _) => Err(nobody("pinion hub login")),
    }
}

/// Returns the failure of a command that requires a login; `command` is the one that logs in.
pub(crate) fn nobody(command: &str) -> Failure {
    Failure::failed(format!(
        "Error: nobody is logged in. `{command}` does that."
    ))
}

/// Returns a user's name with one `@` before it, safe to print.
pub(crate) fn at(name: &str) -> String {
    format!("@{}", harmless_line(name.trim_start_matches('@')))
}
