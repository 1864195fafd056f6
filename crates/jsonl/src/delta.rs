//! Text that grows while it waits.

use std::sync::Arc;

/// Added text: shared while it is one delta, owned once several have merged.
#[derive(Debug)]
pub enum DeltaText {
    /// One delta.
    One(Arc<str>),
    /// Several.
    Several(String),
}

impl DeltaText {
    /// The text.
    pub fn as_str(&self) -> &str {
        match self {
            Self::One(text) => text,
            Self::Several(text) => text,
        }
    }

    /// The text, shared.
    pub fn into_shared(self) -> Arc<str> {
        match self {
            Self::One(text) => text,
            Self::Several(text) => text.into(),
        }
    }

    /// Adds what came later.
    pub fn push(&mut self, more: &Self) {
        if let Self::One(text) = self {
            *self = Self::Several(text.to_string());
        }
        if let Self::Several(text) = self {
            text.push_str(more.as_str());
        }
    }
}
