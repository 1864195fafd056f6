//! Text deltas that merge while they wait in the queue.

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
    pub fn as_str(&self) -> &str {
        match self {
            Self::One(text) => text,
            Self::Several(text) => text,
        }
    }

    /// Returns the text as a shared string; copies it only if deltas have merged.
    pub fn into_shared(self) -> Arc<str> {
        match self {
            Self::One(text) => text,
            Self::Several(text) => text.into(),
        }
    }

    /// Appends a later delta.
    pub fn push(&mut self, more: &Self) {
        if let Self::One(text) = self {
            *self = Self::Several(text.to_string());
        }
        if let Self::Several(text) = self {
            text.push_str(more.as_str());
        }
    }
}
