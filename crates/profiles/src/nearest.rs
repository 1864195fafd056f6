//! What somebody probably meant to write.

use pinion_spelling::distance;

/// The name of `names` that differs from `word` by the fewest letters, if that is few.
pub(crate) fn nearest<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |text: &str| text.to_lowercase().replace('-', "_");
    let word = plain(word);
    let allowed = (word.len() / 3).clamp(1, 3);
    names
        .map(|name| (distance(&word, &plain(name)), name))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_word() {
        let names = ["app", "profile", "profiles", "api_keys"];
        for (word, found) in [
            ("profil", Some("profile")),
            ("api-keys", Some("api_keys")),
            ("ap", Some("app")),
            ("weather", None),
        ] {
            assert_eq!(nearest(word, names.into_iter()), found, "{word}");
        }
    }
}
