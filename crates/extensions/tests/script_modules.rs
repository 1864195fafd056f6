//! The imports of extension files.

mod support;

use serde_json::json;
use support::Bench;

#[tokio::test]
async fn typescript_runs() {
    let bench = Bench::new().await;
    bench.write(
        "a.ts",
        "import type { Nothing } from './nowhere';
         enum Colour { Red = 1, Green }
         class Point { constructor(private x: number, readonly y = 2) {} sum(): number { return this.x + this.y } }
         declare const unused: string;
         export default async function (): Promise<unknown> {
           await null;
           return [Colour.Green, new Point(3).sum(), { a: 1 } satisfies object];
         }",
    );
    assert_eq!(bench.run("a.ts").await.unwrap(), json!([2, 5, { "a": 1 }]));
}

#[tokio::test]
async fn files_are_found_with_and_without_their_endings() {
    let bench = Bench::new().await;
    bench.write("lib/one.ts", "export const one: number = 1;");
    bench.write("lib/index.ts", "export const index = 'index';");
    bench.write("plain.js", "export default 'plain';");
    bench.write("data.json", r#"{ "answer": 42 }"#);
    let absolute = bench.write("absolute.mjs", "export const far = 'far';");
    bench.write(
        "a.ts",
        &format!(
            "import {{ one }} from './lib/one.js';
             import {{ one as same }} from './lib/one';
             import {{ index }} from './lib';
             import plain from './plain.js';
             import data, {{ answer }} from './data.json';
             import {{ far }} from {absolute:?};
             import {{ far as url }} from 'file://{}';
             export default [one, same, index, plain, data.answer, answer, far, url];",
            absolute.display()
        ),
    );
    assert_eq!(
        bench.run("a.ts").await.unwrap(),
        json!([1, 1, "index", "plain", 42, 42, "far", "far"])
    );
}

#[tokio::test]
async fn import_meta_names_the_file() {
    let bench = Bench::new().await;
    let path = bench.write(
        "sub dir/a.ts",
        "export default [import.meta.url, import.meta.filename, import.meta.dirname, __dirname, import.meta.resolve('./a.js')];",
    );
    let url = format!("file://{}", path.display()).replace(' ', "%20");
    assert_eq!(
        bench.run("sub dir/a.ts").await.unwrap(),
        json!([
            url,
            path,
            path.parent().unwrap(),
            path.parent().unwrap(),
            url
        ])
    );
}

#[tokio::test]
async fn a_missing_module_is_named_with_its_importer() {
    let bench = Bench::new().await;
    let path = bench.write(
        "a.ts",
        "import x from 'no-such-package-abc'; export default x;",
    );
    assert_eq!(
        bench.run("a.ts").await.unwrap_err().to_string(),
        format!(
            "Cannot find module 'no-such-package-abc'\nRequire stack:\n- {}",
            path.display()
        )
    );
    bench.write(
        "b.ts",
        "import x from 'node:no_such_module'; export default x;",
    );
    let message = bench.run("b.ts").await.unwrap_err().to_string();
    assert!(
        message.starts_with("Cannot find module 'node:no_such_module'\n"),
        "{message}"
    );
    bench.write("d.cjs", "module.exports = () => import('pinion:ops');");
    bench.write("e.ts", "import d from './d.cjs'; export default () => d();");
    for name in ["d.cjs", "e.ts"] {
        assert_eq!(
            bench.run(name).await.unwrap_err().to_string(),
            "Cannot find module 'pinion:ops'"
        );
    }
    bench.write(
        "c.ts",
        "import { ops } from 'pinion:ops'; export default ops;",
    );
    assert_eq!(
        bench.run("c.ts").await.unwrap_err().to_string(),
        "Cannot find module 'pinion:ops'"
    );
}

#[tokio::test]
async fn a_syntax_error_names_its_place() {
    let bench = Bench::new().await;
    let path = bench.write("a.ts", "export default 1;\nlet x = = 2;\n");
    let message = bench.run("a.ts").await.unwrap_err().to_string();
    assert!(
        message.ends_with(&format!("({}:2:9)", path.display())),
        "{message}"
    );
}

#[tokio::test]
async fn common_js_packages_are_imported_by_name() {
    let bench = Bench::new().await;
    bench.write(
        "node_modules/ms/package.json",
        r#"{ "name": "ms", "main": "./index" }"#,
    );
    bench.write(
        "node_modules/ms/index.js",
        "var s = 1000; module.exports = function (text) { return parseInt(text) * s }; module.exports.unit = 'ms'",
    );
    bench.write("node_modules/old/package.json", r#"{ "main": "lib" }"#);
    bench.write(
        "node_modules/old/lib/index.js",
        "'use strict'; Object.defineProperty(exports, '__esModule', { value: true });
         exports.default = 'default'; exports.named = require('./part').part; exports.json = require('../package').main;",
    );
    bench.write(
        "node_modules/old/lib/part.js",
        "exports.part = 'part'; exports.whole = require('./index');",
    );
    bench.write(
        "a.ts",
        "import ms, { unit } from 'ms'; import old, { named, json } from 'old';
         const { whole } = require('old/lib/part');
         export default [ms('2s'), unit, old, named, json, whole === require('old'), typeof require.resolve('ms')];",
    );
    assert_eq!(
        bench.run("a.ts").await.unwrap(),
        json!([2000, "ms", "default", "part", "lib", true, "string"])
    );
}

#[tokio::test]
async fn exports_of_a_package_decide_which_file() {
    let bench = Bench::new().await;
    bench.write(
        "node_modules/@scope/dual/package.json",
        r#"{ "exports": {
            ".": { "types": "./x.d.ts", "import": "./esm.mjs", "require": "./cjs.cjs" },
            "./features/*": "./src/*.js",
            "./features/private/*": null,
            "./package.json": "./package.json"
        }, "type": "module" }"#,
    );
    bench.write("node_modules/@scope/dual/esm.mjs", "export default 'esm';");
    bench.write(
        "node_modules/@scope/dual/cjs.cjs",
        "module.exports = 'cjs';",
    );
    bench.write(
        "node_modules/@scope/dual/src/deep/x.js",
        "export const x = 'deep';",
    );
    bench.write(
        "sub/a.ts",
        "import esm from '@scope/dual'; import { x } from '@scope/dual/features/deep/x';
         let refused; try { await import('@scope/dual/esm.mjs') } catch (error) { refused = error.code }
         export default [esm, require('@scope/dual'), x, refused];",
    );
    assert_eq!(
        bench.run("sub/a.ts").await.unwrap(),
        json!(["esm", "cjs", "deep", "MODULE_NOT_FOUND"])
    );
}

#[tokio::test]
async fn every_generation_evaluates_its_modules_afresh() {
    let bench = Bench::new().await;
    bench.write(
        "counter.ts",
        "let count = 0; export const next = () => ++count;",
    );
    bench.write(
        "a.ts",
        "import { next } from './counter'; export default () => next();",
    );
    assert_eq!(bench.run("a.ts").await.unwrap(), json!(1));
    assert_eq!(bench.run("a.ts").await.unwrap(), json!(2));
    let second = bench.script.open_generation().await.unwrap();
    assert_eq!(bench.run_in(second, "a.ts").await.unwrap(), json!(1));
    bench.script.close_generation(bench.generation);
    assert_eq!(bench.run("a.ts").await.unwrap_err().code(), "script_closed");
    assert_eq!(bench.run_in(second, "a.ts").await.unwrap(), json!(2));
}

#[tokio::test]
async fn all_forms_of_import_give_the_same_values() {
    let bench = Bench::new().await;
    // Each file gets only the part of the module that it imports; the values must be the same in all of them.
    bench.write(
        "part.ts",
        "import { existsSync, readFileSync } from 'node:fs'; export { existsSync, readFileSync };",
    );
    bench.write(
        "mixed.ts",
        "import { ReadStream, Stats, promises as p, Dir } from 'fs'; export { ReadStream, Stats, p, Dir };",
    );
    bench.write(
        "whole.ts",
        "import fs from 'node:fs'; import * as all from 'node:fs'; export { fs, all };",
    );
    bench.write(
        "later.ts",
        "import { existsSync } from 'node:fs';
         export default async () => { const all = await import('node:fs'); return [existsSync === all.existsSync, typeof all.readFile, typeof all.default.watch]; };",
    );
    bench.write(
        "passed.ts",
        "export * from 'node:fs'; export { default as fs } from 'node:fs';",
    );
    bench.write(
        "a.ts",
        "import * as part from './part'; import * as mixed from './mixed'; import { fs, all } from './whole';
         import * as passed from './passed'; import later from './later';
         import inner from 'node:fs/promises'; import { Type } from 'typebox'; import { Type as same, StringEnum } from '@mariozechner/pi-ai';
         import * as typebox from 'typebox';
         export default async () => [
           part.existsSync === fs.existsSync, part.readFileSync === all.readFileSync,
           mixed.ReadStream === fs.ReadStream, mixed.Stats === all.Stats, mixed.Dir === fs.Dir,
           mixed.p === inner, fs.promises === inner, all.promises === inner,
           passed.fs === fs, passed.mkdirSync === fs.mkdirSync,
           Type === same, Type === typebox.Type, Type.Partial === typebox.Partial, typeof StringEnum,
           Object.keys(Type).includes('Partial'), await later(),
         ];",
    );
    assert_eq!(
        bench.run("a.ts").await.unwrap(),
        json!([
            true,
            true,
            true,
            true,
            true,
            true,
            true,
            true,
            true,
            true,
            true,
            true,
            true,
            "function",
            true,
            [true, "function", "function"]
        ])
    );
}

#[tokio::test]
async fn names_that_are_not_exported_are_undefined() {
    let bench = Bench::new().await;
    bench.write(
        "types.ts",
        "export interface Shape { side: number } export type Id = string; export const real = 1;",
    );
    bench.write(
        "inner.ts",
        "export * from './types'; export * from './ring';",
    );
    bench.write(
        "ring.ts",
        "export * from './inner'; export const round = 'round';",
    );
    bench.write("old.cjs", "exports.has = 'has';");
    bench.write(
        "passes.ts",
        "export { Shape, real } from './types'; import { Id } from './types'; export { Id };
         export { Shape as Again, round } from './inner';",
    );
    bench.write(
        "a.ts",
        "import { Shape, Id, real, Again, round } from './passes'; import { missing } from './types';
         import { has, hasNot } from './old.cjs'; import none from './types';
         export default [typeof Shape, typeof Id, real, typeof Again, round, typeof missing, has, typeof hasNot,
           typeof none];",
    );
    assert_eq!(
        bench.run("a.ts").await.unwrap(),
        json!([
            "undefined",
            "undefined",
            1,
            "undefined",
            "round",
            "undefined",
            "has",
            "undefined",
            "undefined",
        ])
    );
}

#[tokio::test]
async fn decorators_of_typescript_run() {
    let bench = Bench::new().await;
    bench.write(
        "a.ts",
        "const log: unknown[] = [];
         const loud = (_target: object, key: string, about: PropertyDescriptor) => {
           const quiet = about.value;
           about.value = function (...words: string[]) { return quiet.apply(this, words).toUpperCase() };
         };
         const field = (target: object, key: string) => { log.push(key) };
         const parameter = (target: object, key: string, at: number) => { log.push([key, at]) };
         const named = (name: string) => (type: any) => { type.called = name };
         @named('it') class Voice {
           @field volume = 1;
           @loud say(@parameter word: string) { return word + this.volume }
         }
         export default [new Voice().say('hi'), (Voice as any).called, log];",
    );
    assert_eq!(
        bench.run("a.ts").await.unwrap(),
        json!(["HI1", "it", ["volume", ["say", 0]]])
    );
}

#[tokio::test]
async fn a_cts_file_may_be_written_as_a_module() {
    let bench = Bench::new().await;
    bench.write(
        "module.cts",
        "import { join } from 'node:path';\nexport const at: string = join('a', 'b');",
    );
    bench.write("common.cts", "module.exports = { at: 'common' as string };");
    bench.write(
        "a.ts",
        "import { at } from './module.cts'; import { at as other } from './common.cts'; export default [at, other];",
    );
    assert_eq!(bench.run("a.ts").await.unwrap(), json!(["a/b", "common"]));
}

#[tokio::test]
async fn a_name_that_comes_or_goes_is_noticed_by_the_next_generation() {
    let bench = Bench::new().await;
    bench.write(
        "a.ts",
        "import { later, now } from './b'; export default () => [typeof later, typeof now];",
    );
    for (source, expected) in [
        ("export const now = 1;", json!(["undefined", "number"])),
        (
            "export const now = 1; export const later = 2;",
            json!(["number", "number"]),
        ),
        (
            "export default 3; export const later = 2;",
            json!(["number", "undefined"]),
        ),
    ] {
        bench.write("b.ts", source);
        let generation = bench.script.open_generation().await.unwrap();
        assert_eq!(bench.run_in(generation, "a.ts").await.unwrap(), expected);
    }
}
