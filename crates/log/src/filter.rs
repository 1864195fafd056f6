//! Filters: the lowest level that is logged, for all crates or by crate.

use std::fmt;
use std::str::FromStr;

use pinion_text::nearest;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;

/// The crates that log. A test compares them with the manifests.
pub const TARGETS: &[&str] = &[
    "pinion",
    "pinion_agent",
    "pinion_agent_mcp",
    "pinion_clip",
    "pinion_cluster",
    "pinion_fleet",
    "pinion_hub",
    "pinion_llm",
    "pinion_mcp",
    "pinion_telemetry",
];

/// The words for levels, from the fewest records to the most.
pub const LEVELS: &[&str] = &["off", "error", "warn", "info", "debug", "trace"];

/// The beginning of the targets of all crates of the program. Records of libraries are never logged: they may contain
/// headers and bodies.
const OWN: &str = "pinion";

/// A filter such as `info` or `pinion_agent=debug,warn`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    default: LevelFilter,
    targets: Vec<(String, LevelFilter)>,
}

/// The reason why a text is not a filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilterError {
    /// A part between two commas is empty.
    Empty,
    UnknownLevel {
        written: String,
        nearest: Option<&'static str>,
    },
    UnknownTarget {
        written: String,
        nearest: Option<&'static str>,
    },
    /// A target without a level.
    NoLevel { target: String },
    /// Two levels for the same target, or two for everything else.
    Repeated { part: String },
}

impl Filter {
    /// Returns the filter for everything at `info` and above.
    pub fn info() -> Self {
        Self {
            default: LevelFilter::INFO,
            targets: Vec::new(),
        }
    }

    pub(crate) fn targets(&self) -> Targets {
        Targets::new()
            .with_target(OWN, self.default)
            .with_targets(self.targets.iter().cloned())
    }
}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        let mut default = None;
        let mut targets: Vec<(String, LevelFilter)> = Vec::new();
        for part in text.split(',').map(str::trim) {
            let repeated = match part.split_once('=') {
                _ if part.is_empty() => return Err(FilterError::Empty),
                Some((target, level)) => {
                    let (target, level) = (known_target(target.trim())?, level_of(level.trim())?);
                    let repeated = targets.iter().any(|(known, _)| *known == target);
                    targets.push((target, level));
                    repeated
                }
                None if known_target(part).is_ok() => {
                    let target = part.to_owned();
                    return Err(FilterError::NoLevel { target });
                }
                None => default.replace(level_of(part)?).is_some(),
            };
            if repeated {
                let part = part.to_owned();
                return Err(FilterError::Repeated { part });
            }
        }
        Ok(Self {
            default: default.unwrap_or(LevelFilter::OFF),
            targets,
        })
    }
}

fn level_of(word: &str) -> Result<LevelFilter, FilterError> {
    match word.to_ascii_lowercase().as_str() {
        "off" => Ok(LevelFilter::OFF),
        "error" => Ok(LevelFilter::ERROR),
        "warn" => Ok(LevelFilter::WARN),
        "info" => Ok(LevelFilter::INFO),
        "debug" => Ok(LevelFilter::DEBUG),
        "trace" => Ok(LevelFilter::TRACE),
        _ => Err(FilterError::UnknownLevel {
            written: word.to_owned(),
            nearest: nearest(word, LEVELS.iter().copied()),
        }),
    }
}

/// Returns a target whose crate logs: `pinion_agent`, or a module such as `pinion_agent::run`.
fn known_target(written: &str) -> Result<String, FilterError> {
    let name = written.split("::").next().unwrap_or_default();
    if TARGETS.contains(&name) {
        Ok(written.to_owned())
    } else {
        Err(FilterError::UnknownTarget {
            written: written.to_owned(),
            nearest: nearest(name, TARGETS.iter().copied()),
        })
    }
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("a part of the filter is empty"),
            Self::UnknownLevel { written, .. } => write!(f, "unknown level {written:?}"),
            Self::UnknownTarget { written, .. } => write!(f, "unknown target {written:?}"),
            Self::NoLevel { target } => write!(f, "{target:?} has no level"),
            Self::Repeated { part } => write!(f, "{part:?} sets a level a second time"),
        }
    }
}

impl FilterError {
    /// Returns the advice to print after the message.
    pub fn hint(&self) -> String {
        match self {
            Self::UnknownLevel {
                nearest: Some(nearest),
                ..
            }
            | Self::UnknownTarget {
                nearest: Some(nearest),
                ..
            } => format!("Did you mean {nearest}?"),
            Self::UnknownLevel { .. } => format!("Use {}.", one_of(LEVELS)),
            Self::UnknownTarget { .. } => format!("Use {}.", one_of(TARGETS)),
            Self::NoLevel { target } => format!("Write {target}=debug."),
            Self::Empty | Self::Repeated { .. } => {
                "Write a level such as info, or a filter such as pinion_agent=debug,warn."
                    .to_owned()
            }
        }
    }
}

impl std::error::Error for FilterError {}

/// Joins words as in `text or json`.
pub(crate) fn one_of(words: &[&str]) -> String {
    match words {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        _ => words.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing::Level;

    fn filter(text: &str) -> Targets {
        text.parse::<Filter>().unwrap().targets()
    }

    #[test]
    fn a_level_is_for_every_crate_of_the_program_and_no_library() {
        let targets = filter("Info");
        assert!(targets.would_enable("pinion_agent::run", &Level::INFO));
        assert!(targets.would_enable("pinion::main", &Level::WARN));
        assert!(!targets.would_enable("pinion_agent::run", &Level::DEBUG));
        assert!(!targets.would_enable("h2::codec", &Level::ERROR));
    }

    #[test]
    fn the_longest_target_decides() {
        let targets = filter("pinion_agent=debug, pinion_agent::run = trace,warn");
        assert!(targets.would_enable("pinion_agent::calls", &Level::DEBUG));
        assert!(targets.would_enable("pinion_agent::run", &Level::TRACE));
        assert!(!targets.would_enable("pinion_llm::exchange", &Level::INFO));
        assert!(targets.would_enable("pinion_llm::exchange", &Level::WARN));
        let targets = filter("pinion_llm=debug");
        assert!(!targets.would_enable("pinion_agent::run", &Level::ERROR));
    }

    #[test]
    fn what_is_not_a_filter_is_refused_with_the_nearest_match() {
        for (text, message, hint) in [
            ("debgu", "unknown level \"debgu\"", "Did you mean debug?"),
            (
                "7",
                "unknown level \"7\"",
                "Use off, error, warn, info, debug or trace.",
            ),
            (
                "pinion_agnet=debug",
                "unknown target \"pinion_agnet\"",
                "Did you mean pinion_agent?",
            ),
            (
                "pinion_agent=debgu",
                "unknown level \"debgu\"",
                "Did you mean debug?",
            ),
            (
                "h2=trace",
                "unknown target \"h2\"",
                "Use pinion, pinion_agent, pinion_agent_mcp, pinion_clip, pinion_cluster, pinion_fleet, pinion_hub, pinion_llm, pinion_mcp or pinion_telemetry.",
            ),
            (
                "pinion_agent",
                "\"pinion_agent\" has no level",
                "Write pinion_agent=debug.",
            ),
            (
                "info,",
                "a part of the filter is empty",
                "Write a level such as info, or a filter such as pinion_agent=debug,warn.",
            ),
            (
                "info,warn",
                "\"warn\" sets a level a second time",
                "Write a level such as info, or a filter such as pinion_agent=debug,warn.",
            ),
        ] {
            let error = text.parse::<Filter>().unwrap_err();
            assert_eq!(
                (error.to_string().as_str(), error.hint().as_str()),
                (message, hint)
            );
        }
        assert_eq!("".parse::<Filter>(), Err(FilterError::Empty));
    }

    #[test]
    fn the_targets_are_the_crates_that_depend_on_tracing() {
        let crates = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
        let mut logging = Vec::new();
        for entry in std::fs::read_dir(crates).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let manifest = std::fs::read_to_string(path.join("Cargo.toml")).unwrap_or_default();
            if name != "log"
                && manifest
                    .lines()
                    .any(|line| line == "tracing.workspace = true")
            {
                logging.push(match name.as_str() {
                    "pinion" => name,
                    _ => format!("pinion_{}", name.replace('-', "_")),
                });
            }
        }
        logging.sort();
        assert_eq!(logging, TARGETS);
    }
}
