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

fn pi_answer(text: &str, reason: &str, cost: f64) -> String {
    format!(
        r#"echo '{{"type":"agent_start"}}'; echo '{{"type":"message_end","message":{{"role":"assistant","content":[{{"type":"text","text":"{text}"}}],"stopReason":"{reason}","usage":{{"input":1,"output":1,"cost":{{"total":{cost}}}}}}}}}'; echo '{{"type":"agent_end"}}'; "#
    )
}

const PI_COMPACTION: &str = r#"echo '{"type":"compaction_start","reason":"threshold"}'; echo '{"type":"compaction_end","willRetry":false,"result":{"usage":{"input":5,"output":5,"cost":{"total":0.5}}}}'; "#;

#[test]
fn pi_that_tidies_up_at_the_end_has_finished() {
    let stage = Stage::offline();
    let body = [&pi_answer("All is well.", "stop", 0.1), PI_COMPACTION].concat();
    let ran = stage.run(&format!(
        "defaults: {{ retries: 0 }}\nbudget: {{ child: 0.30 }}\nchildren:\n{}",
        script_as("pi", "a", &body)
    ));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let child = ran.child("a");
    assert_eq!(child["result"], "All is well.");
    assert_eq!(child["totalCostMicros"], 600_000, "the summary is paid for");
}

#[test]
fn an_answer_that_was_cut_stays_cut_after_a_compaction() {
    let stage = Stage::offline();
    let body = [&pi_answer("All is", "length", 0.1), PI_COMPACTION].concat();
    let ran = stage.run(&format!(
        "defaults: {{ retries: 0, length_retries: 0 }}\nchildren:\n{}",
        script_as("pi", "a", &body)
    ));
    assert_eq!(ran.child("a")["failure"]["kind"], "output_length");
}

#[test]
fn a_child_that_says_why_and_hangs_failed_for_that_reason() {
    for (agent, line, kind) in [
        (
            "opencode",
            r#"{"type":"error","sessionID":"s","error":{"name":"ProviderAuthError","data":{"message":"bad key"}}}"#,
            "provider_auth",
        ),
        (
            "codex",
            r#"{"type":"error","message":"unexpected status 401 Unauthorized: bad key"}"#,
            "provider_auth",
        ),
        (
            "codex",
            r#"{"type":"error","message":"Reconnecting... 1/5"}"#,
            "timeout",
        ),
    ] {
        for clock in ["inactivity: 300ms", "timeout: 300ms"] {
            let stage = Stage::offline();
            let ran = stage.run(&format!(
                "defaults: {{ {clock}, backoff: 10ms, retries: 1 }}\nchildren:\n{}",
                script_as(agent, "a", &format!("echo '{line}'; sleep 1000"))
            ));
            let child = ran.child("a");
            assert_eq!(child["failure"]["kind"], kind, "{agent}, {clock}");
            let attempts = child["attempts"].as_array().unwrap().len();
            let again = kind == "timeout" && clock.starts_with("inactivity");
            assert_eq!(attempts, 1 + usize::from(again), "{agent}, {clock}");
        }
    }
}
