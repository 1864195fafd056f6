//! Standard output belongs to the protocol, however an extension tries to write to it.

use serde_json::json;

use super::{Hostile, each};

/// Ways to write the word `torn` to the stream of records.
const WAYS: [&str; 16] = [
    "console.log('torn')",
    "console.info('torn')",
    "console.debug('torn')",
    "console.table([{ torn: 'torn' }])",
    "console.dir({ torn: 'torn' })",
    "process.stdout.write('torn')",
    "process.stdout.write('torn\\n', 'utf8', () => {})",
    "process.stdout.end('torn')",
    "fs.writeSync(1, 'torn\\n')",
    "fs.writeFileSync('/dev/stdout', 'torn\\n')",
    "fs.writeFileSync('/proc/self/fd/1', 'torn\\n')",
    "fs.createWriteStream('/dev/stdout').end('torn\\n')",
    "child.execSync('echo torn', { stdio: 'inherit' })",
    "child.spawnSync('sh', ['-c', 'echo torn'], { stdio: 'inherit' })",
    "await new Promise((done) => child.spawn('sh', ['-c', 'echo torn'], { stdio: 'inherit' }).on('close', done))",
    "await new Promise((done) => child.spawn('sh', ['-c', 'echo torn >&1'], { stdio: ['ignore', 1, 2] }).on('close', done))",
];

#[test]
fn s1_nothing_an_extension_prints_is_on_standard_output() {
    each(&WAYS, |way| {
        let mut hostile = Hostile::new(&format!(
            r#"command(pi, "print", async () => {{ {way}; }});
               tool(pi, "print", async () => {{ {way}; return {{ content: text("printed") }}; }});"#
        ));
        hostile.client.prompt("/print");
        hostile.run("CALL print {}");
        let lines = hostile.client.lines();
        let torn = lines.iter().find(|line| line.get("__unparsed").is_some());
        assert!(torn.is_none(), "{way}: {torn:?}");
        hostile.goes_on();
    });
}

#[test]
fn s1_what_an_extension_prints_can_be_read_on_standard_error() {
    let mut hostile = Hostile::new(
        r#"command(pi, "print", async () => { console.log("by", "log", { n: 1 }); console.error("by error"); process.stdout.write("by write\n");
             child.execSync("echo by child", { stdio: "inherit" }); });"#,
    );
    hostile.client.prompt("/print");
    hostile.client.finish();
    let told = hostile.client.process.stderr();
    for text in ["by log { n: 1 }", "by error", "by write", "by child"] {
        assert!(told.contains(text), "{text}: {told}");
    }
}

#[test]
fn s1_a_factory_may_print_too() {
    let hostile = Hostile::new(
        "console.log('while loading'); process.stdout.write('{\"type\":\"forged\"}\\n');",
    );
    hostile.goes_on();
}

#[test]
fn s1_an_extension_that_prints_without_end_does_not_stop_the_records() {
    let mut hostile = Hostile::new(
        r#"tool(pi, "flood", async () => { for (let i = 0; i < 20000; i++) { console.log("flood ".repeat(20) + i); if (i % 200 === 0) await new Promise((go) => setTimeout(go)); } return { content: text("flooded") }; });"#,
    );
    assert_eq!(hostile.call("flood")["content"][0]["text"], "flooded");
    hostile.goes_on();
}

#[test]
fn s2_texts_of_extensions_do_not_break_lines() {
    let mut hostile = Hostile::new(
        r#"command(pi, "odd", async (_a: any, ctx: any) => { ctx.ui.notify("a\nb\r\nc\u2028d\u2029e\u0000f\ud800g"); });
           tool(pi, "odd", async () => ({ content: text("a\nb\u2028c\u0000d\udfffe"), details: { "k\ney": "v\u2029" } }));"#,
    );
    let from = hostile.client.prompt("/odd");
    let notified = json!({"type": "extension_ui_request", "method": "notify"});
    let at = hostile.client.wait_for(from, &notified);
    let message = hostile.client.line(at)["message"].clone();
    assert!(
        message
            .as_str()
            .unwrap()
            .starts_with("a\nb\r\nc\u{2028}d\u{2029}e\u{0}f"),
        "{message}"
    );
    let result = hostile.call("odd");
    assert!(
        result["content"][0]["text"]
            .as_str()
            .unwrap()
            .starts_with("a\nb\u{2028}c\u{0}d"),
        "{result}"
    );
    hostile.goes_on();
}
