//! `models`: lists the available models.

use std::io::IsTerminal;
use std::process::ExitCode;

use pinion_config::Dirs;
use pinion_llm::{Registry, RegistryOptions, matches_search, model_table};
use pinion_message::Model;

use super::out;
use crate::failure::Failure;
use crate::verb::Verb;
use pinion_cli::tables;

pub(super) const VERB: Verb = Verb::new("pinion", &tables::commands::MODELS, |line| {
    let search = line.words.join(" ");
    list(Some(search.as_str()).filter(|search| !search.is_empty()))
});

/// Prints the models that match `search`.
pub(super) fn list(search: Option<&str>) -> Result<ExitCode, Failure> {
    let dirs = Dirs::from_env()?;
    let options = RegistryOptions {
        include_offline: true,
        ..RegistryOptions::default()
    };
    let (registry, notices) = Registry::load(&dirs.agent_dir, options);
    for notice in &notices {
        eprintln!("Warning: {notice}");
    }
    let models = registry.available();
    let wanted: Vec<&Model> = models
        .iter()
        .map(|model| &**model)
        .filter(|model| matches_search(model, search.unwrap_or_default()))
        .collect();
    if models.len() == 1 {
        eprintln!(
            "Only the built-in offline model is configured. Set a key such as ANTHROPIC_API_KEY to see a provider's models."
        );
    }
    if wanted.is_empty() {
        eprintln!("No model matches \"{}\".", search.unwrap_or_default());
    }
    out(&model_table(&wanted, std::io::stdout().is_terminal()))
}
