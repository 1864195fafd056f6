//! The host's own modules, and its messages for missing names.

#![allow(clippy::unwrap_used)]

mod support;

use std::time::Duration;

use pinion_extensions::ScriptOptions;
use serde_json::json;
use support::Bench;

#[tokio::test]
async fn a_missing_name_of_the_host_throws_when_used() {
    let bench = Bench::new().await;
    bench.write(
        "a.ts",
        "import path, { join, fromTheFuture, type ParsedPath } from 'node:path';
         import { join as same } from 'path';
         export { alsoMissing } from 'node:os';
         export default () => {
           const seen: unknown[] = [join('a', 'b'), path.join === join, same === join, typeof fromTheFuture];
           for (const use of [() => (fromTheFuture as any)(), () => new (fromTheFuture as any)(), () => (fromTheFuture as any).member])
             try { use() } catch (error) { seen.push((error as Error).message) }
           return seen;
         };",
    );
    let refusal = "'fromTheFuture' of 'node:path' is not available to extensions here";
    assert_eq!(
        bench.run("a.ts").await.unwrap(),
        json!(["a/b", true, true, "function", refusal, refusal, refusal])
    );
}

#[tokio::test]
async fn modules_are_shared_between_import_and_require() {
    let bench = Bench::new().await;
    let seen = bench
        .eval(
            "const imported = await import('node:events'); const { createRequire } = await import('module');
             const own = createRequire(import.meta.url);
             return [require('events') === imported.default, own('node:events') === require('events'), typeof require('node:fs').readFileSync, typeof Buffer.from, process.cwd() === require('process').cwd(), crypto.randomUUID().length];",
        )
        .await
        .unwrap();
    assert_eq!(seen, json!([true, true, "function", "function", true, 36]));
}

#[tokio::test]
async fn a_child_is_waited_for_within_the_limit() {
    let options = ScriptOptions {
        busy_limit: Duration::from_secs(30),
        ..ScriptOptions::default()
    };
    let bench = Bench::with(options).await;
    let seen = bench
        .eval("const text = require('child_process').execSync('sleep 1; echo done').toString(); let sum = 0; for (let at = 0; at < 50000; at++) sum += at; return [text, sum];")
        .await
        .unwrap();
    assert_eq!(seen, json!(["done\n", 1249975000]));
}

#[tokio::test]
async fn the_console_never_fails() {
    let bench = Bench::new().await;
    bench
        .eval(
            "console.log('%s is %d and %o', 'x', 4, { a: 1 }); console.error(new Error('shown')); console.table([{ a: 1 }, { b: 'two' }]); console.group('g'); console.dir({ a: { b: { c: {} } } }, { depth: 0 }); console.groupEnd();
             console.assert(false, 'no'); console.time('t'); console.timeEnd('t'); console.count(); console.trace('here'); console.log(Symbol('s'), null, undefined, [1, , 3], new Map([[1, 2]]), 10n);",
        )
        .await
        .unwrap();
    assert_eq!(*bench.uncaught.lock().unwrap(), []);
}
