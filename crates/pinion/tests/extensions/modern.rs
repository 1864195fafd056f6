//! What extensions of pi 1.x see of requests, models and commands in the modern dialect.

use pinion_testkit::Exit;
use serde_json::{Value, json};

use super::hostile::Hostile;

const MODERN: &[&str] = &["--rpc-dialect", "modern"];

/// Runs a prompt to the line that the session is idle again.
fn settle(modern: &mut Hostile, prompt: &str) {
    let from = modern.client.prompt(prompt);
    modern
        .client
        .wait_for(from, &json!({"type": "agent_settled"}));
}

fn heard(modern: &Hostile) -> Vec<String> {
    let lines = modern.client.lines();
    let texts = lines.iter().filter(|line| line["method"] == "notify");
    texts
        .filter_map(|line| line["message"].as_str())
        .map(str::to_owned)
        .collect()
}

fn answer(modern: &mut Hostile) -> Value {
    modern.client.data("get_last_assistant_text")["text"].clone()
}

#[test]
fn headers_can_be_changed_and_events_of_the_server_are_seen() {
    let body = r#"
        pi.on("before_provider_headers", (event: any, ctx: any) => {
          ctx.ui.notify(Object.keys(event.headers).filter((name) => /auth|key/.test(name)).join("+") + "headers");
          event.headers["Session_ID"] = ctx.sessionManager.getSessionId();
          event.headers["accept"] = null;
        });
        let events = 0;
        pi.on("provider_stream_event", (event: any, ctx: any) => {
          if (events++ === 0) ctx.ui.notify(`${event.provider} ${event.api} ${event.model} ${typeof event.data}`);
        });"#;
    let mut modern = Hostile::with(body, MODERN);
    settle(&mut modern, "SAY hello");
    assert_eq!(
        heard(&modern),
        ["headers", "mock openai-completions m1 object"]
    );
    let id = modern.client.data("get_state")["sessionId"].clone();
    let request = modern.requests().remove(0);
    assert_eq!(request["headers"]["session_id"], id, "{request}");
    // The HTTP client accepts everything unless the request names something.
    assert_eq!(request["headers"]["accept"], "*/*", "{request}");
    assert_eq!(modern.client.finish(), Exit::Code(0));
}

#[test]
fn a_virtual_model_can_be_chosen_on_the_command_line() {
    let body = r#"
        pi.registerVirtualModel({ provider: "router", id: "auto", name: "Auto",
          route: (request: any, ctx: any) => ({ model: ctx.modelRegistry.find("mock", "m2"), thinkingLevel: "off" }) });"#;
    let arguments = [MODERN, &["--model", "router/auto"]].concat();
    let mut modern = Hostile::with(body, &arguments);
    settle(&mut modern, "SAY routed");
    assert_eq!(answer(&mut modern), "routed");
    assert_eq!(modern.client.data("get_state")["model"]["id"], "auto");
    assert_eq!(modern.requests()[0]["body"]["model"], "m2");
    assert_eq!(modern.client.finish(), Exit::Code(0));
}

#[test]
fn an_extension_that_streams_answers_only_for_its_own_provider() {
    let body = r#"
        pi.registerProvider("own", {
          baseUrl: "http://127.0.0.1:9", apiKey: "$HOME", api: "openai-completions",
          models: [{ id: "o", name: "O", reasoning: false, input: ["text"], contextWindow: 1000, maxTokens: 100,
            cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 } }],
          async *streamSimple(model: any, _context: any, options: any) {
            const message = { role: "assistant", content: text("own " + (options.apiKey === process.env.HOME)), api: model.api,
              provider: model.provider, model: model.id, stopReason: "stop", timestamp: 1,
              usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0, cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 } } };
            yield { type: "done", reason: "stop", message };
          },
        });"#;
    let mut modern = Hostile::with(body, MODERN);
    settle(&mut modern, "SAY from the server");
    assert_eq!(answer(&mut modern), "from the server");
    let choose = json!({"type": "set_model", "provider": "own", "modelId": "o"});
    assert_eq!(modern.client.process.ask(choose)["success"], true);
    settle(&mut modern, "hello");
    assert_eq!(answer(&mut modern), "own true");
    assert_eq!(modern.requests().len(), 1);
    assert_eq!(modern.client.finish(), Exit::Code(0));
}

#[test]
fn registrations_without_an_effect_are_reported_once_per_extension() {
    let body = r#"
        pi.registerToolRenderer(() => undefined);
        pi.registerToolRenderer(() => undefined);
        pi.registerMarkdownTransformer((text: string) => text);
        pi.registerSomethingNew({});
        pi.on("cache_warming_decision", () => {});"#;
    let mut modern = Hostile::with(body, MODERN);
    settle(&mut modern, "SAY hello");
    assert_eq!(modern.client.finish(), Exit::Code(0));
    let stderr = modern.client.process.stderr();
    let notices: Vec<&str> = stderr
        .lines()
        .filter(|line| line.starts_with("Notice: extension"))
        .collect();
    assert_eq!(notices.len(), 1, "{stderr}");
    for part in [
        "registerToolRenderer, registerMarkdownTransformer (this mode has no screen)",
        "registerSomethingNew (pinion does not know it)",
        "on(\"cache_warming_decision\") (pinion does not refresh prompt caches)",
    ] {
        assert!(notices[0].contains(part), "{part} in {stderr}");
    }
}

#[test]
fn commands_of_extensions_have_no_path_and_a_steer_can_be_handled() {
    let body = r#"
        command(pi, "here", async () => {});
        pi.on("input", (event: any) => event.text === "mine" ? { action: "handled" } : undefined);"#;
    let mut modern = Hostile::with(body, MODERN);
    let commands = modern.client.data("get_commands");
    let listed = commands["commands"].as_array().unwrap();
    let here = listed.iter().find(|command| command["name"] == "here");
    assert!(here.unwrap().get("path").is_none(), "{commands}");
    let steered = modern
        .client
        .process
        .ask(json!({"type": "steer", "message": "mine"}));
    assert_eq!(steered["data"]["disposition"], "handled", "{steered}");
    assert_eq!(modern.client.finish(), Exit::Code(0));
}

#[test]
fn an_abort_in_a_gate_ends_the_run_of_its_call() {
    let body = r#"
        pi.on("tool_call", async (_event: any, ctx: any) => {
          await ctx.ui.select("Run it?", ["no"]);
          ctx.abort();
          return { block: true, reason: "No selection" };
        });"#;
    let mut modern = Hostile::with(body, MODERN);
    let from = modern.client.prompt("CALL bash {\"command\": \"true\"}");
    let asked = modern.client.wait_for(from, &json!({"method": "select"}));
    let id = modern.client.line(asked)["id"].clone();
    modern
        .client
        .process
        .send(&json!({"type": "extension_ui_response", "id": id, "value": "no"}));
    let settled = modern
        .client
        .wait_for(from, &json!({"type": "agent_settled"}));
    assert_eq!(modern.client.line(settled)["aborted"], true);
    let lines = modern.client.lines();
    let ended = lines
        .iter()
        .find(|line| line["type"] == "tool_execution_end");
    assert_eq!(
        ended.unwrap()["result"]["content"][0]["text"],
        "Operation aborted"
    );
    settle(&mut modern, "SAY again");
    assert_eq!(answer(&mut modern), "again");
    assert_eq!(modern.client.finish(), Exit::Code(0));
}

#[test]
fn tools_that_a_call_activates_are_recorded_in_the_next_turn() {
    let body = r#"
        pi.registerTool({ name: "more", description: "m", parameters: {},
          async execute() { pi.setActiveTools(["more", "read"]); return { content: [] }; } });"#;
    let mut modern = Hostile::with(body, MODERN);
    settle(&mut modern, "CALL more {}");
    let lines = modern.client.lines();
    let ended = lines.iter().find(|line| line["type"] == "agent_end");
    let roles: Vec<&str> = ended.unwrap()["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|message| message["role"].as_str())
        .collect();
    let expected = [
        "system",
        "user",
        "assistant",
        "toolResult",
        "system",
        "assistant",
    ];
    assert_eq!(roles, expected);
    assert_eq!(modern.client.finish(), Exit::Code(0));
}

#[test]
fn a_client_does_not_read_what_extensions_do_while_the_session_starts() {
    let body = r#"
        pi.on("session_start", async (_event: any, ctx: any) => {
          pi.setSessionName("early");
          pi.sendMessage({ customType: "note", content: "early", display: true });
          ctx.ui.notify("started");
          throw new Error("failed");
        });
        command(pi, "late", async () => pi.setSessionName("late"));"#;
    let mut modern = Hostile::with(body, MODERN);
    assert_eq!(modern.client.data("get_state")["sessionName"], "early");
    let from = modern.client.prompt("/late");
    modern
        .client
        .wait_for(from, &json!({"type": "session_info_changed"}));
    let lines = modern.client.lines();
    let kinds: Vec<&str> = lines
        .iter()
        .filter_map(|line| line["type"].as_str())
        .filter(|kind| *kind != "response")
        .collect();
    let expected = [
        "extension_ui_request",
        "extension_error",
        "session_info_changed",
    ];
    assert_eq!(kinds, expected);
    assert_eq!(modern.client.finish(), Exit::Code(0));
}

#[test]
fn colours_are_those_of_the_terminal_unless_a_theme_is_chosen() {
    let body = r#"
        command(pi, "paint", async (_args: string, ctx: any) => {
          const { theme } = ctx.ui;
          ctx.ui.notify(`${theme.name} ${theme.fg("success", "a")}${theme.fg("dim", "b")}`);
        });"#;
    let mut modern = Hostile::with(body, MODERN);
    modern.client.prompt("/paint");
    modern.client.data("get_state");
    assert_eq!(
        heard(&modern),
        ["system \u{1b}[38;5;2ma\u{1b}[39m\u{1b}[39m\u{1b}[2mb\u{1b}[22;39m"]
    );
    assert_eq!(modern.client.finish(), Exit::Code(0));
}
