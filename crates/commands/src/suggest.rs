//! What somebody may have meant.

use pinion_spelling::distance;

/// The candidate that is spelled most like `word`, if one is near enough.
pub fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let word = word.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| (distance(&word, candidate), candidate))
        .filter(|(distance, candidate)| {
            *distance <= 1 + candidate.len() / 4 || candidate.starts_with(&word) && word.len() > 2
        })
        .min()
        .map(|(_, candidate)| candidate)
}
