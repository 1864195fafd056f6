//! Scripts that exceed their limits: the engine survives them.

#![allow(clippy::unwrap_used)]

mod support;

use std::time::Duration;

use pinion_extensions::{ScriptError, ScriptOptions, UncaughtKind};
use serde_json::json;
use support::Bench;
use tokio_util::sync::CancellationToken;

fn impatient() -> ScriptOptions {
    ScriptOptions {
        busy_limit: Duration::from_millis(200),
        ..ScriptOptions::default()
    }
}

async fn still_works(bench: &Bench) {
    assert_eq!(bench.eval("return 1 + 1").await.unwrap(), json!(2));
}

#[tokio::test]
async fn an_endless_loop_is_interrupted_and_named() {
    let bench = Bench::with(impatient()).await;
    for (name, text) in [
        ("sync.ts", "export default () => { for (;;) {} }"),
        (
            "caught.ts",
            "export default () => { for (;;) { try { for (;;) {} } catch {} finally {} } }",
        ),
        (
            "later.ts",
            "export default async () => { await null; for (;;) {} }",
        ),
        (
            "micro.ts",
            "export default async () => { for (;;) await null }",
        ),
        ("top.ts", "for (;;) {} export default 1"),
    ] {
        let path = bench.write(name, text);
        let error = bench.run(name).await.unwrap_err();
        assert_eq!(error.code(), "script_interrupted", "{name}: {error}");
        let message = error.to_string();
        assert!(
            message.contains("0.2 s") && message.contains(path.to_str().unwrap()),
            "{message}"
        );
        still_works(&bench).await;
    }
}

#[tokio::test]
async fn a_timer_that_does_not_return_is_reported() {
    let bench = Bench::with(impatient()).await;
    bench
        .eval("setTimeout(() => { for (;;) {} }, 1)")
        .await
        .unwrap();
    bench
        .eval("await new Promise((resolve) => setTimeout(resolve, 50))")
        .await
        .unwrap();
    still_works(&bench).await;
    let uncaught = bench.uncaught.lock().unwrap();
    assert!(
        uncaught[0].message.contains("without returning"),
        "{:?}",
        *uncaught
    );
}

#[tokio::test]
async fn memory_is_limited() {
    let options = ScriptOptions {
        memory_limit: Some(32 << 20),
        ..ScriptOptions::default()
    };
    let bench = Bench::with(options).await;
    for bomb in [
        "const list = []; for (;;) list.push({ a: [1, 2, 3] });",
        "await null; const list = []; for (;;) list.push(new Array(100000).fill(1));",
        "let text = 'x'; for (;;) text += text;",
        "const list = []; for (;;) { await null; list.push(new Uint8Array(1 << 20)); }",
    ] {
        bench.eval(bomb).await.unwrap_err();
        still_works(&bench).await;
    }
}

#[tokio::test]
async fn recursion_is_limited() {
    let bench = Bench::new().await;
    let error = bench
        .eval("const dive = () => dive() + 1; return dive();")
        .await
        .unwrap_err();
    assert_eq!(error.code(), "script_threw");
    still_works(&bench).await;
}

#[tokio::test]
async fn a_call_can_be_aborted_or_abandoned() {
    let bench = Bench::new().await;
    let path = bench.write("loop.ts", "export default () => { for (;;) {} }");
    let argument = vec![serde_json::to_string(&path).unwrap()];
    let cancel = CancellationToken::new();
    let stopper = cancel.clone();
    tokio::spawn(async move {
        // Time to enter the loop; an abort before that has the same result.
        tokio::time::sleep(Duration::from_millis(50)).await;
        stopper.cancel();
    });
    let result = bench
        .script
        .call_until(bench.generation, "runtime/entry.run", argument, &cancel)
        .await;
    assert_eq!(result, Err(ScriptError::Aborted));
    still_works(&bench).await;

    let never = bench.eval("await new Promise(() => {})");
    assert!(
        tokio::time::timeout(Duration::from_millis(50), never)
            .await
            .is_err()
    );
    still_works(&bench).await;
}

#[tokio::test]
async fn failed_property_access_reads_as_extensions_expect() {
    let bench = Bench::new().await;
    for (body, message) in [
        (
            "const x = undefined; return x.name",
            "Cannot read properties of undefined (reading 'name')",
        ),
        (
            "const x = { y: null }; return x.y.z()",
            "Cannot read properties of null (reading 'z')",
        ),
        (
            "const x: any = undefined; x.name = 1",
            "Cannot set properties of undefined (setting 'name')",
        ),
        (
            "const ctx: any = { ui: {} }; ctx.ui.custom()",
            "ctx.ui.custom is not a function",
        ),
        ("const f: any = 3; f()", "f is not a function"),
        ("throw 'plain'", "plain"),
        ("throw { toString: () => 'odd' }", "odd"),
        (
            "throw new Error('cannot read property soon')",
            "cannot read property soon",
        ),
    ] {
        assert_eq!(
            bench.eval(body).await.unwrap_err().to_string(),
            message,
            "{body}"
        );
    }
}

#[tokio::test]
async fn dropping_the_handle_ends_everything() {
    let bench = Bench::new().await;
    let kept = std::sync::Arc::downgrade(&bench.uncaught);
    let second = bench.script.open_generation().await.unwrap();
    bench.write(
        "a.ts",
        "const cycle: any = { timer: setInterval(() => cycle, 5) }; cycle.self = cycle;
         fetch('http://127.0.0.1:1/').catch(() => {}); void new Promise(() => cycle);
         export default () => require('./b');",
    );
    bench.write(
        "b.js",
        "module.exports = { signal: 1, later: new Promise((r) => setTimeout(r, 1e6)) }",
    );
    bench.run("a.ts").await.unwrap();
    bench.run_in(second, "a.ts").await.unwrap();
    bench.script.close_generation(second);
    let endless = bench.eval("await new Promise(() => {})");
    assert!(
        tokio::time::timeout(Duration::from_millis(20), endless)
            .await
            .is_err()
    );
    drop(bench);
    while kept.upgrade().is_some() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn an_error_thrown_by_require_is_reported_once() {
    let bench = Bench::new().await;
    bench.write(
        "bad.ts",
        "export const x = 1; throw new Error('bad module');",
    );
    let seen = bench
        .eval("try { require('./bad') } catch (error) { return error.message }")
        .await
        .unwrap();
    assert_eq!(seen, json!("bad module"));
    still_works(&bench).await;
    assert_eq!(*bench.uncaught.lock().unwrap(), []);
}

#[tokio::test]
async fn closed_generations_give_their_memory_back() {
    let options = ScriptOptions {
        memory_limit: Some(64 << 20),
        ..ScriptOptions::default()
    };
    let bench = Bench::with(options).await;
    bench.write("a.ts", "const held: any = { list: new Array(1_000_000).fill(1), timer: setInterval(() => held, 1000) }; held.self = held; (globalThis as any).held = held; export default () => held.list.length;");
    for _ in 0..12 {
        let generation = bench.script.open_generation().await.unwrap();
        assert_eq!(
            bench.run_in(generation, "a.ts").await.unwrap(),
            json!(1_000_000)
        );
        bench.script.close_generation(generation);
    }
    still_works(&bench).await;
}

#[tokio::test]
async fn memory_over_the_limit_drops_only_the_generations() {
    let options = ScriptOptions {
        memory_limit: Some(48 << 20),
        ..ScriptOptions::default()
    };
    let bench = Bench::with(options).await;
    let mut generation = bench.generation;
    for (at, bomb) in [
        // A chain of promises that never ends.
        "const kept: any = ((globalThis as any).kept = []); const grow = (): any => { kept.push(new Array(1000).fill(0)); return Promise.resolve().then(grow); }; await grow();",
        "const grow = () => { Promise.resolve().then(grow); Promise.resolve().then(grow); }; grow(); await new Promise(() => {});",
        "const kept: any = ((globalThis as any).kept = []); for (;;) { try { await null; kept.push(new Array(1000).fill(0)); } catch {} }",
        // No call waits for the work that uses the memory.
        "const kept: any = ((globalThis as any).kept = []); setInterval(() => { for (let n = 0; n < 100; n++) kept.push(new Array(1000).fill(0)); }, 0); await new Promise(() => {});",
        "const kept: any = ((globalThis as any).kept = []); for (;;) kept.push({});",
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("bomb{at}.ts");
        bench.write(&name, &format!("export default async () => {{ {bomb} }}"));
        let waits = bench.write("waits.ts", "export default () => new Promise(() => {});");
        let waiting = bench.script.call(
            generation,
            "runtime/entry.run",
            vec![serde_json::to_string(&waits).unwrap()],
        );
        let limit = Duration::from_secs(60);
        let both = async { tokio::join!(waiting, bench.run_in(generation, &name)) };
        let (waited, ran) = tokio::time::timeout(limit, both).await.unwrap();
        assert!(waited.is_err() && ran.is_err(), "{bomb}");
        let late = tokio::time::timeout(limit, bench.run_in(generation, "waits.ts"));
        let error = late.await.unwrap().unwrap_err();
        assert_eq!(error.code(), "script_exhausted", "{bomb}: {error}");
        assert!(error.to_string().contains("48 MB"), "{error}");

        generation = bench.script.open_generation().await.unwrap();
        bench.write("fine.ts", "export default () => 2;");
        assert_eq!(bench.run_in(generation, "fine.ts").await.unwrap(), json!(2));
        let uncaught = std::mem::take(&mut *bench.uncaught.lock().unwrap());
        let exhausted = uncaught
            .iter()
            .filter(|one| one.kind == UncaughtKind::Exhausted);
        assert_eq!(exhausted.count(), 1, "{bomb}: {uncaught:?}");
    }
}
