//! Sessions that extensions start in the program: `createAgentSession`.

use pinion_agent::{Answer, Command};
use serde_json::{Value, json};

use crate::stage::{Stage, notes};

const CHILDREN: &str = r#"
  import { createAgentSession, DefaultResourceLoader, SessionManager, SettingsManager, getAgentDir, createExtensionRuntime } from "@mariozechner/pi-coding-agent";
  const text = (t) => [{ type: "text", text: t }];
  const guarded = [];
  const start = async (ctx, options = {}) => {
    const loader = new DefaultResourceLoader({ cwd: ctx.cwd, agentDir: getAgentDir(), noExtensions: true, noSkills: true, noContextFiles: true, ...options.loader });
    await loader.reload();
    const { session } = await createAgentSession({
      cwd: ctx.cwd, sessionManager: SessionManager.inMemory(ctx.cwd), settingsManager: SettingsManager.inMemory(), model: ctx.model, modelRegistry: ctx.modelRegistry,
      resourceLoader: loader, ...options,
    });
    return session;
  };
  let kept;
  export default (pi) => {
    pi.registerTool({ name: "outer", description: "o", parameters: { type: "object", properties: {} }, async execute() { return { content: text("from the parent's extension") }; } });
    pi.on("tool_call", (e) => {
      guarded.push(e.toolName);
      if (e.toolName === "bash" && e.input.command.includes("forbidden")) return { block: true, reason: "not here" };
    });
    pi.registerCommand("prompt", { handler: async (_, ctx) => {
      const session = await start(ctx, { tools: ["read", "ls"], thinkingLevel: "off" });
      const types = [];
      let streamed = "";
      session.subscribe((event) => {
        if (event.type !== types.at(-1)) types.push(event.type);
        if (event.type === "message_update" && event.assistantMessageEvent.type === "text_delta") streamed += event.assistantMessageEvent.delta;
      });
      await session.prompt("SAY hello");
      await session.prompt("SAY again");
      const stats = session.getSessionStats();
      ctx.ui.notify(JSON.stringify({
        types: types.slice(0, types.indexOf("agent_settled") + 1), streamed, last: session.getLastAssistantText(), roles: session.messages.map((m) => m.role),
        stored: session.sessionManager.getEntries().filter((e) => e.type === "message").length, stats: [stats.userMessages, stats.assistantMessages],
        active: session.getActiveToolNames(), streaming: session.isStreaming, same: session.state.messages === session.messages,
      }));
      session.dispose();
    } });
    pi.registerCommand("tools", { handler: async (_, ctx) => {
      const updates = [];
      const session = await start(ctx, {
        loader: { noExtensions: false },
        customTools: [{ name: "mine", label: "m", description: "d", parameters: { type: "object", properties: { n: { type: "number" } }, required: ["n"] },
          async execute(id, { n }, signal, onUpdate) { onUpdate({ content: text("half") }); await null; if (n === 0) throw new Error("zero"); return { content: text(`got ${n + 1}`), details: { n } }; } }],
      });
      session.subscribe((e) => { if (e.type === "tool_execution_update") updates.push(e.partialResult.content[0].text); });
      await session.prompt('CALL mine {"n":"4"}');
      await session.prompt('CALL mine {"n":0}');
      await session.prompt('CALL outer {}');
      await session.prompt('CALL bash {"command":"echo forbidden"}');
      await session.prompt('CALL bash {"command":"echo GATED"}');
      await session.prompt('CALL bash {"command":"echo fine"}');
      const results = session.messages.filter((m) => m.role === "toolResult").map((m) => [m.toolName, m.content[0].text.trim(), m.isError]);
      ctx.ui.notify(JSON.stringify({ results, updates, guarded: guarded.splice(0), tools: session.getAllTools().map((t) => t.name).sort() }));
      session.dispose();
    } });
    pi.registerCommand("hooks", { handler: async (_, ctx) => {
      const seen = [];
      const session = await start(ctx, { loader: { extensionFactories: [(child) => {
        child.on("session_start", (e, c) => void seen.push([e.reason, c.hasUI]));
        child.on("before_agent_start", (e) => ({ systemPrompt: e.systemPrompt + " Shout." }));
        child.on("context", (e) => ({ messages: e.messages.map((m) => (m.role === "user" && JSON.stringify(m.content).includes("original") ? { ...m, content: "SAY changed" } : m)) }));
        child.on("tool_result", (e) => ({ content: text("patched " + e.content[0].text.trim()) }));
        child.on("agent_end", () => void seen.push("agent_end"));
        child.registerTool({ name: "extra", description: "e", parameters: {}, async execute() { return { content: text("extra") }; } });
      }], systemPrompt: "You are a child." } });
      await session.bindExtensions({});
      const before = session.systemPrompt.startsWith("You are a child.");
      await session.prompt("SAY original");
      const said = [session.getLastAssistantText()];
      await session.prompt("SYSTEM");
      said.push(session.getLastAssistantText().startsWith("You are a child."), session.getLastAssistantText().endsWith(" Shout."));
      const names = session.getAllTools().map((t) => t.name).filter((n) => ["extra", "outer"].includes(n));
      ctx.ui.notify(JSON.stringify({ seen, before, said, names }));
      session.dispose();
    } });
    pi.registerCommand("spoiled", { handler: async (_, ctx) => {
      const session = await start(ctx, { loader: { extensionFactories: [(child) => {
        child.on("tool_call", (e) => { e.input.self = e.input; });
      }] } });
      await session.prompt('CALL bash {"command":"echo ran"}');
      const [result] = session.messages.filter((m) => m.role === "toolResult");
      ctx.ui.notify(JSON.stringify([result.content[0].text, result.isError]));
      session.dispose();
    } });
    pi.registerCommand("seeded", { handler: async (_, ctx) => {
      const session = await start(ctx, { tools: [], resourceLoader: {
        getExtensions: () => ({ extensions: [], errors: [], runtime: createExtensionRuntime() }), getSkills: () => ({ skills: [], diagnostics: [] }),
        getPrompts: () => ({ prompts: [], diagnostics: [] }), getThemes: () => ({ themes: [], diagnostics: [] }), getAgentsFiles: () => ({ agentsFiles: [] }),
        getSystemPrompt: () => "Short.", getAppendSystemPrompt: () => [], extendResources() {}, async reload() {},
      } });
      session.agent.state.messages = [{ role: "user", content: "SAY before", timestamp: 1 }];
      await session.prompt("SAY after");
      ctx.ui.notify(JSON.stringify([session.messages.map((m) => m.role), session.getLastAssistantText(), session.getActiveToolNames()]));
      session.dispose();
    } });
    pi.registerCommand("abort", { handler: async (_, ctx) => {
      const session = await start(ctx);
      const run = session.prompt("SLOW");
      await new Promise((resolve) => session.subscribe((e) => e.type === "message_start" && e.message.role === "assistant" && resolve()));
      const busy = session.isStreaming;
      await session.abort();
      await run;
      session.dispose();
      const late = await session.prompt("SAY x").catch((e) => e.message);
      ctx.ui.notify(JSON.stringify([busy, session.messages.at(-1).stopReason, session.isStreaming, late]));
    } });
    pi.registerCommand("many", { handler: async (_, ctx) => {
      const sessions = [];
      let failure;
      for (let i = 0; i < 40 && !failure; i++) {
        const session = await start(ctx, { tools: [] });
        await session.prompt("SAY x").then(() => sessions.push(session), (e) => { failure = e.message; });
      }
      const count = sessions.length;
      for (const session of sessions) session.dispose();
      await new Promise((resolve) => setTimeout(resolve, 200));
      const session = await start(ctx, { tools: [] });
      const again = await session.prompt("SAY x").then(() => "works", (e) => e.message);
      session.dispose();
      ctx.ui.notify(JSON.stringify([count, failure, again]));
    } });
    pi.registerCommand("pay", { handler: async (_, ctx) => {
      const session = await start(ctx, { tools: [] });
      await session.prompt("COSTLY");
      ctx.ui.notify(JSON.stringify(session.getSessionStats().tokens.output));
      session.dispose();
    } });
    pi.registerCommand("keep", { handler: async (_, ctx) => {
      kept = await start(ctx, { tools: [] });
      void kept.prompt("SLOW");
      await new Promise((resolve) => kept.subscribe((e) => e.type === "message_start" && e.message.role === "assistant" && resolve()));
      ctx.ui.notify("running");
    } });
  };"#;

async fn told(stage: &Stage, command: &str) -> Value {
    let notes = stage.command(command).await;
    let note = notes.first().map(String::as_str).unwrap_or_default();
    serde_json::from_str(note).unwrap_or_else(|_| json!(note))
}

#[tokio::test]
async fn a_child_is_prompted_and_its_events_and_messages_arrive() {
    let stage = Stage::new(CHILDREN).await;
    assert_eq!(
        told(&stage, "/prompt").await,
        json!({
            "types": ["agent_start", "turn_start", "message_start", "message_end", "message_start", "message_update",
                "message_end", "turn_end", "agent_end", "agent_settled"],
            "streamed": "helloagain",
            "last": "again",
            "roles": ["user", "assistant", "user", "assistant"],
            "stored": 4,
            "stats": [2, 2],
            "active": ["read", "ls"],
            "streaming": false,
            "same": true,
        })
    );
}

#[tokio::test]
async fn tools_of_a_child_run_where_they_belong_and_pass_the_guards_of_the_session() {
    let stage = Stage::new(CHILDREN).await;
    let seen = told(&stage, "/tools").await;
    assert_eq!(
        seen["results"],
        json!([
            ["mine", "got 5", false],
            ["mine", "zero", true],
            ["outer", "from the parent's extension", false],
            ["bash", "not here", true],
            ["bash", "refused by the gate", true],
            ["bash", "fine", false],
        ])
    );
    assert!(
        seen["updates"].as_array().unwrap().contains(&json!("half")),
        "{seen}"
    );
    assert_eq!(
        seen["guarded"],
        json!(["mine", "mine", "outer", "bash", "bash", "bash"])
    );
    let tools = json!([
        "bash", "edit", "find", "grep", "ls", "mine", "outer", "read", "write"
    ]);
    assert_eq!(seen["tools"], tools);
}

#[tokio::test]
async fn handlers_of_a_child_see_and_change_its_work() {
    let stage = Stage::new(CHILDREN).await;
    assert_eq!(
        told(&stage, "/hooks").await,
        json!({"seen": [["startup", false], "agent_end", "agent_end"], "before": true, "said": ["changed", true, true], "names": ["extra"]})
    );
}

#[tokio::test]
async fn a_call_whose_guard_cannot_answer_is_not_made() {
    let stage = Stage::new(CHILDREN).await;
    let words = "A handler of tool_call changed the arguments to a value that is not JSON.";
    assert_eq!(told(&stage, "/spoiled").await, json!([words, true]));
}

#[tokio::test]
async fn a_child_begins_with_a_conversation_that_was_set() {
    let stage = Stage::new(CHILDREN).await;
    assert_eq!(
        told(&stage, "/seeded").await,
        json!([["user", "user", "assistant"], "after", []])
    );
}

#[tokio::test]
async fn a_child_can_be_aborted_and_disposed() {
    let stage = Stage::new(CHILDREN).await;
    assert_eq!(
        told(&stage, "/abort").await,
        json!([true, "aborted", false, "The session is disposed"])
    );
}

#[tokio::test]
async fn the_number_of_children_is_limited() {
    let stage = Stage::new(CHILDREN).await;
    let full = "The session has as many child sessions as it may have. Dispose of one first.";
    assert_eq!(told(&stage, "/many").await, json!([32, full, "works"]));
}

#[tokio::test]
async fn a_child_ends_with_its_session_and_its_usage_is_counted() {
    let stage = Stage::new(CHILDREN).await;
    assert_eq!(told(&stage, "/pay").await, json!(7));
    let Ok(Answer::Stats(stats)) = stage.ask(Command::GetStats).await else {
        panic!("no statistics");
    };
    assert_eq!(stats.assistant_messages, 0);
    assert_eq!(stats.tokens.output, 7);
    assert_eq!(notes_of(&stage, "/keep").await, ["running"]);
    let new = Command::NewSession {
        parent: None,
        prepare: None,
        origin: Default::default(),
    };
    stage.ask(new).await.unwrap();
    let Ok(Answer::Stats(stats)) = stage.ask(Command::GetStats).await else {
        panic!("no statistics");
    };
    assert_eq!(stats.tokens.output, 0);
}

async fn notes_of(stage: &Stage, command: &str) -> Vec<String> {
    stage.lines.take();
    stage.say(command).await;
    notes(&stage.lines.take())
}
