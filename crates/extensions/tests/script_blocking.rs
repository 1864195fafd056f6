//! Operations that would block the script or that take sizes from it: each ends, and the engine continues to work.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::time::{Duration, Instant};

use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use pinion_extensions::ScriptOptions;
use serde_json::{Value, json};
use support::Bench;

/// Much shorter than a hang, much longer than a loaded machine needs.
const SOON: Duration = Duration::from_secs(60);

const HEAD: &str = r#"
import fs from "node:fs";
import fsp from "node:fs/promises";
import child from "node:child_process";
import zlib from "node:zlib";
import crypto from "node:crypto";
const here = import.meta.dirname;
const at = (name: string) => `${here}/${name}`;
const codeOf = async (work: () => unknown) => {
  try { await work(); return "none"; } catch (e: any) { return e.code ?? e.name; }
};
"#;

async fn run(bench: &Bench, body: &str) -> Result<Value, pinion_extensions::ScriptError> {
    let name = format!("{}.ts", body.len());
    bench.write(
        &name,
        &format!("{HEAD}\nexport default async () => {{ {body} }}"),
    );
    tokio::time::timeout(SOON, bench.run(&name)).await.unwrap()
}

async fn still_works(bench: &Bench) {
    assert_eq!(bench.eval("return 1 + 1").await.unwrap(), json!(2));
}

fn fifo(bench: &Bench, name: &str) {
    nix::unistd::mkfifo(&bench.path(name), Mode::S_IRWXU).unwrap();
}

#[tokio::test]
async fn devices_and_fifos_cannot_be_opened() {
    let bench = Bench::new().await;
    fifo(&bench, "fifo");
    bench.write("file", "text");
    let seen = run(
        &bench,
        r#"
        const odd = [at("fifo"), "/dev/stdin", "/proc/self/fd/0", "/proc/self/fd/1", "/dev/fd/2", "/dev/zero", "/dev/tty"];
        const calls: ((path: string) => unknown)[] = [
          (path) => fs.readFileSync(path),
          (path) => fs.openSync(path, "r"),
          (path) => fs.openSync(path, "r+"),
          (path) => fs.writeFileSync(path, "x"),
          (path) => fs.appendFileSync(path, "x"),
          (path) => fs.truncateSync(path, 0),
          (path) => fs.copyFileSync(path, at("copy")),
          (path) => fs.copyFileSync(at("file"), path),
          (path) => fsp.readFile(path),
          (path) => fsp.writeFile(path, "x"),
          (path) => fsp.open(path, "r"),
          (path) => import(path),
          (path) => require(path),
          (path) => { for (const fd of [0, 1, 2]) { try { fs.readSync(fd, new Uint8Array(1)); return; } catch {} } throw { code: "none of them" }; },
        ];
        const opened = [];
        for (const path of odd)
          for (const call of calls)
            if ((await codeOf(() => call(path))) === "none") opened.push(`${path}: ${call}`);
        return [opened, fs.readFileSync(at("file"), "utf8"), await codeOf(() => fs.readFileSync(at("fifo")))];
        "#,
    )
    .await;
    assert_eq!(seen.unwrap(), json!([[], "text", "EINVAL"]));
    still_works(&bench).await;
}

#[tokio::test]
async fn regular_files_directories_and_dev_null_can_be_opened() {
    let bench = Bench::new().await;
    bench.write("file", "text");
    let seen = run(
        &bench,
        r#"
        fs.writeFileSync("/dev/null", "x");
        const nothing = fs.openSync("/dev/null", "r+");
        const directory = fs.openSync(here, "r");
        fs.fsyncSync(directory);
        fs.copyFileSync(at("file"), at("copy"));
        fs.copyFileSync(at("file"), at("file"));
        fs.writeFileSync(at("copy"), "second", { flag: "a" });
        return [
          child.spawnSync("cat", { stdio: [nothing, "pipe", nothing] }).status,
          fs.readFileSync("/proc/version", "utf8").length > 0,
          fs.readFileSync(at("copy"), "utf8"),
          process.memoryUsage.rss() > 1e6,
        ];"#,
    )
    .await;
    assert_eq!(seen.unwrap(), json!([0, true, "textsecond", true]));
}

#[tokio::test]
async fn a_device_in_a_directory_is_not_opened() {
    let bench = Bench::new().await;
    let zero = bench.path("zero");
    // Needs root; without it there is no device to open.
    if mknod(&zero, SFlag::S_IFCHR, Mode::S_IRWXU, makedev(1, 5)).is_err() {
        return;
    }
    let seen = run(
        &bench,
        r#"return [await codeOf(() => fs.readFileSync(at("zero"))), await codeOf(() => fsp.readFile(at("zero")))];"#,
    );
    assert_eq!(seen.await.unwrap(), json!(["EINVAL", "EINVAL"]));
}

#[tokio::test]
async fn a_child_that_is_waited_for_ends_with_the_watchdog() {
    let options = ScriptOptions {
        busy_limit: Duration::from_secs(1),
        ..ScriptOptions::default()
    };
    let bench = Bench::with(options).await;
    let started = Instant::now();
    for body in [
        r#"try { child.execSync("sleep 300"); } catch (e: any) { return [e.code, e.signal] }"#,
        r#"try { child.execFileSync("sleep", ["300"]); } catch (e: any) { return [e.code, e.signal] }"#,
        r#"const done = child.spawnSync("sleep", ["300"]); return [(done.error as any).code, done.signal]"#,
        // One child ignores the signal of a timeout, and one holds the pipe in the background.
        r#"const done = child.spawnSync("sh", ["-c", "trap '' TERM; while :; do sleep 1; done"], { timeout: 100 }); return [(done.error as any).code, done.signal]"#,
        r#"try { child.execSync("sleep 300 & exec sleep 300"); } catch (e: any) { return [e.code, e.signal] }"#,
    ] {
        // The time of the child counts for the script, so the engine may interrupt the script before it can answer.
        match run(&bench, body).await {
            Ok(seen) => assert_eq!(seen, json!(["ETIMEDOUT", "SIGKILL"]), "{body}"),
            Err(error) => assert_eq!(error.code(), "script_interrupted", "{body}: {error}"),
        }
        still_works(&bench).await;
    }
    let endless = run(
        &bench,
        r#"for (;;) { try { child.execSync("sleep 0.3"); } catch {} }"#,
    );
    assert_eq!(endless.await.unwrap_err().code(), "script_interrupted");
    still_works(&bench).await;
    assert!(started.elapsed() < SOON);
    // No child outlives its call.
    let seen = run(
        &bench,
        r#"
        const marked = `${here}/left`;
        try { child.execSync(`(sleep 3; touch ${marked}) & sleep 300`); } catch {}
        return 1;"#,
    );
    let _ = seen.await;
    // Time to create the file, if the child outlived its call.
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert!(!bench.path("left").exists());
}

#[tokio::test]
async fn sizes_from_a_script_have_limits() {
    let options = ScriptOptions {
        memory_limit: Some(64 << 20),
        ..ScriptOptions::default()
    };
    let bench = Bench::with(options).await;
    let sparse = std::fs::File::create(bench.path("sparse")).unwrap();
    sparse.set_len(10 << 40).unwrap();
    let bomb = std::fs::File::create(bench.path("bomb.gz")).unwrap();
    let mut bomb = flate2::write::GzEncoder::new(bomb, flate2::Compression::fast());
    std::io::copy(
        &mut std::io::Read::take(std::io::repeat(0), 300 << 20),
        &mut bomb,
    )
    .unwrap();
    bomb.finish().unwrap();
    for body in [
        "Buffer.alloc(1e12)",
        "Buffer.allocUnsafe(2 ** 40)",
        "new Uint8Array(2 ** 40)",
        r#""x".repeat(2 ** 30)"#,
        "new Array(2 ** 32 - 1).fill(0)",
        "JSON.parse('['.repeat(1e7))",
        r#"fs.readFileSync(at("sparse"))"#,
        r#"await fsp.readFile(at("sparse"))"#,
        r#"fs.readSync(fs.openSync(at("sparse")), Buffer.alloc(8), 0, 1e15, 0)"#,
        r#"fs.readSync(fs.openSync(at("sparse")), Buffer.alloc(8), { length: 2 ** 50 })"#,
        r#"await (await fsp.open(at("sparse"))).read(Buffer.alloc(8), 0, 1e15, 0)"#,
        r#"await (await fsp.open(at("sparse"))).readFile()"#,
        r#"zlib.gunzipSync(fs.readFileSync(at("bomb.gz")))"#,
        r#"zlib.unzipSync(fs.readFileSync(at("bomb.gz")))"#,
        r#"await new Promise((done, failed) => zlib.gunzip(fs.readFileSync(at("bomb.gz")), (e) => e ? failed(e) : done(1)))"#,
        "crypto.randomBytes(2 ** 31 - 1)",
        "crypto.randomFillSync(Buffer.alloc(8), 0, 1e15)",
        r#"crypto.pbkdf2Sync("a", "b", 4294967295, 64, "sha512")"#,
        r#"crypto.pbkdf2Sync("a", "b", 1, 1e15, "sha512")"#,
        "Atomics.wait(new Int32Array(new SharedArrayBuffer(8)), 0, 0)",
        "for (const kept: unknown[] = []; ; ) kept.push(crypto.randomBytes(1 << 20))",
        "for (const kept: unknown[] = []; ; ) kept.push(new TextEncoder().encode('x'.repeat(1 << 20)))",
    ] {
        let seen = run(&bench, &format!("{body}; return 'done: {}'", body.len())).await;
        assert!(seen.is_err(), "{body}: {seen:?}");
        still_works(&bench).await;
    }
}

#[tokio::test]
async fn times_from_a_script_have_limits() {
    let bench = Bench::new().await;
    let seen = run(
        &bench,
        r#"
        for (const time of [1e300, Infinity, -1, NaN, "x" as any]) {
          setTimeout(() => {}, time).unref();
          clearInterval(setInterval(() => {}, time));
          child.spawnSync("true", { timeout: time });
        }
        return 1;"#,
    )
    .await;
    assert_eq!(seen.unwrap(), json!(1));
    still_works(&bench).await;
}
