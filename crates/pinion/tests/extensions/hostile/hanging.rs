//! Extensions that never finish: promises that never settle, infinite loops, unlimited memory.

use serde_json::{Value, json};

use super::{EVENTS_OF_A_RUN, Hostile, each};

#[test]
fn l2_a_handler_that_never_answers_is_given_up() {
    each(&EVENTS_OF_A_RUN, |event| {
        let mut hostile = Hostile::new(&format!(
            r#"tool(pi, "quiet", async (_i: any, _p: any, _s: any, onUpdate: any) => {{ onUpdate({{ content: text("half") }}); return {{ content: text("done") }}; }});
               let once = false;
               pi.on("{event}", () => {{ if (!once) {{ once = true; return never(); }} }});"#
        ));
        let result = hostile.call("quiet");
        if *event == "tool_call" {
            assert_eq!(
                result["isError"], true,
                "an undecided guard does not allow: {result}"
            );
        } else {
            assert_eq!(result["content"][0]["text"], "done", "{event}: {result}");
        }
        hostile.goes_on();
    });
}

#[test]
fn l2_a_handler_that_loops_for_ever_is_stopped() {
    let events = [
        "input",
        "context",
        "message_update",
        "tool_call",
        "tool_result",
        "agent_end",
    ];
    each(&events, |event| {
        let mut hostile = Hostile::new(&format!(
            r#"tool(pi, "quiet", async () => ({{ content: text("done") }}));
               let once = false;
               pi.on("{event}", () => {{ if (!once) {{ once = true; for (;;); }} }});"#
        ));
        hostile.call("quiet");
        hostile.goes_on();
    });
}

#[test]
fn l2_session_commands_do_not_wait_for_ever() {
    let cases = [
        ("session_before_switch", json!({"type": "new_session"})),
        ("session_before_compact", json!({"type": "compact"})),
        ("session_compact", json!({"type": "compact"})),
        (
            "model_select",
            json!({"type": "set_model", "provider": "mock", "modelId": "m2"}),
        ),
        (
            "thinking_level_select",
            json!({"type": "set_thinking_level", "level": "high"}),
        ),
    ];
    each(&cases, |(event, command)| {
        let mut hostile = Hostile::new(&format!(r#"pi.on("{event}", () => never());"#));
        hostile.run("SAY something to keep");
        let answer = hostile.client.process.ask(command.clone());
        assert_eq!(answer["type"], "response", "{event}");
        hostile.goes_on();
    });
}

#[test]
fn l10_the_state_can_be_asked_for_while_an_extension_loops() {
    let mut hostile = Hostile::new(
        r#"command(pi, "spin", async () => { fs.writeFileSync("begun", ""); for (;;); });"#,
    );
    let spin = hostile
        .client
        .send(json!({"type": "prompt", "message": "/spin"}));
    super::wait_for_file(&hostile.client, "begun");
    let state = hostile.client.send(json!({"type": "get_state"}));
    let (state, spin) = (
        hostile.client.wait_answer(&state),
        hostile.client.wait_answer(&spin),
    );
    assert!(state < spin, "the state was held up by an extension");
    hostile.goes_on();
}

#[test]
fn l2_every_kind_of_loop_is_stopped() {
    let loops = [
        "for (;;);",
        "while (true) { Math.sqrt(2); }",
        "const spin = (): any => Promise.resolve().then(spin); await spin();",
        "for (;;) await null;",
        "for (;;) { try { JSON.parse('{'); } catch {} }",
        "try { for (;;); } finally { for (;;); }",
        "'a'.repeat(40).match(/^(a+)+$b/);",
        "[3, 1, 2].sort(() => { for (;;); });",
        "new Proxy({}, { get() { for (;;); } } as any).x;",
    ];
    each(&loops, |body| {
        let mut hostile = Hostile::new(&format!(
            r#"tool(pi, "spin", async () => {{ {body} return {{ content: text("ended") }}; }});
               command(pi, "spin", async () => {{ {body} }});"#
        ));
        let from = hostile.client.prompt("CALL spin {}");
        hostile.client.wait_end(from);
        hostile.client.prompt("/spin");
        hostile.goes_on();
    });
}

#[test]
fn l2_a_timer_that_loops_for_ever_is_stopped() {
    let mut hostile = Hostile::new(
        r#"command(pi, "later", async () => { setTimeout(() => { for (;;); }, 1); });"#,
    );
    hostile.client.prompt("/later");
    hostile.goes_on();
}

#[test]
fn l2_a_factory_that_never_finishes_fails_to_load() {
    for body in ["return never();", "for (;;);"] {
        let mut hostile = Hostile::new(body);
        let exit = hostile.client.process.wait(crate::support::HANG);
        assert_eq!(
            exit.map(|exit| exit.number()),
            Some(1),
            "{body}: {}",
            hostile.client.report(0)
        );
        hostile.client.process.drain(crate::support::HANG);
        let told = hostile.client.process.stderr();
        assert!(told.contains("Failed to load extension"), "{told}");
        hostile.is_in_order();
    }
}

#[test]
fn l1_commands_that_wait_for_extensions_to_begin_are_answered_though_the_input_ends() {
    for begin in [
        "await new Promise((done) => setTimeout(done, 300));",
        "await ctx.ui.input('who?');",
    ] {
        let mut hostile = Hostile::new(&format!(
            r#"pi.on("session_start", async (_e: any, ctx: any) => {{ {begin} }});"#
        ));
        let asked = hostile.client.send(json!({"type": "get_state"}));
        assert_eq!(hostile.client.finish(), pinion_testkit::Exit::Code(0));
        let at = hostile.client.wait_answer(&asked);
        assert_eq!(hostile.client.line(at)["success"], true, "{begin}");
    }
}

#[test]
fn l2_memory_without_end_is_refused() {
    let bodies = [
        "const a: any[] = []; for (;;) a.push(new Array(100000).fill(1.5));",
        "let s = 'x'; for (;;) s += s + Math.random();",
        "const a: any[] = []; for (;;) a.push(new Uint8Array(1 << 22));",
        "const m = new Map(); for (let i = 0; ; i++) m.set(i, { i });",
        "Buffer.alloc(4e9); const a: any[] = []; for (;;) a.push(Buffer.alloc(1 << 22, 1));",
    ];
    each(&bodies, |body| {
        let mut hostile = Hostile::new(&format!(
            r#"tool(pi, "grow", async () => {{ {body} return {{ content: text("ended") }}; }});"#
        ));
        let result = hostile.call("grow");
        assert_eq!(result["isError"], true, "{body}: {result}");
        let used = pinion_testkit::fault::proc::peak_resident_bytes(hostile.client.process.id());
        assert!(used < 600 << 20, "{body} took {} MiB", used >> 20);
        hostile.goes_on();
    });
}

#[test]
fn l5_an_abort_does_not_wait_for_a_tool_that_ignores_it() {
    let bodies = [
        "await never();",
        "for (;;) await sleep(5);",
        "signal.addEventListener('abort', () => { throw new Error('in a listener'); }); await never();",
    ];
    each(&bodies, |body| {
        let mut hostile = Hostile::new(&format!(
            r#"tool(pi, "deaf", async (_i: any, _p: any, signal: any) => {{ {body} }});"#
        ));
        let from = hostile.client.prompt("CALL deaf {}");
        hostile
            .client
            .wait_for(from, &json!({"type": "tool_execution_start"}));
        let abort = hostile.client.send(json!({"type": "abort"}));
        hostile.client.wait_end(from);
        hostile.client.wait_answer(&abort);
        hostile.goes_on();
    });
}

#[test]
fn l5_what_a_tool_does_after_the_abort_is_not_told() {
    let mut hostile = Hostile::new(
        r#"tool(pi, "late", async (_i: any, _p: any, signal: any, onUpdate: any, ctx: any) => {
             await new Promise((done) => signal.addEventListener("abort", done));
             await sleep(30); onUpdate({ content: text("too late") });
             setTimeout(() => { try { onUpdate({ content: text("much too late") }); } catch {} ctx.ui.notify("over"); }, 30);
             throw new Error("rejected after the abort"); });"#,
    );
    let from = hostile.client.prompt("CALL late {}");
    hostile
        .client
        .wait_for(from, &json!({"type": "tool_execution_start"}));
    hostile.client.process.ask(json!({"type": "abort"}));
    hostile.heard("over");
    let late = |line: &&Value| line.to_string().contains("much too late");
    assert_eq!(hostile.client.lines().iter().filter(late).count(), 0);
    hostile.goes_on();
}

#[test]
fn l5_an_abort_frees_a_run_from_every_handler_that_hangs() {
    let events = [
        "turn_start",
        "context",
        "before_provider_request",
        "message_end",
        "tool_call",
        "tool_result",
    ];
    each(&events, |event| {
        let mut hostile = Hostile::new(&format!(
            r#"tool(pi, "quiet", async () => ({{ content: text("done") }})); let once = false;
               pi.on("{event}", () => {{ if (!once) {{ once = true; fs.writeFileSync("begun", ""); return never(); }} }});"#
        ));
        let from = hostile.client.prompt("CALL quiet {}");
        super::wait_for_file(&hostile.client, "begun");
        let abort = hostile.client.send(json!({"type": "abort"}));
        hostile.client.wait_end(from);
        hostile.client.wait_answer(&abort);
        hostile.goes_on();
    });
}
