//! `hub login`, `logout`, `whoami`: store, remove and show the token and the hub that later commands use.
//!
//! `pinix login` also stores its token here.

use std::process::ExitCode;

use pinion_access::client::{ClientConfig, chosen_hub};
use pinion_clip::registry::{Address, Login};
use pinion_hub_client::{log_in_with_token, remove_login, store_login};

use super::ask::{Answer, given_or_asked};
use super::{caller, environment, root_dir};
use crate::commands::out;
use crate::failure::Failure;
use crate::verb::{Line, Verb};
use pinion_cli::tables;
use pinion_text::harmless_line;

pub(super) const LOGIN: Verb = Verb::new("pinion hub", &tables::hub::LOGIN, login);

pub(super) const LOGOUT: Verb = Verb::new("pinion hub", &tables::hub::LOGOUT, logout);

pub(super) const WHOAMI: Verb = Verb::new("pinion hub", &tables::hub::WHOAMI, whoami);

fn login(line: &Line) -> Result<ExitCode, Failure> {
    line.exactly::<0>()?;
    let root = root_dir(line)?;
    let hub = chosen_hub(&root, line.value("--server"), environment)?;
    let hub = hub.ok_or_else(|| {
        line.wrong("hub login needs the address of the hub, as in --server https://hub.example.org")
    })?;
    let address: Address = hub.parse()?;
    let token = given_or_asked(line.value("--token"), "token", "--token", Answer::Hidden)?;
    let mut login = with_token(&token, Some(&address))?;
    login.hub = Some(hub);
    store(line, &login)
}

/// Creates a login with an existing token. The service or hub, if given, provides the user's name.
pub(crate) fn with_token(token: &str, service: Option<&Address>) -> Result<Login, Failure> {
    caller::wait(async { Ok(log_in_with_token(token, service).await?) })
}

/// Stores a login in `client.json`.
pub(crate) fn store(line: &Line, login: &Login) -> Result<ExitCode, Failure> {
    store_login(&root_dir(line)?, login)?;
    match login.username.as_str() {
        "" => out("The token is stored. Its user is unknown.\n"),
        name => out(&format!("Logged in as {}.\n", at(name))),
    }
}

pub(crate) fn logout(line: &Line) -> Result<ExitCode, Failure> {
    line.exactly::<0>()?;
    let was_logged_in = remove_login(&root_dir(line)?)?;
    out(if was_logged_in {
        "Logged out.\n"
    } else {
        "You were not logged in.\n"
    })
}

pub(crate) fn whoami(line: &Line) -> Result<ExitCode, Failure> {
    line.exactly::<0>()?;
    let config = ClientConfig::load(&root_dir(line)?)?;
    match (config.hub_token, config.user) {
        (Some(_), Some(user)) => out(&format!("{}\n", at(&user.username))),
        (Some(_), None) => Err(
            Failure::failed("there is a token, but its user is unknown.")
                .hint("`pinion hub login --token` with --server asks the hub."),
        ),
        (None, _) => Err(not_logged_in("pinion hub login")),
    }
}

/// Returns the failure of a command that requires a login; `command` is the one that logs in.
pub(crate) fn not_logged_in(command: &str) -> Failure {
    Failure::failed("you are not logged in.").hint(format!("Run `{command}`."))
}

/// Returns a user's name with one `@` before it, safe to print.
pub(crate) fn at(name: &str) -> String {
    format!("@{}", harmless_line(name.trim_start_matches('@')))
}
