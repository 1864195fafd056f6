//! `models`: lists the available models.

use std::io::IsTerminal;
use std::process::ExitCode;

use pinion_config::Dirs;
use pinion_llm::{Registry, RegistryOptions};
use pinion_message::Model;
use pinion_text::columns;

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
        .filter(|model| fits(model, search))
        .collect();
    if models.len() == 1 {
        eprintln!(
            "Only the built-in offline model is configured. Set a key such as ANTHROPIC_API_KEY to see a provider's models."
        );
    }
    if wanted.is_empty() {
        eprintln!("No model matches \"{}\".", search.unwrap_or_default());
    }
    out(&table(&wanted))
}

/// Reports whether every word of the search occurs in `provider/id` or in the name.
fn fits(model: &Model, search: Option<&str>) -> bool {
    let name = format!("{}/{} {}", model.provider, model.id, model.name).to_lowercase();
    let search = search.unwrap_or_default().to_lowercase();
    search.split_whitespace().all(|word| name.contains(word))
}

fn table(models: &[&Model]) -> String {
    let yes_no = |yes| if yes { "yes" } else { "no" };
    let mut rows = vec![
        [
            "provider", "model", "context", "max-out", "thinking", "images",
        ]
        .map(str::to_owned),
    ];
    rows.extend(models.iter().map(|model| {
        [
            model.provider.clone(),
            model.id.clone(),
            thousands(model.context_window),
            thousands(model.max_tokens),
            yes_no(model.reasoning).to_owned(),
            yes_no(model.takes_images()).to_owned(),
        ]
    }));
    if models.is_empty() || !std::io::stdout().is_terminal() {
        rows.remove(0);
    }
    columns(&rows)
}

fn thousands(tokens: u64) -> String {
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..1_000_000 => format!("{}K", tokens / 1_000),
        _ => format!("{:.1}M", tokens as f64 / 1e6).replace(".0M", "M"),
    }
}
