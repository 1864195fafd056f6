//! The dialects of pi's protocol.

use std::str::FromStr;

use pinion_agent::{EngineBehaviour, StatsScope};

/// The form of the protocol that a client uses.
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
    /// All dialects, oldest first.
    pub const ALL: [Self; 3] = [Self::Early, Self::Classic, Self::Modern];

    /// Returns its name in flags, settings and file names.
    pub fn name(self) -> &'static str {
        match self {
            Self::Early => "early",
            Self::Classic => "classic",
            Self::Modern => "modern",
        }
    }
}

/// The engine's behaviour that clients of pi 0.52 expect.
pub const CLASSIC_BEHAVIOUR: EngineBehaviour = EngineBehaviour {
    reject_malformed_arguments: false,
    // With Anthropic's API these clients see an empty message first, with other APIs the failed answer.
    announce_failed_answer_empty: &["anthropic-messages"],
    retry_summaries: false,
    reject_empty_compaction: false,
    store_summary_usage: false,
    count_retry_wait_as_streaming: false,
    stats_scope: StatsScope::Context,
};

/// The engine's behaviour that clients of pi 1.x expect.
pub const MODERN_BEHAVIOUR: EngineBehaviour = EngineBehaviour {
    reject_malformed_arguments: true,
    announce_failed_answer_empty: &[],
    retry_summaries: true,
    reject_empty_compaction: true,
    store_summary_usage: true,
    count_retry_wait_as_streaming: true,
    stats_scope: StatsScope::Session,
};

/// The error for a name that no dialect has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown dialect \"{0}\"; use early, classic or modern")]
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
