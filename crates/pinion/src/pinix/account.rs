//! `pinix login`, `logout`, `whoami`: the user's account at the service that issues tokens for hubs, or at a
//! registry.
//!
//! A login stores its token where calls read it: tokens for hubs in `client.json`, those for registries in
//! `credentials.json`.

use std::process::ExitCode;

use pinion_access::client::Credentials;
use pinion_clip::registry::{Accounts, Address, Login};
use pinion_hub_client::{remove_registry_login, store_registry_login};

use super::registry::{named_registry, registry_address};
use crate::commands::out;
use crate::failure::Failure;
use crate::hub::ask::{Answer, given_or_asked};
use crate::hub::login::{at, logout, not_logged_in, store, whoami, with_token};
use crate::hub::{caller, environment, root_dir};
use crate::verb::{Line, Verb};
use pinion_cli::tables;
use pinion_text::harmless_line;

/// The variable with the address of the account service.
const SERVICE_VARIABLE: &str = "PINIX_AUTH_SERVER";

pub(super) const LOGIN: Verb = Verb::new("pinix", &tables::pinix::LOGIN, login);
pub(super) const LOGOUT: Verb = Verb::new("pinix", &tables::pinix::LOGOUT, logout);
pub(super) const WHOAMI: Verb = Verb::new("pinix", &tables::pinix::WHOAMI, whoami);
pub(super) const HUB_LOGIN: Verb = Verb::new("pinix hub", &tables::pinix::HUB_LOGIN, hub_login);
pub(super) const HUB_LOGOUT: Verb = Verb::new("pinix hub", &tables::pinix::HUB_LOGOUT, logout);
pub(super) const HUB_WHOAMI: Verb = Verb::new("pinix hub", &tables::pinix::HUB_WHOAMI, whoami);
pub(super) const REGISTER: Verb = Verb::new("pinix registry", &tables::pinix::REGISTER, register);
pub(super) const REGISTRY_LOGIN: Verb = Verb::new(
    "pinix registry",
    &tables::pinix::REGISTRY_LOGIN,
    registry_login,
);
pub(super) const REGISTRY_LOGOUT: Verb = Verb::new(
    "pinix registry",
    &tables::pinix::REGISTRY_LOGOUT,
    registry_logout,
);
pub(super) const REGISTRY_WHOAMI: Verb = Verb::new(
    "pinix registry",
    &tables::pinix::REGISTRY_WHOAMI,
    registry_whoami,
);

fn login(line: &Line) -> Result<ExitCode, Failure> {
    line.exactly::<0>()?;
    let service = service(line)?;
    let login = match (line.value("--token"), service) {
        (Some(token), service) => {
            let mut login = with_token(token, service.as_ref())?;
            // A hub's own token is valid only at that hub; one that a service signed may be valid at any.
            if line.has("--server") && !token.contains('.') {
                login.hub = service.map(|hub| hub.to_string());
            }
            login
        }
        (None, Some(service)) => {
            let accounts = Accounts::at(&service, None)?;
            caller::wait(confirmed(&accounts))?
        }
        (None, None) => {
            return Err(Failure::failed("log in where?").hint(format!(
                "Name the service with --server or {SERVICE_VARIABLE}, or give a token with --token."
            )));
        }
    };
    store(line, &login)
}

/// Returns the service of `--server` or the environment, if one is named.
fn service(line: &Line) -> Result<Option<Address>, Failure> {
    let named = line.value("--server").map(str::to_owned);
    let named = named.or_else(|| environment(SERVICE_VARIABLE));
    let named = named.filter(|named| !named.trim().is_empty());
    Ok(named.map(|named| named.parse()).transpose()?)
}

/// Prints the page on which to confirm, and waits for the confirmation.
async fn confirmed(accounts: &Accounts) -> Result<Login, Failure> {
    let device_code = accounts.device_code().await?;
    eprintln!(
        "Open this page to log in: {}",
        harmless_line(&device_code.page)
    );
    if !device_code.code.is_empty() {
        eprintln!("It shows the code {}.", harmless_line(&device_code.code));
    }
    let login = accounts.wait_for_confirmation(&device_code).await?;
    login.ok_or_else(|| {
        Failure::failed("the login was not confirmed in time.").hint("Run `pinix login` again.")
    })
}

fn hub_login(line: &Line) -> Result<ExitCode, Failure> {
    let (_, login) = with_password(line)?;
    store(line, &login)
}

/// Logs in at a registry with a name and a password.
fn with_password(line: &Line) -> Result<(String, Login), Failure> {
    line.exactly::<0>()?;
    let (named, address) = registry_address(line)?;
    let accounts = Accounts::at(&address, None)?;
    let username = username(line)?;
    let password = password(line)?;
    let mut login = caller::wait(async { Ok(accounts.log_in(&username, &password).await?) })?;
    if login.username.is_empty() {
        login.username = username;
    }
    Ok((named, login))
}

fn username(line: &Line) -> Result<String, Failure> {
    let given = line.value("--username");
    given_or_asked(given, "username", "--username", Answer::Shown)
}

fn password(line: &Line) -> Result<String, Failure> {
    let given = line.value("--password");
    given_or_asked(given, "password", "--password", Answer::Hidden)
}

fn register(line: &Line) -> Result<ExitCode, Failure> {
    line.exactly::<0>()?;
    let (named, address) = registry_address(line)?;
    let accounts = Accounts::at(&address, None)?;
    let username = username(line)?;
    let email = given_or_asked(line.value("--email"), "email", "--email", Answer::Shown)?;
    let password = password(line)?;
    let login = caller::wait(async { Ok(accounts.register(&username, &email, &password).await?) })?;
    match login {
        Some(login) => store_at_registry(line, &named, &login, &username),
        None => out(&format!(
            "The account {} is made. Log in with `pinix registry login`.\n",
            at(&username)
        )),
    }
}

fn registry_login(line: &Line) -> Result<ExitCode, Failure> {
    let (named, login) = with_password(line)?;
    store_at_registry(line, &named, &login, &login.username)
}

fn store_at_registry(
    line: &Line,
    registry: &str,
    login: &Login,
    username: &str,
) -> Result<ExitCode, Failure> {
    let root = root_dir(line)?;
    store_registry_login(&root, registry, login, username)?;
    out(&format!("Logged in as {} at {registry}.\n", at(username)))
}

fn registry_logout(line: &Line) -> Result<ExitCode, Failure> {
    line.exactly::<0>()?;
    let registry = named_registry(line)?;
    let was_logged_in = remove_registry_login(&root_dir(line)?, &registry)?;
    out(&if was_logged_in {
        format!("Logged out at {registry}.\n")
    } else {
        format!("You were not logged in at {registry}.\n")
    })
}

fn registry_whoami(line: &Line) -> Result<ExitCode, Failure> {
    line.exactly::<0>()?;
    let (named, address) = registry_address(line)?;
    let known = Credentials::load(&root_dir(line)?)?;
    let Some(known) = known.get(&named) else {
        return Err(not_logged_in("pinix registry login"));
    };
    let token = pinion_clip::Token::new(known.token.reveal());
    let accounts = Accounts::at(&address, Some(token))?;
    let name = caller::wait(async { Ok(accounts.name().await?) })?;
    out(&format!("{}\n", at(&name)))
}
