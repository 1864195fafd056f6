//! Dialogs that receive no answer, a wrong one, two, or a late one.

use pinion_testkit::Exit;
use serde_json::{Value, json};

use super::{Hostile, each};

const KINDS: [&str; 4] = [
    "ctx.ui.select('T', ['a', 'b'])",
    "ctx.ui.confirm('T', 'M')",
    "ctx.ui.input('T')",
    "ctx.ui.editor('T')",
];

fn asked(hostile: &Hostile, from: usize) -> Value {
    let pattern = json!({"type": "extension_ui_request", "title": "T"});
    let at = hostile.client.wait_for(from, &pattern);
    hostile.client.line(at)["id"].clone()
}

#[test]
fn l5_an_abort_ends_a_run_that_waits_for_a_dialog() {
    each(&KINDS, |kind| {
        let mut hostile = Hostile::new(&format!(
            r#"tool(pi, "ask", async (_i: any, _p: any, _s: any, _u: any, ctx: any) => {{ await {kind}; return {{ content: text("answered") }}; }});
               tool(pi, "quiet", async () => ({{ content: text("done") }}));
               pi.on("tool_call", async (e: any, ctx: any) => {{ if (e.toolName === "quiet") await {kind}; }});"#
        ));
        for tool in ["ask", "quiet"] {
            let from = hostile.client.prompt(&format!("CALL {tool} {{}}"));
            asked(&hostile, from);
            let abort = hostile.client.send(json!({"type": "abort"}));
            hostile.client.wait_end(from);
            hostile.client.wait_answer(&abort);
        }
        hostile.goes_on();
    });
}

#[test]
fn l7_the_end_of_input_ends_a_process_that_waits_for_a_dialog() {
    each(&KINDS, |kind| {
        for place in ["command", "tool", "session_start", "input"] {
            let mut hostile = Hostile::new(&format!(
                r#"const ask = async (ctx: any) => {{ await {kind}; }};
                   command(pi, "command", async (_a: any, ctx: any) => ask(ctx));
                   tool(pi, "tool", async (_i: any, _p: any, _s: any, _u: any, ctx: any) => {{ await ask(ctx); return {{ content: text("x") }}; }});
                   if ("{place}" === "session_start" || "{place}" === "input") pi.on("{place}", (_e: any, ctx: any) => ask(ctx));"#
            ));
            let prompt = match place {
                "command" => "/command",
                "tool" => "CALL tool {}",
                _ => "SAY hello",
            };
            hostile
                .client
                .send(json!({"type": "prompt", "message": prompt}));
            asked(&hostile, 0);
            hostile.ends(Exit::Code(0));
        }
    });
}

#[test]
fn answers_that_answer_nothing_are_ignored() {
    let mut hostile = Hostile::new(
        r#"command(pi, "ask", async (_a: any, ctx: any) => { ctx.ui.notify("got " + await ctx.ui.input("T")); });"#,
    );
    let nothing = [
        json!({"type": "extension_ui_response"}),
        json!({"type": "extension_ui_response", "id": null, "value": "x"}),
        json!({"type": "extension_ui_response", "id": 42, "value": "x"}),
        json!({"type": "extension_ui_response", "id": {"deep": []}, "value": "x"}),
        json!({"type": "extension_ui_response", "id": "unknown", "value": "x"}),
    ];
    for answer in &nothing {
        hostile.client.process.send(answer);
    }
    let ask = hostile
        .client
        .send(json!({"type": "prompt", "message": "/ask"}));
    let id = asked(&hostile, 0);
    for answer in &nothing {
        hostile.client.process.send(answer);
    }
    let answer = |text: &str| json!({"type": "extension_ui_response", "id": id, "value": text});
    hostile.client.process.send(&answer("first"));
    hostile.client.process.send(&answer("second"));
    hostile.heard("got first");
    hostile.client.wait_answer(&ask);
    hostile.client.process.send(&answer("late"));
    hostile.goes_on();
}

#[test]
fn a_dialog_at_the_start_can_be_answered() {
    let mut hostile = Hostile::new(
        r#"pi.on("session_start", async (_e: any, ctx: any) => { ctx.ui.notify("got " + await ctx.ui.input("T")); });"#,
    );
    let state = hostile.client.send(json!({"type": "get_state"}));
    let id = asked(&hostile, 0);
    hostile
        .client
        .process
        .send(&json!({"type": "extension_ui_response", "id": id, "value": "hello"}));
    hostile.heard("got hello");
    hostile.client.wait_answer(&state);
    hostile.goes_on();
}

#[test]
fn many_dialogs_at_a_time_are_told_apart() {
    let mut hostile = Hostile::new(
        r#"command(pi, "many", async (_a: any, ctx: any) => {
             const all = await Promise.all(Array.from({ length: 200 }, (_, i) => ctx.ui.input("Q" + i)));
             ctx.ui.notify(all.every((a, i) => a === "A" + i) ? "all right" : "mixed up"); });"#,
    );
    let many = hostile
        .client
        .send(json!({"type": "prompt", "message": "/many"}));
    hostile.client.wait_for(0, &json!({"title": "Q199"}));
    let mut questions: Vec<Value> = hostile.client.lines();
    questions.retain(|line| line["method"] == "input");
    for question in questions.iter().rev() {
        let text = question["title"].as_str().unwrap().replace('Q', "A");
        let answer = json!({"type": "extension_ui_response", "id": question["id"], "value": text});
        hostile.client.process.send(&answer);
    }
    hostile.heard("all right");
    hostile.client.wait_answer(&many);
    hostile.goes_on();
}
