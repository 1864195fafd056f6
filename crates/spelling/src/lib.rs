//! How alike two words are, for those who answer a slip with what may be meant. How alike is alike enough, and what
//! is said about it, is theirs.

/// Letters of the first word that are looked at: nobody misspells a longer one by a few.
const LETTERS: usize = 64;

/// How many letters must be changed, put in or taken out to make one word the other.
pub fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, left) in left.chars().take(LETTERS).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, right) in right.iter().enumerate() {
            let substituted = diagonal + usize::from(left != *right);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
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
            ("lsit", "list", 2),
            ("wörd", "word", 1),
            ("", "abc", 3),
        ] {
            assert_eq!(distance(left, right), changes, "{left} {right}");
            assert_eq!(distance(right, left), changes, "{right} {left}");
        }
    }
}
