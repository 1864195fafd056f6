//! The command line of `fleet`.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::Duration;

use crate::failure::Failure;
use crate::nearest::nearest;

const VERBS: [&str; 5] = ["run", "resume", "show", "list", "clean"];
/// Runs are kept for this long unless told otherwise.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);

/// What is asked for.
#[derive(Debug)]
pub(super) struct Arguments {
    pub verb: Verb,
    pub printed: Printed,
    pub run_dir: Option<PathBuf>,
    pub quiet: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Help,
    Run { plan: String },
    Resume { run: String },
    Show { run: String, json: bool },
    List { json: bool },
    Clean(Which),
}

/// Which runs are deleted.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Which {
    Named(Vec<String>),
    OlderThan(Duration),
}

/// What goes to standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Printed {
    Report,
    Lines,
    Nothing,
}

impl Arguments {
    pub fn parse(words: &[String]) -> Result<Self, Failure> {
        let mut rest: VecDeque<String> = words.iter().cloned().collect();
        let Some(verb) = rest.pop_front() else {
            return Ok(Self::of(Verb::Help));
        };
        if !VERBS.contains(&verb.as_str()) {
            let hint = match nearest(&verb, VERBS.into_iter()) {
                Some(nearest) => format!("Did you mean {nearest}?"),
                None => format!("Use {}.", VERBS.join(", ")),
            };
            return Err(wrong(format!("fleet cannot {verb}. {hint}")));
        }
        let mut arguments = Self::of(Verb::Help);
        let (mut names, mut json, mut older) = (Vec::new(), false, None);
        while let Some(word) = rest.pop_front() {
            let (flag, attached) = match word.split_once('=') {
                Some((flag, value)) if flag.starts_with("--") => {
                    (flag.to_owned(), Some(value.to_owned()))
                }
                _ => (word, None),
            };
            let mut value = || {
                let value = attached.clone().or_else(|| rest.pop_front());
                value.ok_or_else(|| wrong(format!("{flag} needs a value after it.")))
            };
            let runs = matches!(verb.as_str(), "run" | "resume");
            match flag.as_str() {
                "--output" if runs => arguments.printed = printed(&value()?)?,
                "--run-dir" if verb == "run" => arguments.run_dir = Some(value()?.into()),
                "--quiet" | "-q" if runs => arguments.quiet = true,
                "--json" if matches!(verb.as_str(), "show" | "list") => json = true,
                "--older-than" if verb == "clean" => older = Some(age(&value()?)?),
                "--all" if verb == "clean" => older = Some(Duration::ZERO),
                flag if flag.starts_with('-') && flag.len() > 1 => {
                    return Err(wrong(format!("{flag} is not understood here.")));
                }
                _ => names.push(flag),
            }
        }
        arguments.verb = verb_of(&verb, names, json, older)?;
        Ok(arguments)
    }

    fn of(verb: Verb) -> Self {
        Self {
            verb,
            printed: Printed::Report,
            run_dir: None,
            quiet: false,
        }
    }
}

fn verb_of(
    verb: &str,
    mut names: Vec<String>,
    json: bool,
    older: Option<Duration>,
) -> Result<Verb, Failure> {
    let most = if verb == "clean" { usize::MAX } else { 1 };
    if names.len() > most || (verb == "list" && !names.is_empty()) {
        return Err(wrong(format!(
            "{} is not understood here.",
            names.last().map_or("", String::as_str)
        )));
    }
    Ok(match (verb, names.pop()) {
        ("run", Some(plan)) => Verb::Run { plan },
        ("run", None) => return Err(wrong("name a plan: pinion fleet run PLAN.yaml")),
        ("resume", Some(run)) => Verb::Resume { run },
        ("resume", None) => return Err(wrong("name a run, or `last`: pinion fleet resume RUN")),
        ("show", run) => Verb::Show {
            run: run.unwrap_or_else(|| "last".into()),
            json,
        },
        ("list", _) => Verb::List { json },
        (_, Some(_)) if older.is_some() => {
            return Err(wrong("either name runs, or say how old they are."));
        }
        (_, Some(last)) => {
            names.push(last);
            Verb::Clean(Which::Named(names))
        }
        (_, None) => Verb::Clean(Which::OlderThan(older.unwrap_or(KEPT))),
    })
}

fn wrong(message: impl Into<String>) -> Failure {
    Failure::usage(format!(
        "Error: {} See `pinion fleet --help`.",
        message.into()
    ))
}

fn printed(word: &str) -> Result<Printed, Failure> {
    match word {
        "report" => Ok(Printed::Report),
        "jsonl" => Ok(Printed::Lines),
        "none" => Ok(Printed::Nothing),
        _ => Err(wrong(format!(
            "--output {word} is unknown; use report, jsonl or none."
        ))),
    }
}

/// `30d`, `12h`, `10m`.
fn age(text: &str) -> Result<Duration, Failure> {
    let unit = match text.chars().last() {
        Some('d') => 24 * 3600,
        Some('h') => 3600,
        Some('m') => 60,
        _ => 0,
    };
    let number = text
        .get(..text.len().saturating_sub(1))
        .and_then(|digits| digits.parse::<u64>().ok());
    let seconds = number
        .filter(|_| unit > 0)
        .and_then(|number| number.checked_mul(unit));
    seconds.map(Duration::from_secs).ok_or_else(|| {
        wrong(format!(
            "--older-than {text} is no time; use 30d, 12h or 10m."
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &str) -> Result<Arguments, String> {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        Arguments::parse(&words).map_err(|failure| failure.to_string())
    }

    #[test]
    fn verbs_and_flags_are_understood() {
        let run = parse("run plan.yaml --output=jsonl --run-dir out -q").unwrap();
        assert_eq!(
            run.verb,
            Verb::Run {
                plan: "plan.yaml".into()
            }
        );
        assert_eq!((run.printed, run.quiet), (Printed::Lines, true));
        assert_eq!(run.run_dir, Some("out".into()));
        assert_eq!(
            parse("show").unwrap().verb,
            Verb::Show {
                run: "last".into(),
                json: false
            }
        );
        let clean = |words: &str| parse(words).unwrap().verb;
        assert_eq!(clean("clean"), Verb::Clean(Which::OlderThan(KEPT)));
        assert_eq!(
            clean("clean a b"),
            Verb::Clean(Which::Named(vec!["a".into(), "b".into()]))
        );
        assert_eq!(
            clean("clean --older-than 12h"),
            Verb::Clean(Which::OlderThan(Duration::from_secs(43_200)))
        );
    }

    #[test]
    fn slips_are_answered() {
        for (words, part) in [
            ("rum x", "Did you mean run?"),
            ("run", "name a plan"),
            ("run a b", "b is not understood"),
            ("resume", "name a run"),
            ("run x --output xml", "use report, jsonl or none"),
            ("run x --json", "--json is not understood"),
            ("run x --output", "needs a value"),
            ("clean a --all", "either name runs"),
            ("clean --older-than 5", "is no time"),
        ] {
            let error = parse(words).unwrap_err();
            assert!(error.contains(part), "{words}: {error}");
        }
    }
}
