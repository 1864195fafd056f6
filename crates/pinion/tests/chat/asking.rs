//! Questions to the user: from extensions, and from the gate before tool calls.

use serde_json::json;

use super::{Room, says};

const GREETER: &str = r#"
export default function (pi) {
  pi.registerCommand("greet", {
    description: "Greet somebody",
    handler: async (args, ctx) => {
      const name = await ctx.ui.input("Who?", "a name");
      const how = await ctx.ui.select("How?", ["kindly", "loudly"]);
      const sure = await ctx.ui.confirm("Sure?", "It cannot be undone.");
      ctx.ui.notify(`${name} ${how} ${sure}`, "info");
      ctx.ui.setStatus("greeter", "1 greeted");
      ctx.ui.setWidget("greeter", ["a widget of the greeter"]);
      ctx.ui.setTitle("greetings");
      console.log("printed by the greeter");
    },
  });
}
"#;

#[test]
#[ignore = "needs tmux: cargo xtask test --all"]
fn an_extension_asks_and_shows() {
    let room = Room::new(json!({}));
    room.sandbox.add_files(&json!({"greet.ts": GREETER}));
    let chat = room.chat("-e greet.ts");
    chat.say("/greet");
    chat.wait_for("Who?");
    pause();
    chat.say("Ada");
    chat.wait_for("How?");
    pause();
    chat.press(&["Down", "Enter"]);
    chat.wait_for("It cannot be undone.");
    pause();
    chat.press(&["y"]);
    let screen = chat.wait_for("Ada loudly true");
    assert!(screen.contains("1 greeted"), "{screen}");
    assert!(screen.contains("a widget of the greeter"), "{screen}");
    chat.wait_for("printed by the greeter");
    assert_eq!(chat.ask("#{pane_title}"), "greetings");
}

#[test]
#[ignore = "needs tmux: cargo xtask test --all"]
fn a_tool_call_waits_for_permission() {
    let room = Room::new(json!({"turns": [
        {"steps": [{"tool": "bash", "args": {"command": "touch made"}}]},
        says("It is made."),
        {"steps": [{"tool": "bash", "args": {"command": "rm made"}}]},
        says("It stays."),
    ]}));
    let chat = room.chat("--approve ask");
    chat.say("make it");
    chat.wait_for("Allow once");
    pause();
    chat.press(&["Enter"]);
    chat.wait_for("It is made.");
    assert!(room.sandbox.work().join("made").exists());
    chat.say("take it away");
    chat.wait_for("Allow once");
    pause();
    chat.press(&["Escape"]);
    chat.wait_for("It stays.");
    assert!(room.sandbox.work().join("made").exists());
}

/// Waits until a question accepts keys: it ignores those of its first moments, which may have been meant for something
/// else.
fn pause() {
    // The question measures this time itself.
    std::thread::sleep(std::time::Duration::from_millis(400));
}
