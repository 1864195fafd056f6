//! Matching one name against models: exact, then partial, then without its thinking level.

use std::cmp::Ordering;

use pinion_message::ThinkingLevel;

use crate::Registry;
use crate::registry::{Candidate, is_built_in};

/// The text that is permitted after the last colon of a name.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Suffix {
    /// A thinking level; anything else makes the name unknown.
    MustBeLevel,
    /// Any text; a text that is not a level is dropped with a warning.
    MayBeDropped,
}

/// A model that matches.
#[derive(Clone)]
pub(super) struct PatternMatch<'a> {
    pub(super) candidate: Candidate<'a>,
    pub(super) thinking: Option<ThinkingLevel>,
    pub(super) warning: Option<String>,
}

/// The model that `pattern` stands for among `candidates`.
pub(super) fn match_pattern<'a>(
    registry: &Registry,
    pattern: &str,
    candidates: &[Candidate<'a>],
    suffix: Suffix,
) -> Option<PatternMatch<'a>> {
    if let Some(candidate) = best_match(registry, pattern, candidates) {
        return Some(PatternMatch {
            candidate,
            thinking: None,
            warning: None,
        });
    }
    let (name, tail) = pattern.rsplit_once(':')?;
    let level = tail.parse::<ThinkingLevel>().ok();
    if level.is_none() && suffix == Suffix::MustBeLevel {
        return None;
    }
    let mut hit = match_pattern(registry, name, candidates, suffix)?;
    match level {
        // A name that already lost a suffix has the default level.
        Some(_) if hit.warning.is_some() => {}
        Some(level) => hit.thinking = Some(level),
        None => {
            hit.thinking = None;
            hit.warning = Some(format!(
                "Invalid thinking level \"{tail}\" in pattern \"{pattern}\". Using default instead."
            ));
        }
    }
    Some(hit)
}

/// The name and the level of `name:level`.
pub(super) fn split_level(text: &str) -> Option<(&str, Option<ThinkingLevel>)> {
    let (name, tail) = text.rsplit_once(':')?;
    tail.parse().ok().map(|level| (name, Some(level)))
}

fn best_match<'a>(
    registry: &Registry,
    pattern: &str,
    candidates: &[Candidate<'a>],
) -> Option<Candidate<'a>> {
    if pattern.is_empty() {
        return None;
    }
    if let Some((provider, id)) = pattern.split_once('/') {
        let full = candidates.iter().find(|candidate| {
            candidate.provider.eq_ignore_ascii_case(provider)
                && candidate.id.eq_ignore_ascii_case(id)
        });
        if let Some(full) = full {
            return Some(*full);
        }
    }
    let exact: Vec<Candidate<'a>> = candidates
        .iter()
        .filter(|candidate| candidate.id.eq_ignore_ascii_case(pattern))
        .copied()
        .collect();
    let exact = preferred(registry, exact).into_iter().next();
    if exact.is_some_and(Candidate::is_supported) {
        return exact;
    }
    let wanted = pattern.to_lowercase();
    // The offline model is used only by its full name.
    let partial: Vec<Candidate<'a>> = candidates
        .iter()
        .filter(|candidate| !candidate.is_offline())
        .filter(|candidate| {
            candidate.id.to_lowercase().contains(&wanted)
                || candidate.name.to_lowercase().contains(&wanted)
        })
        .copied()
        .collect();
    let partial = preferred(registry, partial);
    if exact.is_some() && !partial.iter().any(|candidate| candidate.is_supported()) {
        return exact;
    }
    let mut aliases: Vec<_> = partial
        .iter()
        .filter(|candidate| is_alias(candidate.id))
        .copied()
        .collect();
    if aliases.is_empty() {
        aliases = partial;
    }
    // Of equal ids the first one stays first.
    aliases
        .into_iter()
        .reduce(|best, next| match compare_ids(best.id, next.id) {
            Ordering::Less => next,
            _ => best,
        })
}

/// Providers that serve the models they make themselves. Routers and clouds serve them too, under the same ids.
const MAKERS: [&str; 12] = [
    "anthropic",
    "openai",
    "google",
    "xai",
    "mistral",
    "deepseek",
    "moonshotai",
    "zai",
    "minimax",
    "xiaomi",
    "meta",
    "ant-ling",
];

/// The candidates of the best rank: their API is supported, their provider has a credential, it is
/// the maker of the model or a provider that the user defined.
fn preferred<'a>(registry: &Registry, candidates: Vec<Candidate<'a>>) -> Vec<Candidate<'a>> {
    let has_credentials = registry.credential_check();
    let rank = |candidate: &Candidate<'a>| {
        let provider = candidate.provider;
        (
            candidate.is_supported(),
            candidate.is_supported() && has_credentials(provider),
            MAKERS.contains(&provider) || !is_built_in(provider),
        )
    };
    let ranks: Vec<_> = candidates.iter().map(rank).collect();
    let best = ranks.iter().max().copied();
    let ranked = candidates.into_iter().zip(ranks);
    ranked
        .filter(|(_, rank)| Some(*rank) == best)
        .map(|(candidate, _)| candidate)
        .collect()
}

/// Reports whether an id names the newest model of a series: it ends in `-latest`, or not in a
/// date.
fn is_alias(id: &str) -> bool {
    let date = id.rsplit_once('-').map_or("", |(_, tail)| tail);
    !(date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Orders ids as people sort them: signs, then digits, then letters regardless of case.
fn compare_ids(left: &str, right: &str) -> Ordering {
    let key = |c: char| {
        let group = match c {
            _ if c.is_alphabetic() => 2,
            _ if c.is_numeric() => 1,
            _ => 0,
        };
        (group, c.to_ascii_lowercase())
    };
    left.chars().map(key).cmp(right.chars().map(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dated_ids_are_not_aliases() {
        assert!(is_alias("claude-sonnet-4-5"));
        assert!(is_alias("x-latest"));
        assert!(is_alias("gpt-4o-2024-08-06"));
        assert!(!is_alias("claude-sonnet-4-5-20250929"));
    }

    #[test]
    fn letters_come_after_digits_and_signs() {
        assert_eq!(compare_ids("~a", "a"), Ordering::Less);
        assert_eq!(compare_ids("gpt-5.4", "gpt-5.4-mini"), Ordering::Less);
        assert_eq!(compare_ids("a-1", "A-b"), Ordering::Less);
        assert_eq!(compare_ids("glm:1", "glm1"), Ordering::Less);
    }
}
