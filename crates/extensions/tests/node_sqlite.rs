//! `node:sqlite`: databases of scripts.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::time::{Duration, Instant};

use pinion_extensions::ScriptOptions;
use serde_json::json;
use support::Bench;

#[tokio::test]
async fn statements_bind_and_return_every_type() {
    let bench = Bench::new().await;
    let seen = bench
        .eval(
            r#"const { DatabaseSync } = await import("node:sqlite");
            const db = new DatabaseSync(":memory:");
            db.exec("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, data BLOB, n REAL); CREATE INDEX i ON t (name)");
            const insert = db.prepare("INSERT INTO t (name, data, n) VALUES (?, ?, ?)");
            const first = insert.run("a", new Uint8Array([1, 2, 3]), 1.5);
            insert.run(null, null, null);
            const named = db.prepare("SELECT name, n FROM t WHERE id = $id AND name = :name");
            const all = db.prepare("SELECT id, name, data, n FROM t ORDER BY id").all();
            const big = db.prepare("SELECT 9007199254740993 AS x, ? AS y");
            let tooLarge;
            try { big.get(1n); } catch (error) { tooLarge = [error instanceof RangeError, error.code]; }
            big.setReadBigInts(true);
            const { x, y } = big.get(-5n);
            const arrays = db.prepare("SELECT id, name FROM t WHERE id = ?2 AND ?1 = 'k'");
            arrays.setReturnArrays(true);
            const columns = db.prepare("SELECT id, n AS half FROM t").columns().map(({ name, type }) => [name, type]);
            return {
              first, all: all.map((row) => ({ ...row, data: row.data && [...row.data] })), prototype: Object.getPrototypeOf(all[0]),
              named: [named.get({ id: 1, ":name": "no" }) === undefined, { ...named.get({ $id: 1, ":name": "a" }) }, { ...named.get({ id: 1, name: "a" }) }],
              tooLarge, big: [typeof x, String(x), String(y)], arrays: arrays.all("k", 1), columns,
              iterated: [...db.prepare("SELECT id FROM t ORDER BY id").iterate()].map(({ id }) => id),
              sql: db.prepare("SELECT ?").sourceSQL, fts: db.exec("CREATE VIRTUAL TABLE f USING fts5(body)") === undefined,
            };"#,
        )
        .await
        .unwrap();
    assert_eq!(
        seen,
        json!({
            "first": {"changes": 1, "lastInsertRowid": 1},
            "all": [
                {"id": 1, "name": "a", "data": [1, 2, 3], "n": 1.5},
                {"id": 2, "name": null, "data": null, "n": null},
            ],
            "prototype": null,
            "named": [true, {"name": "a", "n": 1.5}, {"name": "a", "n": 1.5}],
            "tooLarge": [true, "ERR_OUT_OF_RANGE"],
            "big": ["bigint", "9007199254740993", "-5"],
            "arrays": [[1, "a"]],
            "columns": [["id", "INTEGER"], ["half", "REAL"]],
            "iterated": [1, 2],
            "sql": "SELECT ?",
            "fts": true,
        })
    );
}

#[tokio::test]
async fn transactions_and_errors_are_those_of_sqlite() {
    let bench = Bench::new().await;
    bench.write("marker", "");
    let seen = bench
        .eval(
            r#"const { DatabaseSync } = await import("node:sqlite");
            const file = new URL("./data.db", import.meta.url).pathname;
            const told = (work) => { try { work(); return "nothing"; } catch (e) { return [e.code, e.errcode, e.message]; } };
            let db = new DatabaseSync(file);
            db.exec("CREATE TABLE t (x UNIQUE)");
            db.exec("BEGIN");
            const during = db.isTransaction;
            db.prepare("INSERT INTO t VALUES (?)").run(1);
            db.exec("ROLLBACK");
            db.prepare("INSERT INTO t VALUES (?)").run("kept");
            const twice = told(() => db.prepare("INSERT INTO t VALUES (?)").run("kept"));
            const wrong = told(() => db.prepare("SELEC 1"));
            const unbound = told(() => db.prepare("SELECT ?").get({ a: 1 }.b === undefined ? true : 0));
            const unknown = told(() => db.prepare("SELECT $a").get({ b: 1 }));
            const location = db.location() === file;
            const statement = db.prepare("SELECT x FROM t");
            db.close();
            const closed = [told(() => statement.get())[0], told(() => db.exec("SELECT 1"))[0], db.isOpen];
            db = new DatabaseSync(file, { readOnly: true });
            const readOnly = [db.prepare("SELECT x FROM t").get().x, told(() => db.exec("DELETE FROM t"))[1]];
            return { during, twice, wrong, unbound: unbound[0], unknown, location, closed, readOnly };"#,
        )
        .await
        .unwrap();
    assert_eq!(
        seen,
        json!({
            "during": true,
            "twice": ["ERR_SQLITE_ERROR", 2067, "UNIQUE constraint failed: t.x"],
            "wrong": ["ERR_SQLITE_ERROR", 1, "near \"SELEC\": syntax error"],
            "unbound": "ERR_INVALID_ARG_TYPE",
            "unknown": ["ERR_INVALID_STATE", null, "Unknown named parameter 'b'"],
            "location": true,
            "closed": ["ERR_INVALID_STATE", "ERR_INVALID_STATE", false],
            "readOnly": ["kept", 8],
        })
    );
}

#[tokio::test]
async fn only_regular_files_are_databases() {
    let bench = Bench::new().await;
    let fifo = bench.path("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let seen = bench
        .eval(
            r#"const { DatabaseSync } = await import("node:sqlite");
            const here = new URL(".", import.meta.url).pathname;
            const told = (work) => { try { work(); return "nothing"; } catch (e) { return e.code; } };
            const open = (path) => told(() => new DatabaseSync(path));
            const db = new DatabaseSync(":memory:");
            const attach = (path) => told(() => db.exec(`ATTACH '${path}' AS other`));
            return [
              ["/dev/zero", "/dev/stdin", `${here}fifo`, here, `${here}none/x.db`].map(open),
              [attach("/dev/zero"), attach(`${here}fifo`), attach(":memory:"), attach(`${here}fine.db`)],
              ["max_page_count = 1000000000", "hard_heap_limit = 1"].map((pragma) => told(() => db.exec(`PRAGMA ${pragma}`))),
            ];"#,
        )
        .await
        .unwrap();
    assert_eq!(
        seen,
        json!([
            ["EINVAL", "EACCES", "EINVAL", "EINVAL", "ERR_SQLITE_ERROR"],
            ["EINVAL", "EINVAL", "EACCES", "nothing"],
            ["ERR_SQLITE_ERROR", "ERR_SQLITE_ERROR"],
        ])
    );
}

#[tokio::test]
async fn a_query_ends_with_the_time_of_the_script_and_a_database_in_memory_is_limited() {
    let bench = Bench::with(ScriptOptions {
        busy_limit: Duration::from_millis(400),
        ..ScriptOptions::default()
    })
    .await;
    let started = Instant::now();
    let ended = bench
        .eval(
            r#"const { DatabaseSync } = await import("node:sqlite");
            new DatabaseSync(":memory:").prepare("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c").get();"#,
        )
        .await;
    assert!(ended.is_err(), "{ended:?}");
    assert!(started.elapsed() < Duration::from_secs(30));

    let bench = Bench::new().await;
    let full = bench
        .eval(
            r#"const { DatabaseSync } = await import("node:sqlite");
            const db = new DatabaseSync(":memory:");
            db.exec("PRAGMA page_size = 65536; CREATE TABLE t (x)");
            const insert = db.prepare("INSERT INTO t VALUES (zeroblob(50000000))");
            let count = 0;
            try { for (; count < 20; count++) insert.run(); } catch (error) { return [count, error.message]; }
            return count;"#,
        )
        .await
        .unwrap();
    assert_eq!(full, json!([5, "database or disk is full"]));
}
