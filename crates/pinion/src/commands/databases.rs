//! What `turns` and `timeline` have in common: which database, what of it, in which form, and where to.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::ExitCode;

use pinion_history::{HistoryError, StoreChoice, Transcript};

use crate::failure::Failure;
use crate::nearest::nearest;

/// One of the two kinds of databases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Store {
    Turns,
    Timeline,
}

impl Store {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Turns => "turns",
            Self::Timeline => "timeline",
        }
    }

    /// Flags that only one of them has.
    fn own_flags(self) -> &'static [&'static str] {
        match self {
            Self::Turns => &["--phase", "--yaml", "--all"],
            Self::Timeline => &["--as-of", "--events"],
        }
    }
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    List,
    Show,
    Export,
    Check,
}

const VERBS: [&str; 4] = ["list", "show", "export", "check"];

/// The form of what is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Shape {
    #[default]
    Text,
    Json,
    Yaml,
}

/// The form of what is exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Jsonl,
    Markdown,
    Html,
}

impl Format {
    const NAMES: [&'static str; 3] = ["jsonl", "markdown", "html"];

    fn named(name: &str) -> Result<Self, Failure> {
        match name {
            "jsonl" => Ok(Self::Jsonl),
            "markdown" | "md" => Ok(Self::Markdown),
            "html" => Ok(Self::Html),
            other => Err(Failure::usage(format!(
                "Error: there is no format {other}; use {}.",
                Self::NAMES.join(", ")
            ))),
        }
    }

    fn of_file(name: &str) -> Option<Self> {
        match name.rsplit_once('.')?.1 {
            "jsonl" | "ndjson" => Some(Self::Jsonl),
            "md" | "markdown" => Some(Self::Markdown),
            "html" | "htm" => Some(Self::Html),
            _ => None,
        }
    }
}

/// A command line that was understood.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) verb: Verb,
    backend: String,
    dsn: String,
    db: String,
    pub(super) session: Option<String>,
    pub(super) phase: Option<String>,
    pub(super) limit: Option<usize>,
    pub(super) as_of: Option<u64>,
    pub(super) shape: Shape,
    /// `turns export --all`, `timeline show --events`: more than usual.
    pub(super) everything: bool,
    format: Option<Format>,
    output: Option<String>,
}

impl Asked {
    /// Reads what follows the name of the command.
    pub(super) fn parse(store: Store, arguments: &[String]) -> Result<Self, Failure> {
        let (verb, rest) = match arguments.split_first() {
            Some((verb, rest)) => (verb_named(store, verb)?, rest),
            None => return Err(see_help(store, "Error: say what to do.")),
        };
        let mut asked = Self {
            verb,
            backend: String::new(),
            dsn: String::new(),
            db: String::new(),
            session: None,
            phase: None,
            limit: None,
            as_of: None,
            shape: Shape::Text,
            everything: false,
            format: None,
            output: None,
        };
        let mut rest = rest.iter();
        while let Some(argument) = rest.next() {
            let (flag, attached) = match argument.split_once('=') {
                Some((flag, value)) if flag.starts_with("--") => (flag, Some(value.to_owned())),
                _ => (argument.as_str(), None),
            };
            let mut value = || {
                let next = attached.clone().or_else(|| rest.next().cloned());
                next.ok_or_else(|| Failure::usage(format!("Error: {flag} needs a value.")))
            };
            asked.take(store, flag, &mut value)?;
        }
        if asked.choice() == StoreChoice::default() {
            let name = store.name();
            return Err(Failure::usage(format!(
                "Error: name a database with --{name}-db FILE or --{name}-dsn DSN."
            )));
        }
        Ok(asked)
    }

    fn take(
        &mut self,
        store: Store,
        flag: &str,
        value: &mut dyn FnMut() -> Result<String, Failure>,
    ) -> Result<(), Failure> {
        let of_place = flag.strip_prefix("--");
        let of_place = of_place.and_then(|flag| flag.strip_prefix(store.name()));
        match of_place.unwrap_or_default() {
            "-db" => self.db = value()?,
            "-dsn" => self.dsn = value()?,
            "-backend" => self.backend = value()?,
            _ => self.take_other(store, flag, value)?,
        }
        Ok(())
    }

    fn take_other(
        &mut self,
        store: Store,
        flag: &str,
        value: &mut dyn FnMut() -> Result<String, Failure>,
    ) -> Result<(), Failure> {
        match flag {
            "--session" | "--session-id" => self.session = Some(value()?),
            "--limit" => self.limit = Some(number(flag, &value()?)?),
            "--json" => self.shape = Shape::Json,
            "--format" => self.format = Some(Format::named(&value()?)?),
            "-o" | "--output" => self.output = Some(value()?),
            own if !store.own_flags().contains(&own) => {
                return Err(see_help(
                    store,
                    &format!("Error: {own} is not understood here."),
                ));
            }
            "--phase" => self.phase = Some(value()?),
            "--yaml" => self.shape = Shape::Yaml,
            "--as-of" => self.as_of = Some(number(flag, &value()?)?),
            _ => self.everything = true,
        }
        Ok(())
    }

    /// The database.
    pub(super) fn choice(&self) -> StoreChoice<'_> {
        StoreChoice {
            backend: &self.backend,
            dsn: &self.dsn,
            db: &self.db,
        }
    }

    /// The form to export in: as named, as the file is named, or lines of JSON.
    pub(super) fn format(&self) -> Format {
        let by_name = || Format::of_file(self.output.as_deref()?);
        self.format.or_else(by_name).unwrap_or(Format::Jsonl)
    }

    /// Writes to the file that was named, or to stdout. A reader that has gone away is no error of ours.
    pub(super) fn write(
        &self,
        write: impl FnOnce(&mut dyn Write) -> Result<(), Stopped>,
    ) -> Result<ExitCode, Failure> {
        let written = match &self.output {
            Some(path) => {
                let file = File::create(path).map_err(|error| {
                    Failure::failed(format!("Error: could not write {path}: {error}"))
                })?;
                let mut file = BufWriter::new(file);
                write(&mut file).and_then(|()| Ok(file.flush()?))
            }
            None => {
                let mut stdout = BufWriter::new(io::stdout().lock());
                write(&mut stdout).and_then(|()| Ok(stdout.flush()?))
            }
        };
        match written {
            Ok(()) => Ok(ExitCode::SUCCESS),
            Err(Stopped::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                Ok(ExitCode::SUCCESS)
            }
            Err(Stopped::Output(error)) => Err(error.into()),
            Err(Stopped::Store(error)) => Err(failed(error)),
        }
    }

    /// Writes transcripts as pages; the second and later ones of a web page follow the first.
    pub(super) fn page(format: Format, transcript: &Transcript) -> String {
        match format {
            Format::Html => transcript.html(),
            Format::Markdown | Format::Jsonl => transcript.markdown(),
        }
    }
}

/// Why writing ended early.
#[derive(Debug)]
pub(super) enum Stopped {
    Output(io::Error),
    Store(HistoryError),
}

impl From<io::Error> for Stopped {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl From<HistoryError> for Stopped {
    fn from(error: HistoryError) -> Self {
        Self::Store(error)
    }
}

/// What went wrong with a database.
pub(super) fn failed(error: HistoryError) -> Failure {
    match error.code() {
        "history_options" | "history_backend" => Failure::usage(format!("Error: {error}")),
        _ => Failure::failed(format!("Error: {error}")),
    }
}

/// Prints what a check found.
pub(super) fn checked(problems: Result<Vec<String>, HistoryError>) -> Result<ExitCode, Failure> {
    let problems = problems.map_err(failed)?;
    if problems.is_empty() {
        return super::out("ok\n");
    }
    let lines: String = problems
        .iter()
        .map(|problem| format!("{problem}\n"))
        .collect();
    super::out(&lines)?;
    Ok(ExitCode::FAILURE)
}

/// Rows in columns; with a heading on a terminal.
pub(super) fn table<const N: usize>(heading: [&str; N], mut rows: Vec<[String; N]>) -> String {
    if !rows.is_empty() && io::stdout().is_terminal() {
        rows.insert(0, heading.map(str::to_owned));
    }
    let wide = |text: &String| text.chars().count();
    let width = |column: usize| rows.iter().map(|row| wide(&row[column])).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    let line = |row: &[String; N]| {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:width$}"));
        let cells: Vec<String> = cells.collect();
        cells.join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

/// The beginning of a text on one line, without anything that would do something to a terminal.
pub(super) fn beginning(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().take(20).collect();
    let words = words.join(" ");
    words.chars().filter(|c| !c.is_control()).take(60).collect()
}

fn verb_named(store: Store, word: &str) -> Result<Verb, Failure> {
    Ok(match word {
        "list" => Verb::List,
        "show" => Verb::Show,
        "export" => Verb::Export,
        "check" => Verb::Check,
        other => {
            let guess = match nearest(other, VERBS.into_iter()) {
                Some(nearest) => format!(" Did you mean {nearest}?"),
                None => String::new(),
            };
            let said = format!("Error: {} cannot {other}.{guess}", store.name());
            return Err(see_help(store, &said));
        }
    })
}

fn see_help(store: Store, said: &str) -> Failure {
    Failure::usage(format!("{said} See `pinion {} --help`.", store.name()))
}

fn number<T: std::str::FromStr>(flag: &str, text: &str) -> Result<T, Failure> {
    text.parse()
        .map_err(|_| Failure::usage(format!("Error: {flag} needs a number and got {text}.")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(store: Store, line: &str) -> Result<Asked, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Asked::parse(store, &words).map_err(|failure| failure.to_string())
    }

    #[test]
    fn flags_are_read_in_both_forms() {
        let line = "export --turns-db=a.db --session s --phase=failed --all -o talk.md";
        let read = asked(Store::Turns, line).unwrap();
        assert_eq!(read.verb, Verb::Export);
        assert_eq!(read.choice().db, "a.db");
        assert_eq!(read.session.as_deref(), Some("s"));
        assert_eq!(read.phase.as_deref(), Some("failed"));
        assert!(read.everything);
        assert_eq!(read.format(), Format::Markdown);
        let line = "export --timeline-backend sqlite --timeline-dsn a.db --format html -o x.md";
        let read = asked(Store::Timeline, line).unwrap();
        assert_eq!(
            (read.choice().backend, read.choice().dsn),
            ("sqlite", "a.db")
        );
        assert_eq!(read.format(), Format::Html);
        let read = asked(Store::Timeline, "show --timeline-db x --as-of 7 --json").unwrap();
        assert_eq!((read.as_of, read.shape), (Some(7), Shape::Json));
        assert_eq!(read.format(), Format::Jsonl);
    }

    #[test]
    fn slips_say_what_may_be_meant() {
        for (store, line, said) in [
            (Store::Turns, "", "say what to do"),
            (Store::Turns, "lst --turns-db a", "Did you mean list?"),
            (Store::Turns, "list", "name a database with --turns-db FILE"),
            (
                Store::Turns,
                "list --timeline-db a",
                "--timeline-db is not understood",
            ),
            (
                Store::Timeline,
                "show --timeline-db a --yaml",
                "--yaml is not understood",
            ),
            (
                Store::Timeline,
                "show --timeline-db a --as-of x",
                "needs a number and got x",
            ),
            (
                Store::Timeline,
                "show --timeline-db",
                "--timeline-db needs a value",
            ),
            (
                Store::Timeline,
                "export --timeline-db a --format pdf",
                "there is no format pdf",
            ),
        ] {
            let error = asked(store, line).unwrap_err();
            assert!(error.contains(said), "{line}: {error}");
        }
    }

    #[test]
    fn columns_are_as_wide_as_they_need_to_be() {
        let row = |a: &str, b: &str| [a.to_owned(), b.to_owned()];
        let rows = vec![row("é", "x"), row("long", "")];
        assert_eq!(table(["a", "b"], rows), "é     x\nlong\n");
        assert_eq!(beginning("a\n\tb \u{1b}[31mc"), "a b [31mc");
    }
}
