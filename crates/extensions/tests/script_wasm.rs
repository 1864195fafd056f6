//! The global `WebAssembly`. The modules are written as bytes: no assembler is needed.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::time::{Duration, Instant};

use pinion_extensions::ScriptOptions;
use serde_json::json;
use support::Bench;

/// Writes modules from their sections, in the script.
const ASSEMBLER: &str = r#"
  const vec = (items) => [items.length, ...items.flat()];
  const name = (text) => vec([...text].map((c) => c.charCodeAt(0)));
  const section = (id, items) => { const body = vec(items); return [id, ...leb(body.length), ...body]; };
  const leb = (n) => (n < 128 ? [n] : [(n & 127) | 128, ...leb(n >> 7)]);
  const body = (code, locals = []) => { const all = [...vec(locals), ...code, 0x0b]; return [...leb(all.length), ...all]; };
  const module = (...sections) => new Uint8Array([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, ...sections.flat()]);
  const I32 = 0x7f, I64 = 0x7e, F64 = 0x7c;
  const type = (from, to) => [0x60, ...vec(from), ...vec(to)];
"#;

#[tokio::test]
async fn modules_call_scripts_and_scripts_call_modules() {
    let bench = Bench::new().await;
    let seen = bench
        .eval(&format!(
            r#"{ASSEMBLER}
            // twice(x) = env.add(x, x); wide(i64) = i64 + 1; rethrow() calls env.fail
            const bytes = module(
              section(1, [type([I32, I32], [I32]), type([I32], [I32]), type([I64], [I64]), type([], [])]),
              section(2, [[...name("env"), ...name("add"), 0, 0], [...name("env"), ...name("fail"), 0, 3]]),
              section(3, [1, 2, 3]),
              section(7, [[...name("twice"), 0, 2], [...name("wide"), 0, 3], [...name("fails"), 0, 4]]),
              section(10, [body([0x20, 0, 0x20, 0, 0x10, 0]), body([0x20, 0, 0x42, 1, 0x7c]), body([0x10, 1])]),
            );
            let exports;
            const env = {{
              // Calls back into the module while the module calls.
              add: (a, b) => (a > 100 ? exports.twice(1) : a + b),
              fail: () => {{ throw new TypeError("from the script"); }},
            }};
            const {{ module: compiled, instance }} = await WebAssembly.instantiate(bytes, {{ env }});
            exports = instance.exports;
            let thrown;
            try {{ exports.fails(); }} catch (error) {{ thrown = [error instanceof TypeError, error.message]; }}
            let link;
            try {{ new WebAssembly.Instance(compiled, {{ env: {{ add: 1 }} }}); }} catch (error) {{ link = error.name; }}
            let compile;
            try {{ new WebAssembly.Module(new Uint8Array([1, 2])); }} catch (error) {{ compile = [error instanceof WebAssembly.CompileError, error.name]; }}
            return {{
              results: [exports.twice(21), exports.twice("3"), exports.twice(101), String(exports.wide(2n ** 63n - 1n)), exports.twice.length],
              thrown, link, compile, validate: [WebAssembly.validate(bytes), WebAssembly.validate(new Uint8Array(4))],
              imports: WebAssembly.Module.imports(compiled), exports: WebAssembly.Module.exports(compiled).map(({{ kind }}) => kind),
              tag: Object.prototype.toString.call(WebAssembly), same: exports.twice === instance.exports.twice,
            }};"#
        ))
        .await
        .unwrap();
    assert_eq!(
        seen,
        json!({
            "results": [42, 6, 2, "-9223372036854775808", 1],
            "thrown": [true, "from the script"],
            "link": "LinkError",
            "compile": [true, "CompileError"],
            "validate": [true, false],
            "imports": [
                {"module": "env", "name": "add", "kind": "function"},
                {"module": "env", "name": "fail", "kind": "function"},
            ],
            "exports": ["function", "function", "function"],
            "tag": "[object WebAssembly]",
            "same": true,
        })
    );
}

#[tokio::test]
async fn memories_tables_and_globals_are_shared_with_scripts() {
    let bench = Bench::new().await;
    let seen = bench
        .eval(&format!(
            r#"{ASSEMBLER}
            // grow() grows the imported memory by one page and stores 7 at 65536; load(at); the global counts; call(i) is indirect.
            const bytes = module(
              section(1, [type([], [I32]), type([I32], [I32])]),
              section(2, [
                [...name("env"), ...name("memory"), 2, 0, 1], [...name("env"), ...name("table"), 1, 0x70, 0, 2],
                [...name("env"), ...name("count"), 3, I32, 1],
              ]),
              section(3, [0, 1, 1, 0]),
              section(7, [[...name("grow"), 0, 0], [...name("load"), 0, 1], [...name("call"), 0, 2], [...name("five"), 0, 3]]),
              section(9, [[0, 0x41, 0, 0x0b, ...vec([3])]]),
              section(10, [
                body([0x41, 1, 0x40, 0, 0x1a, 0x41, ...[0x80, 0x80, 4], 0x41, 7, 0x36, 2, 0, 0x23, 0, 0x41, 1, 0x6a, 0x24, 0, 0x23, 0]),
                body([0x20, 0, 0x28, 2, 0]), body([0x20, 0, 0x11, 0, 0]), body([0x41, 5]),
              ]),
            );
            const memory = new WebAssembly.Memory({{ initial: 1, maximum: 3 }});
            const table = new WebAssembly.Table({{ initial: 2, element: "anyfunc" }});
            const count = new WebAssembly.Global({{ value: "i32", mutable: true }}, 40);
            const {{ instance: {{ exports }} }} = await WebAssembly.instantiate(bytes, {{ env: {{ memory, table, count }} }});
            const before = memory.buffer;
            const view = new Uint32Array(before);
            view[1] = 99;
            const seen = [exports.load(4), memory.buffer === before];
            const counted = exports.grow();
            const after = [before.byteLength, view.length, memory.buffer.byteLength, new Uint32Array(memory.buffer)[16384], new Uint32Array(memory.buffer)[1]];
            const grown = [memory.grow(1), memory.buffer.byteLength];
            const told = (work) => {{ try {{ work(); return "nothing"; }} catch (e) {{ return [e.name, e.message]; }} }};
            const errors = [told(() => memory.grow(1))[0], told(() => exports.load(1 << 30)), told(() => exports.call(1))[0], told(() => table.get(9))[0]];
            table.set(1, exports.five);
            const called = [exports.call(0), exports.call(1), table.get(1) === exports.five, table.grow(1), table.length];
            count.value = 7;
            return {{ seen, counted, after, grown, errors, called, count: [exports.grow(), count.value] }};"#
        ))
        .await
        .unwrap();
    assert_eq!(
        seen,
        json!({
            "seen": [99, true],
            "counted": 41,
            "after": [0, 0, 131_072, 7, 99],
            "grown": [2, 196_608],
            "errors": ["RangeError", ["RuntimeError", "memory access out of bounds"], "RuntimeError", "RangeError"],
            "called": [5, 5, true, 2, 3],
            "count": [8, 8],
        })
    );
}

#[tokio::test]
async fn modules_have_limits() {
    let bench = Bench::with(ScriptOptions {
        busy_limit: Duration::from_millis(400),
        ..ScriptOptions::default()
    })
    .await;
    let started = Instant::now();
    let endless = bench
        .eval(&format!(
            r#"{ASSEMBLER}
            const bytes = module(section(1, [type([], [])]), section(3, [0]), section(7, [[...name("run"), 0, 0]]),
              section(10, [body([0x03, 0x40, 0x0c, 0, 0x0b])]));
            const {{ instance }} = await WebAssembly.instantiate(bytes);
            instance.exports.run();"#
        ))
        .await;
    assert!(endless.is_err(), "{endless:?}");
    assert!(started.elapsed() < Duration::from_secs(30));

    let bench = Bench::new().await;
    let seen = bench
        .eval(&format!(
            r#"{ASSEMBLER}
            const told = (work) => {{ try {{ work(); return "nothing"; }} catch (e) {{ return e.name; }} }};
            const recursive = module(section(1, [type([], [])]), section(3, [0]), section(7, [[...name("run"), 0, 0]]), section(10, [body([0x10, 0])]));
            const {{ instance }} = await WebAssembly.instantiate(recursive);
            // A module that calls a script that calls the module, without end.
            const back = module(section(1, [type([], [])]), section(2, [[...name("e"), ...name("f"), 0, 0]]), section(3, [0]),
              section(7, [[...name("run"), 0, 1]]), section(10, [body([0x10, 0])]));
            let again;
            again = (await WebAssembly.instantiate(back, {{ e: {{ f: () => again.exports.run() }} }})).instance;
            return [
              told(() => new WebAssembly.Memory({{ initial: 5000 }})), told(() => instance.exports.run()), told(() => again.exports.run()),
              told(() => new WebAssembly.Table({{ element: "anyfunc", initial: 5000000 }})),
            ];"#
        ))
        .await
        .unwrap();
    assert_eq!(
        seen,
        json!(["RangeError", "RuntimeError", "RuntimeError", "RangeError"])
    );
}
