use std::sync::Arc;

use serde_json::{Value, json};

use crate::stage::{Stage, notes};

const DIALOGS: &str = r#"
  const show = (ctx, value) => ctx.ui.notify(value === undefined ? "undefined" : JSON.stringify(value));
  export default (pi) => {
    const command = (name, handler) => pi.registerCommand(name, { handler: async (words, ctx) => show(ctx, await handler(ctx.ui, ctx)) });
    command("select", (ui) => ui.select("T", ["a", "b"]));
    command("confirm", (ui) => ui.confirm("T", "M"));
    command("input", (ui) => ui.input("T"));
    command("editor", (ui) => ui.editor("T", "pre"));
    command("timeout", (ui) => ui.confirm("T", "M", { timeout: 20 }));
    command("aborted", (ui) => { const c = new AbortController(); c.abort(); return ui.select("T", ["x"], { signal: c.signal }); });
    command("abort-later", (ui) => { const c = new AbortController(); setTimeout(() => c.abort(), 5); return ui.select("T", ["x"], { signal: c.signal }); });
    command("theme", (ui) => [ui.theme.fg("accent", "A"), ui.theme.bg("customMessageBg", "B"), ui.theme.fg("text", "C"), ui.theme.bold("D")]);
    command("keys", (_ui, ctx) => Object.keys(ctx).length);
    command("values", (ui) => [ui.getEditorText(), ui.getToolsExpanded(), ui.getAllThemes(), ui.setTheme("x")]);
    pi.registerCommand("fire", { handler: (_, { ui }) => {
      ui.notify("warn", "warning"); ui.setStatus("k", undefined); ui.setWidget("w", ["l"], { placement: "belowEditor" });
      ui.setWidget("w", () => ({})); ui.setTitle("t"); ui.pasteToEditor("p"); ui.setFooter(() => ({}));
    } });
  };"#;

/// Runs a command and answers its dialog.
async fn answered(stage: &Stage, command: &str, response: Value) -> (Value, String) {
    stage.lines.take();
    let (request, ()) = tokio::join!(
        async {
            let request = stage.dialog().await;
            let id = request["id"].as_str().unwrap();
            let dialogs = stage.extensions.dialogs();
            dialogs.answer("unknown", &response);
            dialogs.answer(id, &response);
            dialogs.answer(id, &json!({"value": "twice", "confirmed": true}));
            request
        },
        stage.say(command)
    );
    (request, notes(&stage.lines.take()).remove(0))
}

#[tokio::test]
async fn answers_reach_the_extension_that_asked() {
    let stage = Stage::new(DIALOGS).await;
    let cases = [
        (
            "/select",
            json!({"value": "not-an-option"}),
            "\"not-an-option\"",
        ),
        ("/select", json!({"cancelled": true}), "undefined"),
        ("/select", json!({"confirmed": true}), "undefined"),
        ("/confirm", json!({"confirmed": true}), "true"),
        ("/confirm", json!({"value": "yes"}), "false"),
        ("/confirm", json!({}), "false"),
        ("/input", json!({"value": ""}), "\"\""),
        ("/editor", json!({"value": "L1\nL2"}), "\"L1\\nL2\""),
    ];
    for (command, response, expected) in cases {
        let (_, value) = answered(&stage, command, response.clone()).await;
        assert_eq!(value, expected, "{command} {response}");
    }
    let (mut request, _) = answered(&stage, "/input", json!({})).await;
    request.as_object_mut().unwrap().remove("id");
    assert_eq!(request, json!({"method": "input", "title": "T"}));
}

#[tokio::test]
async fn dialogs_end_by_themselves() {
    let stage = Stage::new(DIALOGS).await;
    assert_eq!(stage.command("/timeout").await.last().unwrap(), "false");
    assert_eq!(stage.command("/aborted").await, ["undefined"]);
    assert_eq!(stage.command("/abort-later").await, ["undefined"]);
}

#[tokio::test]
async fn dialogs_do_not_wait_for_a_disconnected_client() {
    let stage = Stage::new(DIALOGS).await;
    tokio::join!(stage.say("/editor"), async {
        stage.dialog().await;
        stage.extensions.dialogs().hang_up();
    });
    assert_eq!(stage.command("/confirm").await, ["false"]);
}

/// Returns the requests sent to the client, without ids.
fn requests(stage: &Stage) -> Vec<Value> {
    let lines = stage.lines.take().into_iter();
    let requests = lines.map(|mut line| {
        line["ui"].as_object_mut().unwrap().remove("id");
        line["ui"].take()
    });
    requests.collect()
}

#[tokio::test]
async fn shown_values_arrive_as_text() {
    let stage = Stage::new(
        r#"
        export default (pi) => pi.registerCommand("odd", { handler: async (_, { ui }) => {
          const loop = {}; loop.self = loop;
          ui.notify(42, null); ui.notify(new Error("no")); ui.notify({ a: [1] }); ui.notify(loop); ui.notify();
          ui.setStatus(7n, Symbol("s")); ui.setTitle(true); ui.setEditorText(["x"]);
          ui.setWidget("w", "text"); ui.setWidget("w", null); ui.setWidget("w", [null, 1, "l", loop], { placement: "left" });
          const soon = { timeout: "1" };
          await ui.select({ t: 1 }, ["a", 2, { b: 3 }], soon); await ui.select("T", "abc", soon);
          await ui.confirm("T", () => 1, soon); await ui.input("T", 5, { timeout: 1.5 });
        } });"#,
    )
    .await;
    stage.lines.take();
    stage.say("/odd").await;
    assert_eq!(
        requests(&stage),
        [
            json!({"method": "notify", "message": "42"}),
            json!({"method": "notify", "message": "Error: no"}),
            json!({"method": "notify", "message": "{\"a\":[1]}"}),
            json!({"method": "notify"}),
            json!({"method": "notify"}),
            json!({"method": "setStatus", "statusKey": "7"}),
            json!({"method": "setTitle", "title": "true"}),
            json!({"method": "set_editor_text", "text": "[\"x\"]"}),
            json!({"method": "setWidget", "widgetKey": "w", "widgetLines": ["null", "1", "l", ""]}),
            json!({"method": "select", "title": "{\"t\":1}", "options": ["a", "2", "{\"b\":3}"], "timeout": 1}),
            json!({"method": "select", "title": "T", "timeout": 1}),
            json!({"method": "confirm", "title": "T", "timeout": 1}),
            json!({"method": "input", "title": "T", "placeholder": "5", "timeout": 1.5}),
        ]
    );
}

#[tokio::test]
async fn messages_without_an_answer_are_sent_unchanged() {
    let stage = Stage::new(DIALOGS).await;
    stage.lines.take();
    stage.say("/fire").await;
    assert_eq!(
        requests(&stage),
        [
            json!({"method": "notify", "message": "warn", "notifyType": "warning"}),
            json!({"method": "setStatus", "statusKey": "k"}),
            json!({"method": "setWidget", "widgetKey": "w", "widgetLines": ["l"], "widgetPlacement": "belowEditor"}),
            json!({"method": "setTitle", "title": "t"}),
            json!({"method": "set_editor_text", "text": "p"}),
        ]
    );
    assert_eq!(stage.command("/keys").await, ["20"]);
    let painted: Value = serde_json::from_str(&stage.command("/theme").await[0]).unwrap();
    let few = json!([
        "\u{1b}[38;5;109mA\u{1b}[39m",
        "\u{1b}[48;5;17mB\u{1b}[49m",
        "\u{1b}[39mC\u{1b}[39m",
        "D"
    ]);
    let many = json!([
        "\u{1b}[38;2;138;190;183mA\u{1b}[39m",
        "\u{1b}[48;2;45;40;56mB\u{1b}[49m",
        "\u{1b}[39mC\u{1b}[39m",
        "D",
    ]);
    assert!(painted == few || painted == many, "{painted}");
    let values =
        r#"["",false,[],{"success":false,"error":"Theme switching not supported in RPC mode"}]"#;
    assert_eq!(stage.command("/values").await, [values]);
}

#[tokio::test]
async fn without_a_client_nothing_is_asked() {
    let source = r#"
      export default (pi) => pi.registerCommand("ask", { handler: async (_, ctx) => {
        const answers = [ctx.hasUI, await ctx.ui.select("T", ["a"]), await ctx.ui.confirm("T", "M")];
        pi.setSessionName(JSON.stringify(answers));
      } });"#;
    let files = [("extension.ts", source)];
    let stage = Stage::with(&files, Default::default(), |mut options| {
        options.has_ui = false;
        options.records = Arc::new(|record| panic!("{record}"));
        options
    })
    .await;
    stage.say("/ask").await;
    assert_eq!(stage.lines.take(), [json!({"name": "[false,null,false]"})]);
}
