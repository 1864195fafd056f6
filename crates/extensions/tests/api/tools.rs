use pinion_agent::Command;
use serde_json::{Value, json};

use crate::stage::{Stage, notes};

const TOOLS: &str = r#"
  const text = (t) => [{ type: "text", text: t }];
  export default (pi) => {
    pi.registerTool({
      name: "counter", description: "counts", promptSnippet: "  count\n things ",
      parameters: { type: "object", properties: { n: { type: "integer" } }, required: ["n"] },
      async execute(id, params, signal, onUpdate, ctx) {
        onUpdate({ content: text("half"), details: { pct: 50 } });
        await new Promise((resolve) => setTimeout(resolve, 1));
        return { content: text(`${id} ${params.n} ${typeof params.n} ${signal.aborted} ${typeof ctx.cwd}`), details: { ok: true } };
      },
    });
    pi.registerTool({ name: "thrower", description: "t", parameters: {}, async execute() { throw new Error("tool failed"); } });
    pi.registerTool({ name: "bare", description: "b", parameters: {}, async execute() { return { content: text("bare") }; } });
    pi.registerTool({ name: "half", description: "h", parameters: {}, async execute() { return { content: text("a\ud83d") }; } });
    pi.registerTool({ name: "ender", description: "e", parameters: {}, async execute() { return { content: text("end"), details: {}, terminate: true }; } });
    pi.registerTool({ name: "legacy", description: "l", parameters: { type: "object", properties: { a: { type: "string" } }, required: ["a"] },
      prepareArguments: (x) => ({ a: x.old }), async execute(_id, p) { return { content: text("a=" + p.a) }; } });
    pi.registerTool({ name: "waiter", description: "w", parameters: {}, execute: (_i, _p, signal, onUpdate) =>
      new Promise((_, reject) => {
        signal.addEventListener("abort", () => reject(new Error("stopped by signal")));
        onUpdate({ content: text("waiting") });
      }) });
    pi.on("tool_call", (e) => {
      if (e.toolName !== "counter") return;
      if (e.input.n === 7) e.input.n = 70;
      if (e.input.n === 9) return { block: true };
      if (e.input.n === 10) return { block: true, reason: "not today" };
      if (e.input.n === 11) throw new Error("gate failed");
    });
    pi.on("tool_result", (e) => (e.input.n === 3 ? { content: text("patched"), isError: true } : undefined));
    pi.on("tool_result", (e) => (e.input.n === 3 ? { details: { saw: e.content[0].text, err: e.isError } } : undefined));
    pi.registerCommand("only", { handler: (names, ctx) => { pi.setActiveTools(names.split(",")); ctx.ui.notify(pi.getActiveTools().join(",")); } });
    pi.registerCommand("add", { handler: (_, ctx) => {
      pi.registerTool({ name: "fresh", description: "f", parameters: {}, async execute() { return { content: text("fresh") }; } });
      const tools = pi.getAllTools();
      ctx.ui.notify(`${pi.getActiveTools().includes("fresh")} ${tools[0].name} ${tools[0].sourceInfo.source} ${tools.at(-1).sourceInfo.source}`);
    } });
  };"#;

/// Returns the result of the only call.
async fn call(stage: &mut Stage, words: &str) -> Value {
    let lines = stage.live(&format!("CALL {words}")).await;
    let ended = lines.into_iter().find(|line| line["tool_end"].is_string());
    ended.expect("a call")
}

fn ended(name: &str, text: &str, details: Value, is_error: bool) -> Value {
    let content = json!([{"type": "text", "text": text}]);
    json!({"tool_end": name, "content": content, "details": details, "isError": is_error})
}

#[tokio::test]
async fn a_tool_gets_what_it_needs_and_its_result_may_be_changed() {
    let mut stage = Stage::new(TOOLS).await;
    let stage = &mut stage;
    let ok = json!({"ok": true});
    assert_eq!(
        call(stage, r#"counter {"n":"5"}"#).await,
        ended("counter", "call_1 5 number false string", ok.clone(), false)
    );
    assert_eq!(
        call(stage, r#"counter {"n":7}"#).await,
        ended("counter", "call_1 70 number false string", ok, false)
    );
    let patched = json!({"saw": "patched", "err": true});
    assert_eq!(
        call(stage, r#"counter {"n":3}"#).await,
        ended("counter", "patched", patched, true)
    );
    assert_eq!(
        call(stage, "thrower {}").await,
        ended("thrower", "tool failed", json!({}), true)
    );
    assert_eq!(
        call(stage, "bare {}").await,
        ended("bare", "bare", Value::Null, false)
    );
    assert_eq!(
        call(stage, "half {}").await,
        ended("half", "a", Value::Null, false)
    );
    assert_eq!(
        call(stage, r#"legacy {"old":"O"}"#).await,
        ended("legacy", "a=O", Value::Null, false)
    );
}

#[tokio::test]
async fn a_call_can_be_blocked_with_or_without_a_reason() {
    let mut stage = Stage::new(TOOLS).await;
    for (n, reason) in [
        (9, "Tool execution was blocked"),
        (10, "not today"),
        (11, "gate failed"),
    ] {
        let blocked = call(&mut stage, &format!("counter {{\"n\":{n}}}")).await;
        assert_eq!(blocked, ended("counter", reason, json!({}), true));
    }
}

#[tokio::test]
async fn arguments_are_changed_in_place_or_not_at_all() {
    let source = r#"
      export default (pi) => pi.on("tool_call", (event) => {
        if (event.input.command === "echo one") event.input.command = "echo two";
        else event.input = { command: "echo three" };
      });"#;
    let mut stage = Stage::new(source).await;
    for (command, printed) in [("echo one", "two\n"), ("echo other", "other\n")] {
        let line = call(&mut stage, &format!("bash {{\"command\":\"{command}\"}}")).await;
        assert_eq!(line["content"][0]["text"], printed);
    }
}

#[tokio::test]
async fn the_model_reads_what_its_arguments_lack() {
    let mut stage = Stage::new(TOOLS).await;
    let words = "Validation failed for tool \"counter\":\n  - n: must have required properties n\n\n\
                 Received arguments:\n{\n  \"x\": 1\n}";
    let refused = call(&mut stage, r#"counter {"x":1}"#).await;
    assert_eq!(refused, ended("counter", words, json!({}), true));
}

#[tokio::test]
async fn progress_is_passed_on_and_a_tool_can_end_the_run() {
    let mut stage = Stage::new(TOOLS).await;
    let lines = stage.live(r#"CALL counter {"n":1}"#).await;
    let half = json!({"tool_update": [{"type": "text", "text": "half"}]});
    assert!(lines.contains(&half));
    assert!(lines.contains(&json!({"message_end": ["assistant", "tools done"]})));
    let lines = stage.live("CALL ender {}").await;
    assert!(!lines.contains(&json!({"message_end": ["assistant", "tools done"]})));
}

#[tokio::test]
async fn an_abort_reaches_the_tool_as_a_signal() {
    let mut stage = Stage::new(TOOLS).await;
    stage.say("CALL waiter {}").await;
    let waits = json!({"tool_update": [{"type": "text", "text": "waiting"}]});
    stage.seen(|line| *line == waits).await;
    stage.ask(Command::Abort).await.unwrap();
    stage.settle().await;
    let lines = stage.lines.take();
    let stopped = ended("waiter", "stopped by signal", json!({}), true);
    assert!(lines.contains(&stopped), "{lines:#?}");
}

#[tokio::test]
async fn tools_come_and_go_while_the_session_lives() {
    let mut stage = Stage::new(TOOLS).await;
    assert_eq!(stage.command("/add").await, ["true read builtin cli"]);
    let fresh = call(&mut stage, "fresh {}").await;
    assert_eq!(fresh, ended("fresh", "fresh", Value::Null, false));
    assert_eq!(
        stage.command("/only read,counter,zzz").await,
        ["read,counter"]
    );
    let lines = stage.live("CALL fresh {}").await;
    let missing = ended("fresh", "Tool fresh not found", json!({}), true);
    assert!(lines.contains(&missing), "{lines:#?}");
    assert!(notes(&lines).is_empty());
}

#[tokio::test]
async fn the_prompt_describes_a_tool_in_one_line() {
    let stage = Stage::new(TOOLS).await;
    let tools = stage.extensions.tools();
    assert_eq!(tools[0].snippet(), Some("count things"));
    assert_eq!(tools[1].snippet(), None);
}
