//! Decisions of the judge.

use serde_json::{Value, json};

use crate::stage::{Ran, Stage, script};

/// Runs a plan whose judge gives these answers, one per attempt.
fn judged(stage: &Stage, answers: &[Value]) -> Ran {
    for (index, answer) in answers.iter().enumerate() {
        let line = json!({"type": "text", "text": answer.to_string()});
        stage.write(&format!("answer-{}", index + 1), &format!("{line}\n"));
    }
    let command = json!([
        "bash",
        "-c",
        r#"cat "answer-$PINION_FLEET_ATTEMPT"; echo '{"type":"done"}'"#
    ]);
    stage.run(&format!(
        "defaults: {{ backoff: 10ms, retries: {} }}\nchildren:\n{}judge: {{ agent: jsonl, prompt: judge, command: {command}, verdict: {{ exit: {{ approve: 0, block: 3 }} }} }}\n",
        answers.len() - 1,
        script("a", r#"echo '{"type":"done"}'"#)
    ))
}

#[test]
fn a_verdict_is_the_exit_code_and_an_unlisted_one_is_1() {
    for (verdict, code, status, word) in [
        ("approve", 0, "finished", "approve"),
        ("block", 3, "judged", "block"),
        ("perhaps", 1, "failed", "failed"),
    ] {
        let stage = Stage::offline();
        let ran = judged(&stage, &[json!({"verdict": verdict})]);
        assert_eq!(ran.code, Some(code), "{verdict}: {}", ran.stderr);
        assert_eq!(ran.report()["verdict"], verdict);
        assert_eq!(ran.report()["status"], status, "{verdict}");
        let directory = ran.directory.display().to_string();
        let shown = stage.verb(&["show", &directory]).stdout;
        assert!(shown.contains(&format!(": {word} (")), "{shown}");
    }
}

#[test]
fn a_judge_without_a_verdict_is_asked_again_and_then_has_failed() {
    let stage = Stage::offline();
    let ran = judged(
        &stage,
        &[json!({"opinion": "fine"}), json!({"verdict": "approve"})],
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let first = ran.report()["judge"]["attempts"][0]["failure"].clone();
    assert_eq!(
        first["message"],
        "the answer has no member \"verdict\", which holds the verdict"
    );
    let stage = Stage::offline();
    let ran = judged(&stage, &[json!({"opinion": "fine"})]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert_eq!(
        ran.report()["judge"]["failure"]["kind"],
        "structured_output"
    );
}
