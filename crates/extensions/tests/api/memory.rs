//! Extensions that run out of memory are loaded again, and a guarded tool never runs unguarded in between.

use std::time::Duration;

use serde_json::Map;

use crate::stage::Stage;

const GROWING: &str = r#"
  export default (pi) => {
    pi.on("tool_call", (e) => (e.toolName === "probe" ? { block: true, reason: "guarded" } : undefined));
    pi.registerTool({ name: "probe", description: "p", parameters: {}, async execute() { return { content: [{ type: "text", text: "opened" }] }; } });
    pi.registerCommand("hello", { handler: (_, ctx) => ctx.ui.notify("hello") });
    pi.registerCommand("grow", { handler: () => {
      const kept = (globalThis.kept = []);
      const grow = () => { kept.push(new Array(1000).fill(0)); return Promise.resolve().then(grow); };
      return grow();
    } });
  };"#;

#[tokio::test]
async fn extensions_without_memory_answer_and_are_loaded_again() {
    let mut stage = Stage::with(&[("extension.ts", GROWING)], Map::new(), |mut options| {
        options.script.memory_limit = Some(48 << 20);
        options
    })
    .await;
    let limit = Duration::from_secs(60);
    assert_eq!(stage.command("/hello").await, ["hello"]);
    tokio::time::timeout(limit, stage.command("/grow"))
        .await
        .unwrap();
    // In either order, the call is refused with the reason or guarded again.
    let lines = tokio::time::timeout(limit, stage.live("CALL probe {}"));
    let lines = lines.await.unwrap();
    let ended = lines
        .iter()
        .find(|line| line["tool_end"].is_string())
        .unwrap();
    assert_eq!(ended["isError"], true, "{ended}");
    let reason = ended["content"][0]["text"].as_str().unwrap();
    assert!(reason == "guarded" || reason.contains("48 MB"), "{ended}");
    for _ in 0..600 {
        if stage.command("/hello").await == ["hello"] {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the extensions were not loaded again");
}
