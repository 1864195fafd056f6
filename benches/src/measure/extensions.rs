//! The cost of extensions: at the first start, at a cached start, and for every call of a tool.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Bench, PROMPT};
use crate::Fallible;
use crate::agent::Agent;
use crate::home::Home;
use crate::samples::{Samples, at_least, time, times};
use crate::table::Row;

/// The number of extensions in a set.
const SET: usize = 10;

/// Lines of a large extension.
const LINES: usize = 200;

/// Calls of a tool within one answer of the model.
const CALLS: usize = 300;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExtensionSize {
    Small,
    Large,
}

pub fn run(bench: &mut Bench) -> Fallible<()> {
    load_one(bench)?;
    load_ten(bench, ExtensionSize::Small, "ten small extensions")?;
    load_ten(bench, ExtensionSize::Large, "ten extensions of 200 lines")?;
    call_tool(bench)
}

/// Measures the time that one large extension adds to a start, uncached and cached.
fn load_one(bench: &mut Bench) -> Fallible<()> {
    let [mut without, mut first, mut again] = [const { Samples::new() }; 3];
    let pinion = bench.agents.pinion.clone();
    for _ in 0..bench.rounds.ours * 4 {
        let home = bench.home()?;
        let arguments = write_set(&home, ExtensionSize::Large, 1)?;
        without.add_time(start(&pinion, &home, &[])?);
        first.add_time(start(&pinion, &home, &arguments)?);
        again.add_time(start(&pinion, &home, &arguments)?);
    }
    let first = first.median() - without.median();
    let again = again.median() - without.median();
    bench.table.add(Row {
        what: format!("one extension of {LINES} lines: added to the start, first; cached"),
        pinion: format!("{}; {}", time(first), time(again)),
        target: "< 15 ms; < 3 ms".into(),
        met: Some(first < 0.015 && again < 0.003),
        ..Row::default()
    });
    Ok(())
}

/// Measures the time to the first answer with a set of ten; pi has no cache, so both times of pinion are compared with
/// its one.
fn load_ten(bench: &mut Bench, kind: ExtensionSize, name: &str) -> Fallible<()> {
    let [mut first, mut again, mut theirs] = [const { Samples::new() }; 3];
    let pinion = bench.agents.pinion.clone();
    for round in 0..bench.rounds.ours {
        let home = bench.home()?;
        let arguments = write_set(&home, kind, SET)?;
        first.add_time(start(&pinion, &home, &arguments)?);
        again.add_time(start(&pinion, &home, &arguments)?);
        if let Some(pi) = bench
            .agents
            .pi
            .clone()
            .filter(|_| round < bench.rounds.reference)
        {
            let home = bench.home()?;
            let arguments = write_set(&home, kind, SET)?;
            theirs.add_time(start(&pi, &home, &arguments)?);
        }
    }
    let ratio = theirs.median() / first.median();
    bench.table.add(Row {
        what: format!("spawn → first `get_state` answer with {name}: first; cached"),
        pinion: format!("{}; {}", time(first.median()), time(again.median())),
        pi: time(theirs.median()),
        ratio: format!(
            "{} faster; cached {}",
            times(ratio),
            times(theirs.median() / again.median())
        ),
        target: "≥ 10×".into(),
        met: at_least(ratio, 10.0),
    });
    Ok(())
}

/// Measures a tool that does nothing, called many times in a row: from the first call to the last, per call.
///
/// The tool measures the time itself, because an agent may write the records of all calls at once.
fn call_tool(bench: &mut Bench) -> Fallible<()> {
    let steps: Vec<Value> = (0..CALLS)
        .map(|number| json!({"tool": "nothing", "args": {"n": number}}))
        .collect();
    let scenario =
        json!({"blind": true, "flush": "block", "turns": [{"steps": steps}, {"steps": ["done"]}]});
    let [mut ours, mut theirs] = [const { Samples::new() }; 2];
    for round in 0..bench.rounds.ours {
        for agent in bench.agents.both() {
            let reference = agent.name != bench.agents.pinion.name;
            if reference && round >= bench.rounds.reference {
                continue;
            }
            bench.model.play(&scenario)?;
            let home = bench.home()?;
            let path = home.work().join("nothing.ts");
            fs::write(&path, TOOL)?;
            let took = calls(agent, &home, &path)?;
            let samples = if reference { &mut theirs } else { &mut ours };
            samples.add(took.as_secs_f64() / (CALLS - 1) as f64);
        }
    }
    let ratio = theirs.median() / ours.median();
    bench.table.add(Row {
        what: format!(
            "a tool of an extension called {CALLS} times in a row: each call, with its records"
        ),
        pinion: time(ours.median()),
        pi: time(theirs.median()),
        ratio: format!("{} less", times(ratio)),
        target: "< 100 µs".into(),
        met: Some(ours.median() < 0.000_1),
    });
    Ok(())
}

fn calls(agent: &Agent, home: &Home, extension: &Path) -> Fallible<Duration> {
    let path = extension.to_string_lossy();
    let mut process = agent.start_ready(home, &["--no-session", "-e", &path])?;
    process.send(PROMPT)?;
    let (mut last, mut count) = (Vec::new(), 0);
    process.read_until(|line| {
        if line.is("tool_execution_end") {
            count += 1;
            last = line.head.to_vec();
        }
        line.is("agent_end")
    })?;
    process.finish()?;
    if count != CALLS {
        return Err(format!("{count} of {CALLS} calls came back").into());
    }
    let last: Value = serde_json::from_slice(&last)?;
    let told = last["result"]["content"][0]["text"].as_str();
    let milliseconds: f64 = told.ok_or("the tool tells no time")?.parse()?;
    Ok(Duration::from_secs_f64(milliseconds / 1e3))
}

fn start(agent: &Agent, home: &Home, arguments: &[String]) -> Fallible<Duration> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut process = agent.start(home, &arguments)?;
    process.ask("s", "get_state")?;
    let took = process.started.elapsed();
    process.finish()?;
    Ok(took)
}

/// Writes a set into the working directory and returns the arguments that load it.
fn write_set(home: &Home, kind: ExtensionSize, count: usize) -> Fallible<Vec<String>> {
    let mut arguments = Vec::new();
    for number in 0..count {
        let path = home.work().join(format!("extension-{number}.ts"));
        let text = match kind {
            ExtensionSize::Small => small(number),
            ExtensionSize::Large => large(number),
        };
        fs::write(&path, text)?;
        arguments.extend(["-e".to_owned(), path.to_string_lossy().into_owned()]);
    }
    Ok(arguments)
}

/// The smallest possible tool: returns the milliseconds since its first call.
const TOOL: &str = r#"let first: number | undefined;
export default function (pi: any) {
  pi.registerTool({ name: "nothing", label: "Nothing", description: "Does nothing", executionMode: "sequential",
    parameters: { type: "object", properties: { n: { type: "number" } } },
    execute: async () => {
      const now = performance.now();
      first ??= now;
      return { content: [{ type: "text", text: String(now - first) }] };
    } });
}
"#;

fn small(number: usize) -> String {
    format!(
        r#"import type {{ ExtensionAPI }} from "@mariozechner/pi-coding-agent";

export default function (pi: ExtensionAPI) {{
  let turns = 0;
  pi.on("turn_end", () => {{ turns += 1; }});
  pi.registerCommand("turns-{number}", {{
    description: "How many turns there were",
    handler: async (_args, ctx) => ctx.ui.notify(`${{turns}} turns`, "info"),
  }});
}}
"#
    )
}

/// Returns a typical extension: types, helpers, a few handlers, tools with schemas.
fn large(number: usize) -> String {
    let mut text = format!(
        r#"import {{ existsSync, readFileSync }} from "node:fs";
import {{ join }} from "node:path";
import type {{ ExtensionAPI, ExtensionContext }} from "@mariozechner/pi-coding-agent";
import {{ Type }} from "typebox";

interface Item<T = string> {{ id: number; value: T; tags?: readonly string[] }}
type Rule = {{ name: string; test: (text: string) => boolean }};
enum Level {{ Low, Middle, High }}

class Store {{
  private items: Item[] = [];
  constructor(private readonly name: string, public level: Level = Level.Low) {{}}
  add(value: string): Item {{ const item: Item = {{ id: this.items.length + 1, value }}; this.items.push(item); return item; }}
  find(id: number): Item | undefined {{ return this.items.find((item) => item.id === id); }}
  get size(): number {{ return this.items.length; }}
}}

export default function (pi: ExtensionAPI) {{
  const store = new Store("store {number}");
  const rules: Rule[] = [];
  const report = (ctx: ExtensionContext, text: string) => ctx.ui.setStatus("store-{number}", text);
  pi.on("session_start", (_event, ctx) => {{
    const file = join(ctx.cwd, "store-{number}.txt");
    if (existsSync(file)) for (const line of readFileSync(file, "utf8").split("\n")) store.add(line);
  }});
"#
    );
    let mut rule = 0;
    // A tool has nine lines and a rule six; the factory ends with one.
    while text.lines().count() + 16 < LINES {
        let _ = write!(
            text,
            r#"  rules.push({{
    name: "rule {rule}",
    test: (text) => text.length > {rule} && /word{rule}/.test(text) && text.split(" ").some((word) => word === `w${{{rule}}}`),
  }});
  pi.on("agent_end", (event, ctx) => {{
    if (event.messages.length > {rule}) report(ctx, `${{store.size}} of {rule}`);
  }});
  pi.registerTool({{
    name: "store_{number}_{rule}",
    label: "Store {rule}",
    description: "Keeps a text under rule {rule}",
    parameters: Type.Object({{ text: Type.String(), tags: Type.Optional(Type.Array(Type.String())) }}),
    async execute(_id, params) {{
      const item = store.add(params.text satisfies string);
      return {{ content: [{{ type: "text" as const, text: `kept ${{item.id}}` }}], details: {{ item, ok: rules[{rule}]?.test(params.text) }} }};
    }},
  }});
"#
        );
        rule += 1;
    }
    while text.lines().count() + 1 < LINES {
        text.push_str("  // room for one more\n");
    }
    text.push_str("}\n");
    text
}
