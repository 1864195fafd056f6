use serde_json::json;

use crate::stage::{Stage, notes};

/// Records every event with the names of its members.
const EVERYTHING: &str = r#"
  const NAMES = ["input", "before_agent_start", "agent_start", "agent_end", "turn_start", "turn_end",
    "message_start", "message_update", "message_end", "context", "tool_execution_start", "tool_execution_update",
    "tool_execution_end", "tool_call", "tool_result", "session_start", "resources_discover"];
  export default (pi) => {
    for (const name of NAMES) pi.on(name, (event, ctx) => {
      const members = Object.keys(event).sort().join("+");
      ctx.ui.notify(`${name} ${members} ${ctx.isIdle()} ${ctx.signal !== undefined}`);
    });
  };"#;

#[tokio::test]
async fn events_come_in_order_with_their_members() {
    let mut stage = Stage::new(EVERYTHING).await;
    assert_eq!(
        notes(&stage.lines.take()),
        [
            "session_start reason+type true false",
            "resources_discover cwd+reason+type true false"
        ]
    );
    let lines = stage.live(r#"CALL bash {"command":"true"}"#).await;
    let noted = notes(&lines);
    let expected = [
        "input images+source+text+type true false",
        "before_agent_start images+prompt+systemPrompt+systemPromptOptions+type true false",
        "agent_start type false true",
        "turn_start timestamp+turnIndex+type false true",
        "message_end message+type false true",
        "message_update assistantMessageEvent+message+type false true",
        "tool_execution_start args+toolCallId+toolName+type false true",
        "tool_call input+toolCallId+toolName+type false true",
        "tool_result content+details+input+isError+toolCallId+toolName+type false true",
        "tool_execution_end isError+result+toolCallId+toolName+type false true",
        "turn_end message+toolResults+turnIndex+type false true",
        "agent_end messages+type false true",
    ];
    let mut from = 0;
    for event in expected {
        let at = noted[from..].iter().position(|note| note == event);
        from += at.unwrap_or_else(|| panic!("{event} after {from} in {noted:#?}"));
    }
    let started = lines.iter().position(|line| line == "agent_start").unwrap();
    let told = lines.iter().position(|line| {
        line["ui"]["message"]
            .as_str()
            .is_some_and(|note| note.starts_with("agent_start"))
    });
    assert!(told.unwrap() < started, "handlers come before the line");
}

#[tokio::test]
async fn a_throwing_handler_is_reported_and_the_others_run() {
    let source = r#"
      export default (pi) => {
        pi.on("agent_start", () => { throw new Error("start failed"); });
        pi.on("agent_start", async () => { throw "a plain string"; });
        pi.on("turn_start", (_, ctx) => ctx.model.nothing.x);
        pi.registerCommand("fail", { handler: async () => { throw new Error("command failed"); } });
      };"#;
    let mut stage = Stage::new(source).await;
    let lines = stage.live("hi").await;
    let errors: Vec<_> = lines
        .iter()
        .filter(|line| line["error"].is_string())
        .collect();
    assert_eq!(
        *errors[0],
        json!({"error": "start failed", "event": "agent_start", "path": "extension.ts"})
    );
    assert_eq!(errors[1]["error"], "a plain string");
    assert_eq!(
        errors[2]["error"],
        "Cannot read properties of undefined (reading 'x')"
    );
    assert!(lines.contains(&json!({"message_end": ["assistant", "ok"]})));
    stage.say("/fail").await;
    let expected = json!({"error": "command failed", "event": "command", "path": "command:fail"});
    assert_eq!(stage.lines.take(), [expected]);
}

#[tokio::test]
async fn input_can_be_changed_or_handled() {
    let source = r#"
      export default (pi) => {
        pi.on("input", (event) => event.text === "ping" ? { action: "handled" } : undefined);
        pi.on("input", (event) => event.text === "a" ? { action: "transform", text: "SAY " + event.text } : undefined);
        pi.on("input", (event) => event.text === "SAY a" ? { action: "transform", text: event.text + "b" } : undefined);
      };"#;
    let mut stage = Stage::new(source).await;
    let lines = stage.live("a").await;
    assert!(lines.contains(&json!({"message_end": ["user", "SAY ab"]})));
    assert!(lines.contains(&json!({"message_end": ["assistant", "ab"]})));
    stage.say("ping").await;
    assert_eq!(stage.lines.take(), Vec::<serde_json::Value>::new());
}

#[tokio::test]
async fn a_run_can_begin_with_more_messages_and_another_prompt() {
    let source = r#"
      export default (pi) => {
        pi.on("before_agent_start", (event) => ({
          message: { customType: "one", content: "first", display: false },
          systemPrompt: event.systemPrompt + " AAA",
        }));
        pi.on("before_agent_start", (event, ctx) => ({
          systemPrompt: event.systemPrompt + (ctx.getSystemPrompt() === event.systemPrompt ? "=" : "!") + event.systemPromptOptions.cwd,
        }));
        pi.on("context", (event) => ({ messages: event.messages.filter((m) => m.role !== "custom") }));
      };"#;
    let mut stage = Stage::new(source).await;
    let lines = stage.live("SYSTEM").await;
    assert!(lines.contains(&json!({"message_end": ["custom", "first"]})));
    assert!(lines.contains(&json!({"message_end": ["assistant", "You help. AAA=/work"]})));
}

#[tokio::test]
async fn a_message_can_be_replaced_by_one_of_its_role() {
    let source = r#"
      export default (pi) => {
        pi.on("message_end", ({ message }) => {
          if (message.role !== "assistant") return;
          const text = message.content[0].text;
          if (text === "A") return { message: { ...message, content: [{ type: "text", text: "replaced" }] } };
          if (text === "B") return { message: { ...message, role: "user" } };
        });
      };"#;
    let mut stage = Stage::new(source).await;
    let lines = stage.live("SAY A").await;
    assert!(lines.contains(&json!({"message_end": ["assistant", "replaced"]})));
    let lines = stage.live("SAY B").await;
    assert!(lines.contains(&json!({"message_end": ["assistant", "B"]})));
    let words = "message_end handlers must return a message with the same role";
    assert!(lines.iter().any(|line| line["error"] == words));
}

#[tokio::test]
async fn errors_outside_of_handlers_are_reported_and_survived() {
    let source = r#"
      export default (pi) => {
        pi.registerCommand("later", { handler: () => {
          setTimeout(() => { throw new Error("from a timer"); }, 1);
          Promise.reject(new Error("nobody listens"));
        } });
      };"#;
    let mut stage = Stage::new(source).await;
    stage.say("/later").await;
    let mut errors = Vec::new();
    while errors.len() < 2 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        errors.extend(stage.lines.take());
    }
    errors.sort_by_key(|error| error["error"].to_string());
    assert_eq!(errors[0]["error"], "from a timer");
    assert_eq!(errors[1]["error"], "nobody listens");
    let lines = stage.live("hi").await;
    assert!(lines.contains(&json!({"message_end": ["assistant", "ok"]})));
}

#[tokio::test]
async fn a_handler_that_never_ends_is_not_waited_for() {
    let source = r#"
      export default (pi) => { pi.on("agent_start", () => new Promise(() => {})); };"#;
    let files = [("extension.ts", source)];
    let mut stage = Stage::with(&files, Default::default(), |mut options| {
        options.handler_timeout = std::time::Duration::from_millis(50);
        options
    })
    .await;
    let lines = stage.live("hi").await;
    assert!(
        lines
            .iter()
            .any(|line| line["event"] == "agent_start" && line["error"].is_string())
    );
    assert!(lines.contains(&json!("agent_end")));
}
