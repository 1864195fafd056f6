//! Compares typed text with a list.

use std::cmp::Reverse;

use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};

/// The way in which typing filters a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Matching {
    /// Letters in order, the best match first: for names.
    Fuzzy,
    /// Every typed word as a substring, in the order of the list: for prose.
    Words,
}

/// A search for typed text.
#[derive(Debug)]
pub(super) struct Search {
    matching: Matching,
    pattern: Pattern,
    matcher: Matcher,
    letters: Vec<char>,
}

impl Search {
    /// Creates a search; `None` if the text is blank.
    pub fn new(typed: &str, matching: Matching) -> Option<Self> {
        let typed = typed.trim();
        if typed.is_empty() {
            return None;
        }
        let kind = match matching {
            Matching::Fuzzy => AtomKind::Fuzzy,
            Matching::Words => AtomKind::Substring,
        };
        Some(Self {
            matching,
            pattern: Pattern::new(typed, CaseMatching::Ignore, Normalization::Smart, kind),
            matcher: Matcher::new(Config::DEFAULT),
            letters: Vec::new(),
        })
    }

    /// The indices of the matches, in display order.
    pub fn find(&mut self, haystacks: &[String]) -> Vec<usize> {
        let mut found: Vec<(u32, usize)> = Vec::new();
        for (at, words) in haystacks.iter().enumerate() {
            let words = Utf32Str::new(words, &mut self.letters);
            let score = self.pattern.score(words, &mut self.matcher);
            found.extend(score.map(|score| (score, at)));
        }
        if self.matching == Matching::Fuzzy {
            found.sort_by_key(|&(score, at)| (Reverse(score), at));
        }
        found.into_iter().map(|(_, at)| at).collect()
    }

    /// The indices of the graphemes that match.
    pub fn marks(&mut self, text: &str) -> Vec<usize> {
        let mut marks = Vec::new();
        let text = Utf32Str::new(text, &mut self.letters);
        self.pattern.indices(text, &mut self.matcher, &mut marks);
        marks.into_iter().map(|mark| mark as usize).collect()
    }
}
