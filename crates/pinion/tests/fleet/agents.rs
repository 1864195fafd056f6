//! Other agents, whose lines a script prints.

use crate::stage::{Stage, script_as};

const START: &str = r#"echo '{"type":"step_start","sessionID":"s","part":{}}'; "#;

fn say(text: &str) -> String {
    format!(r#"echo '{{"type":"text","sessionID":"s","part":{{"text":"{text}"}}}}'; "#)
}

fn finish(reason: &str) -> String {
    format!(
        r#"echo '{{"type":"step_finish","sessionID":"s","part":{{"reason":"{reason}","cost":0.01}}}}'; "#
    )
}

#[test]
fn opencode_that_works_on_after_a_stop_is_waited_for() {
    let tool = r#"echo '{"type":"tool_use","sessionID":"s","part":{"tool":"read"}}'; "#;
    let pause = "sleep 0.8; ";
    for first in [
        [say("Let me look."), tool.into(), finish("stop")].concat(),
        [say("Let me look."), finish("unknown")].concat(),
    ] {
        let stage = Stage::offline();
        let body = [
            START,
            &first,
            pause,
            START,
            &say("All is well."),
            &finish("stop"),
        ]
        .concat();
        let ran = stage.run(&format!(
            "defaults: {{ grace: 200ms, retries: 0 }}\nchildren:\n{}",
            script_as("opencode", "a", &body)
        ));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert_eq!(ran.child("a")["result"], "All is well.");
    }
}

#[test]
fn opencode_that_exits_after_a_step_is_done_unless_that_step_asked_for_tools() {
    for (reason, status) in [
        ("unknown", "finished"),
        ("other", "finished"),
        ("tool-calls", "failed"),
    ] {
        let stage = Stage::offline();
        let body = [START, &say("All is well."), &finish(reason)].concat();
        let ran = stage.run(&format!(
            "defaults: {{ retries: 0 }}\nchildren:\n{}",
            script_as("opencode", "a", &body)
        ));
        assert_eq!(ran.child("a")["status"], status, "{reason}");
    }
}
