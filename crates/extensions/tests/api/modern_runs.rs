//! The events and answers of runs that pi 1.x adds.

use pinion_agent::{Answer, Command, Delivery, Disposition};
use serde_json::{Value, json};

use crate::stage::{Stage, notes};

fn count(lines: &[Value], wanted: &str) -> usize {
    lines.iter().filter(|line| *line == wanted).count()
}

#[tokio::test]
async fn the_hooks_of_a_run_come_in_order() {
    let source = r#"
      const NAMES = ["input", "before_agent_start", "agent_start", "turn_start", "message_start", "message_end", "context",
        "context_with_system", "turn_end", "agent_end", "agent_before_settle", "agent_settled"];
      export default (pi) => {
        for (const name of NAMES) {
          pi.on(name, (event, ctx) => ctx.ui.notify([name, event.message?.role, ctx.isIdle()].filter((part) => part !== undefined && part !== false).join(" ")));
        }
      };"#;
    let mut stage = Stage::modern(source).await;
    let expected = [
        "input true",
        "before_agent_start",
        "agent_start",
        "turn_start",
        "message_start user",
        "message_end user",
        "context",
        "context_with_system",
        "message_start assistant",
        "message_end assistant",
        "turn_end assistant",
        "agent_end",
        "agent_before_settle",
        "agent_settled true",
    ];
    assert_eq!(notes(&stage.live("hi").await), expected);
}

#[tokio::test]
async fn the_parts_of_the_system_prompt_can_be_changed() {
    let source = r#"
      export default (pi) => {
        pi.on("before_agent_start", (event, ctx) => {
          ctx.ui.notify(`${event.messageType} ${event.prompt} ${event.systemPromptOptions.selectedTools.join("+")}`);
          event.systemPromptOptions.sections.team = "Be kind.";
          event.systemPromptOptions.selectedTools.pop();
        });
        pi.on("before_agent_start", (event, ctx) => ctx.ui.notify(event.systemPrompt));
        pi.registerCommand("show", { handler: async (_, ctx) => ctx.ui.notify(pi.getActiveTools().join("+")) });
      };"#;
    let mut stage = Stage::modern(source).await;
    let lines = stage.live("SYSTEM").await;
    let prompt = "You help.\n\n<team>\nBe kind.\n</team>";
    assert_eq!(notes(&lines), ["user SYSTEM read+bash+edit+write", prompt]);
    assert!(lines.contains(&json!({"message_end": ["assistant", prompt]})));
    assert_eq!(stage.command("/show").await, ["read+bash+edit"]);
}

#[tokio::test]
async fn a_message_without_a_type_starts_a_run_after_the_hooks() {
    let source = r#"
      export default (pi) => {
        pi.on("before_agent_start", (event, ctx) => {
          ctx.ui.notify(`${event.messageType} ${event.message?.content} ${"prompt" in event}`);
          return { systemPrompt: "Changed." };
        });
        pi.registerCommand("go", { handler: async () => pi.sendMessage({ content: "SYSTEM" }, { triggerTurn: true }) });
      };"#;
    let mut stage = Stage::modern(source).await;
    stage.say("/go").await;
    stage.settle().await;
    let lines = stage.lines.take();
    assert_eq!(notes(&lines), ["custom SYSTEM false"]);
    assert!(lines.contains(&json!({"message_end": ["custom", "SYSTEM"]})));
    assert!(lines.contains(&json!({"message_end": ["assistant", "Changed."]})));
}

#[tokio::test]
async fn hooks_see_messages_for_a_queue() {
    let source = r#"
      export default (pi) => {
        pi.on("input", (event, ctx) => {
          ctx.ui.notify(`${event.text} ${event.streamingBehavior}`);
          if (event.text === "drop") return { action: "handled" };
          return { action: "transform", text: `SAY ${event.text}` };
        });
      };"#;
    let mut stage = Stage::modern(source).await;
    let queue = |text: &str, delivery| Command::Queue {
        text: text.to_owned(),
        images: Vec::new(),
        delivery,
    };
    let dropped = stage.ask(queue("drop", Delivery::Steer)).await.unwrap();
    assert!(matches!(dropped, Answer::Taken(Disposition::Handled)));
    let queued = stage.ask(queue("later", Delivery::FollowUp)).await.unwrap();
    assert!(matches!(queued, Answer::Taken(Disposition::Queued)));
    let lines = stage.live("first").await;
    assert!(lines.contains(&json!({"message_end": ["assistant", "first"]})));
    assert!(lines.contains(&json!({"message_end": ["assistant", "later"]})));
    assert_eq!(notes(&lines), ["first undefined"]);
}

#[tokio::test]
async fn the_end_of_a_turn_can_append_entries_and_request_another_turn() {
    let source = r#"
      export default (pi) => {
        let asked = false;
        pi.on("turn_end", (event, ctx) => {
          const { contextMessages, canContinue } = event.context;
          ctx.ui.notify(`${event.outcome} ${event.toolResultEntryIds.length} ${contextMessages.length} ${canContinue}`);
          if (asked) return;
          asked = true;
          const draft = { type: "custom_message", customType: "more", content: "COUNT", display: false };
          const hide = { type: "context_edit", targetId: event.messageEntryId, replacement: null };
          return { entries: [...event.entries, hide, draft, { type: "custom", customType: "mark", data: 1 }], continue: true };
        });
        pi.on("turn_end", (event, ctx) => ctx.ui.notify(`then ${event.entries.length} ${event.continue} ${event.context.canContinue}`));
      };"#;
    let mut stage = Stage::modern(source).await;
    let lines = stage.live("SAY one").await;
    let expected = [
        "completed 0 2 false",
        "then 3 true true",
        "completed 0 3 false",
        "then 0 false false",
    ];
    assert_eq!(notes(&lines), expected);
    assert_eq!(count(&lines, "turn_start"), 2);
    // The first answer is left out, so the model saw the prompt and the new message.
    assert!(lines.contains(&json!({"message_end": ["assistant", "2"]})));
    for kind in ["context_edit", "custom_message", "custom"] {
        assert!(
            lines.contains(&json!({"entry": kind})),
            "{kind} in {lines:?}"
        );
    }
}

#[tokio::test]
async fn entries_that_cannot_be_appended_are_refused_as_a_whole() {
    let source = r#"
      export default (pi) => {
        pi.on("turn_end", () => ({ entries: [{ type: "custom", customType: "a" }, { type: "label" }] }));
        pi.on("turn_end", (event, ctx) => ctx.ui.notify(`${event.entries.length}`));
        pi.on("turn_end", () => ({ continue: true }));
      };"#;
    let mut stage = Stage::modern(source).await;
    let lines = stage.live("SAY one").await;
    assert_eq!(notes(&lines), ["0"]);
    let errors: Vec<&str> = lines
        .iter()
        .filter_map(|line| line["error"].as_str())
        .collect();
    assert!(errors[0].starts_with("Invalid entry"), "{errors:?}");
    assert_eq!(
        errors[1],
        "turn_end requested continuation without runnable model context"
    );
    assert_eq!(count(&lines, "turn_start"), 1);
}

#[tokio::test]
async fn a_run_can_continue_before_it_settles_and_another_begins_after() {
    let source = r#"
      export default (pi) => {
        let runs = 0;
        pi.on("agent_before_settle", (event) => {
          runs += 1;
          if (runs > 1) return;
          const draft = { type: "custom_message", customType: "review", content: "SAY reviewed", display: false };
          return { entries: [...event.entries, draft], continue: true };
        });
        pi.on("agent_settled", (event, ctx) => {
          ctx.ui.notify(`settled ${event.aborted} ${ctx.isIdle()}`);
          if (runs === 2) pi.sendUserMessage("/again", { expandPromptTemplates: true });
        });
        pi.registerCommand("again", { handler: async (_, ctx) => { runs = 3; ctx.ui.notify("command"); pi.sendUserMessage("SAY again"); } });
      };"#;
    let mut stage = Stage::modern(source).await;
    let lines = stage.live("SAY one").await;
    assert_eq!(count(&lines, "agent_start"), 2);
    assert!(lines.contains(&json!({"message_end": ["assistant", "reviewed"]})));
    stage.settle().await;
    let mut later = lines;
    later.extend(stage.lines.take());
    assert_eq!(
        notes(&later),
        ["settled false true", "command", "settled false true"]
    );
    assert!(later.contains(&json!({"message_end": ["assistant", "again"]})));
}

#[tokio::test]
async fn names_and_failed_compactions_are_reported() {
    let source = r#"
      export default (pi) => {
        pi.on("session_info_changed", (event, ctx) => ctx.ui.notify(`name ${event.name}`));
        pi.on("session_compact_failed", (event, ctx) =>
          ctx.ui.notify(`${event.reason} ${event.aborted} ${event.willRetry} ${event.fromExtension} ${event.errorMessage}`));
      };"#;
    let stage = Stage::modern(source).await;
    stage.ask(Command::SetName("work".into())).await.unwrap();
    let instructions = None;
    stage
        .ask(Command::Compact { instructions })
        .await
        .unwrap_err();
    let told = |line: &Value| {
        line["ui"]["message"]
            .as_str()
            .is_some_and(|text| text.starts_with("manual"))
    };
    stage.seen(told).await;
    assert_eq!(
        notes(&stage.lines.take()),
        [
            "name work",
            "manual false false false Nothing to compact (session too small)"
        ]
    );
}

#[tokio::test]
async fn a_compaction_has_its_cause() {
    let source = r#"
      export default (pi) => {
        pi.on("session_before_compact", (event, ctx) => {
          ctx.ui.notify(`before ${event.reason} ${event.willRetry}`);
          const { firstKeptEntryId, tokensBefore } = event.preparation;
          return { compaction: { summary: "short", firstKeptEntryId, tokensBefore } };
        });
        pi.on("session_compact", (event, ctx) => ctx.ui.notify(`after ${event.reason} ${event.willRetry} ${event.fromExtension}`));
      };"#;
    let mut stage = Stage::modern(source).await;
    for _ in 0..3 {
        let text = "x".repeat(60_000);
        stage.live(&format!("SAY {text}")).await;
    }
    stage.lines.take();
    stage
        .ask(Command::Compact { instructions: None })
        .await
        .unwrap();
    assert_eq!(
        notes(&stage.lines.take()),
        ["before manual false", "after manual false true"]
    );
}

#[tokio::test]
async fn a_blocked_call_can_end_the_run() {
    let source = r#"
      export default (pi) => {
        pi.on("tool_call", () => ({ block: true, reason: "no", terminate: true }));
        pi.on("tool_execution_end", (event, ctx) => ctx.ui.notify(`${event.isError} ${event.durationMs}`));
      };"#;
    let mut stage = Stage::modern(source).await;
    let lines = stage.live(r#"CALL bash {"command":"true"}"#).await;
    assert!(lines.contains(&json!({"message_end": ["toolResult", "no"]})));
    assert!(!lines.contains(&json!({"message_end": ["assistant", "tools done"]})));
    assert_eq!(notes(&lines), ["true undefined"]);
}

#[tokio::test]
async fn the_system_prompt_of_one_request_can_be_changed() {
    let source = r#"
      export default (pi) => {
        pi.on("context_with_system", ({ messages }) => {
          const [head, ...rest] = messages;
          return { messages: [{ ...head, content: `${head.content} Now.`, sections: { extra: "More." } }, ...rest] };
        });
        pi.on("context_with_system", () => ({ messages: [] }));
      };"#;
    let mut stage = Stage::modern(source).await;
    let lines = stage.live("SYSTEM").await;
    let prompt = "You help. Now.\n\n<extra>\nMore.\n</extra>";
    assert!(
        lines.contains(&json!({"message_end": ["assistant", prompt]})),
        "{lines:?}"
    );
    assert!(
        lines
            .iter()
            .any(|line| line["event"] == "context_with_system"),
        "{lines:?}"
    );
}
