//! What is typed, compared with what there is.

use std::cmp::Reverse;

use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};

/// How typing narrows a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Matching {
    /// Letters in their order, the best match first: for names.
    Fuzzy,
    /// Words that occur, the list in its own order: for prose.
    Words,
}

/// Something that is searched for.
#[derive(Debug)]
pub(super) struct Search {
    matching: Matching,
    pattern: Pattern,
    matcher: Matcher,
    letters: Vec<char>,
}

impl Search {
    /// Looks for everything that is typed; nothing is looked for if that is nothing.
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

    /// The places of those in which it occurs, in the order they are shown.
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

    /// Which graphemes of a text are those that were typed.
    pub fn marks(&mut self, text: &str) -> Vec<usize> {
        let mut marks = Vec::new();
        let text = Utf32Str::new(text, &mut self.letters);
        self.pattern.indices(text, &mut self.matcher, &mut marks);
        marks.into_iter().map(|mark| mark as usize).collect()
    }
}
