//! Ranks names by how well they match a query.

use std::cmp::Reverse;

use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};

/// Results that are returned; more would never be scrolled through.
const MAX_RESULTS: usize = 200;

/// Names compared between two checks for cancellation.
const CANCEL_CHECK_INTERVAL: usize = 1024;

/// The best matches, and the number of all.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Best {
    /// Indices into the searched list, the best first.
    pub(super) positions: Vec<usize>,
    pub(super) total: usize,
}

/// Ranks paths; `None` if `is_outdated` returned true.
pub(super) fn best_paths(
    paths: &[impl AsRef<str>],
    query: &str,
    is_outdated: &dyn Fn() -> bool,
) -> Option<Best> {
    let config = Config::DEFAULT.match_paths();
    best(paths, query, config, is_outdated, |path| {
        // Without a query the least nested paths come first, with one the shorter of two equal
        // matches.
        let depth = path.trim_end_matches('/').matches('/').count();
        if query.is_empty() { depth } else { path.len() }
    })
}

/// Ranks words; equal matches stay in order.
pub(super) fn best_words(words: &[impl AsRef<str>], query: &str) -> Best {
    let mut config = Config::DEFAULT;
    config.prefer_prefix = true;
    let length = |word: &str| if query.is_empty() { 0 } else { word.len() };
    best(words, query, config, &|| false, length).unwrap_or_default()
}

/// Finds the characters of a name that match.
pub(super) struct Marker {
    matcher: Matcher,
    pattern: Pattern,
    characters: Vec<char>,
}

impl Marker {
    pub(super) fn new(query: &str) -> Self {
        Self {
            matcher: Matcher::new(Config::DEFAULT.match_paths()),
            pattern: pattern(query),
            characters: Vec::new(),
        }
    }

    /// The indices of the matching graphemes, in order.
    pub(super) fn marks(&mut self, name: &str) -> Vec<u32> {
        let mut marks = Vec::new();
        self.pattern.indices(
            Utf32Str::new(name, &mut self.characters),
            &mut self.matcher,
            &mut marks,
        );
        marks.sort_unstable();
        marks.dedup();
        marks
    }
}

fn pattern(query: &str) -> Pattern {
    Pattern::new(
        query,
        CaseMatching::Smart,
        Normalization::Smart,
        AtomKind::Fuzzy,
    )
}

fn best(
    names: &[impl AsRef<str>],
    query: &str,
    config: Config,
    is_outdated: &dyn Fn() -> bool,
    distance: impl Fn(&str) -> usize,
) -> Option<Best> {
    let mut matcher = Matcher::new(config);
    let pattern = pattern(query);
    let mut characters = Vec::new();
    let mut fitting = Vec::new();
    for (position, name) in names.iter().map(AsRef::as_ref).enumerate() {
        if position % CANCEL_CHECK_INTERVAL == 0 && is_outdated() {
            return None;
        }
        // The query is a directory, and its content is wanted.
        if name == query && query.ends_with('/') {
            continue;
        }
        if let Some(score) = pattern.score(Utf32Str::new(name, &mut characters), &mut matcher) {
            fitting.push((Reverse(score), distance(name), position));
        }
    }
    let total = fitting.len();
    if total > MAX_RESULTS {
        fitting.select_nth_unstable(MAX_RESULTS);
        fitting.truncate(MAX_RESULTS);
    }
    fitting.sort_unstable();
    let positions = fitting
        .into_iter()
        .map(|(_, _, position)| position)
        .collect();
    Some(Best { positions, total })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(names: &[&'static str], query: &str) -> Vec<&'static str> {
        let best = best_paths(names, query, &|| false).expect("not cancelled");
        best.positions
            .iter()
            .map(|position| names[*position])
            .collect()
    }

    #[test]
    fn the_start_of_a_name_beats_the_middle_of_one() {
        let names = [
            "docs/domain.md",
            "src/lib.rs",
            "src/main.rs",
            "target/main/",
            "xmain",
        ];
        assert_eq!(paths(&names, "main").first(), Some(&"src/main.rs"));
        assert_eq!(paths(&names, "sl"), ["src/lib.rs"]);
        assert_eq!(paths(&names, "nothing"), Vec::<&str>::new());
        assert_eq!(paths(&names, "src main"), ["src/main.rs"]);
    }

    #[test]
    fn without_a_query_the_nearest_come_first() {
        assert_eq!(
            paths(&["a/b/c", "a/", "a/b/", "z"], ""),
            ["a/", "z", "a/b/", "a/b/c"]
        );
    }

    #[test]
    fn words_keep_their_order_until_one_asks() {
        let words = ["zeta", "model", "mode", "remodel"];
        assert_eq!(best_words(&words, "").positions, [0, 1, 2, 3]);
        assert_eq!(best_words(&words, "mode").positions, [2, 1, 3]);
    }

    #[test]
    fn only_the_best_are_kept_but_all_are_counted() {
        let names: Vec<String> = (0..5000).map(|number| format!("file{number:04}")).collect();
        let best = best_paths(&names, "file", &|| false).expect("not cancelled");
        assert_eq!((best.positions.len(), best.total), (MAX_RESULTS, 5000));
        assert_eq!(best.positions[..3], [0, 1, 2]);
        assert_eq!(best_paths(&names, "file", &|| true), None);
    }
}
