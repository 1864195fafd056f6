//! SQLite files: pinion's tables, those of the original program, and invalid files.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use pinion_history::{
    HistoryError, StoreChoice, TimelineStore, TurnStore, check_timeline, check_turns,
    open_timeline, open_turns, read_timeline, read_turns,
};
use rusqlite::Connection;
use support::{change, described, entity, event, save, texts};

fn file(path: &Path) -> StoreChoice<'_> {
    StoreChoice {
        db: path.to_str().unwrap(),
        ..StoreChoice::default()
    }
}

fn timeline(path: &Path) -> Box<dyn TimelineStore> {
    open_timeline(&file(path)).unwrap()
}

fn turns(path: &Path) -> Box<dyn TurnStore> {
    open_turns(&file(path)).unwrap().unwrap()
}

fn made_by(sql: &str, path: &Path) {
    Connection::open(path).unwrap().execute_batch(sql).unwrap();
}

fn asked<T: rusqlite::types::FromSql>(path: &Path, sql: &str) -> T {
    let connection = Connection::open(path).unwrap();
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}

/// Returns tables, columns, keys and indexes as text, independent of the statements that created
/// them.
fn schema(path: &Path) -> String {
    let connection = Connection::open(path).unwrap();
    let all = |sql: &str| -> Vec<String> {
        let mut statement = connection.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.map(Result::unwrap).collect()
    };
    let mut lines = all("SELECT 'user_version ' || user_version FROM pragma_user_version");
    for table in all(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name",
    ) {
        lines.push(format!("table {table}"));
        lines.extend(all(&format!(
            "SELECT '    ' || name || ' ' || type || iif(\"notnull\", ' NOT NULL', '')
                || coalesce(' default ' || dflt_value, '') || iif(pk > 0, ' key ' || pk, '')
             FROM pragma_table_info('{table}') ORDER BY cid"
        )));
        lines.extend(all(&format!(
            "SELECT '    references ' || \"table\" || ' (' || group_concat(\"to\", ', ' ORDER BY seq) || ') from ('
                || group_concat(\"from\", ', ' ORDER BY seq) || ') on delete ' || on_delete
             FROM pragma_foreign_key_list('{table}') GROUP BY id ORDER BY \"table\""
        )));
    }
    lines.extend(all(
        "SELECT 'index ' || m.name || ' on ' || m.tbl_name || ' ('
            || (SELECT group_concat(i.name || iif(i.desc, ' DESC', ''), ', ' ORDER BY i.seqno)
                FROM pragma_index_xinfo(m.name) i WHERE i.key = 1) || ')'
         FROM sqlite_master m WHERE m.type = 'index' AND m.sql IS NOT NULL ORDER BY m.name",
    ));
    lines.extend(all(
        "SELECT 'autoincrement ' || name FROM sqlite_master WHERE sql LIKE '%AUTOINCREMENT%'",
    ));
    lines.join("\n") + "\n"
}

#[test]
fn tables_are_those_of_the_original() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("deep/down/timeline.db");
    drop(timeline(&path));
    assert_eq!(schema(&path), include_str!("data/timeline.schema"));
    let mode = fs::metadata(home.path().join("deep"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o755 & !umask());
    let path = home.path().join("turns.db");
    drop(turns(&path));
    assert_eq!(schema(&path), include_str!("data/turns.schema"));
    assert_eq!(asked::<String>(&path, "PRAGMA journal_mode"), "wal");
}

/// Returns the umask of this process, as the system reports it.
fn umask() -> u32 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("Umask:"))
        .unwrap();
    u32::from_str_radix(line.trim(), 8).unwrap()
}

#[test]
fn moments_are_written_as_the_original_writes_them() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("t.db");
    let mut store = timeline(&path);
    store.append("s", &[event(1, "A")], &[]).unwrap();
    let first: String = asked(
        &path,
        "SELECT updated_at FROM sessionstream_projection_cursors",
    );
    let shape = |text: &str| {
        text.chars()
            .map(|c| if c.is_ascii_digit() { '0' } else { c })
            .collect::<String>()
    };
    assert_eq!(shape(&first), "0000-00-00T00:00:00.000Z");
    let moment: String = asked(&path, "SELECT created_at FROM sessionstream_events");
    assert_eq!(shape(&moment), "0000-00-00T00:00:00.000Z");
    // The clock moves on.
    std::thread::sleep(std::time::Duration::from_millis(5));
    store.append("s", &[event(2, "B")], &[]).unwrap();
    let second: String = asked(
        &path,
        "SELECT updated_at FROM sessionstream_projection_cursors",
    );
    assert_eq!(first, second, "a cursor keeps the moment of its first row");
    let gone = change(3, support::gone("m", "x"));
    store.append("s", &[event(3, "C")], &[gone]).unwrap();
    let payload: String = asked(
        &path,
        "SELECT payload_json FROM sessionstream_entity_versions WHERE tombstone = 1",
    );
    assert_eq!(payload, "null");
}

#[test]
fn a_timeline_of_the_original_goes_on() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("timeline.db");
    made_by(include_str!("data/original-timeline.sql"), &path);
    {
        let mut reader = read_timeline(&file(&path)).unwrap();
        assert_eq!(reader.cursor("project-notes").unwrap(), 4);
        assert_eq!(
            asked::<i64>(&path, "PRAGMA user_version"),
            1,
            "reading changes nothing"
        );
        let problems = check_timeline(&file(&path)).unwrap();
        assert_eq!(problems.len(), 1);
        assert!(
            problems[0].contains("entities only of the first 3"),
            "{problems:?}"
        );
    }
    let mut store = timeline(&path);
    assert_eq!(schema(&path), include_str!("data/timeline.schema"));
    assert_eq!(store.cursor("project-notes").unwrap(), 4);
    assert_eq!(store.projected("project-notes").unwrap(), 3);
    let caught_up = change(
        4,
        entity("ChatMessage", "chat-msg-1:text:1", "{\"text\":\"Hello\"}"),
    );
    store.apply("project-notes", &[caught_up], 4).unwrap();
    store
        .append("project-notes", &[event(5, "ChatRunFinished")], &[])
        .unwrap();
    let snapshot = store.snapshot("project-notes", None).unwrap();
    assert_eq!(snapshot.ordinal, 5);
    assert_eq!(
        described(&snapshot.entities),
        [
            "ChatMessage/chat-msg-1-user@1-1 {\"text\":\"hi\"}",
            "ChatMessage/chat-msg-1:text:1@3-4 {\"text\":\"Hello\"}"
        ]
    );
    let before = store.snapshot("project-notes", Some(3)).unwrap();
    assert_eq!(&*before.entities[1].payload, "{\"text\":\"Hel\"}");
    let sessions = store.sessions().unwrap();
    assert_eq!(sessions[0].first_at, "2026-08-01T10:00:00.000Z");
    assert_eq!(check_timeline(&file(&path)).unwrap(), Vec::<String>::new());
}

#[test]
fn turns_of_the_original_are_resumed_and_shared() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("turns.db");
    made_by(include_str!("data/original-turns.sql"), &path);
    let mut store = turns(&path);
    let found = store.latest("project-notes", "final").unwrap().unwrap();
    assert_eq!(found.at_ms, 1_700_000_000_500);
    assert_eq!(texts(&found.turn), ["a < b & c", "yes"]);
    assert_eq!(found.turn.blocks[1].kind.name(), "llm_text");
    assert_eq!(
        (found.runtime_key.as_str(), found.inference_id.as_str()),
        ("default", "run-7")
    );
    let other: String = asked(
        &path,
        "SELECT inference_id || '/' || runtime_key || '/' || updated_at_ms || '/' || turn_created_at_ms FROM turns WHERE conv_id = 'other'",
    );
    assert_eq!(other, "run-8//1600000000000/1600000000000");
    let broken: String = asked(
        &path,
        "SELECT inference_id || '/' || runtime_key FROM turns WHERE conv_id = 'broken'",
    );
    assert_eq!(broken, "/");

    let mut next = found.turn.clone();
    next.blocks.push(pinion_history::Block::text(
        "block-3",
        pinion_history::BlockKind::User,
        "go on",
    ));
    let again = pinion_history::TurnSave {
        conversation: "project-notes",
        session: "project-notes",
        ..save(&next, 1_700_000_001_000)
    };
    store.save(&again).unwrap();
    assert_eq!(
        texts(
            &store
                .latest("project-notes", "final")
                .unwrap()
                .unwrap()
                .turn
        )
        .len(),
        3
    );
    let shared: i64 = asked(
        &path,
        "SELECT count(*) FROM blocks WHERE block_id = 'block-1'",
    );
    assert_eq!(shared, 1, "the same words have the same hash");
    let kept: i64 = asked(
        &path,
        "SELECT count(*) FROM turn_block_membership WHERE phase = 'final'",
    );
    assert_eq!(kept, 5, "the older snapshot stays");
    assert_eq!(check_turns(&file(&path)).unwrap(), Vec::<String>::new());
}

#[test]
fn what_is_no_database_is_left_alone() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("notes.txt");
    let half = [b"SQLite format 3\0".as_slice(), &[0; 3]].concat();
    for content in [
        b"dear diary".as_slice(),
        b"SQLite format 3",
        &half,
        &[0; 4096],
    ] {
        fs::write(&path, content).unwrap();
        for error in [
            open_timeline(&file(&path)).err().unwrap(),
            open_turns(&file(&path)).err().unwrap(),
            read_timeline(&file(&path)).err().unwrap(),
        ] {
            assert_eq!(error.code(), "history_not_a_database", "{error}");
            assert!(
                error
                    .to_string()
                    .contains("notes.txt is not a SQLite database"),
                "{error}"
            );
        }
        assert_eq!(fs::read(&path).unwrap(), content);
    }
    assert_eq!(
        fs::read_dir(home.path()).unwrap().count(),
        1,
        "nothing was put beside it"
    );
    fs::write(&path, "").unwrap();
    drop(timeline(&path));
}

#[test]
fn devices_pipes_and_descriptors_are_left_alone() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    nix::unistd::mkfifo(&at("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    std::os::unix::fs::symlink("/dev/null", at("device")).unwrap();
    std::os::unix::fs::symlink("/proc/self/fd/0", at("descriptor")).unwrap();
    fs::create_dir(at("directory")).unwrap();
    for name in ["fifo", "device", "descriptor", "directory"] {
        let path = at(name);
        for error in [
            open_timeline(&file(&path)).err().unwrap(),
            open_turns(&file(&path)).err().unwrap(),
            read_timeline(&file(&path)).err().unwrap(),
        ] {
            assert_eq!(error.code(), "history_io", "{error}");
        }
    }
    // A pipe in the place of SQLite's journal.
    filled(&at("turns.db"));
    nix::unistd::mkfifo(&at("turns.db-journal"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let error = open_timeline(&file(&at("turns.db"))).err().unwrap();
    assert!(
        error
            .to_string()
            .ends_with("turns.db-journal: is a FIFO, not a regular file"),
        "{error}"
    );
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 6);
}

/// Creates a database of several pages and closes it.
fn filled(path: &Path) {
    let mut store = timeline(path);
    for ordinal in 1..=300 {
        let made = change(ordinal, entity("m", &ordinal.to_string(), &"x".repeat(500)));
        store.append("s", &[event(ordinal, "E")], &[made]).unwrap();
    }
}

#[test]
fn a_damaged_database_is_refused_and_kept() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("t.db");
    filled(&path);
    let whole = fs::read(&path).unwrap();
    let mut torn = whole.clone();
    torn.truncate(whole.len() / 2);
    let mut scratched = whole.clone();
    let middle = whole.len() / 2 / 4096 * 4096;
    scratched[middle..middle + 8192].fill(0xa5);
    for damaged in [torn, scratched] {
        fs::write(&path, &damaged).unwrap();
        // The remains of a killed process cause a full check.
        fs::write(home.path().join("t.db-wal"), [0; 64]).unwrap();
        let error = open_timeline(&file(&path)).err().unwrap();
        assert_eq!(error.code(), "history_damaged", "{error}");
        assert!(error.to_string().contains(".recover"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), damaged);
        let _ = fs::remove_file(home.path().join("t.db-wal"));
        let _ = fs::remove_file(home.path().join("t.db-shm"));
        match check_timeline(&file(&path)) {
            Ok(problems) => assert!(!problems.is_empty()),
            Err(error) => assert_eq!(error.code(), "history_damaged"),
        }
    }
    fs::write(&path, &whole).unwrap();
    assert_eq!(timeline(&path).cursor("s").unwrap(), 300);
}

#[test]
fn reading_makes_no_file() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("none/t.db");
    for error in [
        read_timeline(&file(&path)).err().unwrap(),
        read_turns(&file(&path)).err().unwrap(),
    ] {
        assert_eq!(error.code(), "history_missing", "{error}");
    }
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);

    let path = home.path().join("t.db");
    timeline(&path).append("s", &[event(1, "A")], &[]).unwrap();
    let before = fs::read(&path).unwrap();
    let mut reader = read_timeline(&file(&path)).unwrap();
    assert_eq!(reader.cursor("s").unwrap(), 1);
    let beside: Vec<PathBuf> = fs::read_dir(home.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(beside, std::slice::from_ref(&path), "no log for reading");
    assert_eq!(
        reader
            .append("s", &[event(2, "B")], &[])
            .unwrap_err()
            .code(),
        "history_read_only"
    );
    assert_eq!(fs::read(&path).unwrap(), before);
    let wrong = read_turns(&file(&path)).err().unwrap();
    assert!(
        wrong.to_string().contains("there is no table turns in it"),
        "{wrong}"
    );
}

#[test]
fn a_reader_sees_what_is_written_beside_it() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("t.db");
    timeline(&path).append("s", &[event(1, "A")], &[]).unwrap();
    let mut reader = read_timeline(&file(&path)).unwrap();
    assert_eq!(reader.cursor("s").unwrap(), 1);
    let mut writer = timeline(&path);
    writer.append("s", &[event(2, "B")], &[]).unwrap();
    assert_eq!(reader.cursor("s").unwrap(), 2);
    let mut second = read_timeline(&file(&path)).unwrap();
    assert_eq!(second.cursor("s").unwrap(), 2);
    writer.append("s", &[event(3, "C")], &[]).unwrap();
    assert_eq!(second.cursor("s").unwrap(), 3);
}

#[test]
fn places_that_cannot_be_written_say_so() {
    // Not even root may create files there.
    let error = open_timeline(&file(Path::new("/proc/pinion-test/t.db")))
        .err()
        .unwrap();
    assert_eq!(error.code(), "history_io", "{error}");
    assert!(
        error
            .to_string()
            .starts_with("open CLI hydration store: could not make the directory"),
        "{error}"
    );
    let error = open_turns(&file(Path::new("/proc/t.db"))).err().unwrap();
    assert_eq!(error.code(), "history_database", "{error}");
    let home = tempfile::tempdir().unwrap();
    let error = open_turns(&file(home.path())).err().unwrap();
    assert_eq!(error.code(), "history_io", "{error}");
    let dsn = format!("file:{}/t.db?mode=ro", home.path().display());
    let missing = StoreChoice {
        dsn: &dsn,
        ..StoreChoice::default()
    };
    assert!(open_turns(&missing).is_err());
    drop(turns(&home.path().join("t.db")));
    let error = open_turns(&missing).err().unwrap();
    assert_eq!(error.code(), "history_read_only", "{error}");
}

#[test]
fn a_newer_or_foreign_schema_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let newer = home.path().join("newer.db");
    made_by("PRAGMA user_version = 3", &newer);
    let error = open_timeline(&file(&newer)).err().unwrap();
    assert!(
        error
            .to_string()
            .contains("written by a newer program (version 3, this one knows 2)"),
        "{error}"
    );
    let foreign = home.path().join("foreign.db");
    made_by("CREATE TABLE turns (id INTEGER PRIMARY KEY)", &foreign);
    let error = open_turns(&file(&foreign)).err().unwrap();
    assert!(
        error
            .to_string()
            .contains("the table turns has the key (id)"),
        "{error}"
    );
    assert_eq!(
        asked::<i64>(&foreign, "SELECT count(*) FROM sqlite_master"),
        1
    );
}

#[test]
fn a_lock_is_waited_for_within_limits() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("t.db");
    let dsn = format!("file:{}?_busy_timeout=20", path.display());
    let choice = StoreChoice {
        dsn: &dsn,
        ..StoreChoice::default()
    };
    let mut store = open_timeline(&choice).unwrap();
    let holder = Connection::open(&path).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = store.append("s", &[event(1, "A")], &[]).unwrap_err();
    assert!(matches!(error, HistoryError::Busy { .. }), "{error}");
    assert_eq!(store.cursor("s").unwrap(), 0, "readers do not wait");
    holder.execute_batch("COMMIT").unwrap();
    store.append("s", &[event(1, "A")], &[]).unwrap();
}
