//! Scripts: their calls, results, limits and ends.

use serde_json::{Value, json};

use crate::stage::{Client, results, script, stage, stage_with, text};

/// Runs scripts without a server and returns their results.
fn run(scripts: &[&str]) -> Vec<Value> {
    run_with(scripts, json!({}))
}

fn run_with(scripts: &[&str], settings: Value) -> Vec<Value> {
    let turns: Vec<Value> = scripts.iter().map(|code| script(code)).collect();
    let stage = stage_with(&turns, json!({}), settings);
    stage.sandbox.add_files(&json!({"a.txt": "one two\n"}));
    let mut client = Client::start(stage, &["--tools", "+codemode"]);
    let lines = client.run();
    let results = results(&lines);
    client.finish();
    results
}

/// Returns the text after the first three lines.
fn output(result: &Value) -> String {
    let text = text(result);
    let mut parts = text.splitn(4, '\n').skip(3);
    parts.next().unwrap_or_default().trim_start().to_owned()
}

#[test]
fn calls_of_a_script_are_events_and_a_record_but_no_messages() {
    let stage = stage(
        &[script(
            "const r = await tools.read({path: 'a.txt'}); text(r.trim()); console.log('log', {a: 1}); \
             try { await tools.read({path: 'none'}) } catch (e) { return e.message.includes('ENOENT') }",
        )],
        json!({}),
    );
    stage.sandbox.add_files(&json!({"a.txt": "one two\n"}));
    let mut client = Client::start(stage, &["--tools", "+codemode"]);
    let lines = client.run();
    let all = results(&lines);
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(
        output(&all[0]),
        "==> text 1/2 <==\none two\n==> text 2/2 <==\ntrue\n<console_output>\nlog {\"a\":1}\n</console_output>"
    );
    let record = &all[0]["nestedCalls"];
    assert_eq!(record["complete"], true);
    let calls = record["calls"].as_array().unwrap();
    assert_eq!(
        (&calls[0]["id"], &calls[0]["status"]),
        (&json!("c/1"), &json!("ok"))
    );
    assert_eq!(calls[0]["arguments"], json!({"path": "a.txt"}));
    assert_eq!(
        (&calls[1]["id"], &calls[1]["status"]),
        (&json!("c/2"), &json!("error"))
    );
    assert!(calls[1]["error"].as_str().unwrap().contains("ENOENT"));
    let nested: Vec<&Value> = lines
        .iter()
        .filter(|line| line["parentToolCallId"] == "c")
        .collect();
    let kinds: Vec<&str> = nested
        .iter()
        .map(|line| line["type"].as_str().unwrap())
        .filter(|kind| *kind != "tool_execution_update")
        .collect();
    let both = ["tool_execution_start", "tool_execution_end"];
    assert_eq!(kinds, [both, both].concat());
    // The conversation in the file has the record too.
    let entries = client.process.ask(json!({"type": "get_messages"}));
    let messages = entries["data"]["messages"].as_array().unwrap();
    let stored = messages
        .iter()
        .find(|it| it["role"] == "toolResult")
        .unwrap();
    assert_eq!(stored["nestedCalls"], *record);
    client.finish();
}

#[test]
fn scripts_have_no_files_network_or_timers() {
    let results = run(&[
        "return [typeof require, typeof process, typeof fetch, typeof setTimeout, typeof std, typeof os, \
          typeof Deno, typeof host, typeof globalThis.tools].join()",
        "const m = await import('fs'); return m",
        "return Object.keys(tools).join()",
        "return typeof tools.codemode",
    ]);
    assert_eq!(
        output(&results[0]),
        "undefined,undefined,undefined,undefined,undefined,undefined,undefined,undefined,object"
    );
    assert!(
        text(&results[1]).starts_with("Script failed"),
        "{}",
        results[1]
    );
    assert_eq!(output(&results[2]), "read,bash,edit,write");
    assert_eq!(output(&results[3]), "undefined");
}

#[test]
fn failed_scripts_keep_their_output_and_name_the_error() {
    let results = run(&[
        "text('before');\nthrow new TypeError('broken')",
        "this is not a script",
        "await new Promise(() => {})",
        "text('first'); exit(); text('never')",
        "// @options: {\"timeout_ms\": 300}\nfor (;;) {}",
        "const all = []; for (;;) all.push('x'.repeat(1 << 20) + all.length)",
        "text('y'.repeat(9000000)); text('z'.repeat(9000000))",
    ]);
    let failed = |at: usize, words: &str| {
        let text = text(&results[at]);
        assert!(
            text.starts_with("Script failed\n") && text.contains(words),
            "{at}: {text}"
        );
        assert_eq!(results[at]["isError"], true);
    };
    failed(0, "before\nScript error:\nTypeError: broken\n");
    failed(1, "SyntaxError");
    failed(2, "waits for a promise that nothing can settle");
    assert_eq!(output(&results[3]), "first");
    failed(4, "timeout_ms has passed");
    failed(5, "out of memory");
    failed(6, "printed more than");
}

#[test]
fn long_output_is_cut_in_the_middle() {
    let code = "// @options: {\"max_output_tokens\": 50}\nreturn 'a'.repeat(5000) + 'end'";
    let stage = stage(&[script(code)], json!({}));
    let mut client = Client::start(stage, &["--tools", "+codemode"]);
    let lines = client.run();
    let result = &results(&lines)[0];
    let text = text(result);
    assert!(
        text.contains("tokens truncated…") && text.contains("aend"),
        "{text}"
    );
    let path = result["details"]["fullOutputPath"].as_str().unwrap();
    assert_eq!(std::fs::read_to_string(path).unwrap().len(), 5003);
    client.finish();
}

#[test]
fn stored_values_last_as_long_as_the_branch() {
    let results = run(&[
        "store('a', {n: 1}); store('b', 2)",
        "store('b', undefined); return [load('a').n, load('b')]",
        "store('a', 5); throw new Error('not kept')",
        "return [load('a').n, load('b') === undefined, load('c') === undefined]",
    ]);
    assert_eq!(output(&results[1]), "[1,null]");
    assert_eq!(output(&results[3]), "[1,true,true]");
}

#[test]
fn tools_are_found_by_words_and_described() {
    let stage = stage(
        &[script(
            "const found = await searchTools('progress', {limit: 1, namespace: 'lab'});\n\
             const about = await describeNamespace('mcp__lab');\n\
             return [found[0].name, about.tools.length, about.instructions, \
               (await describeTool('mcp__lab__echo')).includes('text: string'), \
               ALL_TOOLS.some((tool) => tool.name === 'mcp__lab__echo'), await describeTool('none') === undefined]",
        )],
        json!({"lab": {}}),
    );
    let mut client = Client::start(stage, &["--tools", "+codemode"]);
    let lines = client.run();
    assert_eq!(
        output(&results(&lines)[0]),
        "[\"mcp__lab__work\",10,\"Handles texts.\\nAsk nicely.\",true,true,true]"
    );
    client.finish();
}

#[test]
fn many_calls_are_made_and_the_record_is_bounded() {
    let results = run(&[
        "const all = await Promise.all(Array.from({length: 300}, () => tools.read({path: 'a.txt'})));\nreturn all.length",
        "await tools.write({path: 'big.txt', content: 'x'.repeat(9000)}); return 'written'",
    ]);
    assert_eq!(output(&results[0]), "300");
    let record = &results[0]["nestedCalls"];
    assert_eq!(record["calls"].as_array().unwrap().len(), 256);
    assert_eq!(record["complete"], false);
    assert_eq!(output(&results[1]), "written");
    let record = &results[1]["nestedCalls"];
    assert_eq!(record["calls"][0].get("arguments"), None);
    assert!(record["calls"][0]["argumentsBytes"].as_u64().unwrap() > 9000);
    assert_eq!(record["complete"], false);
}

#[test]
fn approvals_apply_to_every_call_of_a_script() {
    let settings =
        json!({"approvals": {"mode": "deny", "allow": ["codemode", "read"], "deny": ["bash"]}});
    let results = run_with(
        &[
            "const [a, b, c] = await Promise.allSettled([tools.read({path: 'a.txt'}), \
             tools.bash({command: 'touch made'}), tools.write({path: 'made', content: 'x'})]);\n\
             return [a.status, b.status, c.status]",
        ],
        settings,
    );
    assert_eq!(
        output(&results[0]),
        "[\"fulfilled\",\"rejected\",\"rejected\"]"
    );
}

#[test]
fn a_client_is_asked_about_calls_of_a_script() {
    let stage = stage(
        &[script(
            "return await tools.write({path: 'made', content: 'x'})",
        )],
        json!({}),
    );
    let mut client = Client::start(
        stage,
        &[
            "--tools",
            "+codemode",
            "--approve=ask",
            "--allow",
            "codemode",
        ],
    );
    let from = client.prompt();
    let question = client.wait(from, |line| line["type"] == "extension_ui_request");
    let made = client.stage.sandbox.work().join("made");
    assert!(!made.exists());
    let choice = question["options"][0].clone();
    let answer = json!({"type": "extension_ui_response", "id": question["id"], "value": choice, "confirmed": true});
    client.process.send(&answer);
    client.settled(from);
    assert!(made.exists(), "{question}");
    client.finish();
}

#[test]
fn an_abort_ends_a_script_with_its_calls() {
    for code in [
        "await tools.mcp__lab__wait({})",
        "text('begun'); await tools.mcp__lab__echo({text: ''}); for (;;) {}",
    ] {
        let stage = stage(&[script(code)], json!({"lab": {}}));
        let mut client = Client::start(stage, &["--tools", "+codemode"]);
        let from = client.prompt();
        client.wait(from, |line| {
            line["type"] == "tool_execution_start" && line["parentToolCallId"] == "c"
        });
        std::thread::sleep(std::time::Duration::from_millis(300));
        client.process.ask(json!({"type": "abort"}));
        let lines = client.settled(from);
        let result = &results(&lines)[0];
        assert!(text(result).contains("aborted"), "{result}");
        let starts = lines
            .iter()
            .filter(|line| line["type"] == "tool_execution_start");
        let ends = lines
            .iter()
            .filter(|line| line["type"] == "tool_execution_end");
        assert_eq!(starts.count(), ends.count());
        client.finish();
    }
}

#[test]
fn codemode_can_replace_the_tools_that_scripts_call() {
    let stage = stage_with(
        &[],
        json!({}),
        json!({"codemode": {"mode": "only"}, "defaultTools": ["+codemode"]}),
    );
    let mut client = Client::start(stage, &[]);
    client.run();
    let request = &client.stage.server.requests()[0];
    assert_eq!(crate::stage::declared(request), ["codemode"]);
    let description = request["body"]["tools"][0]["description"].as_str().unwrap();
    assert!(
        description.contains("tools.bash(args: { command: string"),
        "{description}"
    );
    client.finish();
}
