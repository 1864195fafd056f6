//! The known word that a misspelled one most likely stands for, for "did you mean" suggestions.

/// Letters of a word that are compared. Longer words are not misspelled by a few letters, and the comparison stays
/// cheap for any input.
const LETTERS: usize = 64;

/// The number of letters to change, insert, delete or swap with their neighbour to turn one word into the other.
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().take(LETTERS).collect();
    let right: Vec<char> = right.chars().take(LETTERS).collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for (row, &a) in left.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, &b) in right.iter().enumerate() {
            let mut cost = (last[column] + usize::from(a != b))
                .min(last[column + 1] + 1)
                .min(current[column] + 1);
            if row > 0 && column > 0 && a == right[column - 1] && left[row - 1] == b {
                cost = cost.min(before_last[column - 1] + 1);
            }
            current.push(cost);
        }
        before_last = std::mem::replace(&mut last, current);
    }
    last[right.len()]
}

/// Returns the candidate most like `word`, or `None` if every candidate is a different word.
///
/// Case does not matter, nor does the difference between `-` and `_`. At most a third of the letters may differ, and one
/// always may. Among equally distant candidates the one closest in length wins (`modle` is `model`, not `mode`), then
/// the first. A word that is only cut short (`sess`) matches the first candidate that continues it.
pub fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let word = plain(word);
    let length = word.chars().count();
    let mut best: Option<((usize, usize), &str)> = None;
    let mut continued = None;
    for candidate in candidates {
        let known = plain(candidate);
        let known_length = known.chars().count();
        let difference = length.abs_diff(known_length);
        let limit = (length.max(known_length) / 3).max(1);
        if length > 2 && known.starts_with(&word) {
            continued = continued.or(Some(candidate));
        }
        if length == 0 || difference > limit {
            continue;
        }
        let rank = (distance(&word, &known), difference);
        if rank.0 <= limit && best.is_none_or(|(other, _)| rank < other) {
            best = Some((rank, candidate));
        }
    }
    best.map(|(_, candidate)| candidate).or(continued)
}

fn plain(word: &str) -> String {
    word.to_lowercase().replace('_', "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_counted() {
        for (left, right, changes) in [
            ("", "", 0),
            ("list", "list", 0),
            ("lst", "list", 1),
            ("lsit", "list", 1),
            ("abcdef", "abdcef", 1),
            ("wörd", "word", 1),
            ("", "abc", 3),
        ] {
            assert_eq!(distance(left, right), changes, "{left} {right}");
            assert_eq!(distance(right, left), changes, "{right} {left}");
        }
    }

    #[test]
    fn a_slip_finds_its_word_and_another_word_finds_nothing() {
        for (word, candidates, found) in [
            (
                "--modle",
                &["--mode", "--model", "--models"][..],
                Some("--model"),
            ),
            ("hbu", &["hub", "help"], Some("hub")),
            ("Bash", &["read", "bash"], Some("bash")),
            ("bsh", &["read", "bash"], Some("bash")),
            ("api-keys", &["api_key", "api_keys"], Some("api_keys")),
            ("sess", &["schema", "sessions"], Some("sessions")),
            ("OpenIA", &["anthropic", "openai"], Some("openai")),
            ("l", &["ls", "find"], Some("ls")),
            ("mistral", &["anthropic", "openai"], None),
            ("x", &["read", "bash"], None),
            ("", &["ls"], None),
        ] {
            assert_eq!(nearest(word, candidates.iter().copied()), found, "{word}");
        }
    }
}
