//! A client that does not read: records of extensions are held back within limits, and losses are reported.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Map, Value};

use crate::stage::Stage;

const FLOODS: &str = r#"
  export default (pi) => {
    pi.registerCommand("flood", { handler: (_, ctx) => {
      for (let n = 0; n < 20000; n++) {
        ctx.ui.setStatus("a", `status ${n}`);
        ctx.ui.setWidget("w", [`widget ${n}`]);
        ctx.ui.notify(`notice ${n}`);
      }
      try { pi.sendMessage({ customType: "x", content: "never", display: true }); globalThis.refused = "none"; } catch (error) { globalThis.refused = error.message; }
    } });
    pi.registerCommand("asks", { handler: async (_, ctx) => {
      const asked = [];
      for (let n = 0; n < 3000; n++) asked.push(ctx.ui.confirm("t", "m", { timeout: 50 }).catch((error) => error.message));
      globalThis.answers = [...new Set(await Promise.all(asked))];
    } });
    pi.registerCommand("report", { handler: (_, ctx) => ctx.ui.notify(JSON.stringify([globalThis.refused, globalThis.answers])) });
  };"#;

#[tokio::test]
async fn a_client_that_does_not_read_gets_the_newest_and_a_count_of_the_rest() {
    let room = Arc::new(AtomicBool::new(false));
    let check = Arc::clone(&room);
    let stage = Stage::with(&[("extension.ts", FLOODS)], Map::new(), |mut options| {
        options.has_room = Arc::new(move || check.load(Ordering::Relaxed));
        options
    })
    .await;
    stage.say("/flood").await;
    stage.say("/asks").await;
    let before = stage.lines.take();
    assert!(before.iter().all(|line| line["ui"].is_null()), "{before:?}");

    room.store(true, Ordering::Relaxed);
    let mut seen: Vec<Value> = Vec::new();
    let told = |seen: &[Value]| {
        let dropped = |line: &Value| {
            let message = line["ui"]["message"].as_str();
            message.is_some_and(|message| message.contains("were dropped"))
        };
        seen.iter().any(dropped)
    };
    for _ in 0..600 {
        seen.extend(stage.lines.take());
        if told(&seen) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(told(&seen));
    let of = |method: &str| {
        let lines = seen.iter().map(|line| &line["ui"]);
        lines
            .filter(|ui| ui["method"] == method)
            .collect::<Vec<_>>()
    };
    assert_eq!(of("setStatus").len(), 1);
    assert_eq!(of("setStatus")[0]["statusText"], "status 19999");
    assert_eq!(of("setWidget").len(), 1);
    assert_eq!(of("setWidget")[0]["widgetLines"][0], "widget 19999");
    let notices = of("notify");
    assert!(notices.len() <= 1000, "{}", notices.len());
    assert_eq!(notices[0]["message"], "notice 0");

    let report = stage.command("/report").await;
    assert!(
        report[0].contains("The client does not read: the message was not sent.")
            && report[0].contains("it cannot be asked"),
        "{report:?}"
    );
}
