//! The dialects of pi's protocol.

use std::str::FromStr;

use pinion_agent::{EngineBehaviour, SessionVariables, StatsScope};

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
    // With Anthropic's API these clients see an empty message first, with other APIs the failed answer.
    announce_failed_answer_empty: &["anthropic-messages"],
    ..EngineBehaviour::PLAIN
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
    context_after_messages: true,
    ask_hooks_about_queued_messages: true,
    ask_hooks_about_custom_runs: true,
    record_measurements: true,
    record_system_prompt: true,
    record_omitted_answers: true,
    reject_cut_off_calls: true,
    compact_between_turns: true,
    summarise_all_on_overflow: true,
    hide_run_after_overflow: true,
    abort_text: Some("This operation was aborted"),
    fail_unsent_answers: true,
    answer_retry_abort_at_once: true,
    keep_choices_in_session: true,
    announce_every_cleared_queue: true,
    fold_session_names: true,
    name_left_entry_in_summary: true,
    store_model_in_new_session: true,
    remove_sessions_without_messages: true,
    session_variables: Some(SessionVariables {
        session_id: "PI_SESSION_ID",
        session_file: "PI_SESSION_FILE",
        provider: "PI_PROVIDER",
        model: "PI_MODEL",
        thinking_level: "PI_REASONING_LEVEL",
    }),
};

/// The error for a name that no dialect has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown dialect \"{0}\"; use auto, early, classic or modern")]
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

/// The first release whose updates carry only what is new.
const FIRST_MODERN: (u64, u64) = (0, 84);
/// The first release known to answer each command.
const FIRST_CLASSIC: (u64, u64) = (0, 14);

impl Dialect {
    /// Returns the dialect of a release of pi, such as "1.5.0". `None` if the text is not a version.
    pub fn of_release(version: &str) -> Option<Self> {
        let mut parts = version.split('.').map(|part| part.parse::<u64>().ok());
        let release = (parts.next()??, parts.next()??);
        Some(if release >= FIRST_MODERN {
            Self::Modern
        } else if release >= FIRST_CLASSIC {
            Self::Classic
        } else {
            Self::Early
        })
    }
}

/// A dialect that a person names: one of the three, or `auto`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DialectName {
    /// The dialect of the user's own pi.
    Auto,
    Named(Dialect),
}

impl FromStr for DialectName {
    type Err = UnknownDialect;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "auto" => Ok(Self::Auto),
            name => name.parse().map(Self::Named),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_have_the_dialect_they_speak() {
        for (version, dialect) in [
            ("0.12.7", Some(Dialect::Early)),
            ("0.13.2", Some(Dialect::Early)),
            ("0.52.12", Some(Dialect::Classic)),
            ("0.83.0", Some(Dialect::Classic)),
            ("0.84.0", Some(Dialect::Modern)),
            ("0.87.1", Some(Dialect::Modern)),
            ("1.5.0", Some(Dialect::Modern)),
            ("2.0.0-beta.1", Some(Dialect::Modern)),
            ("latest", None),
            ("1", None),
            ("", None),
        ] {
            assert_eq!(Dialect::of_release(version), dialect, "{version}");
        }
    }
}
