//! Guarantees to handlers and tools of extensions.

use serde_json::json;

use super::hostile::Hostile;

#[test]
fn user_bash_handlers_are_asked_before_a_command_of_the_client_runs() {
    let mut hostile = Hostile::new(
        r#"pi.on("user_bash", async (event: any) => {
             if (event.command === "answer") return { result: { output: "mine " + event.excludeFromContext, exitCode: 0, cancelled: false, truncated: false } };
             if (event.command === "move") return { operations: { exec: async (command: any, _cwd: any, { onData }: any) => { onData(Buffer.from("moved " + command)); return { exitCode: 3 }; } } };
             if (event.command === "touch refused") throw new Error("guarded");
           });"#,
    );
    let process = &mut hostile.client.process;
    let mut bash = |command: &str| process.ask(json!({"type": "bash", "command": command}));
    assert_eq!(bash("answer")["data"]["output"], "mine false");
    let moved = bash("move");
    assert_eq!(moved["data"]["output"], "moved move", "{moved}");
    assert_eq!(moved["data"]["exitCode"], 3, "{moved}");
    let refused = bash("touch refused");
    assert_eq!(refused["success"], false, "{refused}");
    assert!(
        refused["error"].as_str().unwrap().contains("guarded"),
        "{refused}"
    );
    assert_eq!(bash("echo here")["data"]["output"], "here\n");
    assert!(!hostile.client.sandbox.work().join("refused").exists());
    hostile.goes_on();
}

#[test]
fn updates_in_a_row_are_all_delivered_to_a_client_that_reads() {
    let mut hostile = Hostile::new(
        r#"tool(pi, "report", async (_i: any, _p: any, _s: any, update: any) => {
             for (let i = 0; i < 50; i++) update({ content: text("step " + i) });
             return { content: text("done") };
           });"#,
    );
    let from = hostile.client.prompt("CALL report {}");
    hostile.client.wait_end(from);
    let lines = hostile.client.lines();
    let steps: Vec<String> = lines
        .iter()
        .filter(|line| line["type"] == "tool_execution_update")
        .map(|line| line["partialResult"]["content"][0]["text"].to_string())
        .collect();
    let expected: Vec<String> = (0..50).map(|step| format!("\"step {step}\"")).collect();
    assert_eq!(steps, expected);
    hostile.goes_on();
}
