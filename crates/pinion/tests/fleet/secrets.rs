//! Keys that children print do not reach the reports of the fleet.

use std::fs;

use crate::stage::{Stage, script};

const KNOWN: &str = "sk-ant-planted-1234567890";
const PLANNED: &str = "planted-in-the-plan-42";

#[test]
fn d6_no_key_reaches_what_is_told() {
    let stage = Stage::offline();
    let leak = r#"echo "{\"type\":\"text\",\"text\":\"key $ANTHROPIC_API_KEY and $MY_TOKEN\"}"; "#;
    let failing = format!(
        r#"{leak}echo "{{\"type\":\"error\",\"message\":\"401 Authorization: Bearer unheard-of; $ANTHROPIC_API_KEY\"}}""#
    );
    let dying = r#"echo "oh $MY_TOKEN" >&2; exit 3"#;
    let structured = r#"echo "{\"type\":\"text\",\"text\":\"{\\\"deep\\\":[\\\"$MY_TOKEN\\\"]}\"}"; echo '{"type":"done"}'"#;
    let done = format!(r#"{leak}echo '{{"type":"done"}}'"#);
    let judge = format!(
        "judge: {{ agent: jsonl, prompt: judge, command: {} }}\n",
        serde_json::json!(["bash", "-c", r#"cat > judged; echo '{"type":"done"}'"#])
    );
    let plan = format!(
        "defaults: {{ retries: 0, env: {{ MY_TOKEN: {PLANNED} }} }}\nchildren:\n{}{}{}{}{judge}",
        script("fails", &failing),
        script("dies", dying),
        script("ok", &done),
        script("deep", structured).replace("prompt: go", "prompt: go, output: json"),
    );
    stage.write("plan.yaml", &plan);
    let directory = stage.run_dir().display().to_string();
    for output in ["jsonl", "report"] {
        let _ = fs::remove_dir_all(stage.run_dir());
        let mut command = stage.command(&[
            "fleet",
            "run",
            "plan.yaml",
            "--run-dir",
            &directory,
            "--output",
            output,
        ]);
        command.env("ANTHROPIC_API_KEY", KNOWN);
        let ran = stage.finish(command, b"");
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        let file = |name: &str| fs::read_to_string(stage.run_dir().join(name)).unwrap();
        let judged = fs::read_to_string(stage.sandbox.work().join("judged")).unwrap();
        for (place, text) in [
            ("stdout", ran.stdout.clone()),
            ("stderr", ran.stderr.clone()),
            ("events", file("events.jsonl")),
            ("report.json", file("report.json")),
            ("report.md", file("report.md")),
            ("results", file("results.md")),
            ("the judge's prompt", judged),
        ] {
            for key in [KNOWN, PLANNED, "unheard-of"] {
                assert!(!text.contains(key), "{key} is in {place}: {text}");
            }
        }
        assert_eq!(ran.child("ok")["result"], "key *** and ***");
        assert_eq!(ran.child("deep")["output"]["deep"][0], "***");
        let message = ran.child("fails")["failure"]["message"].to_string();
        assert!(message.contains("Authorization: Bearer ***"), "{message}");
        let log = String::from_utf8(ran.log("ok.jsonl")).unwrap();
        assert!(log.contains(KNOWN), "the log is what was printed");
    }
}
