//! The command line of `fleet`.

use std::path::PathBuf;
use std::time::Duration;

use super::{check, clean, list, resume, show, start};
use crate::failure::Failure;
use crate::verb::{Entry, Group, Line, Verb};
use pinion_cli::tables;
use pinion_text::duration;

/// The age from which `fleet clean` deletes runs unless the command line names another.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);

const RUN: Verb = Verb::new("pinion fleet", &tables::fleet::RUN, |line| {
    let [plan] = line.exactly()?;
    start(plan, &Arguments::read(line)?)
});
const CHECK: Verb = Verb::new("pinion fleet", &tables::fleet::CHECK, |line| {
    let [plan] = line.exactly()?;
    check(plan)
});
const RESUME: Verb = Verb::new("pinion fleet", &tables::fleet::RESUME, |line| {
    let [run] = line.exactly()?;
    resume(run, &Arguments::read(line)?)
});
const SHOW: Verb = Verb::new("pinion fleet", &tables::fleet::SHOW, |line| {
    show(line.at_most_one()?.unwrap_or("last"), line.has("--json"))
});
const LIST: Verb = Verb::new("pinion fleet", &tables::fleet::LIST, |line| {
    let [] = line.exactly()?;
    list(line.has("--json"))
});
const CLEAN: Verb = Verb::new("pinion fleet", &tables::fleet::CLEAN, |line| {
    clean(&Which::read(line)?)
});

pub(crate) const GROUP: Group = Group {
    above: "pinion",
    command: &tables::fleet::FLEET,
    entries: &[
        Entry::One(&RUN),
        Entry::One(&CHECK),
        Entry::One(&RESUME),
        Entry::One(&SHOW),
        Entry::One(&LIST),
        Entry::One(&CLEAN),
    ],
    takes_words: false,
};

/// The flags of `fleet run` and `fleet resume`.
#[derive(Debug)]
pub(super) struct Arguments {
    pub printed: Printed,
    pub run_dir: Option<PathBuf>,
    pub quiet: bool,
}

/// The runs to delete.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Which {
    Named(Vec<String>),
    OlderThan(Duration),
}

/// The content of standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Printed {
    Report,
    Lines,
    Nothing,
}

impl Arguments {
    fn read(line: &Line) -> Result<Self, Failure> {
        let printed = match line.value("--output") {
            None | Some("report") => Printed::Report,
            Some("jsonl") => Printed::Lines,
            Some("none") => Printed::Nothing,
            Some(other) => {
                return Err(line.wrong(format!(
                    "unknown value {other:?} for --output; use report, jsonl or none"
                )));
            }
        };
        Ok(Self {
            printed,
            run_dir: line.value("--run-dir").map(PathBuf::from),
            quiet: line.has("--quiet"),
        })
    }
}

impl Which {
    fn read(line: &Line) -> Result<Self, Failure> {
        let older = match line.value("--older-than") {
            Some(text) => Some(age(line, text)?),
            None => line.has("--all").then_some(Duration::ZERO),
        };
        match (line.words.is_empty(), older) {
            (false, Some(_)) => Err(line.wrong("either name runs, or say how old they are")),
            (false, None) => Ok(Self::Named(line.words.clone())),
            (true, older) => Ok(Self::OlderThan(older.unwrap_or(KEPT))),
        }
    }
}

/// Parses an age such as `30d`, `12h` or `10m`.
fn age(line: &Line, text: &str) -> Result<Duration, Failure> {
    duration::parse(text).ok_or_else(|| {
        line.wrong(format!(
            "unknown time {text:?} for --older-than; use 30d, 12h or 10m"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(verb: &'static Verb, words: &str) -> Result<Line, String> {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        let line = Line::read(verb, &words).map_err(|failure| failure.to_string())?;
        Ok(line.unwrap())
    }

    fn which(words: &str) -> Result<Which, String> {
        Which::read(&line(&CLEAN, words)?).map_err(|failure| failure.to_string())
    }

    #[test]
    fn flags_are_understood() {
        let run = line(&RUN, "plan.yaml --output=jsonl --run-dir out -q").unwrap();
        let run = Arguments::read(&run).unwrap();
        assert_eq!((run.printed, run.quiet), (Printed::Lines, true));
        assert_eq!(run.run_dir, Some("out".into()));
        assert_eq!(which(""), Ok(Which::OlderThan(KEPT)));
        assert_eq!(which("a b"), Ok(Which::Named(vec!["a".into(), "b".into()])));
        assert_eq!(
            which("--older-than 12h"),
            Ok(Which::OlderThan(Duration::from_secs(43_200)))
        );
        assert_eq!(which("--all"), Ok(Which::OlderThan(Duration::ZERO)));
    }

    #[test]
    fn slips_are_answered() {
        let run = line(&RUN, "x --output xml").unwrap();
        let error = Arguments::read(&run).unwrap_err().to_string();
        assert!(error.contains("use report, jsonl or none"), "{error}");
        assert!(line(&RUN, "x --json").unwrap_err().contains("--json"));
        assert!(which("a --all").unwrap_err().contains("either name runs"));
        assert!(
            which("--older-than 5")
                .unwrap_err()
                .contains("unknown time")
        );
    }
}
