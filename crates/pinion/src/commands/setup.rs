//! `--setup`: asks for a provider and its key in a terminal, and saves the key.

use std::io::{BufRead, IsTerminal, Write};
use std::process::ExitCode;

use pinion_config::Dirs;
use pinion_llm::{Registry, RegistryOptions, key_variables};
use pinion_message::Secret;
use pinion_text::nearest;
use pinion_tui::HiddenInput;

use super::out;
use crate::failure::Failure;

/// The providers that are named first.
const COMMON: [&str; 4] = ["anthropic", "openai", "google", "openrouter"];

/// Asks for a provider and a key, and saves the key in `auth.json`.
pub(crate) fn run() -> Result<ExitCode, Failure> {
    if !std::io::stdin().is_terminal() {
        let problem = "--setup asks in a terminal, and standard input is none.";
        return Err(
            Failure::usage(problem).hint("Set the key of a provider in the environment instead.")
        );
    }
    let dirs = Dirs::from_env()?;
    let (registry, notices) = Registry::load(&dirs.agent_dir, RegistryOptions::default());
    for notice in notices {
        eprintln!("Warning: {notice}");
    }
    let mut known: Vec<&str> = registry.providers();
    known.sort_unstable();
    let common: Vec<&str> = COMMON
        .into_iter()
        .filter(|name| known.contains(name))
        .collect();
    out(&format!(
        "pinion needs the key of one provider of models. Common ones: {}.\nAll: {}.\n",
        common.join(", "),
        known.join(", ")
    ))?;
    let provider = ask_provider(&known)?;
    let key = ask_key(&provider)?;
    std::fs::create_dir_all(&dirs.agent_dir).map_err(|error| {
        Failure::failed(format!("{} cannot be created", dirs.agent_dir.display())).caused_by(error)
    })?;
    registry.store_key(&provider, &key).map_err(|error| {
        Failure::failed(format!("the key of {provider} could not be saved")).caused_by(error)
    })?;
    let file = dirs.agent_dir.join("auth.json");
    out(&format!(
        "The key of {provider} is saved in {}.\n",
        file.display()
    ))
}

fn ask_provider(known: &[&str]) -> Result<String, Failure> {
    loop {
        let name = answer("Provider: ")?;
        if known.contains(&name.as_str()) {
            return Ok(name);
        }
        let hint = match nearest(&name, known.iter().copied()) {
            Some(near) => format!(" Did you mean {near}?"),
            None => String::new(),
        };
        out(&format!("There is no provider \"{name}\".{hint}\n"))?;
    }
}

fn ask_key(provider: &str) -> Result<Secret, Failure> {
    let variables = key_variables(provider).join(" or ");
    let place = if variables.is_empty() {
        String::new()
    } else {
        format!(", otherwise in {variables}")
    };
    loop {
        let key = {
            let _hidden = HiddenInput::begin();
            answer(&format!("API key of {provider} (not shown{place}): "))?
        };
        out("\n")?;
        if key.is_empty() {
            out("A key is needed.\n")?;
        } else {
            return Ok(Secret::from(key));
        }
    }
}

/// Prints a question and reads a line. The end of input ends the set-up.
fn answer(question: &str) -> Result<String, Failure> {
    out(question)?;
    std::io::stdout().flush()?;
    let mut line = String::new();
    if std::io::stdin().lock().read_line(&mut line)? == 0 {
        return Err(Failure::failed(
            "The set-up was ended before a key was saved.",
        ));
    }
    Ok(line.trim().to_owned())
}
