//! Money: counted per step and in total, and limited as configured.

use serde_json::Value;

use crate::stage::{Stage, script};

const SPEND: &str = r#"for i in 1 2 3 4 5 6 7 8; do echo '{"type":"step","cost":0.10,"usage":{"input":10,"output":1}}'; sleep 0.15; done; echo '{"type":"done"}'"#;

/// Checks that every step is present, that each total is the sum of its steps, and that all agree.
fn adds_up(ran: &crate::stage::Ran) {
    let report = ran.report();
    let mut total = 0;
    for child in report["children"].as_array().unwrap() {
        let attempts = child["attempts"].as_array().unwrap();
        let steps = attempts
            .iter()
            .flat_map(|attempt| attempt["steps"].as_array().unwrap());
        let sum: u64 = steps.map(|step| step["costMicros"].as_u64().unwrap()).sum();
        assert_eq!(child["totalCostMicros"], sum, "{child:#}");
        total += sum;
    }
    assert_eq!(report["totalCostMicros"], total);
    let events = ran.events();
    let steps: Vec<&Value> = events
        .iter()
        .filter(|event| event["type"] == "child_step")
        .collect();
    let last = steps
        .last()
        .map_or(0, |step| step["runTotalMicros"].as_u64().unwrap());
    assert_eq!(last, total);
    assert_eq!(
        steps
            .iter()
            .map(|step| step["costMicros"].as_u64().unwrap())
            .sum::<u64>(),
        total
    );
}

#[test]
fn m1_a_child_stops_at_its_limit() {
    let stage = Stage::offline();
    let plan = format!(
        "budget: {{ child: 0.30 }}\nchildren:\n{}{}",
        script("dear", SPEND),
        script(
            "cheap",
            r#"echo '{"type":"step","cost":0.01}'; echo '{"type":"done"}'"#
        )
    );
    let ran = stage.run(&plan);
    assert_eq!(ran.code, Some(5), "{}", ran.stderr);
    let dear = ran.child("dear");
    assert_eq!(dear["failure"]["kind"], "budget");
    assert_eq!(dear["totalCostMicros"], 300_000);
    assert_eq!(
        dear["attempts"].as_array().unwrap().len(),
        1,
        "money is not tried again"
    );
    assert_eq!(ran.child("cheap")["status"], "finished");
    adds_up(&ran);
}

#[test]
fn m1_a_run_stops_at_its_limit() {
    let stage = Stage::offline();
    let plan = format!(
        "budget: {{ run: 0.50 }}\nparallel: 2\nchildren:\n{}{}{}",
        script("a", SPEND),
        script("b", SPEND),
        script("c", SPEND)
    );
    let ran = stage.run(&plan);
    assert_eq!(ran.code, Some(5), "{}", ran.stderr);
    assert_eq!(ran.report()["status"], "budget");
    let spent = ran.report()["totalCostMicros"].as_u64().unwrap();
    assert!((500_000..=600_000).contains(&spent), "{spent}");
    assert!(
        ran.child("c")["attempts"].as_array().unwrap().is_empty(),
        "nothing starts without money"
    );
    adds_up(&ran);
}

#[test]
fn an_answer_is_not_thrown_away_for_what_its_last_line_costs() {
    let stage = Stage::offline();
    let body = r#"echo '{"type":"text","text":"complete"}'; echo '{"type":"done","cost":2.0}'"#;
    let ran = stage.run(&format!(
        "budget: {{ child: 1.00 }}\nchildren:\n{}",
        script("a", body)
    ));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(ran.child("a")["result"], "complete");
    assert_eq!(ran.child("a")["totalCostMicros"], 2_000_000);
}
