//! `node:fs` as extensions use it: values, errors, streams, watchers.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use serde_json::json;
use support::Bench;

const HEAD: &str = r#"
import fs from "node:fs";
import fsp from "fs/promises";
import path from "node:path";
const told = async (work: () => unknown) => {
  try { await work(); return "none"; }
  catch (e: any) { return [e.message, e.code, e.errno, e.syscall, e.path ?? null, e.dest ?? null]; }
};
const here = import.meta.dirname;
const at = (name: string) => path.join(here, name);
const short = (value: unknown) => JSON.parse(JSON.stringify(value).replaceAll(here, "D"));
"#;

async fn run(body: &str) -> serde_json::Value {
    let bench = Bench::new().await;
    bench.write(
        "a.ts",
        &format!("{HEAD}\nexport default async () => {{ {body} }}"),
    );
    bench.run("a.ts").await.unwrap()
}

#[tokio::test]
async fn errors_have_nodes_messages() {
    let seen = run(r#"
        return short([
          await told(() => fs.readFileSync(at("no"))),
          await told(() => fs.accessSync(at("no"))),
          await told(() => fs.watch(at("no"))),
          await told(() => fs.renameSync(at("no"), at("x"))),
          await told(() => fs.readdirSync(at("no"))),
          await told(() => fs.mkdirSync(here)),
          await told(() => fs.readFileSync(here)),
          await told(() => fs.closeSync(9999)),
          await told(() => fs.realpathSync(at("no/x"))),
          await told(() => fsp.readFile(at("no"), "utf8")),
          await told(() => fsp.copyFile(at("no"), at("y"))),
          (await told(() => fs.readFileSync(undefined as any)))[1],
          (await told(() => fs.rmSync(here)))[1],
        ]);"#)
    .await;
    let gone = "ENOENT: no such file or directory";
    assert_eq!(
        seen,
        json!([
            [
                format!("{gone}, open 'D/no'"),
                "ENOENT",
                -2,
                "open",
                "D/no",
                null
            ],
            [
                format!("{gone}, access 'D/no'"),
                "ENOENT",
                -2,
                "access",
                "D/no",
                null
            ],
            [
                format!("{gone}, watch 'D/no'"),
                "ENOENT",
                -2,
                "watch",
                "D/no",
                null
            ],
            [
                format!("{gone}, rename 'D/no' -> 'D/x'"),
                "ENOENT",
                -2,
                "rename",
                "D/no",
                "D/x"
            ],
            [
                format!("{gone}, scandir 'D/no'"),
                "ENOENT",
                -2,
                "scandir",
                "D/no",
                null
            ],
            [
                "EEXIST: file already exists, mkdir 'D'",
                "EEXIST",
                -17,
                "mkdir",
                "D",
                null
            ],
            [
                "EISDIR: illegal operation on a directory, read",
                "EISDIR",
                -21,
                "read",
                null,
                null
            ],
            [
                "EBADF: bad file descriptor, close",
                "EBADF",
                -9,
                "close",
                null,
                null
            ],
            [
                format!("{gone}, lstat 'D/no'"),
                "ENOENT",
                -2,
                "lstat",
                "D/no",
                null
            ],
            [
                format!("{gone}, open 'D/no'"),
                "ENOENT",
                -2,
                "open",
                "D/no",
                null
            ],
            [
                format!("{gone}, copyfile 'D/no' -> 'D/y'"),
                "ENOENT",
                -2,
                "copyfile",
                "D/no",
                "D/y"
            ],
            "ERR_INVALID_ARG_TYPE",
            "ERR_FS_EISDIR",
        ])
    );
}

#[tokio::test]
async fn files_and_directories() {
    let seen = run(r#"
        fs.mkdirSync(at("t"));
        fs.writeFileSync(at("t/a.txt"), "hällo");
        fs.appendFileSync(at("t/a.txt"), Buffer.from("!"));
        const made = fs.mkdirSync(at("t/sub/deep"), { recursive: true });
        fs.writeFileSync(at("t/sub/deep/f"), "1");
        fs.symlinkSync("a.txt", at("t/link"));
        await fsp.cp(at("t/sub"), at("t/copy"), { recursive: true });
        fs.rmSync(at("t/sub"), { recursive: true });
        fs.utimesSync(at("t/a.txt"), 1000, new Date(2000500));
        const stats = fs.statSync(at("t/link"));
        return short([
          made,
          fs.readFileSync(at("t/a.txt"), "utf8"),
          fs.readdirSync(at("t")),
          fs.readdirSync(at("t"), { withFileTypes: true }).map((e) => [e.name, e.isFile(), e.isDirectory(), e.isSymbolicLink()]),
          fs.readdirSync(at("t"), { recursive: true }),
          [stats.size, stats.mtimeMs, stats.mtime.toISOString(), stats.isFile(), fs.lstatSync(at("t/link")).isFile()],
          [fs.existsSync(at("t/sub")), fs.statSync(at("q"), { throwIfNoEntry: false }) === undefined],
          fs.readlinkSync(at("t/link")),
          path.basename(await fsp.mkdtemp(at("m-"))).length,
        ]);"#)
    .await;
    assert_eq!(
        seen,
        json!([
            "D/t/sub",
            "hällo!",
            ["a.txt", "copy", "link"],
            [
                ["a.txt", true, false, false],
                ["copy", false, true, false],
                ["link", false, false, true]
            ],
            ["a.txt", "copy", "link", "copy/deep", "copy/deep/f"],
            [7, 2_000_500, "1970-01-01T00:33:20.500Z", true, false],
            [false, true],
            "a.txt",
            8
        ])
    );
}

#[tokio::test]
async fn scripts_reach_only_their_own_descriptors() {
    let seen = run(r#"
        const fd = fs.openSync(at("fd"), "w+");
        fs.writeSync(fd, "hello world");
        fs.writeSync(fd, Buffer.from("J"), 0, 1, 0);
        const bytes = Buffer.alloc(5);
        const count = fs.readSync(fd, bytes, 0, 5, 0);
        fs.ftruncateSync(fd, 8);
        fs.fsyncSync(fd);
        fs.closeSync(fd);
        const handle = await fsp.open(at("fd"), "r+");
        const read = await handle.read(Buffer.alloc(3), 0, 3, 1);
        await handle.close();
        const foreign = [];
        for (let other = 3; other < 64; other++) foreign.push((await told(() => fs.closeSync(other)))[1]);
        return [count, bytes.toString(), fs.readFileSync(at("fd"), "latin1"), read.buffer.toString(), [...new Set(foreign)]];"#)
    .await;
    assert_eq!(seen, json!([5, "Jello", "Jello wo", "ell", ["EBADF"]]));
}

#[tokio::test]
async fn streams_transfer_whole_files() {
    let seen = run(r#"
        const { once } = await import("node:events");
        const { pipeline } = await import("node:stream/promises");
        const zlib = await import("node:zlib");
        const readline = await import("node:readline");
        const out = fs.createWriteStream(at("lines"));
        for (let i = 0; i < 5000; i++) out.write(`line ${i}\n`);
        out.end("last");
        await once(out, "finish");
        await pipeline(fs.createReadStream(at("lines")), zlib.createGzip(), fs.createWriteStream(at("gz")));
        await pipeline(fs.createReadStream(at("gz")), zlib.createGunzip(), fs.createWriteStream(at("again")));
        let count = 0;
        let last = "";
        for await (const line of readline.createInterface({ input: fs.createReadStream(at("again")) })) { count++; last = line; }
        let part = "";
        for await (const piece of fs.createReadStream(at("lines"), { start: 5, end: 12, encoding: "utf8", highWaterMark: 3 })) part += piece;
        return short([out.bytesWritten === fs.statSync(at("again")).size, count, last, part,
          (await told(() => pipeline(fs.createReadStream(at("no")), fs.createWriteStream(at("z")))))[0]]);"#)
    .await;
    assert_eq!(
        seen,
        json!([
            true,
            5001,
            "last",
            "0\nline 1",
            "ENOENT: no such file or directory, open 'D/no'"
        ])
    );
}

#[tokio::test]
async fn a_watcher_reports_changes_until_it_is_closed() {
    let seen = run(r#"
        const { once } = await import("node:events");
        fs.writeFileSync(at("w"), "");
        const watcher = fs.watch(at("w"));
        const heard = once(watcher, "change");
        fs.appendFileSync(at("w"), "more");
        const first = await heard;
        fs.mkdirSync(at("dir"));
        const above = fs.watch(at("dir"));
        const born = once(above, "change");
        fs.writeFileSync(at("dir/new"), "");
        const second = await born;
        watcher.close();
        await once(watcher, "close");
        above.close();
        return [first, second];"#)
    .await;
    assert_eq!(seen, json!([["change", "w"], ["rename", "new"]]));
}

#[tokio::test]
async fn callbacks_and_promises_get_the_same_results() {
    let seen = run(r#"
        const { promisify } = await import("node:util");
        fs.writeFileSync(at("c"), "x");
        const read = await new Promise((done) => fs.readFile(at("c"), "utf8", (error, text) => done([error, text])));
        const failed = await new Promise((done) => fs.stat(at("no"), (error: any, stats) => done([error.code, stats === undefined])));
        const listed = await promisify(fs.readdir)(here);
        return [read, failed, listed.includes("c")];"#)
    .await;
    assert_eq!(seen, json!([[null, "x"], ["ENOENT", true], true]));
}
