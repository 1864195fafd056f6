//! The models to cycle through: `--models` and `enabledModels`.

use std::sync::Arc;

use globset::{GlobBuilder, GlobMatcher};
use pinion_message::{Model, ThinkingLevel};

use super::pattern::{Suffix, match_pattern, split_level};
use crate::Registry;
use crate::registry::Candidate;

#[derive(Debug, Clone)]
pub struct ScopedModel {
    pub model: Arc<Model>,
    /// The level written after its pattern.
    pub thinking: Option<ThinkingLevel>,
}

/// The available models that `patterns` name, in the order of the patterns, each once; and the
/// warnings for stderr, without the prefix `Warning: `.
pub fn scope<P: AsRef<str>>(
    registry: &Registry,
    patterns: &[P],
) -> (Vec<ScopedModel>, Vec<String>) {
    let available = registry.available_candidates();
    let mut chosen: Vec<(Candidate<'_>, Option<ThinkingLevel>)> = Vec::new();
    let mut warnings = Vec::new();
    for pattern in patterns.iter().map(|pattern| pattern.as_ref().trim()) {
        if pattern.is_empty() {
            continue;
        }
        let before = chosen.len();
        if pattern.contains(['*', '?', '[']) {
            let (glob, thinking) = split_level(pattern).unwrap_or((pattern, None));
            if let Some(glob) = compile_glob(glob) {
                for candidate in &available {
                    let full = format!("{}/{}", candidate.provider, candidate.id);
                    if glob.is_match(&full) || glob.is_match(candidate.id) {
                        chosen.push((*candidate, thinking));
                    }
                }
            }
        } else if let Some(hit) = match_pattern(registry, pattern, &available, Suffix::MayBeDropped)
        {
            chosen.push((hit.candidate, hit.thinking));
            warnings.extend(hit.warning);
        }
        if chosen.len() == before {
            warnings.push(format!("No models match pattern \"{pattern}\""));
        }
    }
    let mut seen = std::collections::HashSet::new();
    chosen.retain(|(candidate, _)| seen.insert((candidate.provider, candidate.id)));
    let models = chosen.into_iter().map(|(candidate, thinking)| ScopedModel {
        model: candidate.to_model(),
        thinking,
    });
    (models.collect(), warnings)
}

/// A glob whose `*` stays within one part of a path; `None` when it is not a valid glob.
fn compile_glob(glob: &str) -> Option<GlobMatcher> {
    let glob = GlobBuilder::new(glob)
        .case_insensitive(true)
        .literal_separator(true)
        .build();
    glob.ok().map(|glob| glob.compile_matcher())
}
