use pinion_extensions::{FlagKind, LoadFailure, Options};
use serde_json::{Map, json};

use crate::stage::{Stage, load, notes};

async fn failure(files: &[(&str, &str)]) -> String {
    match load(files, Options::default()).await {
        Ok(_) => panic!("it loads"),
        Err(LoadFailure::Problems(problems)) => {
            let problem = &problems[0];
            let directory = problem.path.rsplit_once('/').unwrap().0;
            problem.to_string().replace(&format!("{directory}/"), "")
        }
        Err(other) => panic!("{other}"),
    }
}

#[tokio::test]
async fn load_failures_name_their_reason() {
    let cases = [
        (
            "export default function () { throw new Error('factory failed'); }",
            "Failed to load extension: factory failed",
        ),
        (
            "export const nothing = 1;",
            "Extension does not export a valid factory function: a.ts",
        ),
        (
            "export default (pi) => pi.sendMessage({ customType: 'x', content: 'y' });",
            "Failed to load extension: Extension runtime not initialized. Action methods cannot be called during extension loading.",
        ),
        (
            "export default async (pi) => { await pi.setModel({}); }",
            "Failed to load extension: Extension runtime not initialized",
        ),
    ];
    for (source, expected) in cases {
        let words = failure(&[("a.ts", source)]).await;
        assert_eq!(
            words,
            format!("Failed to load extension \"a.ts\": {expected}")
        );
    }
}

#[tokio::test]
async fn two_extensions_cannot_have_the_same_tool_or_flag() {
    let tool =
        "export default (pi) => pi.registerTool({ name: 'same', parameters: {}, execute() {} });";
    let words = failure(&[("a.ts", tool), ("b.ts", tool)]).await;
    assert_eq!(
        words,
        "Failed to load extension \"b.ts\": Tool \"same\" conflicts with a.ts"
    );
    let flag = "export default (pi) => pi.registerFlag('same', { type: 'boolean' });";
    let words = failure(&[("a.ts", flag), ("b.ts", flag)]).await;
    assert_eq!(
        words,
        "Failed to load extension \"b.ts\": Flag \"--same\" conflicts with a.ts"
    );
}

#[tokio::test]
async fn problems_can_be_tolerated() {
    let files = [
        (
            "a.ts",
            "export default function () { throw new Error('no'); }",
        ),
        (
            "b.ts",
            "export default (pi) => pi.registerCommand('b', { handler() {} });",
        ),
    ];
    let options = Options {
        lenient: true,
        ..Options::default()
    };
    let (_directory, loaded) = load(&files, options).await.unwrap();
    assert_eq!(loaded.problems().len(), 1);
    assert_eq!(loaded.extensions.commands()[0]["name"], "b");
}

#[tokio::test]
async fn the_report_lists_the_registrations_of_each_extension() {
    let source = r#"
        import { Type } from "typebox";
        import type { Nothing } from "vanishes";
        export default async function (pi) {
          Type.String();
          await new Promise((resolve) => setTimeout(resolve, 5));
          pi.on("agent_start", () => {});
          pi.registerTool({ name: "t", description: "d", parameters: {}, execute() {} });
          pi.registerCommand("c", { handler() {} });
          pi.registerFlag("f", { type: "string", description: "text" });
          pi.registerShortcut("ctrl+x", { handler() {} });
          pi.registerMessageRenderer("m", () => {});
          pi.registerEntryRenderer("e", () => {});
          pi.registerSomethingNew("n", {});
          if (Object.keys(pi).length !== 24 || pi.unknown !== undefined) throw new Error("keys");
          pi.registerProvider("p", { baseUrl: "http://127.0.0.1:9" });
        }"#;
    let (_directory, loaded) = load(&[("a.ts", source)], Options::default()).await.unwrap();
    let flag = &loaded.flags()[0];
    assert_eq!((flag.name.as_str(), flag.kind), ("f", FlagKind::String));
    let report = json!(loaded.report()[0]);
    let expected = json!({
        "tools": ["t"], "commands": ["c"], "flags": ["f"], "shortcuts": ["ctrl+x"],
        "modules": ["typebox"], "renderers": ["m", "e"], "providers": ["p"], "events": ["agent_start"],
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(report[name], *value, "{name}");
    }
    assert!(report["loadMilliseconds"].as_f64().unwrap() > 0.0);
}

#[tokio::test]
async fn flags_belong_to_their_extension_and_conflicting_commands_get_numbers() {
    let extension = |own: &str, other: &str| {
        format!(
            "export default (pi) => {{
               pi.registerFlag('{own}', {{ type: 'string', default: 'x' }});
               pi.registerCommand('dup', {{ description: '{own}', handler: (_, ctx) => ctx.ui.notify('{own} ran') }});
               pi.on('session_start', (_, ctx) => ctx.ui.notify(`${{pi.getFlag('{own}')}} ${{pi.getFlag('{other}')}}`));
             }};"
        )
    };
    let (a, b) = (extension("fa", "fb"), extension("fb", "fa"));
    let flags: Map<_, _> = [("fa".to_owned(), json!("val"))].into_iter().collect();
    let stage = Stage::with(&[("a.ts", &a), ("b.ts", &b)], flags, |options| options).await;
    assert_eq!(notes(&stage.lines.take()), ["val undefined", "x undefined"]);
    let commands = stage.extensions.commands();
    assert_eq!(commands[0]["name"], "dup:1");
    assert_eq!(commands[1]["name"], "dup:2");
    assert_eq!(commands[0]["source"], "extension");
    assert_eq!(commands[0]["sourceInfo"]["source"], "cli");
    assert_eq!(stage.command("/dup:2").await, ["fb ran"]);
}
