//! The ages of pi's wire format.

use std::str::FromStr;

/// Which form of the protocol a client speaks.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dialect {
    /// The first published form: three commands, events only.
    Early,
    /// pi 0.52: every update repeats the answer so far.
    #[default]
    Classic,
    /// pi 1.x: updates carry only what is new.
    Modern,
}

impl Dialect {
    /// All of them, oldest first.
    pub const ALL: [Self; 3] = [Self::Early, Self::Classic, Self::Modern];

    /// Its name in flags, settings and file names.
    pub fn name(self) -> &'static str {
        match self {
            Self::Early => "early",
            Self::Classic => "classic",
            Self::Modern => "modern",
        }
    }
}

/// No dialect has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no dialect \"{0}\"; use early, classic or modern")]
pub struct UnknownDialect(pub String);

impl FromStr for Dialect {
    type Err = UnknownDialect;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|dialect| dialect.name() == name)
            .ok_or_else(|| UnknownDialect(name.to_owned()))
    }
}
