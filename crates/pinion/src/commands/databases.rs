//! The flags that `turns` and `timeline` share: the choice of the database, the filter, the format and the
//! destination.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::ExitCode;

use pinion_history::{ExportForm, ListForm, ReportError, ShowForm, StoreChoice};

use crate::failure::{Context, Failure};
use crate::verb::Line;

/// One of the two kinds of databases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Store {
    Turns,
    Timeline,
}

impl Store {
    fn name(self) -> &'static str {
        match self {
            Self::Turns => "turns",
            Self::Timeline => "timeline",
        }
    }

    /// Returns the flags that name its database.
    fn flags(self) -> [&'static str; 3] {
        match self {
            Self::Turns => ["--turns-db", "--turns-dsn", "--turns-backend"],
            Self::Timeline => ["--timeline-db", "--timeline-dsn", "--timeline-backend"],
        }
    }
}

/// The parsed command line.
#[derive(Debug)]
pub(super) struct Arguments {
    backend: String,
    dsn: String,
    db: String,
    pub(super) session: Option<String>,
    pub(super) phase: Option<String>,
    pub(super) limit: Option<usize>,
    pub(super) as_of: Option<u64>,
    pub(super) form: ShowForm,
    format: Option<ExportForm>,
    output: Option<String>,
}

impl Arguments {
    /// Parses the flags of a command.
    pub(super) fn read(store: Store, line: &Line) -> Result<Self, Failure> {
        let [] = line.exactly()?;
        let text = |flag: &str| line.value(flag).map(str::to_owned);
        let [db, dsn, backend] = store.flags().map(|flag| text(flag).unwrap_or_default());
        let format = |name: &str| {
            ExportForm::named(name).ok_or_else(|| {
                line.wrong(format!(
                    "unknown format {name:?}; use jsonl, markdown or html"
                ))
            })
        };
        let arguments = Self {
            backend,
            dsn,
            db,
            session: text("--session"),
            phase: text("--phase"),
            limit: line.parsed("--limit", "a number")?,
            as_of: line.parsed("--as-of", "a number")?,
            form: if line.has("--json") {
                ShowForm::Json
            } else if line.has("--yaml") {
                ShowForm::Yaml
            } else {
                ShowForm::Text
            },
            format: line.value("--format").map(format).transpose()?,
            output: text("--output"),
        };
        if arguments.choice() == StoreChoice::default() {
            let name = store.name();
            return Err(line.wrong(format!(
                "name a database with --{name}-db FILE or --{name}-dsn DSN"
            )));
        }
        Ok(arguments)
    }

    pub(super) fn choice(&self) -> StoreChoice<'_> {
        StoreChoice {
            backend: &self.backend,
            dsn: &self.dsn,
            db: &self.db,
        }
    }

    /// Returns the form of a list, which has a heading on a terminal.
    pub(super) fn list_form(&self) -> ListForm {
        if self.form == ShowForm::Json {
            ListForm::Json
        } else if io::stdout().is_terminal() {
            ListForm::Table
        } else {
            ListForm::Columns
        }
    }

    /// Returns the form of an export: the one of `--format`, else the one of the file's extension, else JSON lines.
    pub(super) fn export_form(&self) -> ExportForm {
        let by_name = || ExportForm::of_file(self.output.as_deref()?);
        self.format.or_else(by_name).unwrap_or(ExportForm::Jsonl)
    }

    /// Writes to the file of `--output`, or to standard output. A reader that has gone away is not an error.
    pub(super) fn write(
        &self,
        write: impl FnOnce(&mut dyn Write) -> Result<(), ReportError>,
    ) -> Result<ExitCode, Failure> {
        let written = match &self.output {
            Some(path) => {
                let file = pinion_files::create_or_empty(path.as_ref(), 0o666);
                let mut file = BufWriter::new(file.context(format!("could not write {path}"))?);
                write(&mut file).and_then(|()| Ok(file.flush()?))
            }
            None => {
                let mut stdout = BufWriter::new(io::stdout().lock());
                write(&mut stdout).and_then(|()| Ok(stdout.flush()?))
            }
        };
        match written {
            Err(ReportError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                Ok(ExitCode::SUCCESS)
            }
            written => Ok(written.map(|()| ExitCode::SUCCESS)?),
        }
    }
}

/// Prints the problems that a check found.
pub(super) fn report_problems(problems: &[String]) -> Result<ExitCode, Failure> {
    if problems.is_empty() {
        return super::out("ok\n");
    }
    super::out(&(problems.join("\n") + "\n"))?;
    Ok(ExitCode::FAILURE)
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

    fn read(store: Store, words: &str) -> Result<Arguments, String> {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        let verb = match store {
            Store::Turns => &TURNS,
            Store::Timeline if words.iter().any(|word| word == "--json") => &SHOW,
            Store::Timeline => &TIMELINE,
        };
        let line = Line::read(verb, &words).map_err(|failure| failure.to_string())?;
        Arguments::read(store, &line.unwrap()).map_err(|failure| failure.to_string())
    }

    #[test]
    fn flags_are_read_in_both_forms() {
        let line = "--turns-db=a.db --session s --phase=failed --all -o talk.md";
        let arguments = read(Store::Turns, line).unwrap();
        assert_eq!(arguments.choice().db, "a.db");
        assert_eq!(arguments.session.as_deref(), Some("s"));
        assert_eq!(arguments.phase.as_deref(), Some("failed"));
        assert_eq!(arguments.export_form(), ExportForm::Markdown);
        let line = "--timeline-backend sqlite --timeline-dsn a.db --format html -o x.md";
        let arguments = read(Store::Timeline, line).unwrap();
        assert_eq!(
            (arguments.choice().backend, arguments.choice().dsn),
            ("sqlite", "a.db")
        );
        assert_eq!(arguments.export_form(), ExportForm::Html);
        let line = "--timeline-dsn x --as-of 7 --json --session-id s";
        let arguments = read(Store::Timeline, line).unwrap();
        assert_eq!((arguments.as_of, arguments.form), (Some(7), ShowForm::Json));
        assert_eq!(arguments.session.as_deref(), Some("s"));
        assert_eq!(arguments.export_form(), ExportForm::Jsonl);
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
            let error = read(store, line).unwrap_err();
            assert!(error.contains(said), "{line}: {error}");
        }
    }
}
