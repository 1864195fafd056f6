use pinion_agent::Command;
use serde_json::{Value, json};

use crate::stage::{Stage, notes};

const ACTIONS: &str = r#"
  const show = (ctx, value) => ctx.ui.notify(value === undefined ? "undefined" : JSON.stringify(value));
  export default (pi) => {
    const command = (name, handler) => pi.registerCommand(name, { handler: async (words, ctx) => show(ctx, await handler(words, ctx)) });
    command("exec", async () => [
      await pi.exec("sh", ["-c", "echo o; echo e >&2; exit 3"]),
      await pi.exec("sh", ["-c", "sleep 5"], { timeout: 50 }),
      await pi.exec("no-such-program-xyz", []),
      (await pi.exec("pwd", [], { cwd: "/" })).stdout,
      await pi.exec("sh", ["-c", "sleep 5"], { signal: AbortSignal.abort() }),
    ]);
    command("entry", (_w, ctx) => {
      pi.appendEntry("st", { x: 1 });
      pi.appendEntry("st2");
      return ctx.sessionManager.getEntries().filter((e) => e.type === "custom").map((e) => [e.customType, e.data]);
    });
    command("name", (words) => { pi.setSessionName(words); return pi.getSessionName(); });
    command("label", (words, ctx) => {
      const id = ctx.sessionManager.getLeafId();
      pi.setLabel(id, words);
      const node = ctx.sessionManager.getTree()[0];
      return [ctx.sessionManager.getLabel(id), node.label ?? null, ctx.sessionManager.getLeafEntry().type];
    });
    command("lost", () => pi.setLabel("zzz", "q"));
    command("model", async (_w, ctx) => {
      const m2 = ctx.modelRegistry.find("mock", "m2");
      const before = [m2.id, ctx.modelRegistry.find("x", "y") === undefined, ctx.model.id];
      const set = await pi.setModel(m2);
      pi.setThinkingLevel("xhigh");
      return [...before, set, pi.getThinkingLevel(), await ctx.modelRegistry.getApiKeyAndHeaders(m2), ctx.model.id];
    });
    command("usage", (_w, ctx) => ctx.getContextUsage());
    command("commands", () => pi.getCommands().map((c) => c.name).slice(-2));
    command("idle", async (_w, ctx) => { const before = ctx.isIdle(); ctx.ui.notify("waiting"); await ctx.waitForIdle(); return [before, ctx.isIdle()]; });
    pi.registerCommand("msg", { handler: (words) => {
      const [mode, trigger] = words.split(" ");
      pi.sendMessage({ customType: "probe", content: "custom " + words, display: true, details: { mode } },
        { deliverAs: mode === "none" ? undefined : mode, triggerTurn: trigger === "t" });
    } });
    pi.registerCommand("user", { handler: (words) => {
      const [mode, ...rest] = words.split(" ");
      pi.sendUserMessage(rest.join(" "), mode === "none" ? undefined : { deliverAs: mode });
    } });
    pi.registerCommand("bad", { handler: () => pi.registerProvider("p", { models: [{ id: "x" }] }) });
    pi.registerCommand("stop", { handler: (_, ctx) => ctx.abort() });
    pi.registerCommand("quit", { handler: (_, ctx) => ctx.shutdown() });
    pi.on("resources_discover", () => ({ skillPaths: ["/skills/a"] }));
  };"#;

async fn shown(stage: &Stage, command: &str) -> Value {
    let notes = stage.command(command).await;
    serde_json::from_str(&notes[0]).unwrap()
}

#[tokio::test]
async fn programs_run_to_completion_and_failures_do_not_throw() {
    let stage = Stage::new(ACTIONS).await;
    assert_eq!(
        shown(&stage, "/exec").await,
        json!([
            {"stdout": "o\n", "stderr": "e\n", "code": 3, "killed": false},
            {"stdout": "", "stderr": "", "code": 0, "killed": true},
            {"stdout": "", "stderr": "", "code": 1, "killed": false},
            "/\n",
            {"stdout": "", "stderr": "", "code": 0, "killed": true},
        ])
    );
}

#[tokio::test]
async fn the_session_can_be_read_and_added_to() {
    let mut stage = Stage::new(ACTIONS).await;
    assert_eq!(
        shown(&stage, "/entry").await,
        json!([["st", {"x": 1}], ["st2", null]])
    );
    assert_eq!(shown(&stage, "/name  My Name ").await, "My Name");
    stage.live("hi").await;
    assert_eq!(
        shown(&stage, "/label L1").await,
        json!(["L1", null, "label"])
    );
    stage.lines.take();
    stage.say("/lost").await;
    assert_eq!(stage.lines.take()[0]["error"], "Entry zzz not found");
    let usage = shown(&stage, "/usage").await;
    assert_eq!(usage["contextWindow"], 200_000);
    assert_eq!(
        shown(&stage, "/commands").await,
        json!(["quit", "template"])
    );
    assert_eq!(
        stage.program.skills.lock().unwrap()[0].path.to_str(),
        Some("/skills/a")
    );
}

#[tokio::test]
async fn removed_or_unknown_values_are_not_errors() {
    let source = r#"
      export default (pi) => pi.registerCommand("odd", { handler: (_, ctx) => {
        pi.setSessionName("named"); pi.setSessionName("  ");
        pi.setThinkingLevel("zzz");
        pi.appendEntry("one", null); pi.appendEntry("two");
        const kept = ctx.sessionManager.getEntries().filter((e) => e.type === "custom");
        ctx.ui.notify(JSON.stringify([pi.getSessionName() ?? "none", pi.getThinkingLevel(), ...kept.map((e) => "data" in e)]));
      } });"#;
    let stage = Stage::new(source).await;
    stage.lines.take();
    stage.say("/odd").await;
    let lines = stage.lines.take();
    assert_eq!(lines[0], json!({"name": "named"}));
    assert_eq!(lines[1], json!({"name": null}));
    assert_eq!(notes(&lines), [r#"["none","off",true,false]"#]);
}

#[tokio::test]
async fn providers_have_names_for_people() {
    let source = r#"
      export default (pi) => {
        pi.registerProvider("own", { name: "My Own", baseUrl: "http://127.0.0.1:9" });
        pi.registerCommand("names", { handler: (_, ctx) => ctx.ui.notify(
          ["own", "openai", "google", "anthropic", "mock"].map((p) => ctx.modelRegistry.getProviderDisplayName(p)).join(", ")) });
      };"#;
    let stage = Stage::new(source).await;
    assert_eq!(
        stage.command("/names").await,
        ["My Own, OpenAI, Google Gemini, Anthropic (Claude Pro/Max), mock"]
    );
}

#[tokio::test]
async fn a_command_can_wait_for_the_run_it_starts() {
    let source = r#"
      export default (pi) => {
        const count = (ctx) => ctx.sessionManager.getEntries().filter((e) => e.type.endsWith("message")).length;
        pi.registerCommand("trigger", { handler: async (_, ctx) => {
          pi.sendMessage({ customType: "x", content: "SAY a", display: true }, { triggerTurn: true });
          const idle = ctx.isIdle();
          await ctx.waitForIdle();
          ctx.ui.notify(`${idle} ${count(ctx)}`);
        } });
        pi.registerCommand("fresh", { handler: (_, ctx) => ctx.newSession({ withSession: async (ctx) => {
          await ctx.sendUserMessage("SAY b");
          ctx.ui.notify(String(count(ctx)));
          await ctx.sendMessage({ customType: "x", content: "SAY c", display: true }, { triggerTurn: true });
          ctx.ui.notify(String(count(ctx)));
          await ctx.sendMessage({ customType: "x", content: "aside", display: true });
          ctx.ui.notify(String(count(ctx)));
        } }) });
        pi.on("before_agent_start", async () => { await new Promise((resolve) => setTimeout(resolve, 5)); });
      };"#;
    let stage = Stage::new(source).await;
    assert_eq!(stage.command("/trigger").await, ["false 2"]);
    assert_eq!(stage.command("/fresh").await, ["2", "4", "5"]);
}

#[tokio::test]
async fn models_are_found_and_chosen() {
    let stage = Stage::new(ACTIONS).await;
    let expected = json!(["m2", true, "m1", true, "high", {"ok": true, "apiKey": "k"}, "m2"]);
    assert_eq!(shown(&stage, "/model").await, expected);
    stage.lines.take();
    stage.say("/bad").await;
    let words = "Provider p: \"baseUrl\" is required when defining models.";
    assert_eq!(stage.lines.take()[0]["error"], words);
}

#[tokio::test]
async fn messages_are_delivered_as_requested() {
    let mut stage = Stage::new(ACTIONS).await;
    stage.lines.take();
    stage.say("/msg none").await;
    assert_eq!(
        stage.lines.take(),
        [json!({"message_end": ["custom", "custom none"]})]
    );

    stage.say("/msg nextTurn").await;
    assert!(stage.lines.take().is_empty());
    let lines = stage.live("hello").await;
    let at = |text: Value| {
        lines
            .iter()
            .position(|line| line["message_end"] == text)
            .unwrap()
    };
    assert!(at(json!(["user", "hello"])) < at(json!(["custom", "custom nextTurn"])));

    let lines = stage.live("/msg none t").await;
    assert!(lines.contains(&json!({"message_end": ["custom", "custom none t"]})));
    assert!(lines.contains(&json!({"message_end": ["assistant", "ok"]})));

    let lines = stage.live("/user none SAY yes").await;
    assert!(lines.contains(&json!({"message_end": ["assistant", "yes"]})));
}

#[tokio::test]
async fn messages_during_a_run_need_a_delivery_mode() {
    let mut stage = Stage::new(ACTIONS).await;
    stage.say("SLOW").await;
    stage.lines.take();
    stage.say("/user none x").await;
    let error = loop {
        let lines = stage.lines.take();
        match lines.into_iter().find(|line| line["error"].is_string()) {
            Some(error) => break error,
            None => tokio::task::yield_now().await,
        }
    };
    let words = "Agent is already processing. Specify streamingBehavior ('steer' or 'followUp') to queue the message.";
    assert_eq!(
        error,
        json!({"error": words, "event": "send_user_message", "path": "<runtime>"})
    );
    let (noted, ()) = tokio::join!(stage.command("/idle"), async {
        let waits = |line: &Value| line["ui"]["message"] == "waiting";
        stage.seen(waits).await;
        stage.say("/stop").await;
    });
    assert_eq!(noted, ["waiting", "[false,true]"]);
    stage.settle().await;
}

#[tokio::test]
async fn an_extension_can_ask_for_the_end_of_the_program() {
    let stage = Stage::new(ACTIONS).await;
    assert!(!stage.extensions.shutdown_requested());
    stage.say("/quit").await;
    assert!(stage.extensions.shutdown_requested());
}

#[tokio::test]
async fn compaction_may_be_refused() {
    let source = r#"
      export default (pi) => {
        pi.on("session_before_compact", (event, ctx) => {
          ctx.ui.notify(`${Object.keys(event.preparation.fileOps)} ${event.preparation.fileOps.edited instanceof Set} ${event.signal.aborted} ${event.branchEntries.length > 0}`);
          return { cancel: true };
        });
        pi.registerCommand("compact", { handler: (_, ctx) => new Promise((resolve) =>
          ctx.compact({ onError: (error) => { ctx.ui.notify(error.message); resolve(); } })) });
      };"#;
    let mut stage = Stage::new(source).await;
    stage.live("hello").await;
    let noted = stage.command("/compact").await;
    assert_eq!(
        noted,
        [
            "read,written,edited true false true",
            "Compaction cancelled"
        ]
    );
    let answer = stage.ask(Command::Compact { instructions: None }).await;
    assert_eq!(answer.unwrap_err().to_string(), "Compaction cancelled");
}

#[tokio::test]
async fn a_provider_may_end_with_its_result_and_show_its_request() {
    let source = r#"
      import { createAssistantMessageEventStream } from "@mariozechner/pi-ai";
      export default (pi) => {
        pi.on("before_provider_request", ({ payload }, ctx) => { ctx.ui.notify(`request ${payload.n}`); return { n: payload.n + 1 }; });
        pi.on("after_provider_response", ({ status }, ctx) => ctx.ui.notify(`response ${status}`));
        pi.registerProvider("own", {
          baseUrl: "http://127.0.0.1:9", apiKey: "k", api: "own-api",
          models: [{ id: "x", name: "X", reasoning: false, input: ["text"], contextWindow: 10, maxTokens: 10 }],
          streamSimple(model, context, options) {
            const stream = createAssistantMessageEventStream();
            (async () => {
              const { n } = await options.onPayload({ n: 1 }, model);
              await options.onResponse({ status: 200, headers: {} }, model);
              stream.end({ role: "assistant", content: [{ type: "text", text: `sent ${n}` }], api: model.api, provider: model.provider,
                model: model.id, stopReason: "stop", timestamp: Date.now(),
                usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0, cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 } } });
            })();
            return stream;
          },
        });
      };"#;
    let mut stage = Stage::new(source).await;
    let lines = stage.live("hi").await;
    assert_eq!(notes(&lines), ["request 1", "response 200"]);
    assert!(
        lines.contains(&json!({"message_end": ["assistant", "sent 2"]})),
        "{lines:#?}"
    );
}

#[tokio::test]
async fn an_extension_can_be_the_provider() {
    let source = r#"
      export default (pi) => pi.registerProvider("own", {
        baseUrl: "http://127.0.0.1:9", apiKey: "k", api: "own-api",
        models: [{ id: "x", name: "X", reasoning: false, input: ["text"], contextWindow: 10, maxTokens: 10 }],
        async *streamSimple(model, context) {
          const message = { role: "assistant", content: [], api: model.api, provider: model.provider, model: model.id,
            usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0, cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 } },
            stopReason: "stop", timestamp: Date.now() };
          yield { type: "start", partial: message };
          message.content.push({ type: "text", text: "" });
          yield { type: "text_start", contentIndex: 0, partial: message };
          message.content[0].text = `${context.messages.length} ${context.systemPrompt}`;
          yield { type: "text_delta", contentIndex: 0, delta: message.content[0].text, partial: message };
          yield { type: "text_end", contentIndex: 0, content: message.content[0].text, partial: message };
          yield { type: "done", reason: "stop", message };
        },
      });"#;
    let mut stage = Stage::new(source).await;
    let registered = stage.program.registered.lock().unwrap().clone();
    assert_eq!(registered[0].0, "own");
    assert_eq!(registered[0].1["models"][0]["id"], "x");
    let lines = stage.live("hi").await;
    assert!(
        lines.contains(&json!({"message_end": ["assistant", "1 You help."]})),
        "{lines:#?}"
    );
    assert!(notes(&lines).is_empty());
}
