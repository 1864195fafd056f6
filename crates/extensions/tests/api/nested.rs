//! Tools that call other tools, and the members of definitions that say how a tool is reachable.

use serde_json::json;

use crate::stage::{Stage, notes};

const TOOLS: &str = r#"
  const tool = (name, execute, more) => ({ name, description: name, parameters: { type: "object", properties: {} }, execute, ...more });
"#;

#[tokio::test]
async fn a_tool_calls_another_one_with_all_checks() {
    let source = format!(
        r#"{TOOLS}
      export default (pi) => {{
        pi.registerTool(tool("caller", async (_id, _args, _signal, _update, ctx) => {{
          const names = ctx.tools.map((known) => known.name);
          const ran = await ctx.executeTool("inner", {{ word: "x" }}, {{ onUpdate: (output) => ctx.ui.notify(`update ${{output.content[0].text}}`) }});
          const blocked = await ctx.executeTool("blocked", {{}});
          const missing = await ctx.executeTool("nothing", {{}});
          const shown = [names.includes("inner"), names.includes("own"), ran.toolCall.id, ran.isError, ran.result.structuredContent.word,
            typeof ran.durationMs, blocked.isError, blocked.result.content[0].text, missing.isError];
          return {{ content: [{{ type: "text", text: JSON.stringify(shown) }}] }};
        }}));
        pi.registerTool(tool("inner", async (_id, args, _signal, update) => {{
          update({{ content: [{{ type: "text", text: "half" }}] }});
          return {{ content: [{{ type: "text", text: "done" }}], structuredContent: {{ word: args.word }} }};
        }}, {{ exposure: "codemode", outputSchema: {{ type: "object" }} }}));
        pi.registerTool(tool("blocked", async () => ({{ content: [] }})));
        pi.registerTool(tool("own", async () => ({{ content: [] }}), {{ exposure: "model-only" }}));
        pi.on("tool_call", (event, ctx) => {{
          ctx.ui.notify(`${{event.toolName}} ${{event.parentToolCallId}}`);
          if (event.toolName === "blocked") return {{ block: true, reason: "no" }};
        }});
        pi.registerCommand("show", {{ handler: async (_, ctx) => {{
          ctx.ui.notify(pi.getActiveTools().join("+"));
          ctx.ui.notify(pi.getAllTools().filter((known) => known.exposure !== "direct").map((known) => `${{known.name}}:${{known.exposure}}`).join("+"));
        }} }});
      }};"#
    );
    let mut stage = Stage::modern(&source).await;
    let lines = stage.live("CALL caller {}").await;
    let shown = r#"[true,false,"call_1/1",false,"x","number",true,"no",true]"#;
    assert!(
        lines.contains(&json!({"message_end": ["toolResult", shown]})),
        "{lines:?}"
    );
    let mut heard = notes(&lines);
    heard.sort();
    assert_eq!(
        heard,
        [
            "blocked call_1",
            "caller undefined",
            "inner call_1",
            "update half"
        ]
    );
    assert_eq!(
        stage.command("/show").await,
        [
            "read+bash+edit+write+caller+blocked+own",
            "inner:codemode+own:model-only"
        ]
    );
}

#[tokio::test]
async fn a_result_can_be_an_error_with_data_and_handlers_can_replace_it() {
    let source = format!(
        r#"{TOOLS}
      export default (pi) => {{
        pi.registerTool(tool("odd", async () => ({{ content: [{{ type: "text", text: "bad" }}], structuredContent: {{ n: 1 }}, isError: true }})));
        pi.on("tool_result", (event, ctx) => {{
          ctx.ui.notify(JSON.stringify(event.structuredContent));
          return {{ content: [{{ type: "text", text: "other" }}] }};
        }});
        pi.on("tool_result", (event, ctx) => ctx.ui.notify(String(event.structuredContent)));
      }};"#
    );
    let mut stage = Stage::modern(&source).await;
    let lines = stage.live("CALL odd {}").await;
    assert_eq!(notes(&lines), [r#"{"n":1}"#, "undefined"]);
    let end = lines.iter().find(|line| line["tool_end"] == "odd").unwrap();
    assert_eq!(end["isError"], true, "{end}");
    assert!(lines.contains(&json!({"message_end": ["toolResult", "other"]})));
}
