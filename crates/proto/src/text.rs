//! Strings that are cheap to clone: the same ids and states appear in every event of a run.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

/// A string that is constant or shared; cloning does not copy it.
#[derive(Clone)]
pub struct Text(Repr);

#[derive(Clone)]
enum Repr {
    Constant(&'static str),
    Shared(Arc<str>),
    Gap,
}

impl Text {
    /// A placeholder for a string that is stored elsewhere. The encoder writes a gap in its place,
    /// which [`around_gap`] finds, so that a string that grows with every event is escaped once and
    /// inserted by its owner. It reads as the empty string.
    pub const GAP: Self = Self(Repr::Gap);

    /// Copies a string.
    pub fn new(text: &str) -> Self {
        if text.is_empty() {
            Self::default()
        } else {
            Self(Repr::Shared(Arc::from(text)))
        }
    }

    pub fn as_str(&self) -> &str {
        match &self.0 {
            Repr::Constant(text) => text,
            Repr::Shared(text) => text,
            Repr::Gap => "",
        }
    }

    /// Reports whether this is [`Text::GAP`].
    pub fn is_gap(&self) -> bool {
        matches!(self.0, Repr::Gap)
    }
}

/// The byte an encoder writes for [`Text::GAP`]; JSON contains it nowhere else.
pub(crate) const GAP: u8 = 0;

/// Returns the bytes before and after the first gap of an encoded message.
pub fn around_gap(encoded: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = encoded.iter().position(|&byte| byte == GAP)?;
    Some((&encoded[..at], &encoded[at + 1..]))
}

impl Default for Text {
    fn default() -> Self {
        Self(Repr::Constant(""))
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl Borrow<str> for Text {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl From<&'static str> for Text {
    fn from(text: &'static str) -> Self {
        Self(Repr::Constant(text))
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::new(&text)
    }
}

impl From<Arc<str>> for Text {
    fn from(text: Arc<str>) -> Self {
        Self(Repr::Shared(text))
    }
}

impl From<&Arc<str>> for Text {
    fn from(text: &Arc<str>) -> Self {
        Self(Repr::Shared(Arc::clone(text)))
    }
}

impl From<&Text> for Text {
    fn from(text: &Text) -> Self {
        text.clone()
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Text {}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl PartialOrd for Text {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Text {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_str().cmp(other.as_str())
    }
}

impl Hash for Text {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Repr::Gap => f.write_str("GAP"),
            _ => fmt::Debug::fmt(self.as_str(), f),
        }
    }
}

/// A secret, masked in `Debug`.
pub(crate) struct Masked<'a>(pub &'a Text);

impl fmt::Debug for Masked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "\"\"" } else { "***" })
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.as_str(), f)
    }
}
