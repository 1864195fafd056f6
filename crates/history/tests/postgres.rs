//! Stores on a PostgreSQL server, which the tests start and stop.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod server;
mod support;

use std::thread;

use pinion_history::{
    HistoryError, StoreChoice, TimelineStore, TurnStore, check_timeline, open_timeline, open_turns,
    read_timeline, read_turns,
};
use server::Server;
use support::{change, entity, event, save, texts, turn};

fn at(dsn: &str) -> StoreChoice<'_> {
    StoreChoice {
        dsn,
        ..StoreChoice::default()
    }
}

fn timeline(dsn: &str) -> Box<dyn TimelineStore> {
    open_timeline(&at(dsn)).unwrap()
}

fn turns(dsn: &str) -> Box<dyn TurnStore> {
    open_turns(&at(dsn)).unwrap().unwrap()
}

#[test]
#[ignore = "needs PostgreSQL"]
fn timelines_on_a_server() {
    let server = Server::start();
    let dsn = server.database("timelines");
    support::timeline::suite(&mut || timeline(&dsn));
}

#[test]
#[ignore = "needs PostgreSQL"]
fn turns_on_a_server() {
    let server = Server::start();
    let dsn = server.database("turns");
    support::turns::suite(&mut || turns(&dsn));
    assert_eq!(
        check_timeline(&at(&dsn)).unwrap_err().code(),
        "history_schema"
    );
}

#[test]
#[ignore = "needs PostgreSQL"]
fn many_processes_may_begin_at_once() {
    let server = Server::start();
    let dsn = server.database("begin");
    thread::scope(|scope| {
        for number in 0..8 {
            let dsn = &dsn;
            scope.spawn(move || {
                let session = format!("s{number}");
                let mut store = timeline(dsn);
                for ordinal in 1..=20 {
                    let made = change(ordinal, entity("m", "x", "{}"));
                    store
                        .append(&session, &[event(ordinal, "E")], &[made])
                        .unwrap();
                }
                turns(dsn)
                    .save(&save(&turn(&session, &["a"]), number))
                    .unwrap();
            });
        }
    });
    let sessions = timeline(&dsn).sessions().unwrap();
    assert_eq!(sessions.len(), 8);
    assert!(
        sessions
            .iter()
            .all(|session| session.events == 20 && session.ordinal == 20)
    );
    assert!(sessions[0].first_at.ends_with('Z') && sessions[0].first_at.contains('T'));
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_second_writer_of_a_session_is_told() {
    let server = Server::start();
    let dsn = server.database("second");
    let (mut first, mut second) = (timeline(&dsn), timeline(&dsn));
    first.append("s", &[event(1, "A")], &[]).unwrap();
    second
        .append("s", &[event(1, "A"), event(2, "B")], &[])
        .unwrap();
    let error = first.append("s", &[event(2, "C")], &[]).unwrap_err();
    assert_eq!(error.code(), "history_conflict");
    first.append("s", &[event(3, "C")], &[]).unwrap();
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_server_that_restarts_costs_a_pause() {
    let mut server = Server::start();
    let dsn = server.database("restart");
    let (mut store, mut saved) = (timeline(&dsn), turns(&dsn));
    store.append("s", &[event(1, "A")], &[]).unwrap();
    saved.save(&save(&turn("t", &["a"]), 1)).unwrap();
    server.restart();
    store.append("s", &[event(2, "B")], &[]).unwrap();
    assert_eq!(store.cursor("s").unwrap(), 2);
    let found = saved.latest("s", "final").unwrap().unwrap();
    assert_eq!(texts(&found.turn), ["a"]);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn reading_makes_nothing_and_changes_nothing() {
    let server = Server::start();
    let dsn = server.database("reading");
    let missing = read_turns(&at(&dsn)).err().unwrap();
    assert_eq!(missing.code(), "history_schema");
    assert!(
        missing
            .to_string()
            .starts_with("open CLI turn store: PostgreSQL at "),
        "{missing}"
    );
    assert_eq!(
        server.ask(
            "reading",
            "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
        ),
        "0"
    );
    timeline(&dsn).append("s", &[event(1, "A")], &[]).unwrap();
    let mut reader = read_timeline(&at(&dsn)).unwrap();
    assert_eq!(reader.cursor("s").unwrap(), 1);
    let error = reader.append("s", &[event(2, "B")], &[]).unwrap_err();
    assert_eq!(error.code(), "history_read_only", "{error}");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn tables_of_others_and_of_later_versions_are_refused() {
    let server = Server::start();
    let dsn = server.database("others");
    server.ask("others", "CREATE TABLE turns (id TEXT)");
    let error = open_turns(&at(&dsn)).err().unwrap();
    assert!(
        error
            .to_string()
            .contains("a table turns that pinion did not make"),
        "{error}"
    );
    drop(timeline(&dsn));
    server.ask(
        "others",
        "UPDATE pinion_schema_version SET schema_version = 99",
    );
    let error = open_timeline(&at(&dsn)).err().unwrap();
    assert!(error.to_string().contains("version 99"), "{error}");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn what_keeps_us_out_is_told_without_the_password() {
    let server = Server::start();
    let dsn = server.database("locked");
    let wrong = dsn.replace("pinion:", "pinion:hunter2");
    let nowhere = dsn.replace("/locked", "/nowhere");
    let deaf = "postgres://u:hunter2@127.0.0.1:1/d";
    for (dsn, said) in [
        (wrong.as_str(), "password authentication failed"),
        (nowhere.as_str(), "\"nowhere\" does not exist"),
        (deaf, "Connection refused"),
    ] {
        let error = open_timeline(&at(dsn)).err().unwrap();
        let HistoryError::Open { source, .. } = &error else {
            panic!("{error}")
        };
        assert_eq!(source.code(), "history_connect");
        assert!(error.to_string().contains(said), "{error}");
        assert!(
            !format!("{error} {error:?}").contains("hunter2"),
            "{error:?}"
        );
    }
    let error = open_timeline(&at("postgres://u:hunter2@h:port/d"))
        .err()
        .unwrap();
    assert_eq!(error.code(), "history_options");
    assert!(
        !format!("{error} {error:?}").contains("hunter2"),
        "{error:?}"
    );
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_store_works_inside_async_code() {
    let server = Server::start();
    let dsn = server.database("inside");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let cursor = runtime.block_on(async {
        let mut store = timeline(&dsn);
        store.append("s", &[event(1, "A")], &[]).unwrap();
        store.cursor("s").unwrap()
    });
    assert_eq!(cursor, 1);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn versions_and_times_are_as_in_files() {
    let server = Server::start();
    let dsn = server.database("columns");
    timeline(&dsn).append("s", &[event(1, "A")], &[]).unwrap();
    turns(&dsn).save(&save(&turn("t", &["a"]), 1)).unwrap();
    let columns = |table: &str| {
        server.ask(
            "columns",
            &format!(
                "SELECT string_agg(column_name, ' ' ORDER BY ordinal_position) FROM information_schema.columns WHERE table_name = '{table}'"
            ),
        )
    };
    assert_eq!(
        columns("sessionstream_entity_versions"),
        "session_id kind entity_id ordinal created_ordinal last_event_ordinal tombstone payload_json"
    );
    assert_eq!(
        columns("turns"),
        "conv_id session_id turn_id turn_created_at_ms turn_metadata_json turn_data_json runtime_key inference_id updated_at_ms"
    );
    assert_eq!(
        server.ask(
            "columns",
            "SELECT component || schema_version FROM pinion_schema_version ORDER BY 1"
        ),
        "timeline1\nturns1"
    );
    let created = server.ask("columns", "SELECT created_at FROM sessionstream_events");
    assert_eq!(created.len(), "2026-01-01T00:00:00.000Z".len(), "{created}");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn connections_are_encrypted_where_the_dsn_says_so() {
    let server = Server::start_encrypted();
    let dsn = server.database("secret");
    let encrypted = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'pinion' AND ssl";
    let trusted = format!(
        "{dsn}?sslmode=verify-full&sslrootcert={}",
        server.certificate()
    );
    let mut store = timeline(&trusted);
    store.append("s", &[event(1, "A")], &[]).unwrap();
    assert_eq!(server.ask("secret", encrypted), "1");
    drop(store);
    let stranger = format!("{dsn}?sslmode=require");
    let error = open_timeline(&at(&stranger)).err().unwrap();
    assert_eq!(error.code(), "history_connect");
    assert!(error.to_string().contains("certificate"), "{error}");
    let mut plain = timeline(&dsn);
    assert_eq!(plain.cursor("s").unwrap(), 1);
    assert_eq!(server.ask("secret", encrypted), "0");
    let deaf = Server::start();
    let refusing = format!("{}?sslmode=require", deaf.database("deaf"));
    let error = open_timeline(&at(&refusing)).err().unwrap();
    assert!(
        error.to_string().contains("server does not support TLS"),
        "{error}"
    );
}
