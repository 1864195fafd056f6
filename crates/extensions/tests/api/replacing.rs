use std::path::PathBuf;

use pinion_agent::{Answer, Command, Hooks, Origin};
use serde_json::{Value, json};

use crate::stage::{Stage, notes};

const REPLACING: &str = r#"
  let count = 0;
  export default (pi) => {
    for (const name of ["session_start", "session_shutdown", "session_before_switch", "session_before_fork"]) {
      pi.on(name, (event, ctx) => ctx.ui.notify(`${name} ${event.reason ?? event.position} ${++count}`));
    }
    pi.events.on("ping", () => { count += 100; });
    let refuse = false;
    pi.on("session_before_switch", () => (refuse ? { cancel: true } : undefined));
    pi.registerCommand("refuse", { handler: () => { refuse = true; } });
    pi.registerCommand("count", { handler: (_, ctx) => { pi.events.emit("ping"); ctx.ui.notify(String(count)); } });
    pi.registerCommand("messages", { handler: (_, ctx) =>
      ctx.ui.notify(ctx.sessionManager.buildSessionContext().messages.map((m) => m.content[0].text).join()) });
    pi.registerCommand("fresh", { handler: async (_, ctx) => {
      const report = [];
      const outcome = await ctx.newSession({
        setup: async (sm) => { sm.appendMessage({ role: "user", content: [{ type: "text", text: "seed" }], timestamp: 1 }); },
        withSession: async (next) => {
          try { ctx.ui.notify("unreachable"); } catch (error) { report.push(error.message.slice(0, 70)); }
          try { pi.getSessionName(); } catch (error) { report.push(error.message.slice(0, 10)); }
          const extra = Object.keys(next).filter((key) => !["sendMessage", "sendUserMessage"].includes(key)).length;
          next.ui.notify(JSON.stringify([report, extra]));
          await next.sendMessage({ customType: "x", content: "said", display: true });
        },
      });
    } });
    pi.registerCommand("again", { handler: async (_, ctx) => {
      await ctx.reload();
      ctx.ui.notify("still here " + await ctx.ui.confirm("sure", "?", { timeout: 10 }));
    } });
    pi.registerCommand("nav", { handler: async (_, ctx) => {
      const first = ctx.sessionManager.getBranch().find((e) => e.type === "message");
      ctx.ui.notify(JSON.stringify(await ctx.navigateTree(first.id)));
      ctx.ui.notify(String(ctx.sessionManager.getBranch().filter((e) => e.type === "message").length));
    } });
    pi.registerCommand("fork", { handler: async (words, ctx) => {
      const entry = ctx.sessionManager.getBranch().find((e) => e.message?.role === words);
      const outcome = await ctx.fork(entry.id, { withSession: (next) => next.ui.notify("forked") });
    } });
  };"#;

fn new_session() -> Command {
    Command::NewSession {
        parent: None,
        prepare: None,
        origin: Origin::Client,
    }
}

#[tokio::test]
async fn another_session_gets_fresh_extensions() {
    let stage = Stage::new(REPLACING).await;
    assert_eq!(notes(&stage.lines.take()), ["session_start startup 1"]);
    let answer = stage.ask(new_session()).await.unwrap();
    assert!(matches!(answer, Answer::Cancelled(false)));
    assert_eq!(
        notes(&stage.lines.take()),
        [
            "session_before_switch new 2",
            "session_shutdown new 3",
            "session_start new 1",
            "session_start new 2",
        ]
    );
    assert_eq!(
        stage.command("/count").await,
        ["102"],
        "one listener on a new bus"
    );
    stage.say("/refuse").await;
    let answer = stage.ask(new_session()).await.unwrap();
    assert!(matches!(answer, Answer::Cancelled(true)));
}

#[tokio::test]
async fn a_command_prepares_a_session_and_its_old_context_is_stale() {
    let stage = Stage::new(REPLACING).await;
    let noted = stage.command("/fresh").await;
    let stale = "This extension ctx is stale after session replacement or reload. Do no";
    let report = json!([[stale, "This exten"], 20]).to_string();
    assert_eq!(noted[2..], ["session_start new 1".to_owned(), report]);
    assert_eq!(stage.command("/messages").await, ["seed,"]);
}

#[tokio::test]
async fn a_reload_keeps_the_session_the_bus_and_the_frame() {
    let stage = Stage::new(REPLACING).await;
    let noted = stage.command("/again").await;
    assert_eq!(
        noted[..2],
        ["session_shutdown reload 2", "session_start reload 1"]
    );
    assert_eq!(noted.last().unwrap(), "still here false");
    // The old listener counts for the old instance; the new one sees one ping.
    assert_eq!(stage.command("/count").await, ["101"]);
}

#[tokio::test]
async fn the_tree_can_be_walked_and_forked() {
    let mut stage = Stage::new(REPLACING).await;
    stage.live("one").await;
    stage.live("two").await;
    assert_eq!(stage.command("/fork user").await.last().unwrap(), "forked");
    let noted = stage.lines.take();
    assert!(noted.is_empty());
    stage.live("three").await;
    assert_eq!(stage.command("/nav").await, [r#"{"cancelled":false}"#, "0"]);
    stage.live("four").await;
    stage.lines.take();
    stage.say("/fork assistant").await;
    let lines = stage.lines.take();
    let failed = lines.iter().find(|line| line["error"].is_string());
    assert_eq!(failed.unwrap()["error"], "Invalid entry ID for forking");
}

#[tokio::test]
async fn handlers_that_may_refuse_run_before_the_entry_is_looked_up() {
    let source = r#"
      export default (pi) => {
        pi.on("session_before_fork", ({ entryId }, ctx) => ctx.ui.notify(`fork ${entryId}`));
        pi.registerCommand("fork", { handler: (words, ctx) => ctx.fork(words) });
      };"#;
    let stage = Stage::new(source).await;
    stage.lines.take();
    stage.say("/fork nowhere").await;
    let lines = stage.lines.take();
    assert_eq!(notes(&lines), ["fork nowhere"]);
    assert_eq!(lines[1]["error"], "Invalid entry ID for forking");
}

#[tokio::test]
async fn the_abandoned_branch_begins_after_the_target_entry() {
    let source = r#"
      export default (pi) => {
        pi.on("session_before_tree", ({ preparation }, ctx) => {
          const { targetId, commonAncestorId, entriesToSummarize } = preparation;
          ctx.ui.notify(`${targetId === commonAncestorId} ${entriesToSummarize.map((e) => e.message?.role)}`);
        });
        pi.registerCommand("back", { handler: (_, ctx) =>
          ctx.navigateTree(ctx.sessionManager.getEntries().find((e) => e.message?.role === "user").id) });
      };"#;
    let mut stage = Stage::new(source).await;
    stage.live("one").await;
    stage.live("two").await;
    assert_eq!(
        stage.command("/back").await,
        ["true assistant,user,assistant"]
    );
}

#[tokio::test]
async fn the_end_is_announced() {
    let stage = Stage::new(REPLACING).await;
    stage.lines.take();
    stage.extensions.shutdown().await;
    assert_eq!(notes(&stage.lines.take()), ["session_shutdown quit 2"]);
}

#[tokio::test]
async fn an_extension_that_no_longer_loads_is_absent_without_an_error() {
    let stage = Stage::new(REPLACING).await;
    let file: PathBuf = stage.path("extension.ts");
    std::fs::write(file, "export default () => { throw new Error('broken'); };").unwrap();
    stage.ask(new_session()).await.unwrap();
    assert!(stage.extensions.commands().is_empty());
    let lines = stage.lines.take();
    assert!(
        lines.iter().all(|line| line["error"] == Value::Null),
        "{lines:#?}"
    );
}
