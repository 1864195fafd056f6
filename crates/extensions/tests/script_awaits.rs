//! Modules that import one with a top-level `await`, directly or indirectly: every `import()` settles.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::time::Duration;

use pinion_extensions::{ScriptError, ScriptOptions};
use serde_json::{Value, json};
use support::Bench;

/// Far more than a loaded machine needs.
const SOON: Duration = Duration::from_secs(30);

async fn run(bench: &Bench, body: &str) -> Result<Value, ScriptError> {
    tokio::time::timeout(SOON, bench.eval(body)).await.unwrap()
}

/// Writes files; names and texts alternate.
fn write(bench: &Bench, files: &[(&str, &str)]) {
    for (name, text) in files {
        bench.write(name, text);
    }
}

/// A wait that takes several turns.
const LATER: &str =
    "export const later = await new Promise((done) => setTimeout(() => done('later'), 5));";

#[tokio::test]
async fn a_module_above_an_await_can_be_imported_again_and_again() {
    let bench = Bench::new().await;
    write(
        &bench,
        &[
            ("c.ts", LATER),
            (
                "b.ts",
                "import { later } from './c'; export const b = `b ${later}`;",
            ),
            (
                "a.ts",
                "import { b } from './b'; export const a = `a ${b}`;",
            ),
            ("star.ts", "export * from './b';"),
            ("named.ts", "export { b as renamed } from './b';"),
            ("bare.ts", "import './b'; export const bare = 1;"),
            (
                "gap.ts",
                "import { b, Missing } from './b'; export const gap = [b, typeof Missing];",
            ),
        ],
    );
    let seen = run(
        &bench,
        "const b = await import('./b');
         const again = await import('./b');
         const a = await import('./a');
         const star = await import('./star');
         const named = await import('./named');
         const bare = await import('./bare');
         const gap = await import('./gap');
         const gap2 = await import('./gap');
         return [b.b, again === b, a.a, star.b, named.renamed, bare.bare, gap.gap, gap2 === gap];",
    )
    .await
    .unwrap();
    assert_eq!(
        seen,
        json!([
            "b later",
            true,
            "a b later",
            "b later",
            "b later",
            1,
            ["b later", "undefined"],
            true
        ])
    );
}

#[tokio::test]
async fn diamonds_and_cycles_settle_in_order() {
    let bench = Bench::new().await;
    let note = "(globalThis as any).order ??= []; (globalThis as any).order.push";
    write(
        &bench,
        &[
            (
                "leaf.ts",
                &format!("{note}('leaf'); await null; export const leaf = 1;"),
            ),
            (
                "left.ts",
                &format!("import './leaf'; {note}('left'); export const left = 1;"),
            ),
            (
                "right.ts",
                &format!("import './leaf'; await null; {note}('right'); export const right = 1;"),
            ),
            (
                "top.ts",
                &format!(
                    "import {{ left }} from './left'; import {{ right }} from './right'; {note}('top'); export const top = left + right;"
                ),
            ),
            (
                "beside.ts",
                &format!("import './left'; import './top'; {note}('beside'); export default 1;"),
            ),
            // A cycle, with the await inside of it and below it.
            (
                "one.ts",
                &format!(
                    "import {{ two }} from './two'; {note}('one'); export const one = () => two;"
                ),
            ),
            (
                "two.ts",
                &format!(
                    "import {{ one }} from './one'; import './leaf'; {note}('two'); export const two = 2; export const back = () => one();"
                ),
            ),
            (
                "three.ts",
                &format!("import './four'; {note}('three'); export const three = 3;"),
            ),
            (
                "four.ts",
                &format!("import './three'; await null; {note}('four'); export const four = 4;"),
            ),
            (
                "over.ts",
                "import { one } from './one'; import { back } from './two'; import { three } from './three'; import { four } from './four'; export const over = [one(), back(), three, four];",
            ),
        ],
    );
    let seen = run(
        &bench,
        "const top = await import('./top');
         await import('./beside');
         await Promise.all([import('./one'), import('./three'), import('./four')]);
         const over = await import('./over');
         return [top.top, over.over, (globalThis as any).order];",
    )
    .await
    .unwrap();
    assert_eq!(
        seen,
        json!([
            2,
            [2, 2, 3, 4],
            [
                "leaf", "left", "right", "top", "beside", "two", "one", "four", "three"
            ]
        ])
    );
}

#[tokio::test]
async fn awaits_at_every_depth_settle() {
    for depth in 1..6 {
        for at in 0..depth {
            let bench = Bench::new().await;
            for level in 0..depth {
                let below = match level + 1 {
                    next if next < depth => format!("import {{ v as below }} from './m{next}';"),
                    _ => "const below = 0;".to_owned(),
                };
                let wait = if level == at { "await null;" } else { "" };
                bench.write(
                    &format!("m{level}.ts"),
                    &format!("{below} {wait} export const v = below + 1;"),
                );
            }
            // From the bottom up, then from the top down: each import meets modules in the state that the others left.
            let body = format!(
                "const seen = []; for (let at = {depth}; at--; ) seen.push((await import(`./m${{at}}`)).v); for (let at = 0; at < {depth}; at++) seen.push((await import(`./m${{at}}`)).v); return seen;"
            );
            let mut expected: Vec<u64> = (1..=depth).collect();
            expected.extend((1..=depth).rev());
            assert_eq!(
                run(&bench, &body).await.unwrap(),
                json!(expected),
                "{depth}, {at}"
            );
        }
    }
}

#[tokio::test]
async fn failures_and_imports_while_loading_settle() {
    let bench = Bench::new().await;
    write(
        &bench,
        &[
            ("bad.ts", "await null; throw new Error('bad'); export {};"),
            ("above.ts", "import './bad'; export const never = 1;"),
            ("higher.ts", "import './above'; export const never = 1;"),
            (
                "sync.ts",
                "import './c'; throw new Error('sync'); export {};",
            ),
            ("c.ts", LATER),
            (
                "b.ts",
                "import { later } from './c'; export const b = later;",
            ),
            // Imports modules that are still being evaluated, and modules that already were.
            (
                "self.ts",
                "import { b } from './b'; export const dynamic = import('./b').then((m) => m.b); export const self = b;",
            ),
            (
                "nested.ts",
                "const { self } = await import('./self'); export const nested = self;",
            ),
            (
                "last.ts",
                "import { nested } from './nested'; import { self } from './self'; export const last = [nested, self];",
            ),
            (
                "loops.ts",
                "for await (const one of [1, 2]) (globalThis as any).loops = one; export {};",
            ),
            (
                "overloops.ts",
                "import './loops'; export const loops = (globalThis as any).loops;",
            ),
        ],
    );
    let seen = run(
        &bench,
        "const told = (name: string) => import(name).then(() => 'none', (e) => e.message);
         return [
           await told('./above'), await told('./above'), await told('./higher'), await told('./bad'),
           await told('./sync'), await told('./sync'),
           (await import('./last')).last, await (await import('./self')).dynamic, (await import('./last')).last,
           (await import('./overloops')).loops, (await import('./overloops')).loops,
         ];",
    )
    .await
    .unwrap();
    assert_eq!(
        seen,
        json!([
            "bad",
            "bad",
            "bad",
            "bad",
            "sync",
            "sync",
            ["later", "later"],
            "later",
            ["later", "later"],
            2,
            2
        ])
    );
    assert_eq!(*bench.uncaught.lock().unwrap(), []);
}

#[tokio::test]
async fn modules_without_await_can_be_required_and_are_cached() {
    let cache = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let options = ScriptOptions {
            cache_dir: Some(cache.path().join("cache")),
            ..ScriptOptions::default()
        };
        let bench = Bench::with(options).await;
        // The names of files are part of the cache's keys.
        let place = cache.path().join("files");
        std::fs::create_dir_all(&place).unwrap();
        for (name, text) in [
            ("c.ts", LATER),
            (
                "b.ts",
                "import { later } from './c'; export const b = later;",
            ),
            (
                "plain.ts",
                "import { inner } from './inner'; export const plain = inner; export const wait = async () => { await null; };",
            ),
            ("inner.ts", "export const inner = 'inner';"),
        ] {
            std::fs::write(place.join(name), text).unwrap();
        }
        let seen = run(
            &bench,
            &format!(
                "const place = {:?};
                 const required = require(`${{place}}/plain`).plain;
                 const first = (await import(`${{place}}/b`)).b;
                 const told = (() => {{ try {{ return require(`${{place}}/b`).b; }} catch (e: any) {{ return e.message; }} }})();
                 return [required, first, (await import(`${{place}}/b`)).b, told];",
                place
            ),
        )
        .await
        .unwrap();
        assert_eq!(seen, json!(["inner", "later", "later", "later"]));
    }
}
