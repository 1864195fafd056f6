//! The stores that command-line flags select.

use crate::sql::{Access, Dsn, Location, SqliteLocation};
use crate::timeline::DatabaseTimeline;
use crate::turns::DatabaseTurns;
use crate::{HistoryError, MemoryTimeline, MemoryTurns, TimelineStore, TurnStore};

/// The three flags of a store, as they were given; an absent flag is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StoreChoice<'a> {
    /// `--turns-backend`, `--timeline-backend`.
    pub backend: &'a str,
    /// `--turns-dsn`, `--timeline-dsn`.
    pub dsn: &'a str,
    /// `--turns-db`, `--timeline-db`.
    pub db: &'a str,
}

/// A kind of store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// No store.
    Off,
    /// A store in memory, until the process ends.
    Memory,
    /// A SQLite file.
    Sqlite,
    /// A PostgreSQL server.
    Postgres,
}

enum Chosen {
    Off,
    Memory,
    At(Location),
}

impl StoreChoice<'_> {
    /// Returns the kind of store that the flags select; fails if they contradict each other.
    pub fn backend(&self) -> Result<Backend, HistoryError> {
        Ok(match self.choose()? {
            Chosen::Off => Backend::Off,
            Chosen::Memory => Backend::Memory,
            Chosen::At(Location::Sqlite(_)) => Backend::Sqlite,
            Chosen::At(Location::Postgres(_)) => Backend::Postgres,
        })
    }

    fn choose(&self) -> Result<Chosen, HistoryError> {
        let (backend, dsn, db) = (self.backend.trim(), self.dsn.trim(), self.db.trim());
        match backend {
            "" if dsn.is_empty() && db.is_empty() => Ok(Chosen::Off),
            "" if dsn.is_empty() => Ok(Chosen::At(Location::Sqlite(SqliteLocation::path(db)))),
            "" if dsn.starts_with("file:") => sqlite(dsn, db),
            "" if is_postgres(dsn) => postgres(dsn, db),
            "" => Err(options(
                "persistence DSN requires an explicit backend: sqlite or postgres",
            )),
            "disabled" => nothing_else(Chosen::Off, backend, dsn, db),
            "memory" => nothing_else(Chosen::Memory, backend, dsn, db),
            "sqlite" => sqlite(dsn, db),
            "postgres" | "postgresql" => postgres(dsn, db),
            "mysql" => Err(HistoryError::Backend {
                name: backend.to_owned(),
                hint: ": this program has no MySQL; use sqlite or postgres",
            }),
            other => Err(HistoryError::Backend {
                name: other.to_owned(),
                hint: "",
            }),
        }
    }
}

fn is_postgres(dsn: &str) -> bool {
    dsn.starts_with("postgres://") || dsn.starts_with("postgresql://")
}

fn nothing_else(
    chosen: Chosen,
    backend: &str,
    dsn: &str,
    db: &str,
) -> Result<Chosen, HistoryError> {
    if dsn.is_empty() && db.is_empty() {
        Ok(chosen)
    } else {
        Err(options(format!(
            "persistence backend \"{backend}\" takes neither a DSN nor a database path"
        )))
    }
}

fn sqlite(dsn: &str, db: &str) -> Result<Chosen, HistoryError> {
    let location = match (dsn, db) {
        ("", "") => {
            return Err(options(
                "persistence backend \"sqlite\" needs a DSN or a database path",
            ));
        }
        ("", db) => SqliteLocation::path(db),
        (dsn, "") => SqliteLocation::dsn(dsn)?,
        _ => {
            return Err(options(
                "persistence backend \"sqlite\" takes a DSN or a database path, not both",
            ));
        }
    };
    Ok(Chosen::At(Location::Sqlite(location)))
}

fn postgres(dsn: &str, db: &str) -> Result<Chosen, HistoryError> {
    match (dsn, db) {
        ("", _) => Err(options("persistence backend \"postgres\" needs a DSN")),
        (dsn, "") => Ok(Chosen::At(Location::Postgres(Dsn(dsn.to_owned())))),
        _ => Err(options(
            "persistence backend \"postgres\" takes no database path",
        )),
    }
}

fn options(message: impl Into<String>) -> HistoryError {
    HistoryError::Options(message.into())
}

/// Opens the selected turn store and creates it if it is missing; `None` if no store is selected.
pub fn open_turns(choice: &StoreChoice<'_>) -> Result<Option<Box<dyn TurnStore>>, HistoryError> {
    let open = || -> Result<Option<Box<dyn TurnStore>>, HistoryError> {
        Ok(match choice.choose()? {
            Chosen::Off => None,
            Chosen::Memory => Some(Box::new(MemoryTurns::new())),
            Chosen::At(location) => {
                Some(Box::new(DatabaseTurns::open(location, Access::ReadWrite)?))
            }
        })
    };
    open().map_err(opening(TURNS))
}

/// Opens the selected timeline store and creates it if it is missing; an empty one in memory if no
/// store is selected.
pub fn open_timeline(choice: &StoreChoice<'_>) -> Result<Box<dyn TimelineStore>, HistoryError> {
    let open = || -> Result<Box<dyn TimelineStore>, HistoryError> {
        Ok(match choice.choose()? {
            Chosen::Off => Box::new(MemoryTimeline::of_the_present()),
            Chosen::Memory => Box::new(MemoryTimeline::new()),
            Chosen::At(location) => Box::new(DatabaseTimeline::open(location, Access::ReadWrite)?),
        })
    };
    open().map_err(opening(TIMELINE))
}

/// Opens an existing turn store for reading.
pub fn read_turns(choice: &StoreChoice<'_>) -> Result<Box<dyn TurnStore>, HistoryError> {
    Ok(Box::new(existing_turns(choice)?))
}

/// Opens an existing timeline store for reading.
pub fn read_timeline(choice: &StoreChoice<'_>) -> Result<Box<dyn TimelineStore>, HistoryError> {
    Ok(Box::new(existing_timeline(choice)?))
}

/// Returns the problems of a turn database; empty if there are none.
pub fn check_turns(choice: &StoreChoice<'_>) -> Result<Vec<String>, HistoryError> {
    existing_turns(choice)?.problems()
}

/// Returns the problems of a timeline database; empty if there are none.
pub fn check_timeline(choice: &StoreChoice<'_>) -> Result<Vec<String>, HistoryError> {
    existing_timeline(choice)?.problems()
}

fn existing_turns(choice: &StoreChoice<'_>) -> Result<DatabaseTurns, HistoryError> {
    let open = || DatabaseTurns::open(choice.existing()?, Access::ReadOnly);
    open().map_err(opening(TURNS))
}

fn existing_timeline(choice: &StoreChoice<'_>) -> Result<DatabaseTimeline, HistoryError> {
    let open = || DatabaseTimeline::open(choice.existing()?, Access::ReadOnly);
    open().map_err(opening(TIMELINE))
}

impl StoreChoice<'_> {
    fn existing(&self) -> Result<Location, HistoryError> {
        match self.choose()? {
            Chosen::At(location) => Ok(location),
            Chosen::Off | Chosen::Memory => Err(options("no database is named")),
        }
    }
}

const TURNS: &str = "open CLI turn store: ";
const TIMELINE: &str = "open CLI hydration store: ";

fn opening(prefix: &'static str) -> impl FnOnce(HistoryError) -> HistoryError {
    move |source| HistoryError::Open {
        prefix,
        source: Box::new(source),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backend(backend: &str, dsn: &str, db: &str) -> Result<Backend, String> {
        let choice = StoreChoice { backend, dsn, db };
        choice.backend().map_err(|error| error.to_string())
    }

    #[test]
    fn the_flags_name_one_store() {
        for (flags, chosen) in [
            (["", "", ""], Backend::Off),
            (["", "", "a.db"], Backend::Sqlite),
            (["", "file:a.db?_fk=on", ""], Backend::Sqlite),
            (["", "postgres://u@h/d", ""], Backend::Postgres),
            (["", "postgresql://u@h/d", ""], Backend::Postgres),
            (["disabled", "", ""], Backend::Off),
            (["memory", "", ""], Backend::Memory),
            (["sqlite", "", "a.db"], Backend::Sqlite),
            (["sqlite", "a.db", ""], Backend::Sqlite),
            (["sqlite", "file:a.db", ""], Backend::Sqlite),
            (["postgres", "host=h user=u", ""], Backend::Postgres),
            ([" sqlite ", "", " a.db "], Backend::Sqlite),
        ] {
            assert_eq!(
                backend(flags[0], flags[1], flags[2]),
                Ok(chosen),
                "{flags:?}"
            );
        }
    }

    #[test]
    fn flags_that_contradict_each_other_are_refused() {
        for (flags, said) in [
            (
                ["", "a.db", ""],
                "persistence DSN requires an explicit backend",
            ),
            (
                ["", "user@tcp(h:3306)/d", ""],
                "persistence DSN requires an explicit backend",
            ),
            (["", "file:a.db", "b.db"], "not both"),
            (["disabled", "", "a.db"], "takes neither"),
            (["memory", "file:a", ""], "takes neither"),
            (["sqlite", "", ""], "needs a DSN or a database path"),
            (["sqlite", "file:a", "b"], "not both"),
            (["postgres", "", ""], "needs a DSN"),
            (["postgres", "postgres://h", "b"], "takes no database path"),
            (["mysql", "u@tcp(h)/d", ""], "this program has no MySQL"),
            (
                ["oracle", "x", ""],
                "unsupported persistence backend \"oracle\"",
            ),
        ] {
            let error = backend(flags[0], flags[1], flags[2]).unwrap_err();
            assert!(error.contains(said), "{flags:?}: {error}");
        }
    }

    #[test]
    fn errors_say_which_store_was_opened() {
        let choice = StoreChoice {
            backend: "oracle",
            ..StoreChoice::default()
        };
        let turns = open_turns(&choice).err().unwrap();
        assert_eq!(
            turns.to_string(),
            "open CLI turn store: unsupported persistence backend \"oracle\""
        );
        assert_eq!(turns.code(), "history_backend");
        let timeline = open_timeline(&choice).err().unwrap();
        assert!(
            timeline
                .to_string()
                .starts_with("open CLI hydration store: ")
        );
    }

    #[test]
    fn a_password_is_not_printed() {
        let location = Location::Postgres(Dsn("postgres://u:secret@h/d".to_owned()));
        assert!(!format!("{location:?}").contains("secret"));
    }
}
