//! Rewrites the tool-call ids of one provider so that another accepts them. APIs differ in the
//! length and alphabet of ids. An id must be rewritten in the same way on every request, or caches
//! and the pairing of calls with results break, so the result depends only on the id and its
//! origin.

use std::collections::{HashMap, HashSet};

use pinion_message::{AssistantMessage, Model};

/// Providers whose Responses API has `call_id|item_id` pairs.
const PAIRED: [&str; 5] = [
    "openai",
    "openai-codex",
    "opencode",
    "azure-openai-responses",
    "azure",
];

/// Rewrites foreign ids for one request.
pub(crate) struct IdRewriter<'a> {
    model: &'a Model,
    /// Ids already given out for Mistral, whose short ids may collide.
    taken: HashSet<String>,
    /// The rewritten ids, so that an id becomes the same text everywhere in the request.
    short: HashMap<String, String>,
}

impl<'a> IdRewriter<'a> {
    pub(crate) fn new(model: &'a Model) -> Self {
        Self {
            model,
            taken: HashSet::new(),
            short: HashMap::new(),
        }
    }

    /// `id` of a call in `source` as the target API accepts it.
    pub(crate) fn rewrite(&mut self, id: &str, source: &AssistantMessage) -> String {
        match self.model.api.as_str() {
            "anthropic-messages" | "bedrock-converse-stream" => sanitised(id, 64),
            "openai-completions" => self.for_completions(id),
            "openai-responses" | "azure-openai-responses" | "openai-codex-responses" => {
                self.for_responses(id, source)
            }
            "google-generative-ai" | "google-vertex" if needs_call_ids(&self.model.id) => {
                sanitised(id, 64)
            }
            "mistral-conversations" => self.for_mistral(id),
            _ => id.to_owned(),
        }
    }

    fn for_completions(&self, id: &str) -> String {
        match id.split_once('|') {
            Some((call, _)) => sanitised(call, 40),
            None if self.model.provider == "openai" => id.chars().take(40).collect(),
            None => id.to_owned(),
        }
    }

    fn for_responses(&self, id: &str, source: &AssistantMessage) -> String {
        let part = |text: &str| sanitised(text, 64).trim_end_matches('_').to_owned();
        let paired = PAIRED.contains(&self.model.provider.as_str());
        let Some((call, item)) = id.split_once('|').filter(|_| paired) else {
            return part(id);
        };
        let foreign = source.provider != self.model.provider || source.api != self.model.api;
        let item = if foreign {
            format!("fc_{}", short_hash(item))
        } else {
            part(item)
        };
        let item = if item.starts_with("fc_") {
            item
        } else {
            format!("fc_{item}")
        };
        format!("{}|{}", part(call), part(&item))
    }

    fn for_mistral(&mut self, id: &str) -> String {
        if let Some(known) = self.short.get(id) {
            return known.clone();
        }
        let mut attempt = 0;
        let mut short = mistral_id(id, attempt);
        while self.taken.contains(&short) {
            attempt += 1;
            short = mistral_id(id, attempt);
        }
        self.taken.insert(short.clone());
        self.short.insert(id.to_owned(), short.clone());
        short
    }
}

/// Reports whether a model behind Google's API requires call ids to be sent back.
pub(crate) fn needs_call_ids(model_id: &str) -> bool {
    model_id.starts_with("claude-") || model_id.starts_with("gpt-oss-")
}

/// Nine letters or digits made from `id`; `attempt` counts collisions.
pub(crate) fn mistral_id(id: &str, attempt: u32) -> String {
    let cleaned: String = id.chars().filter(char::is_ascii_alphanumeric).collect();
    if cleaned.len() == 9 && attempt == 0 {
        return cleaned;
    }
    let seed = if cleaned.is_empty() { id } else { &cleaned };
    let hash = match attempt {
        0 => short_hash(seed),
        _ => short_hash(&format!("{seed}:{attempt}")),
    };
    hash.chars().take(9).collect()
}

/// Everything outside `[A-Za-z0-9_-]` becomes `_`; at most `length` characters.
///
/// Counted in UTF-16 units, as the ids were when they were first sent.
fn sanitised(id: &str, length: usize) -> String {
    id.encode_utf16()
        .take(length)
        .map(|unit| match u8::try_from(unit).map(char::from) {
            Ok(c) if c.is_ascii_alphanumeric() || c == '_' || c == '-' => c,
            _ => '_',
        })
        .collect()
}

/// A short stable hash in base 36, over UTF-16 units.
pub(crate) fn short_hash(text: &str) -> String {
    let mut h1: u32 = 0xdead_beef;
    let mut h2: u32 = 0x41c6_ce57;
    for unit in text.encode_utf16() {
        h1 = (h1 ^ u32::from(unit)).wrapping_mul(2_654_435_761);
        h2 = (h2 ^ u32::from(unit)).wrapping_mul(1_597_334_677);
    }
    let mix = |a: u32, b: u32| {
        (a ^ (a >> 16)).wrapping_mul(2_246_822_507) ^ (b ^ (b >> 13)).wrapping_mul(3_266_489_909)
    };
    h1 = mix(h1, h2);
    h2 = mix(h2, h1);
    base36(h2) + &base36(h1)
}

fn base36(mut number: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.extend(char::from_digit(number % 36, 36));
        number /= 36;
        if number == 0 {
            return digits.iter().rev().collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn rows(table: &str) -> impl Iterator<Item = Value> + '_ {
        table
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
    }

    #[test]
    fn short_hashes_match_the_table() {
        for row in rows(include_str!("../tests/vectors/tables/short-hash.jsonl")) {
            assert_eq!(
                short_hash(row["in"].as_str().unwrap()),
                row["out"].as_str().unwrap()
            );
        }
    }

    #[test]
    fn mistral_ids_match_the_table() {
        for row in rows(include_str!("../tests/vectors/tables/mistral-ids.jsonl")) {
            let attempt = row["attempt"].as_u64().unwrap() as u32;
            let id = mistral_id(row["in"].as_str().unwrap(), attempt);
            assert_eq!(id, row["out"].as_str().unwrap(), "{row}");
        }
    }
}
