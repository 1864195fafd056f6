//! The members that pi 1.x adds to `pi`, `ctx` and the definitions of extensions.

use pinion_extensions::{ApiRelease, Options};
use serde_json::{Map, json};

use crate::stage::{Stage, notes};

const MEMBERS: &str = r#"
  export default (pi) => {
    pi.registerCommand("show", { handler: async (_, ctx) => {
      const options = ctx.getSystemPromptOptions();
      const scoped = ctx.scopedModels.map(({ model, thinkingLevel }) => `${model.id}:${thinkingLevel}`);
      ctx.ui.notify(JSON.stringify([ctx.mode, ctx.thinkingLevel, ctx.isProjectTrusted(), scoped, pi.getSettings().theme]));
      ctx.ui.notify(JSON.stringify([options.cwd, options.selectedTools, Object.keys(options.sections)]));
      const listed = Object.keys(ctx);
      ctx.ui.notify(JSON.stringify([listed.includes("mode"), Object.keys(pi).includes("getSettings"), listed.length]));
      ctx.ui.notify(Object.keys(pi.getAllTools()[0]).join("+"));
      ctx.ui.notify(Object.keys(pi.getCommands()[0]).join("+"));
    } });
  };"#;

#[tokio::test]
async fn contexts_have_the_members_of_later_releases() {
    let stage = Stage::modern(MEMBERS).await;
    let shown = stage.command("/show").await;
    assert_eq!(
        shown[0],
        r#"["rpc","off",true,["m1:undefined","m2:high"],"light"]"#
    );
    assert_eq!(shown[1], r#"["/work",["read","bash","edit","write"],[]]"#);
    assert_eq!(shown[2], "[true,true,25]");
    assert_eq!(
        shown[3],
        "name+description+parameters+sourceInfo+promptGuidelines+exposure"
    );
    assert_eq!(shown[4], "name+source+sourceInfo");
    let listed = &stage.extensions.commands()[0];
    assert!(listed.get("path").is_none(), "{listed}");
}

#[tokio::test]
async fn older_clients_do_not_see_later_members_in_lists() {
    let stage = Stage::new(MEMBERS).await;
    let shown = stage.command("/show").await;
    assert!(shown[0].starts_with(r#"["print","off",true"#), "{shown:?}");
    assert_eq!(shown[2], "[false,false,20]");
    assert_eq!(shown[3], "name+description+parameters+sourceInfo");
    assert!(stage.extensions.commands()[0].get("path").is_some());
}

#[tokio::test]
async fn a_subscription_ends_once() {
    let source = r#"
      export default (pi) => {
        const heard = (_, ctx) => ctx.ui.notify("twice");
        pi.on("agent_start", heard);
        const end = pi.on("agent_start", heard);
        pi.on("agent_start", (_, ctx) => { ctx.ui.notify("last"); end(); end(); });
      };"#;
    let mut stage = Stage::modern(source).await;
    assert_eq!(notes(&stage.live("a").await), ["twice", "twice", "last"]);
    assert_eq!(notes(&stage.live("b").await), ["twice", "last"]);
}

#[tokio::test]
async fn waiting_for_the_user_is_reported_once_for_all_open_questions() {
    let source = r#"
      export default (pi) => {
        for (const name of ["ui_prompt_start", "ui_prompt_end"]) {
          pi.on(name, (event, ctx) => ctx.ui.notify(`${event.type} ${event.kind} ${event.title}`));
        }
        pi.registerCommand("ask", { handler: async (_, ctx) => {
          await Promise.all([ctx.ui.confirm("Sure?", "", { timeout: 20 }), ctx.ui.input("Who?", "", { timeout: 40 })]);
          ctx.ui.notify("answered");
        } });
      };"#;
    let stage = Stage::modern(source).await;
    let shown = stage.command("/ask").await;
    let expected = [
        "ui_prompt_start confirm Sure?",
        "ui_prompt_end confirm Sure?",
        "answered",
    ];
    assert_eq!(shown, expected);
}

#[tokio::test]
async fn the_registry_of_models_answers_everything_that_later_releases_ask() {
    let source = r#"
      export default (pi) => {
        pi.registerCommand("show", { handler: async (_, ctx) => {
          const registry = ctx.modelRegistry;
          registry.registerProvider("own", { baseUrl: "http://127.0.0.1:9", apiKey: "$OWN", api: "test", models: [] });
          const show = (value) => ctx.ui.notify(JSON.stringify(value));
          show(registry.getRegisteredProviderIds());
          show(registry.getModelsOfType("chat", "mock").map((model) => model.id));
          show(registry.getModelsOfType("image"));
          show([registry.getProviderAuthStatus("mock").configured, registry.getProviderAuthStatus("none")]);
          show(Object.keys(registry.getProvider("mock")));
          show((await registry.getProviderAuth("mock")).auth.apiKey);
          show(typeof registry.authStorage.get);
          show((await registry.classify()).stopReason);
          const answer = await registry.complete(registry.find("mock", "m1"), { messages: [{ role: "user", content: "SAY hello", timestamp: 1 }] });
          show(answer.content[0].text);
        } });
      };"#;
    let stage = Stage::modern(source).await;
    let shown = stage.command("/show").await;
    let expected = [
        r#"["own"]"#,
        r#"["m1","m2"]"#,
        "[]",
        r#"[true,{"configured":false}]"#,
        r#"["id","name","baseUrl","getModels","stream","streamSimple"]"#,
        r#""k""#,
        r#""function""#,
        r#""error""#,
        r#""hello""#,
    ];
    assert_eq!(shown, expected);
    let registered = stage.program.registered.lock().unwrap().clone();
    assert_eq!(registered[0].1["apiKey"], "$OWN");
}

#[tokio::test]
async fn a_virtual_model_routes_each_request_and_stores_its_state() {
    let source = r#"
      export default (pi) => {
        pi.registerVirtualModel({
          provider: "router", id: "auto", name: "Auto", thinkingLevels: ["low", "high"],
          route(request, ctx) {
            const { reason, state } = request;
            ctx.ui.notify(`${reason} ${state?.count} ${request.messages[0].role} ${request.previous?.model.id}`);
            const model = ctx.modelRegistry.find("mock", reason === "user" ? "m1" : "m2");
            return { model, thinkingLevel: "high", state: { count: (state?.count ?? 0) + 1 } };
          },
        });
        pi.on("message_end", ({ message }, ctx) => {
          if (message.role === "assistant") ctx.ui.notify(`${message.provider}/${message.model}`);
        });
        pi.registerCommand("remove", { handler: async () => pi.unregisterVirtualModel("router", "auto") });
      };"#;
    let mut stage = Stage::modern(source).await;
    let lines = stage.live(r#"CALL bash {"command":"true"}"#).await;
    let expected = [
        "user undefined system undefined",
        "mock/m1",
        "continuation 1 system m1",
        "mock/m2",
    ];
    assert_eq!(notes(&lines), expected);
    stage.command("/remove").await;
    assert!(stage.program.answering.lock().unwrap().is_none());
}

#[tokio::test]
async fn a_router_that_chooses_nothing_fails_the_request() {
    let source = r#"
      export default (pi) => {
        pi.registerVirtualModel({ provider: "router", id: "auto", name: "Auto", route: () => ({ model: { provider: "x", id: "y" } }) });
        pi.on("message_end", ({ message }, ctx) => {
          if (message.role === "assistant") ctx.ui.notify(message.errorMessage);
        });
      };"#;
    let mut stage = Stage::modern(source).await;
    let expected = ["The router of router/auto chose x/y, which cannot answer requests."];
    assert_eq!(notes(&stage.live("a").await), expected);
}

#[tokio::test]
async fn registered_servers_reach_the_extension_that_connects_them() {
    let source = r#"
      export default (pi) => {
        pi.registerMcpServer("docs", { command: "docs-server" });
        pi.on("mcp_servers_change", ({ servers }, ctx) => ctx.ui.notify(servers.map((server) => server.name).join("+")));
        pi.registerCommand("add", { handler: async (_, ctx) => {
          pi.registerMcpServer("web", { url: "http://127.0.0.1:9" });
          pi.unregisterMcpServer("docs");
          try { pi.registerMcpServer("bad", {}); } catch (error) { ctx.ui.notify(error.message); }
          ctx.ui.notify(JSON.stringify(pi.getMcpServers().map(({ name, config }) => [name, config.url])));
        } });
      };"#;
    let stage = Stage::modern(source).await;
    let mut shown = stage.command("/add").await;
    shown.sort();
    let mut expected = [
        "docs+web",
        "web",
        r#"MCP server "bad" needs either "command" or "url""#,
        r#"[["web","http://127.0.0.1:9"]]"#,
    ];
    expected.sort();
    assert_eq!(shown, expected);
}

#[tokio::test]
async fn a_whole_provider_can_be_registered() {
    let source = r#"
      export default (pi) => {
        pi.registerProvider({
          id: "whole", name: "Whole", baseUrl: "http://127.0.0.1:9",
          auth: { apiKey: { resolve: async ({ credential }) => ({ auth: { apiKey: `key-${credential?.key}` } }) } },
          getModels: () => [{ id: "w", name: "W", api: "whole-api", baseUrl: "http://127.0.0.1:9" }],
          async *streamSimple(model, _context, options) {
            const message = { role: "assistant", content: [{ type: "text", text: options.apiKey }], api: model.api,
              provider: model.provider, model: model.id, stopReason: "stop", timestamp: 1,
              usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0, cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 } } };
            yield { type: "start", partial: message };
            yield { type: "done", reason: "stop", message };
          },
        });
      };"#;
    let mut stage = Stage::modern(source).await;
    let registered = stage.program.registered.lock().unwrap()[0].clone();
    assert_eq!(registered.0, "whole");
    assert_eq!(registered.1["api"], "whole-api");
    let lines = stage.live("a").await;
    assert!(
        lines.contains(&json!({"message_end": ["assistant", "key-undefined"]})),
        "{lines:?}"
    );
}

#[tokio::test]
async fn a_tool_can_start_inactive() {
    let source = r#"
      export default (pi) => {
        const tool = (name, more) => ({ name, description: "", parameters: { type: "object", properties: {} }, execute: async () => ({ content: [] }), ...more });
        pi.registerTool(tool("off", { defaultActive: false }));
        pi.registerTool(tool("on", {}));
        pi.registerCommand("show", { handler: async (_, ctx) => {
          ctx.ui.notify(pi.getActiveTools().join("+"));
          pi.setActiveTools(["off"]);
          ctx.ui.notify(pi.getActiveTools().join("+"));
        } });
      };"#;
    let stage = Stage::modern(source).await;
    assert_eq!(
        stage.command("/show").await,
        ["read+bash+edit+write+on", "off"]
    );
}

#[tokio::test]
async fn levels_that_extensions_set_while_they_start_are_not_told() {
    let source = r#"
      export default (pi) => {
        pi.on("session_start", async (_, ctx) => {
          await pi.setModel(ctx.modelRegistry.find("mock", "m2"));
          pi.setThinkingLevel("high");
        });
        pi.registerCommand("low", { handler: async () => pi.setThinkingLevel("low") });
        pi.registerCommand("show", { handler: async (_, ctx) => ctx.ui.notify(ctx.thinkingLevel) });
      };"#;
    let change = |options| Options {
        release: ApiRelease::Modern,
        ..options
    };
    let stage = Stage::with(&[("extension.ts", source)], Map::new(), change).await;
    let level = |line: &serde_json::Value| line.get("level").is_some();
    assert!(!stage.lines.take().iter().any(level));
    assert_eq!(stage.command("/show").await, ["high"]);
    stage.say("/low").await;
    assert!(stage.lines.take().contains(&json!({"level": "low"})));
}
