//! Return values of tools and handlers of any shape: the session uses what it can and reports what it cannot.

use serde_json::json;

use super::{Hostile, each};

/// Values that are not valid results of a tool, or barely.
const RESULTS: [&str; 22] = [
    "undefined",
    "null",
    "42",
    "'text'",
    "[]",
    "{}",
    "{ content: null }",
    "{ content: 'text' }",
    "{ content: {} }",
    "{ content: [null, 42, 'text'] }",
    "{ content: [{ type: 'text' }] }",
    "{ content: [{ type: 'text', text: 42 }] }",
    "{ content: [{ type: 'image' }] }",
    "{ content: [{ type: 'video', data: 'x' }] }",
    "{ content: text('ok'), details: 10n }",
    "{ content: text('ok'), details: () => 1 }",
    "{ content: text('ok'), details: Symbol('s') }",
    "{ content: text('ok'), details: cyclic }",
    "{ content: text('ok'), details: { get x() { throw new Error('in a getter'); } } }",
    "{ content: text('ok'), details: { toJSON() { throw new Error('in toJSON'); } } }",
    "{ content: text('ok'), details: NaN, terminate: 'perhaps' }",
    "new Proxy({}, { get() { throw new Error('in a proxy'); } })",
];

const CYCLIC: &str = "const cyclic: any = { name: 'loop' }; cyclic.self = cyclic;";

#[test]
fn l2_a_tool_may_return_anything() {
    each(&RESULTS, |value| {
        let mut hostile = Hostile::new(&format!(
            r#"{CYCLIC} tool(pi, "odd", async (_i: any, _p: any, _s: any, onUpdate: any) => {{
                 try {{ onUpdate({value}); }} catch {{}} return {value}; }});"#
        ));
        let result = hostile.call("odd");
        assert!(result["content"].is_array(), "{value}: {result}");
        assert!(result["isError"].is_boolean(), "{value}: {result}");
        hostile.goes_on();
    });
}

#[test]
fn l2_a_handler_may_return_anything() {
    let events = [
        "input",
        "before_agent_start",
        "context",
        "before_provider_request",
        "message_end",
        "tool_call",
        "tool_result",
        "resources_discover",
    ];
    let values = [
        "null",
        "42",
        "'text'",
        "[]",
        "{ action: 'dance' }",
        "{ messages: 'none' }",
        "{ messages: [null, {}, { role: 'king' }] }",
        "{ message: { role: 'assistant' } }",
        "{ content: 42, details: cyclic }",
        "{ block: 'yes', reason: 42 }",
        "{ systemPrompt: 42, message: 42 }",
        "{ skillPaths: 42, promptPaths: [null, 7, '/does/not/exist'] }",
        "cyclic",
        "10n",
    ];
    each(&events, |event| {
        // One process for all values: they come one after the other.
        let list = values.join(", ");
        let mut hostile = Hostile::new(&format!(
            r#"{CYCLIC} tool(pi, "quiet", async () => ({{ content: text("done") }}));
               const values: any[] = [{list}]; let next = 0;
               pi.on("{event}", () => values[next++]);"#
        ));
        for _ in 0..values.len() {
            // Some of these prevent the start of a run, which is allowed; but the prompt must be answered.
            let from = hostile.client.process.line_count();
            let answer = hostile
                .client
                .process
                .ask(json!({"type": "prompt", "message": "CALL quiet {}"}));
            assert_eq!(answer["success"], true, "{event}: {answer}");
            if hostile.client.data("get_state")["isStreaming"] == true {
                hostile.client.wait_end(from);
            }
        }
        hostile.ends(pinion_testkit::Exit::Code(0));
    });
}

#[test]
fn l2_a_huge_result_arrives_whole() {
    let mut hostile = Hostile::new(
        r#"tool(pi, "huge", async () => ({ content: text("x".repeat(8 << 20)), details: { list: new Array(100000).fill("y") } }));"#,
    );
    let result = hostile.call("huge");
    assert_eq!(
        result["content"][0]["text"].as_str().unwrap().len(),
        8 << 20
    );
    assert_eq!(result["details"]["list"].as_array().unwrap().len(), 100_000);
    hostile.goes_on();
}

#[test]
fn l2_odd_definitions_cost_an_error_and_not_the_session() {
    let definitions = [
        "pi.registerTool(null)",
        "pi.registerTool({})",
        "pi.registerTool({ name: 'x' })",
        "pi.registerTool({ name: 42, parameters: 42, execute: 42 })",
        "pi.registerTool({ name: '', description: '', parameters: { type: 'object' }, execute() {} })",
        "pi.registerTool({ name: 'a b\\n', description: 'd', parameters: { type: 'object' }, execute() {} })",
        "pi.registerCommand(null, null)",
        "pi.registerCommand('x')",
        "pi.registerFlag('f')",
        "pi.on()",
        "pi.on('input', 'no function')",
        "pi.sendMessage(null)",
        "pi.sendMessage({ customType: 42, content: 42 })",
        "pi.sendUserMessage(42)",
        "pi.appendEntry()",
        "pi.setActiveTools('read')",
        "pi.setModel(null)",
        "pi.setThinkingLevel('loud')",
        "pi.registerProvider('p', null)",
        "pi.registerProvider('p', { models: 42, baseUrl: 42, api: 42, apiKey: 42 })",
        "pi.exec()",
        "ctx.ui.select()",
        "ctx.ui.notify({ deep: { er: 10n } })",
        "ctx.ui.setWidget('w', [null, 42, {}])",
        "ctx.ui.setWidget(null, 42, { placement: 42 })",
        "ctx.ui.select(42, [42, null, {}, Symbol('s')], { timeout: '10' })",
        "ctx.ui.confirm({}, [], { timeout: NaN })",
        "ctx.ui.input(() => 1, 10n, { timeout: -Infinity })",
        "ctx.ui.editor(new Map(), Symbol('s'))",
        "ctx.ui.notify(null, 42)",
        "ctx.ui.setStatus(42, {})",
        "ctx.ui.setTitle([])",
        "ctx.ui.setEditorText(42)",
        "ctx.compact(42)",
        "ctx.navigateTree(42)",
        "ctx.fork(42)",
        "ctx.switchSession(42)",
    ];
    each(&definitions, |body| {
        let mut hostile = Hostile::new(&format!(
            r#"command(pi, "odd", async (_a: any, ctx: any) => {{ try {{ {body}; }} catch {{}} await sleep(20); ctx.ui.notify("tried"); }});"#
        ));
        let odd = hostile
            .client
            .send(json!({"type": "prompt", "message": "/odd"}));
        hostile.client.wait_answer(&odd);
        hostile.client.data("get_commands");
        // A message without sense may have started a run; it ends like any other.
        hostile.client.process.ask(json!({"type": "abort"}));
        hostile.ends(pinion_testkit::Exit::Code(0));
    });
}
