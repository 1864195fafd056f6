//! Errors in every place of an extension and of every shape.

use serde_json::json;

use super::{EVENTS_OF_A_RUN, Hostile, each};

/// A tool with an update, so that every event of a run happens.
const QUIET_TOOL: &str = r#"tool(pi, "quiet", async (_i: any, _p: any, _s: any, onUpdate: any) => {
  onUpdate({ content: text("half") }); return { content: text("done") }; });"#;

#[test]
fn l2_a_handler_that_throws_costs_one_error_and_nothing_else() {
    each(&EVENTS_OF_A_RUN, |event| {
        let body = format!(
            r#"{QUIET_TOOL} pi.on("{event}", () => {{ throw new Error("broken {event}"); }});"#
        );
        let mut hostile = Hostile::new(&body);
        let result = hostile.call("quiet");
        match *event {
            // A guard of tool calls that fails has not allowed the call.
            "tool_call" => assert_eq!(result["content"][0]["text"], "broken tool_call", "{result}"),
            "session_shutdown" => {}
            _ => {
                assert_eq!(result["content"][0]["text"], "done", "{event}: {result}");
                let wanted = ((*event).to_owned(), format!("broken {event}"));
                assert!(
                    hostile.errors().contains(&wanted),
                    "{event}: {:?}",
                    hostile.errors()
                );
            }
        }
        hostile.goes_on();
    });
}

#[test]
fn l2_whatever_is_thrown_is_told_as_text() {
    let thrown = [
        ("undefined", "undefined"),
        ("null", "null"),
        ("42", "42"),
        ("12n", "12"),
        ("'text'", "text"),
        ("Symbol('odd')", "Symbol(odd)"),
        ("new TypeError('typed')", "typed"),
        (
            "Object.assign(new Error('circular'), { self: globalThis })",
            "circular",
        ),
        ("Object.freeze(new Error('frozen'))", "frozen"),
    ];
    each(&thrown, |(value, told)| {
        let body = format!(
            r#"command(pi, "fail", async () => {{ throw {value}; }});
               tool(pi, "fail", async () => {{ throw {value}; }});"#
        );
        let mut hostile = Hostile::new(&body);
        hostile.client.prompt("/fail");
        assert_eq!(
            hostile.errors(),
            [("command".to_owned(), (*told).to_owned())],
            "{value}"
        );
        let result = hostile.call("fail");
        assert_eq!(result["isError"], true, "{result}");
        assert_eq!(result["content"][0]["text"], *told, "{value}");
        hostile.goes_on();
    });
}

#[test]
fn l2_errors_that_cannot_be_read_are_errors() {
    let thrown = [
        "Object.defineProperty(new Error('x'), 'message', { get() { throw new Error('in the getter'); } })",
        "{ toString() { throw new Error('in toString'); } }",
        "Object.create(null)",
        "new Proxy({}, { get() { throw new Error('in the proxy'); } })",
    ];
    each(&thrown, |value| {
        let body = format!(
            r#"command(pi, "fail", async () => {{ throw {value}; }});
               tool(pi, "fail", async () => {{ throw {value}; }});"#
        );
        let mut hostile = Hostile::new(&body);
        hostile.client.prompt("/fail");
        assert_eq!(hostile.errors().len(), 1, "{value}");
        assert_eq!(hostile.call("fail")["isError"], true, "{value}");
        hostile.goes_on();
    });
}

#[test]
fn l2_tools_and_commands_may_throw_before_they_return_a_promise() {
    let mut hostile = Hostile::new(
        r#"command(pi, "fail", () => { throw new Error("at once"); });
           tool(pi, "sync", () => { throw new Error("at once"); });
           tool(pi, "prepare", async () => ({ content: text("ran") }), { prepareArguments() { throw new Error("unprepared"); } });
           tool(pi, "update", async (_i: any, _p: any, _s: any, onUpdate: any) => { onUpdate(null); onUpdate(); return { content: text("ran") }; });"#,
    );
    hostile.client.prompt("/fail");
    assert_eq!(
        hostile.errors(),
        [("command".to_owned(), "at once".to_owned())]
    );
    assert_eq!(hostile.call("sync")["content"][0]["text"], "at once");
    let result = hostile.call("prepare");
    assert_eq!(result["isError"], true, "{result}");
    hostile.call("update");
    hostile.goes_on();
}

#[test]
fn l2_errors_that_nobody_awaits_do_not_end_the_process() {
    let mut hostile = Hostile::new(
        r#"command(pi, "timer", async (_a: any, ctx: any) => { setTimeout(() => { ctx.ui.notify("ticked"); throw new Error("in a timer"); }, 1); });
           command(pi, "interval", async (_a: any, ctx: any) => { let n = 0; const id = setInterval(() => {
             if (++n === 3) { clearInterval(id); ctx.ui.notify("three times"); } throw new Error("in an interval"); }, 1); });
           command(pi, "reject", async (_a: any, ctx: any) => { Promise.reject(new Error("unhandled")); setTimeout(() => ctx.ui.notify("rejected"), 20); });
           command(pi, "micro", async (_a: any, ctx: any) => { queueMicrotask(() => { throw new Error("in a microtask"); }); setTimeout(() => ctx.ui.notify("micro"), 20); });
           pi.events.on("x", () => { throw new Error("in a listener"); });
           command(pi, "bus", async (_a: any, ctx: any) => { pi.events.emit("x", 1); ctx.ui.notify("emitted"); });"#,
    );
    let said = [
        ("timer", "ticked"),
        ("interval", "three times"),
        ("reject", "rejected"),
        ("micro", "micro"),
        ("bus", "emitted"),
    ];
    for (command, heard) in said {
        hostile.client.prompt(&format!("/{command}"));
        hostile.heard(heard);
    }
    hostile.goes_on();
}

#[test]
fn l2_errors_that_nobody_awaits_are_reported() {
    for (body, message) in [
        (
            r#"setTimeout(() => { throw new Error("in a timer"); }, 1);"#,
            "in a timer",
        ),
        (r#"Promise.reject(new Error("unhandled"));"#, "unhandled"),
    ] {
        let hostile = Hostile::new(&format!(r#"pi.on("session_start", () => {{ {body} }});"#));
        hostile
            .client
            .wait_for(0, &json!({"type": "extension_error", "error": message}));
        hostile.goes_on();
    }
}

#[test]
fn l2_recursion_without_end_is_an_error() {
    let mut hostile = Hostile::new(
        r#"const deep = (n: number): number => deep(n + 1) + 1;
           tool(pi, "deep", async () => ({ content: text(String(deep(0))) }));
           tool(pi, "nested", async () => { let x: any = []; for (let i = 0; i < 200000; i++) x = [x]; return { content: text("ok"), details: x }; });"#,
    );
    assert_eq!(hostile.call("deep")["isError"], true);
    hostile.call("nested");
    hostile.goes_on();
}
