//! `node:child_process`: the output of children, their exit codes, and that none is left behind.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;
use support::Bench;

const HEAD: &str = r#"
import { spawn, spawnSync, exec, execSync, execFile, execFileSync, fork } from "child_process";
import { promisify } from "node:util";
import { once } from "node:events";
const told = (e: any) => ({ message: e.message, code: e.code, status: e.status, signal: e.signal, stdout: e.stdout?.toString(), stderr: e.stderr?.toString(), syscall: e.syscall, path: e.path, spawnargs: e.spawnargs });
const gathered = (child: any) => new Promise((done) => {
  let out = "", err = "", failure: any = null;
  child.stdout?.on("data", (d: any) => (out += d));
  child.stderr?.on("data", (d: any) => (err += d));
  child.on("error", (e: any) => (failure = e.message));
  child.on("close", (code: any, signal: any) => done([out, err, code, signal, failure]));
});
const caught = (work: () => unknown) => { try { work(); return null; } catch (e) { return told(e); } };
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
async fn children_read_stdin_and_write_output() {
    let seen = run(r#"
        const cat = spawn("cat");
        const heard = gathered(cat);
        cat.stdin.write("abc");
        cat.stdin.end("def");
        let text = "";
        const accents = spawn("printf", ["h\\303\\251llo"]);
        accents.stdout.setEncoding("utf8");
        for await (const piece of accents.stdout) text += piece;
        let size = 0;
        for await (const piece of spawn("head", ["-c", "3000000", "/dev/zero"]).stdout) size += piece.length;
        process.env.CHILD_SEES = "this";
        const seen = execSync("echo $CHILD_SEES", { encoding: "utf8" });
        delete process.env.CHILD_SEES;
        const only = execFileSync("env", { env: { A: "1", PATH: process.env.PATH }, encoding: "utf8" }).split("\n");
        return [
          await gathered(spawn("sh", ["-c", "echo out; echo err >&2; exit 3"])),
          await heard, text, size, seen,
          await gathered(spawn("echo $((1+2)) | cat", { shell: true })),
          await gathered(spawn("echo", ["x"], { stdio: "ignore" })),
          only.filter((line) => !/^(PATH|PINION_RUN_ID)=/.test(line)),
          execSync("pwd", { cwd: "/", encoding: "utf8" }),
        ];"#)
    .await;
    assert_eq!(
        seen,
        json!([
            ["out\n", "err\n", 3, null, null],
            ["abcdef", "", 0, null, null],
            "héllo",
            3_000_000,
            "this\n",
            ["3\n", "", 0, null, null],
            ["", "", 0, null, null],
            ["A=1", ""],
            "/\n",
        ])
    );
}

#[tokio::test]
async fn failures_have_nodes_error_codes() {
    let seen = run(r#"
        return [
          await gathered(spawn("nosuchprogram", ["x"])),
          caught(() => execSync("echo out; echo bad >&2; exit 5", { stdio: "pipe" })),
          caught(() => execFileSync("nosuchprogram", ["a"])),
          await promisify(exec)("echo a; echo b >&2; exit 4").then(() => null, told),
          spawnSync("sh", ["-c", "cat; exit 7"], { input: "IN", encoding: "utf8" }).status,
          spawnSync("nosuchprogram").error.code,
          caught(() => fork("x.js"))!.message,
        ];"#)
    .await;
    assert_eq!(
        seen,
        json!([
            ["", "", -2, null, "spawn nosuchprogram ENOENT"],
            {
                "message": "Command failed: echo out; echo bad >&2; exit 5\nbad\n",
                "status": 5, "signal": null, "stdout": "out\n", "stderr": "bad\n"
            },
            {
                "message": "spawnSync nosuchprogram ENOENT", "code": "ENOENT", "status": null, "signal": null,
                "syscall": "spawnSync nosuchprogram", "path": "nosuchprogram", "spawnargs": ["a"]
            },
            {
                "message": "Command failed: echo a; echo b >&2; exit 4\nb\n", "code": 4, "signal": null,
                "stdout": "a\n", "stderr": "b\n"
            },
            7,
            "ENOENT",
            "child_process.fork is not available to extensions in pinion",
        ])
    );
}

#[tokio::test]
async fn children_can_be_ended() {
    let seen = run(r#"
        const one = spawn("sleep", ["60"]);
        const ended = gathered(one);
        const sent = one.kill();
        const group = spawn("sh", ["-c", "sleep 60 & wait"], { detached: true });
        const gone = gathered(group);
        process.kill(-group.pid!, "SIGKILL");
        const abort = new AbortController();
        const aborted = gathered(spawn("sleep", ["60"], { signal: abort.signal }));
        abort.abort();
        const late = spawnSync("sleep", ["60"], { timeout: 50 });
        const much: any = await new Promise((done) => exec("yes", { maxBuffer: 1000 }, (e: any, out) => done([e.code, out.length])));
        return [sent, one.killed, await ended, one.signalCode, one.kill(), await gone, await aborted,
          await gathered(spawn("sleep", ["60"], { timeout: 20 })), [late.signal, (late.error as any).code], much];"#)
    .await;
    assert_eq!(
        seen,
        json!([
            true,
            true,
            ["", "", null, "SIGTERM", null],
            "SIGTERM",
            false,
            ["", "", null, "SIGKILL", null],
            ["", "", null, "SIGTERM", "The operation was aborted"],
            ["", "", null, "SIGTERM", null],
            ["SIGTERM", "ETIMEDOUT"],
            ["ERR_CHILD_PROCESS_STDIO_MAXBUFFER", 1000],
        ])
    );
}

#[tokio::test]
async fn no_child_outlives_the_engine() {
    let bench = Bench::new().await;
    bench.write(
        "a.ts",
        &format!(
            "{HEAD}\nexport default async () => {{
               const child = spawn('sleep', ['600'], {{ detached: true, stdio: 'ignore' }});
               child.unref();
               return child.pid;
             }}"
        ),
    );
    let pid = bench.run("a.ts").await.unwrap().as_i64().unwrap();
    let process = format!("/proc/{pid}/cmdline");
    let command = || std::fs::read(Path::new(&process)).unwrap_or_default();
    assert_eq!(command(), b"sleep\x00600\x00");
    drop(bench);
    let patience = Instant::now() + Duration::from_secs(20);
    while command() == b"sleep\x00600\x00" && Instant::now() < patience {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_ne!(command(), b"sleep\x00600\x00");
}

#[tokio::test]
async fn a_child_gets_further_pipes_that_work_in_both_directions() {
    let bench = Bench::new().await;
    let seen = bench
        .eval(
            r#"const { spawn } = await import("node:child_process");
            const script = "read line <&3; echo \"got $line\" >&4; echo back >&3; cat <&3 >/dev/null; echo out; [ -e /dev/fd/5 ] && echo leak";
            const child = spawn("bash", ["-c", script], { stdio: ["ignore", "pipe", "pipe", "pipe", "pipe"] });
            const text = (stream) => new Promise((resolve) => { let all = ""; stream.setEncoding("utf8"); stream.on("data", (t) => { all += t; }); stream.on("end", () => resolve(all)); });
            child.stdio[3].write("hello\n");
            child.stdio[3].end();
            const done = new Promise((resolve) => child.on("exit", resolve));
            const ignored = spawn("bash", ["-c", "echo x >&3 && echo y >&4"], { stdio: ["ignore", "ignore", "ignore", "ignore", "pipe"] });
            return [await Promise.all([text(child.stdout), text(child.stdio[3]), text(child.stdio[4])]), await done, child.stdio.length, ignored.stdio[3], (await text(ignored.stdio[4])).length];"#,
        )
        .await
        .unwrap();
    assert_eq!(
        seen,
        json!([["out\n", "back\n", "got hello\n"], 1, 5, null, 0])
    );
}

#[tokio::test]
async fn a_script_that_is_started_with_the_running_program_gets_a_runtime_for_scripts() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::new().await;
    let node = bench.write("bin/node", "#!/bin/sh\necho \"node $*\"\n");
    std::fs::set_permissions(&node, std::fs::Permissions::from_mode(0o755)).unwrap();
    bench.write("worker.mjs", "");
    let seen = bench
        .eval(
            r#"const { spawnSync, execFile } = await import("node:child_process");
            const here = new URL(".", import.meta.url).pathname;
            const options = { cwd: here, env: { PATH: `${here}bin:/usr/bin:/bin` }, encoding: "utf8" };
            const words = (...args) => spawnSync(process.execPath, args, options).stdout.trim().replaceAll(here, "");
            const missing = spawnSync(process.execPath, [`${here}worker.mjs`], { ...options, env: { PATH: "/nowhere" } });
            return [
              words("--no-warnings", "--import", "tsx", `${here}worker.mjs`, "a"), words("worker.mjs", "-p"), missing.error?.code,
              await new Promise((resolve) => execFile(process.execPath, ["worker.mjs"], options, (e, out) => resolve(out.trim()))),
            ];"#,
        )
        .await
        .unwrap();
    assert_eq!(
        seen,
        json!([
            "node --no-warnings --import tsx worker.mjs a",
            "node worker.mjs -p",
            "ENOENT",
            "node worker.mjs",
        ])
    );
}
