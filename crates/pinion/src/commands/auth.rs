//! `auth`: reports whether a provider has a usable credential, and prints it.

use std::process::ExitCode;
use std::time::Duration;

use pinion_cli::tables;
use pinion_config::Dirs;
use pinion_llm::{CredentialError, CredentialState, Registry, RegistryOptions, resolve_model};
use pinion_logins::RENEWAL_MARGIN;
use pinion_message::Secret;
use secrecy::ExposeSecret;

use super::out;
use crate::failure::Failure;
use crate::verb::{Entry, Group, Line, Verb};

/// The shortest remaining validity of a printed token.
const MIN_VALIDITY: Duration = Duration::from_secs(30 * 60);

const CHECK: Verb = Verb::new("pinion auth", &tables::auth::CHECK, check);
const PRINT_API_KEY: Verb = Verb::new("pinion auth", &tables::auth::PRINT_API_KEY, print_api_key);
const PRINT_BEARER_TOKEN: Verb = Verb::new(
    "pinion auth",
    &tables::auth::PRINT_BEARER_TOKEN,
    print_bearer_token,
);

pub(super) const GROUP: Group = Group {
    above: "pinion",
    command: &tables::auth::AUTH,
    entries: &[
        Entry::One(&super::login::LIST),
        Entry::One(&CHECK),
        Entry::One(&PRINT_API_KEY),
        Entry::One(&PRINT_BEARER_TOKEN),
    ],
    takes_words: false,
};

/// The provider that the flags name.
struct Asked {
    registry: Registry,
    provider: String,
}

impl Asked {
    fn read(line: &Line) -> Result<Self, Failure> {
        let [] = line.exactly()?;
        let dirs = Dirs::from_env()?;
        let (registry, notices) = Registry::load(&dirs.agent_dir, RegistryOptions::default());
        for notice in notices {
            eprintln!("Warning: {notice}");
        }
        let named = line.value("--provider");
        let provider = match (named, line.value("--model")) {
            (Some(provider), None) => provider.to_owned(),
            (_, Some(pattern)) => {
                let resolved = resolve_model(&registry, named, pattern);
                let resolved = resolved.map_err(|error| line.wrong(error.to_string()))?;
                resolved.model.provider.clone()
            }
            (None, None) => return Err(line.wrong("name a provider with --provider or --model")),
        };
        Ok(Self { registry, provider })
    }

    /// Renews the login if it is due and `refreshes` is set. Returns `None` for keys.
    fn login(&self, refreshes: bool) -> Result<Option<Result<(), CredentialError>>, Failure> {
        let Some(login) = self.registry.stored_login(&self.provider) else {
            return Ok(None);
        };
        if !refreshes {
            return Ok(Some(Ok(())));
        }
        let runtime = pinion_process::runtime::build()?;
        let fresh = self
            .registry
            .fresh_login(&self.provider, login, RENEWAL_MARGIN);
        Ok(Some(runtime.block_on(fresh).map(drop)))
    }

    /// Returns the credential to send now, which may run the command of a key.
    fn credential(&self) -> Result<Result<Option<Secret>, CredentialError>, Failure> {
        let runtime = pinion_process::runtime::build()?;
        Ok(runtime.block_on(self.registry.provider_key(&self.provider)))
    }
}

fn check(line: &Line) -> Result<ExitCode, Failure> {
    let asked = Asked::read(line)?;
    let mut report = asked.registry.credential_report(&asked.provider);
    let refreshes = !line.has("--no-refresh");
    if report.state == CredentialState::Ready && (refreshes || line.has("--credentials")) {
        report.check(asked.login(refreshes)?);
    }
    if report.state == CredentialState::Ready && line.has("--credentials") {
        report.add(asked.credential()?);
    }
    if line.has("--json") {
        out(&format!("{}\n", report.json()))?;
    } else {
        out(&report.text())?;
    }
    Ok(ExitCode::from(match report.state {
        CredentialState::Ready => 0,
        CredentialState::NotReady => 1,
        CredentialState::Invalid => 2,
    }))
}

fn print_api_key(line: &Line) -> Result<ExitCode, Failure> {
    let asked = Asked::read(line)?;
    let provider = &asked.provider;
    let checked = asked.registry.check_key_provider(provider);
    checked.map_err(Failure::failed)?;
    match asked
        .credential()?
        .map_err(|error| Failure::failed(format!("{error}")))?
    {
        Some(key) => out(&format!("{}\n", key.expose_secret())),
        None => Err(Failure::failed(format!("{provider} needs no API key."))),
    }
}

fn print_bearer_token(line: &Line) -> Result<ExitCode, Failure> {
    let asked = Asked::read(line)?;
    let validity = match line.value("--min-expiry") {
        None => MIN_VALIDITY,
        Some(text) => duration(text).ok_or_else(|| {
            let wanted = "--min-expiry needs a duration such as 500ms, 30s, 30m or 2h";
            line.wrong(format!("{wanted}, not {text:?}"))
        })?,
    };
    let runtime = pinion_process::runtime::build()?;
    let token = asked.registry.bearer_token(&asked.provider, validity);
    let token = runtime.block_on(token).map_err(Failure::failed)?;
    out(&format!("{}\n", token.expose_secret()))
}

fn duration(text: &str) -> Option<Duration> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u64 = digits.parse().ok()?;
    let unit = match text.get(digits.len()..)? {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    number.checked_mul(unit).map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit() {
        assert_eq!(duration("500ms"), Some(Duration::from_millis(500)));
        assert_eq!(duration("30m"), Some(Duration::from_secs(1800)));
        for wrong in ["30", "m", "3d", "-1s", "99999999999999999999h"] {
            assert_eq!(duration(wrong), None, "{wrong}");
        }
    }
}
