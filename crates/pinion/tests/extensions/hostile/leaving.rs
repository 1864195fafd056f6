//! Extensions that end the process or start others: pinion exits in an orderly way, and nothing outlives it.

use pinion_testkit::fault::proc;
use pinion_testkit::{Exit, Signal};
use serde_json::json;

use super::{Hostile, each, wait_for_file};
use crate::support::HANG;

#[test]
fn l7_an_extension_may_end_the_process() {
    let places = [
        (
            "/leave",
            r#"command(pi, "leave", async () => { process.exit(3); });"#,
        ),
        (
            "CALL leave {}",
            r#"tool(pi, "leave", async () => { process.exit(3); });"#,
        ),
        (
            "SAY hello",
            r#"pi.on("agent_end", () => { process.exit(3); });"#,
        ),
        (
            "SAY hello",
            r#"pi.on("message_update", () => { process.exit(3); });"#,
        ),
        (
            "/leave",
            r#"command(pi, "leave", async () => { setTimeout(() => process.exit(3), 10); });"#,
        ),
    ];
    each(&places, |(prompt, body)| {
        let mut hostile = Hostile::new(body);
        let id = hostile
            .client
            .send(json!({"type": "prompt", "message": prompt}));
        let exit = hostile.client.process.wait(HANG);
        assert_eq!(
            exit,
            Some(Exit::Code(3)),
            "{body}: {}",
            hostile.client.report(0)
        );
        hostile.client.process.drain(HANG);
        hostile.client.wait_answer(&id);
        hostile.is_in_order();
    });
}

#[test]
fn l7_timers_and_watchers_do_not_keep_the_process() {
    let bodies = [
        "setInterval(() => {}, 10);",
        "setTimeout(() => {}, 1e9);",
        "fs.watch('.', () => {});",
        "process.on('exit', () => { for (let i = 0; i < 1e5; i++); });",
        "process.on('SIGTERM', () => {}); process.on('SIGINT', () => {});",
    ];
    each(&bodies, |body| {
        let hostile = Hostile::new(&format!(r#"pi.on("session_start", () => {{ {body} }});"#));
        hostile.goes_on();
    });
}

/// Commands that try to leave a process behind.
const CHILDREN: [&str; 6] = [
    "pi.exec('sh', ['-c', 'touch begun; sleep 600']);",
    "child.spawn('sh', ['-c', 'touch begun; sleep 600'], { stdio: 'ignore' });",
    "child.spawn('sh', ['-c', 'touch begun; exec sleep 600'], { detached: true, stdio: 'ignore' }).unref();",
    "child.exec('touch begun; sleep 600');",
    "child.spawn('sh', ['-c', 'setsid sleep 600 & touch begun; wait'], { stdio: 'inherit' });",
    "child.spawn('sh', ['-c', 'trap \"\" TERM HUP; touch begun; while :; do sleep 1; done'], { detached: true });",
];

#[test]
fn l8_no_child_of_an_extension_outlives_the_end_of_input() {
    each(&CHILDREN, |body| {
        let mut hostile = Hostile::new(&format!(r#"command(pi, "go", async () => {{ {body} }});"#));
        hostile.client.prompt("/go");
        wait_for_file(&hostile.client, "begun");
        hostile.ends(Exit::Code(0));
    });
}

#[test]
fn l8_no_child_of_an_extension_outlives_a_kill() {
    each(&CHILDREN, |body| {
        let mut hostile = Hostile::new(&format!(r#"command(pi, "go", async () => {{ {body} }});"#));
        hostile.client.prompt("/go");
        wait_for_file(&hostile.client, "begun");
        hostile.client.process.signal(Signal::SIGKILL);
        assert!(hostile.client.process.wait(HANG).is_some());
        let left = proc::left_behind(hostile.client.sandbox.marker(), HANG);
        assert!(left.is_empty(), "{body}: {left:?}");
    });
}

#[test]
fn l8_a_child_of_a_session_that_was_left_is_found_at_the_end() {
    let mut hostile = Hostile::new(&format!(
        r#"command(pi, "go", async () => {{ {} }});"#,
        CHILDREN[1]
    ));
    hostile.client.prompt("/go");
    wait_for_file(&hostile.client, "begun");
    let answer = hostile.client.process.ask(json!({"type": "new_session"}));
    assert_eq!(answer["data"]["cancelled"], false);
    hostile.goes_on();
}

#[test]
fn l2_a_command_of_a_session_that_was_left_is_answered() {
    let mut hostile = Hostile::new(
        r#"command(pi, "wait", async () => { fs.writeFileSync("begun", ""); await never(); });"#,
    );
    let wait = hostile
        .client
        .send(json!({"type": "prompt", "message": "/wait"}));
    wait_for_file(&hostile.client, "begun");
    let new = hostile.client.send(json!({"type": "new_session"}));
    hostile.client.wait_answer(&new);
    hostile.client.wait_answer(&wait);
    hostile.goes_on();
}

#[test]
fn l7_a_signal_ends_a_process_whose_extension_loops() {
    let mut hostile = Hostile::new(
        r#"command(pi, "spin", async () => { fs.writeFileSync("begun", ""); for (;;); });"#,
    );
    hostile
        .client
        .send(json!({"type": "prompt", "message": "/spin"}));
    wait_for_file(&hostile.client, "begun");
    hostile.client.process.signal(Signal::SIGTERM);
    assert_eq!(hostile.client.process.wait(HANG), Some(Exit::Code(143)));
    hostile.client.process.drain(HANG);
    hostile.is_in_order();
}

#[test]
fn l2_sessions_may_be_left_again_and_again() {
    let mut hostile = Hostile::new(
        r#"pi.on("session_start", (_e: any, ctx: any) => { setInterval(() => ctx.cwd, 1); ctx.ui.setStatus("s", "on"); });
           command(pi, "fresh", async (_a: any, ctx: any) => { await ctx.newSession(); await ctx.ui.input("unreachable"); });
           command(pi, "again", async (_a: any, ctx: any) => { await ctx.reload(); });"#,
    );
    for round in 0..10 {
        let command = ["/fresh", "/again"][round % 2];
        let id = hostile
            .client
            .send(json!({"type": "prompt", "message": command}));
        hostile.client.wait_answer(&id);
        hostile.client.process.ask(json!({"type": "new_session"}));
    }
    hostile.goes_on();
}
