//! The parts that `turns` and `timeline` share: the choice of the database, the filter, the format and the
//! destination.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::ExitCode;

use pinion_history::{HistoryError, StoreChoice, Transcript};
use pinion_text::columns;

use crate::failure::Failure;
use crate::verb::Line;

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

    /// Returns the flags that name its database.
    fn place(self) -> [&'static str; 3] {
        match self {
            Self::Turns => ["--turns-db", "--turns-dsn", "--turns-backend"],
            Self::Timeline => ["--timeline-db", "--timeline-dsn", "--timeline-backend"],
        }
    }
}

/// The verb after `turns` or `timeline`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    List,
    Show,
    Export,
    Check,
}

/// The format of printed output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Shape {
    #[default]
    Text,
    Json,
    Yaml,
}

/// The format of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Jsonl,
    Markdown,
    Html,
}

impl Format {
    fn named(line: &Line, name: &str) -> Result<Self, Failure> {
        match name {
            "jsonl" => Ok(Self::Jsonl),
            "markdown" | "md" => Ok(Self::Markdown),
            "html" => Ok(Self::Html),
            other => Err(line.wrong(&format!(
                "unknown format {other:?}; use jsonl, markdown or html"
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

/// The parsed command line.
#[derive(Debug)]
pub(super) struct Asked {
    backend: String,
    dsn: String,
    db: String,
    pub(super) session: Option<String>,
    pub(super) phase: Option<String>,
    pub(super) limit: Option<usize>,
    pub(super) as_of: Option<u64>,
    pub(super) shape: Shape,
    /// `turns export --all` or `timeline show --events` was given: the output is not limited to the usual selection.
    pub(super) everything: bool,
    format: Option<Format>,
    output: Option<String>,
}

impl Asked {
    /// Parses the flags of a command.
    pub(super) fn read(store: Store, line: &Line) -> Result<Self, Failure> {
        let [] = line.exactly()?;
        let text = |flag: &str| line.value(flag).map(str::to_owned);
        let [db, dsn, backend] = store.place().map(|flag| text(flag).unwrap_or_default());
        let asked = Self {
            backend,
            dsn,
            db,
            session: text("--session"),
            phase: text("--phase"),
            limit: line.parsed("--limit", "a number")?,
            as_of: line.parsed("--as-of", "a number")?,
            shape: if line.has("--json") {
                Shape::Json
            } else if line.has("--yaml") {
                Shape::Yaml
            } else {
                Shape::Text
            },
            everything: line.has("--all") || line.has("--events"),
            format: line
                .value("--format")
                .map(|name| Format::named(line, name))
                .transpose()?,
            output: text("--output"),
        };
        if asked.choice() == StoreChoice::default() {
            let name = store.name();
            return Err(line.wrong(&format!(
                "name a database with --{name}-db FILE or --{name}-dsn DSN"
            )));
        }
        Ok(asked)
    }

    pub(super) fn choice(&self) -> StoreChoice<'_> {
        StoreChoice {
            backend: &self.backend,
            dsn: &self.dsn,
            db: &self.db,
        }
    }

    /// Returns the format of an export: the one of `--format`, else the one of the file's extension, else JSON lines.
    pub(super) fn format(&self) -> Format {
        let by_name = || Format::of_file(self.output.as_deref()?);
        self.format.or_else(by_name).unwrap_or(Format::Jsonl)
    }

    /// Writes to the file of `--output`, or to standard output. A reader that has gone away is not an error.
    pub(super) fn write(
        &self,
        write: impl FnOnce(&mut dyn Write) -> Result<(), Stopped>,
    ) -> Result<ExitCode, Failure> {
        let written = match &self.output {
            Some(path) => {
                let file =
                    pinion_files::create_or_empty(path.as_ref(), 0o666).map_err(|error| {
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

    /// Formats a transcript as a page; the second and later ones of a web page follow the first.
    pub(super) fn page(format: Format, transcript: &Transcript) -> String {
        match format {
            Format::Html => transcript.html(),
            Format::Markdown | Format::Jsonl => transcript.markdown(),
        }
    }
}

/// The reason why writing ended early.
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

/// Makes the failure of a database error: wrong options are errors of usage.
pub(super) fn failed(error: HistoryError) -> Failure {
    match error.code() {
        "history_options" | "history_backend" => Failure::usage(format!("Error: {error}")),
        _ => Failure::failed(format!("Error: {error}")),
    }
}

/// Prints the problems that a check found.
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

/// Formats rows in columns, with a heading on a terminal.
pub(super) fn table<const N: usize>(heading: [&str; N], mut rows: Vec<[String; N]>) -> String {
    if !rows.is_empty() && io::stdout().is_terminal() {
        rows.insert(0, heading.map(str::to_owned));
    }
    columns(&rows)
}

/// Returns the beginning of a text on one line, without control characters.
pub(super) fn beginning(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().take(20).collect();
    let words = words.join(" ");
    words.chars().filter(|c| !c.is_control()).take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verb::Verb;
    use pinion_cli::tables::databases::{TIMELINE_EXPORT, TIMELINE_SHOW, TURNS_EXPORT};

    const TURNS: Verb = Verb::new("pinion turns", &TURNS_EXPORT, |_| Ok(ExitCode::SUCCESS));
    const TIMELINE: Verb = Verb::new("pinion timeline", &TIMELINE_EXPORT, |_| {
        Ok(ExitCode::SUCCESS)
    });
    const SHOW: Verb = Verb::new("pinion timeline", &TIMELINE_SHOW, |_| Ok(ExitCode::SUCCESS));

    fn asked(store: Store, words: &str) -> Result<Asked, String> {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        let verb = match store {
            Store::Turns => &TURNS,
            Store::Timeline if words.iter().any(|word| word == "--json") => &SHOW,
            Store::Timeline => &TIMELINE,
        };
        let line = Line::read(verb, &words).map_err(|failure| failure.to_string())?;
        Asked::read(store, &line.unwrap()).map_err(|failure| failure.to_string())
    }

    #[test]
    fn flags_are_read_in_both_forms() {
        let line = "--turns-db=a.db --session s --phase=failed --all -o talk.md";
        let read = asked(Store::Turns, line).unwrap();
        assert_eq!(read.choice().db, "a.db");
        assert_eq!(read.session.as_deref(), Some("s"));
        assert_eq!(read.phase.as_deref(), Some("failed"));
        assert!(read.everything);
        assert_eq!(read.format(), Format::Markdown);
        let line = "--timeline-backend sqlite --timeline-dsn a.db --format html -o x.md";
        let read = asked(Store::Timeline, line).unwrap();
        assert_eq!(
            (read.choice().backend, read.choice().dsn),
            ("sqlite", "a.db")
        );
        assert_eq!(read.format(), Format::Html);
        let line = "--timeline-dsn x --as-of 7 --json --session-id s";
        let read = asked(Store::Timeline, line).unwrap();
        assert_eq!((read.as_of, read.shape), (Some(7), Shape::Json));
        assert_eq!(read.session.as_deref(), Some("s"));
        assert_eq!(read.format(), Format::Jsonl);
    }

    #[test]
    fn slips_say_what_may_be_meant() {
        for (store, line, said) in [
            (Store::Turns, "", "name a database with --turns-db FILE"),
            (Store::Turns, "extra", "\"extra\" is one word too many"),
            (
                Store::Timeline,
                "--timeline-dsn a --as-of x",
                "--as-of needs a number, not \"x\"",
            ),
            (
                Store::Timeline,
                "--timeline-dsn a --format pdf",
                "unknown format \"pdf\"",
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
