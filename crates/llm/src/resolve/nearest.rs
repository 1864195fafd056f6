//! The name most like one that is unknown.

use crate::registry::Candidate;

/// The name most like `unknown`, if one is like it at all.
pub(super) fn name<'n>(unknown: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let unknown = unknown.to_lowercase();
    let near = names.filter_map(|name| {
        let distance = distance(&unknown, &name.to_lowercase())?;
        Some((distance, name))
    });
    // The first of equals.
    near.reduce(|best, next| if next.0 < best.0 { next } else { best })
        .map(|(_, name)| name)
}

/// `provider/id` of the model whose id is most like `unknown`.
pub(super) fn model(unknown: &str, candidates: &[Candidate<'_>]) -> Option<String> {
    let spoken = || candidates.iter().filter(|candidate| candidate.is_spoken());
    let ids = || spoken().map(|candidate| candidate.id);
    let found = name(unknown, ids()).or_else(|| {
        // Routers put the maker before the id, and people leave it out.
        let (_, unknown) = unknown.rsplit_once('/')?;
        name(unknown, ids())
    })?;
    let candidate = spoken().find(|candidate| candidate.id == found)?;
    Some(format!("{}/{}", candidate.provider, candidate.id))
}

/// How many letters have to be changed, added, left out or swapped with their neighbour to turn one
/// into the other; `None` when that is more than a third of them.
fn distance(left: &str, right: &str) -> Option<usize> {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let limit = left.len().max(right.len()) / 3;
    if left.len().abs_diff(right.len()) > limit {
        return None;
    }
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for (row, &a) in left.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, &b) in right.iter().enumerate() {
            let mut cost = (last[column] + usize::from(a != b))
                .min(last[column + 1] + 1)
                .min(current[column] + 1);
            let swapped = row > 0 && column > 0 && a == right[column - 1] && left[row - 1] == b;
            if swapped {
                cost = cost.min(before_last[column - 1] + 1);
            }
            current.push(cost);
        }
        if current.iter().all(|&cost| cost > limit) {
            return None;
        }
        before_last = std::mem::replace(&mut last, current);
    }
    last.last().copied().filter(|&distance| distance <= limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_of_the_finger_are_near_and_other_words_are_not() {
        let names = ["anthropic", "openai", "openrouter"];
        let near = |unknown| name(unknown, names.into_iter());
        assert_eq!(near("antrhopic"), Some("anthropic"));
        assert_eq!(near("OpenIA"), Some("openai"));
        assert_eq!(near("opnrouter"), Some("openrouter"));
        assert_eq!(near("mistral"), None);
        assert_eq!(near(""), None);
    }

    #[test]
    fn a_swap_is_one_change() {
        assert_eq!(distance("abcdef", "abdcef"), Some(1));
        assert_eq!(distance("abc", "xyz"), None);
    }
}
