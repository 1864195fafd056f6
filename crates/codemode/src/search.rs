//! Ranks tools by the words of a query: Okapi BM25 over their descriptions, with names and namespaces as fields of their
//! own. A tool with more of the words is before one with fewer; the exact name is first.

use std::collections::BTreeMap;

use pinion_tools::Tool;
use serde_json::Value;

/// The weight of repetitions of a word.
const SATURATION: f64 = 1.2;
/// The weight of the length of a description.
const LENGTH_WEIGHT: f64 = 0.75;
/// The score of a word in the name: more than any number of mentions in the description.
const NAME_SCORE: f64 = 10.0;
/// The score of a word in the texts of the namespace.
const NAMESPACE_SCORE: f64 = 0.5;
/// The depth to which descriptions in a schema are read.
const SCHEMA_DEPTH: u32 = 6;
/// Words that distinguish nothing.
const STOP_WORDS: [&str; 24] = [
    "a", "an", "and", "are", "as", "at", "be", "by", "for", "from", "in", "is", "it", "of", "on",
    "or", "that", "the", "this", "to", "tool", "use", "using", "with",
];

/// The texts of a tool that a search reads.
#[derive(Debug)]
pub(crate) struct Document {
    full_name: String,
    name: Vec<String>,
    text: Vec<String>,
    namespace: Vec<String>,
}

impl Document {
    pub fn of(tool: &dyn Tool) -> Self {
        let spec = tool.spec();
        let mut text = spec.description.clone();
        schema_texts(&spec.parameters, &mut text, SCHEMA_DEPTH);
        let namespace = tool.namespace().map_or(String::new(), |it| {
            format!("{} {} {}", it.name, it.description, it.instructions)
        });
        Self {
            full_name: spec.name.to_lowercase(),
            name: words(&spec.name),
            text: words(&text),
            namespace: words(&namespace),
        }
    }
}

/// Adds the names and descriptions of properties.
fn schema_texts(schema: &Value, text: &mut String, depth: u32) {
    let Some(depth) = depth.checked_sub(1) else {
        return;
    };
    if let Some(description) = schema["description"].as_str() {
        text.push(' ');
        text.push_str(description);
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        text.push(' ');
        text.push_str(name);
        schema_texts(property, text, depth);
    }
    if schema["items"].is_object() {
        schema_texts(&schema["items"], text, depth);
    }
}

/// Returns the words of a text in lower case and singular, without stop words. `camelCase` is two words.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut was_lower = false;
    let mut end = |word: &mut String| {
        let found = std::mem::take(word);
        let found = singular(&found);
        if !found.is_empty() && !STOP_WORDS.contains(&found) {
            words.push(found.to_owned());
        }
    };
    for c in text.chars() {
        if !c.is_alphanumeric() {
            end(&mut word);
            was_lower = false;
            continue;
        }
        if c.is_uppercase() && was_lower {
            end(&mut word);
        }
        was_lower = c.is_lowercase();
        word.extend(c.to_lowercase());
    }
    end(&mut word);
    words
}

fn singular(word: &str) -> &str {
    match word.strip_suffix('s') {
        Some(stem) if stem.len() > 2 && !stem.ends_with(['s', 'u', 'i']) => stem,
        _ => word,
    }
}

/// Returns the positions of the documents that fit `query`, the best first.
pub(crate) fn rank(query: &str, documents: &[Document], limit: usize) -> Vec<usize> {
    let mut terms = words(query);
    terms.sort();
    terms.dedup();
    let exact = query.trim().to_lowercase();
    let total: usize = documents.iter().map(|document| document.text.len()).sum();
    let average = (total as f64 / documents.len().max(1) as f64).max(1.0);
    let mut holders: BTreeMap<&str, usize> = BTreeMap::new();
    for term in &terms {
        let holds = |document: &&Document| document.text.contains(term);
        holders.insert(term, documents.iter().filter(holds).count());
    }
    let mut ranked: Vec<(bool, usize, f64, usize)> = Vec::new();
    for (position, document) in documents.iter().enumerate() {
        let mut matched = 0;
        let mut score = 0.0;
        for term in &terms {
            let held = holders.get(term.as_str()).copied().unwrap_or_default() as f64;
            let rarity = ((documents.len() as f64 - held + 0.5) / (held + 0.5) + 1.0).ln();
            let count = document.text.iter().filter(|word| *word == term).count() as f64;
            let length = document.text.len() as f64 / average;
            let norm = SATURATION * (1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * length);
            let of_text = rarity * count * (SATURATION + 1.0) / (count + norm);
            let is_in_name = document.name.contains(term);
            let is_in_namespace = document.namespace.contains(term);
            let of_name = if is_in_name { NAME_SCORE } else { 0.0 };
            let of_namespace = if is_in_namespace {
                NAMESPACE_SCORE
            } else {
                0.0
            };
            matched += usize::from(count > 0.0 || is_in_name || is_in_namespace);
            score += of_text + of_name + of_namespace;
        }
        let is_exact = document.full_name == exact;
        if matched > 0 || is_exact {
            ranked.push((is_exact, matched, score, position));
        }
    }
    ranked.sort_by(|a, b| {
        let by_score = b.2.total_cmp(&a.2);
        (b.0, b.1).cmp(&(a.0, a.1)).then(by_score)
    });
    let positions = ranked.into_iter().map(|(.., position)| position);
    positions.take(limit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(name: &str, text: &str) -> Document {
        Document {
            full_name: name.to_lowercase(),
            name: words(name),
            text: words(text),
            namespace: Vec::new(),
        }
    }

    #[test]
    fn words_are_singular_and_split_at_capitals() {
        assert_eq!(
            words("listOpenIssues of the repo"),
            ["list", "open", "issue", "repo"]
        );
        assert_eq!(words("status class bus"), ["status", "class", "bus"]);
    }

    #[test]
    fn more_words_are_before_a_better_word() {
        let documents = [
            document("mcp__x__window", "Lists windows."),
            document("mcp__x__capture", "Takes a screenshot of a window."),
            document("mcp__x__mail", "Sends mail."),
        ];
        assert_eq!(rank("screenshot window", &documents, 8), [1, 0]);
        assert_eq!(rank("window", &documents, 8), [0, 1]);
        assert_eq!(rank("mcp__x__mail", &documents, 1), [2]);
        assert_eq!(rank("nothing fits", &documents, 8), [] as [usize; 0]);
        assert_eq!(rank("", &documents, 8), [] as [usize; 0]);
    }
}
