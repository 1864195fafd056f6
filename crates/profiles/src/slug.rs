//! Names of profiles and registries.

use std::fmt;

/// The name of a profile or a registry: `^[a-z0-9]([a-z0-9._-]{0,126}[a-z0-9])?$`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slug(String);

impl Slug {
    /// Parses a slug after trimming and lower-casing; `None` if the text is not one.
    pub fn new(text: &str) -> Option<Self> {
        let slug = text.trim().to_ascii_lowercase();
        let plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let bytes = slug.as_bytes();
        let ends_plainly = bytes.first().is_some_and(plain) && bytes.last().is_some_and(plain);
        let fits = bytes
            .iter()
            .all(|byte| plain(byte) || b"._-".contains(byte));
        (ends_plainly && fits && bytes.len() <= 128).then_some(Self(slug))
    }

    /// The registry of inline profiles.
    pub(crate) fn inline() -> Self {
        Self("config-inline".to_owned())
    }

    /// The default profile of a registry, if it has one of this name.
    pub(crate) fn default_profile() -> Self {
        Self("default".to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Slug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_are_lower_case_and_begin_and_end_plainly() {
        for (text, slug) in [
            ("default", Some("default")),
            (" Fast.GPT_4-o ", Some("fast.gpt_4-o")),
            ("7", Some("7")),
            ("", None),
            ("-a", None),
            ("a.", None),
            ("a b", None),
            ("a/b", None),
            ("gemütlich", None),
        ] {
            assert_eq!(Slug::new(text).as_ref().map(Slug::as_str), slug, "{text:?}");
        }
        assert!(Slug::new(&"a".repeat(128)).is_some());
        assert!(Slug::new(&"a".repeat(129)).is_none());
    }
}
