//! `pinix login`, `logout`, `whoami`: the user's account at the service that issues tokens for hubs, or at a
//! registry.
//!
//! A login stores its token where calls read it: tokens for hubs in `client.json`, those for registries in
//! `credentials.json`.

use std::process::ExitCode;

use pinion_access::Token;
use pinion_access::client::{Credential, Credentials};
use pinion_clip::registry::{Accounts, Address, Confirmation, DeviceCode, Login};
use pinion_status::Code;
use pinion_text::harmless_line;
use tokio::time::Instant;

use super::registry::{named_registry, registry_address};
use crate::commands::out;
use crate::failure::Failure;
use crate::hub::ask::{Answer, given_or_asked};
use crate::hub::login::{at, keep, logout, nobody, whoami, with_token};
use crate::hub::{caller, failed, place};
use crate::verb::{Line, Verb};
use pinion_cli::tables;

/// The variable with the address of the account service.
const SERVICE_VARIABLE: &str = "PINIX_AUTH_SERVER";

const LOGIN: Verb = Verb::new("pinix", &tables::pinix::LOGIN, login);
const LOGOUT: Verb = Verb::new("pinix", &tables::pinix::LOGOUT, logout);
const WHOAMI: Verb = Verb::new("pinix", &tables::pinix::WHOAMI, whoami);
const HUB_LOGIN: Verb = Verb::new("pinix hub", &tables::pinix::HUB_LOGIN, hub_login);
const HUB_LOGOUT: Verb = Verb::new("pinix hub", &tables::pinix::HUB_LOGOUT, logout);
const HUB_WHOAMI: Verb = Verb::new("pinix hub", &tables::pinix::HUB_WHOAMI, whoami);
const REGISTER: Verb = Verb::new("pinix registry", &tables::pinix::REGISTER, register);
const REGISTRY_LOGIN: Verb = Verb::new(
    "pinix registry",
    &tables::pinix::REGISTRY_LOGIN,
    registry_login,
);
const REGISTRY_LOGOUT: Verb = Verb::new(
    "pinix registry",
    &tables::pinix::REGISTRY_LOGOUT,
    registry_logout,
);
const REGISTRY_WHOAMI: Verb = Verb::new(
    "pinix registry",
    &tables::pinix::REGISTRY_WHOAMI,
    registry_whoami,
);

/// Runs `login`, `logout` or `whoami` for hubs.
pub(super) fn run(arguments: &[String]) -> Option<Result<ExitCode, Failure>> {
    pick(arguments, &[&LOGIN, &LOGOUT, &WHOAMI])
}

/// Runs the verbs after `hub`.
pub(super) fn run_hub(arguments: &[String]) -> Option<Result<ExitCode, Failure>> {
    pick(arguments, &[&HUB_LOGIN, &HUB_LOGOUT, &HUB_WHOAMI])
}

/// Runs the verbs after `registry`.
pub(super) fn run_registry(arguments: &[String]) -> Option<Result<ExitCode, Failure>> {
    const VERBS: &[&Verb] = &[
        &REGISTER,
        &REGISTRY_LOGIN,
        &REGISTRY_LOGOUT,
        &REGISTRY_WHOAMI,
    ];
    pick(arguments, VERBS)
}

fn pick(arguments: &[String], verbs: &[&'static Verb]) -> Option<Result<ExitCode, Failure>> {
    let (word, rest) = arguments.split_first()?;
    let verb = verbs.iter().find(|verb| verb.command.name == word)?;
    Some(verb.run(rest))
}

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
            let accounts = Accounts::at(&service, None).map_err(failed)?;
            caller::wait(confirmed(&accounts))?
        }
        (None, None) => {
            return Err(Failure::failed(format!(
                "Error: log in where? Name the service with --server or {SERVICE_VARIABLE}, or give a token with --token."
            )));
        }
    };
    keep(line, login)
}

/// Returns the service of `--server` or the environment, if one is named.
fn service(line: &Line) -> Result<Option<Address>, Failure> {
    let set = std::env::var(SERVICE_VARIABLE).ok();
    let named = line.value("--server").map(str::to_owned).or(set);
    let named = named.filter(|named| !named.trim().is_empty());
    named.map(|named| named.parse().map_err(failed)).transpose()
}

/// Prints the page on which to confirm, and waits for the confirmation.
async fn confirmed(accounts: &Accounts) -> Result<Login, Failure> {
    let device_code = accounts.device_code().await.map_err(failed)?;
    eprintln!(
        "Open this page to log in: {}",
        harmless_line(&device_code.page)
    );
    if !device_code.code.is_empty() {
        eprintln!("It shows the code {}.", harmless_line(&device_code.code));
    }
    let DeviceCode {
        interval,
        expires_in,
        ..
    } = device_code;
    let end = Instant::now() + expires_in;
    while Instant::now() + interval <= end {
        tokio::time::sleep(interval).await;
        match accounts.confirmation(&device_code).await {
            Ok(Confirmation::Pending) => {}
            Ok(Confirmation::Confirmed(login)) => return Ok(login),
            Ok(Confirmation::Expired) => break,
            // The service may be back before the code expires.
            Err(error) if error.code == Code::Unavailable => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Err(Failure::failed(
        "Error: nobody has confirmed it in time. Run `pinix login` again.",
    ))
}

fn hub_login(line: &Line) -> Result<ExitCode, Failure> {
    let (_, login) = with_password(line)?;
    keep(line, login)
}

/// Logs in at a registry with a name and a password.
fn with_password(line: &Line) -> Result<(String, Login), Failure> {
    line.exactly::<0>()?;
    let (named, address) = registry_address(line)?;
    let accounts = Accounts::at(&address, None).map_err(failed)?;
    let username = username(line)?;
    let password = password(line)?;
    let mut login =
        caller::wait(async { accounts.log_in(&username, &password).await.map_err(failed) })?;
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
    let accounts = Accounts::at(&address, None).map_err(failed)?;
    let username = username(line)?;
    let email = given_or_asked(line.value("--email"), "email", "--email", Answer::Shown)?;
    let password = password(line)?;
    let login = caller::wait(async {
        let made = accounts.register(&username, &email, &password).await;
        made.map_err(failed)
    })?;
    match login {
        Some(login) => keep_at_registry(line, &named, login, &username),
        None => out(&format!(
            "The account {} is made. Log in with `pinix registry login`.\n",
            at(&username)
        )),
    }
}

fn registry_login(line: &Line) -> Result<ExitCode, Failure> {
    let (named, login) = with_password(line)?;
    let username = login.username.clone();
    keep_at_registry(line, &named, login, &username)
}

fn keep_at_registry(
    line: &Line,
    registry: &str,
    login: Login,
    username: &str,
) -> Result<ExitCode, Failure> {
    let root = place::root(line)?;
    std::fs::create_dir_all(&root)?;
    let token = Token::given(login.token.reveal())
        .ok_or_else(|| Failure::failed("Error: the registry gave an empty token."))?;
    let username = username.to_owned();
    let said = format!("Logged in as {} at {registry}.\n", at(&username));
    let credential = Credential { token, username };
    Credentials::set(&root, registry, Some(credential)).map_err(failed)?;
    out(&said)
}

fn registry_logout(line: &Line) -> Result<ExitCode, Failure> {
    line.exactly::<0>()?;
    let root = place::root(line)?;
    let registry = named_registry(line)?;
    if Credentials::load(&root)
        .map_err(failed)?
        .get(&registry)
        .is_none()
    {
        return out(&format!("Nobody was logged in at {registry}.\n"));
    }
    Credentials::set(&root, &registry, None).map_err(failed)?;
    out(&format!("Logged out at {registry}.\n"))
}

fn registry_whoami(line: &Line) -> Result<ExitCode, Failure> {
    line.exactly::<0>()?;
    let (named, address) = registry_address(line)?;
    let known = Credentials::load(&place::root(line)?).map_err(failed)?;
    let Some(known) = known.get(&named) else {
        return Err(nobody("pinix registry login"));
    };
    let token = pinion_clip::Token::new(known.token.reveal());
    let accounts = Accounts::at(&address, Some(token)).map_err(failed)?;
    let name = caller::wait(async { accounts.name().await.map_err(failed) })?;
    out(&format!("{}\n", at(&name)))
}
