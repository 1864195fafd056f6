//! `login`, `logout` and `auth list`: logins and keys of model providers in `auth.json`.

use std::io::{BufRead, IsTerminal, Write};
use std::process::ExitCode;

use futures_util::future::BoxFuture;
use pinion_cli::tables;
use pinion_config::{Dirs, update_json_file};
use pinion_llm::{Account, AccountSignIn, Providers, Registry, RegistryOptions, SignInWay};
use pinion_logins::{Choice, LoginConversation, LoginError, LoginMessage, LoginQuestion};
use pinion_message::now_millis;
use pinion_text::{columns, harmless_line, nearest};
use pinion_tui::HiddenInput;
use serde_json::json;

use super::out;
use crate::failure::Failure;
use crate::verb::{Line, Verb};

pub(super) const LOGIN: Verb = Verb::new("pinion", &tables::auth::LOGIN, login);
pub(super) const LOGOUT: Verb = Verb::new("pinion", &tables::auth::LOGOUT, logout);
pub(super) const LIST: Verb = Verb::new("pinion auth", &tables::auth::LIST, list);

fn registry(dirs: &Dirs) -> Registry {
    let (registry, notices) = Registry::load(&dirs.agent_dir, RegistryOptions::default());
    for notice in notices {
        eprintln!("Warning: {notice}");
    }
    registry
}

/// Returns the identity of this installation, which is made once and stored in the settings, as pi does.
pub(crate) fn device_id(dirs: &Dirs) -> Result<String, Failure> {
    let mut id = None;
    update_json_file(&dirs.agent_dir.join("settings.json"), |settings| {
        let known = settings.get("deviceId").and_then(|id| id.as_str());
        let known = known.and_then(|id| uuid::Uuid::parse_str(id).ok());
        let known = known.unwrap_or_else(uuid::Uuid::new_v4).to_string();
        settings.insert("deviceId".to_owned(), known.clone().into());
        id = Some(known);
    })?;
    Ok(id.unwrap_or_default())
}

fn login(line: &Line) -> Result<ExitCode, Failure> {
    let named = line.at_most_one()?;
    let dirs = Dirs::from_env()?;
    let registry = registry(&dirs);
    if let Some(provider) = named {
        check_name(line, provider, &registry.providers())?;
    } else if !std::io::stdin().is_terminal() {
        return Err(line.wrong("name the provider: there is no terminal to choose it on"));
    }
    let runtime = pinion_process::runtime::build()?;
    let (providers, _) = Providers::from_environment();
    let done = runtime.block_on(async {
        let terminal = Terminal;
        let provider = match named {
            Some(provider) => provider.to_owned(),
            None => {
                let question = LoginQuestion::Select {
                    message: "Provider".to_owned(),
                    choices: registry.sign_in_choices(),
                };
                terminal.ask(question).await.ok_or(LoginError::Cancelled)?
            }
        };
        let device_id = device_id(&dirs).map_err(|failure| failure.to_string())?;
        let sign_in = AccountSignIn {
            provider: &provider,
            conversation: &terminal,
            device_id: &device_id,
            way: if line.has("--key") {
                SignInWay::Key
            } else {
                SignInWay::Any
            },
            test_with: line.has("--test").then_some(&providers),
        };
        registry.sign_in(sign_in).await
    });
    // A thread may still wait for a line of standard input.
    runtime.shutdown_background();
    let text = done.map_err(|error| Failure::failed(harmless_lines(&error.to_string())))?;
    out(&format!("{text}\n"))
}

fn harmless_lines(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(harmless_line).collect();
    lines.join("\n")
}

/// Fails for a provider that does not exist.
fn check_name(line: &Line, provider: &str, known: &[&str]) -> Result<(), Failure> {
    if known.contains(&provider) || pinion_logins::not_offered(provider).is_some() {
        return Ok(());
    }
    let hint = match nearest(provider, known.iter().copied()) {
        Some(near) => format!("did you mean {near}?"),
        None => "`pinion login` lists the providers.".to_owned(),
    };
    Err(line.wrong(format!("unknown provider {provider:?}; {hint}")))
}

fn logout(line: &Line) -> Result<ExitCode, Failure> {
    let named = line.at_most_one()?;
    let dirs = Dirs::from_env()?;
    let registry = registry(&dirs);
    let stored = registry.stored_providers();
    let provider = match named {
        Some(provider) => {
            let mut known = registry.providers();
            known.extend(stored.iter().map(String::as_str));
            check_name(line, provider, &known)?;
            provider.to_owned()
        }
        None if stored.is_empty() => return out("There is no stored login or key.\n"),
        None if !std::io::stdin().is_terminal() => {
            let stored = stored.join(", ");
            return Err(line.wrong(format!("name the provider; stored are: {stored}")));
        }
        None => {
            let choices: Vec<Choice> = stored
                .iter()
                .map(|name| Choice {
                    id: name.clone(),
                    label: name.clone(),
                })
                .collect();
            let chosen = choose("Provider", &choices);
            chosen.ok_or_else(|| Failure::failed("Cancelled. Nothing was removed."))?
        }
    };
    let text = registry
        .sign_out(&provider)
        .map_err(|error| Failure::failed(error.to_string()))?;
    out(&format!("{text}\n"))
}

fn list(line: &Line) -> Result<ExitCode, Failure> {
    let [] = line.exactly()?;
    let accounts = registry(&Dirs::from_env()?).accounts();
    if line.has("--json") {
        let all: Vec<_> = accounts
            .iter()
            .map(|account| {
                json!({
                    "provider": account.provider,
                    "kind": account.kind.word(),
                    "usable": account.usable,
                    "expires": account.expires,
                    "renewed": account.renewed,
                    "variables": account.variables,
                })
            })
            .collect();
        return out(&format!("{}\n", json!(all)));
    }
    if accounts.is_empty() {
        return out("There is no login and no key. Sign in with `pinion login`.\n");
    }
    let mut rows = vec![["PROVIDER".to_owned(), "KIND".to_owned(), "STATE".to_owned()]];
    for account in &accounts {
        rows.push([
            harmless_line(&account.provider),
            account.kind.word().to_owned(),
            state(account),
        ]);
    }
    out(&columns(&rows))
}

fn state(account: &Account) -> String {
    if !account.variables.is_empty() {
        return account.variables.join(", ");
    }
    if !account.usable {
        return "cannot be used".to_owned();
    }
    let Some(expires) = account.expires else {
        return "ready".to_owned();
    };
    let left = expires.saturating_sub(now_millis()) / 60_000;
    match (left, account.renewed) {
        (..=0, true) => "expired; renewed when it is used".to_owned(),
        (..=0, false) => "expired".to_owned(),
        (minutes @ 1..120, true) => format!("{minutes} min left; renewed when it is used"),
        (minutes @ 1..120, false) => format!("{minutes} min left"),
        (minutes, true) => format!("{} h left; renewed when it is used", minutes / 60),
        (minutes, false) => format!("{} h left", minutes / 60),
    }
}

/// Shows messages on stderr and reads answers from standard input.
struct Terminal;

impl LoginConversation for Terminal {
    fn show(&self, message: LoginMessage) {
        match message {
            LoginMessage::Open { url, instructions } => {
                let url = harmless_line(&url);
                eprintln!("Open this address in a browser to sign in:\n\n{url}\n");
                if let Some(text) = instructions {
                    eprintln!("{}", harmless_lines(&text));
                }
            }
            LoginMessage::Device(code) => {
                let page = harmless_line(&code.verification_uri);
                eprintln!(
                    "Open {page} and enter the code {}",
                    harmless_line(&code.user_code)
                );
            }
            LoginMessage::Progress(text) => eprintln!("{}", harmless_lines(&text)),
        }
    }

    fn ask(&self, question: LoginQuestion) -> BoxFuture<'_, Option<String>> {
        let is_terminal = std::io::stdin().is_terminal();
        let ask: Box<dyn FnOnce() -> Option<String> + Send> = match question {
            // Without a terminal the sign-in itself is chosen, which comes first.
            LoginQuestion::Select { choices, .. } if !is_terminal => {
                let first = choices.into_iter().next().map(|choice| choice.id);
                return Box::pin(std::future::ready(first));
            }
            LoginQuestion::PastedAnswer { .. } if !is_terminal => {
                return Box::pin(std::future::pending());
            }
            LoginQuestion::Select { message, choices } => {
                Box::new(move || choose(&message, &choices))
            }
            LoginQuestion::Text {
                message, hidden, ..
            } => Box::new(move || typed(&message, hidden)),
            LoginQuestion::PastedAnswer { message, .. } => Box::new(move || typed(&message, false)),
        };
        Box::pin(async move { tokio::task::spawn_blocking(ask).await.ok().flatten() })
    }
}

/// Reads a line after a question; `None` at the end of the input.
fn typed(question: &str, hidden: bool) -> Option<String> {
    let stdin = std::io::stdin();
    let is_terminal = stdin.is_terminal();
    if is_terminal {
        eprint!("{}: ", harmless_lines(question));
        std::io::stderr().flush().ok()?;
    }
    let echo = (is_terminal && hidden).then(HiddenInput::begin);
    let mut line = String::new();
    let read = stdin.lock().read_line(&mut line).ok()?;
    if echo.is_some() {
        eprintln!();
    }
    (read > 0).then(|| line.trim_end_matches(['\r', '\n']).to_owned())
}

/// Shows a numbered list until a number or an id of it is typed; `None` at the end of the input or for an empty line.
fn choose(question: &str, choices: &[Choice]) -> Option<String> {
    for (number, choice) in choices.iter().enumerate() {
        eprintln!("{:>3}  {}", number + 1, harmless_line(&choice.label));
    }
    loop {
        let answer = typed(&format!("{question} (number or name)"), false)?;
        let answer = answer.trim();
        if answer.is_empty() {
            return None;
        }
        let number = answer
            .parse::<usize>()
            .ok()
            .and_then(|number| number.checked_sub(1));
        let found = number.and_then(|number| choices.get(number));
        let found = found.or_else(|| choices.iter().find(|choice| choice.id == answer));
        match found {
            Some(choice) => return Some(choice.id.clone()),
            None => eprintln!("There is no {answer:?} in the list."),
        }
    }
}
