//! Talking: prompts, tools, steering, follow-ups, stopping, the shell.

use serde_json::json;

use super::{Room, says};

#[test]
#[ignore = "needs tmux: cargo xtask test --all"]
fn a_conversation_with_the_offline_model() {
    let room = Room::new(json!({}));
    room.sandbox
        .add_files(&json!({"notes.txt": "remember the milk\n"}));
    let chat = room.chat("--model offline/demo");
    chat.say("read notes.txt");
    let screen = chat.wait_until("the answer", |screen| {
        screen.contains("remember the milk") && screen.contains("Ctrl-G help")
    });
    assert!(screen.contains("✓ read notes.txt"), "{screen}");
    chat.press(&["C-d"]);
    let screen = chat.wait_for("ended with 0");
    assert!(
        screen.contains("To go on with this session: pinion --session "),
        "{screen}"
    );
}

#[test]
#[ignore = "needs tmux: cargo xtask test --all"]
fn markdown_thinking_and_a_tool_with_live_output() {
    let room = Room::new(json!({"turns": [
        {"steps": [{"thinking": "First I look at the clock."},
            {"tool": "bash", "args": {"command": "echo one; while [ ! -e go ]; do sleep 0.05; done; echo two"}}]},
        {"steps": [{"text": "# Done\n\nIt is **over**:\n\n```rust\nfn main() {}\n```\n"}]},
    ]}));
    let chat = room.chat("--thinking low");
    chat.say("begin");
    chat.wait_for("one");
    let screen = chat.wait_for("Esc stops");
    assert!(!screen.contains("two\n"), "{screen}");
    room.sandbox.add_files(&json!({"go": ""}));
    let screen = chat.wait_for("fn main() {}");
    assert!(screen.contains("Done"), "{screen}");
    assert!(
        screen.contains("It is over:"),
        "marks are not shown: {screen}"
    );
    assert!(!screen.contains("```"), "{screen}");
}

#[test]
#[ignore = "needs tmux: cargo xtask test --all"]
fn steering_and_what_is_said_afterwards() {
    let room = Room::new(json!({"turns": [
        {"steps": [{"text": ["Beginning", {"gate": "first"}, " of it."]},
            {"tool": "bash", "args": {"command": "true"}}]},
        says("I was steered."),
        says("And this is the last."),
    ]}));
    let chat = room.chat("");
    chat.say("begin");
    chat.wait_for("Beginning");
    chat.say("go left");
    chat.wait_for("steer: go left");
    chat.write("and then stop");
    chat.press(&["M-Enter"]);
    chat.wait_for("then: and then stop");
    room.server.release("first");
    chat.wait_for("And this is the last.");
    let screen = chat.wait_for("Ctrl-G help");
    assert!(!screen.contains("steer: "), "{screen}");
    assert!(!screen.contains("then: "), "{screen}");
    let requests = room.server.requests();
    assert!(requests[1].to_string().contains("go left"));
    assert!(!requests[1].to_string().contains("and then stop"));
    assert!(requests[2].to_string().contains("and then stop"));
}

#[test]
#[ignore = "needs tmux: cargo xtask test --all"]
fn what_waits_can_be_taken_back() {
    let room = Room::new(json!({"turns": [
        {"steps": [{"text": ["Beginning", {"gate": "first"}, " and end."]}]},
    ]}));
    let chat = room.chat("");
    chat.say("begin");
    chat.wait_for("Beginning");
    chat.say("go left");
    chat.wait_for("steer: go left");
    chat.press(&["M-Up"]);
    chat.wait_for("> go left");
    chat.wait_without("steer: ");
    room.server.release("first");
    chat.wait_for("and end.");
    chat.wait_for("Ctrl-G help");
    assert_eq!(room.server.request_count(), 1);
}

#[test]
#[ignore = "needs tmux: cargo xtask test --all"]
fn escape_stops_and_the_chat_goes_on() {
    let room = Room::new(json!({"turns": [
        {"steps": [{"text": ["Never ending", {"stall": true}]}]},
        says("Here again."),
    ]}));
    let chat = room.chat("");
    chat.say("begin");
    chat.wait_for("Never ending");
    chat.press(&["Escape"]);
    let screen = chat.wait_for("Ctrl-G help");
    assert!(screen.contains("Never ending"), "{screen}");
    chat.say("again");
    chat.wait_for("Here again.");
}

#[test]
#[ignore = "needs tmux: cargo xtask test --all"]
fn shell_commands_of_the_user() {
    let room = Room::new(json!({"turns": [says("I see.")]}));
    let chat = room.chat("");
    chat.say("!echo for the $((40 + 2)) model");
    chat.wait_for("for the 42 model");
    chat.say("!!echo for $((40 + 3)) me alone");
    chat.wait_for("for 43 me alone");
    chat.say("well?");
    chat.wait_for("I see.");
    let request = room.server.requests()[0].to_string();
    assert!(request.contains("for the 42 model"), "{request}");
    assert!(!request.contains("me alone"), "{request}");
    chat.say("!sleep 1000");
    chat.wait_for("! sleep 1000");
    chat.press(&["Escape"]);
    chat.wait_for("! sleep 1000 · stopped");
}

#[test]
#[ignore = "needs tmux: cargo xtask test --all"]
fn several_lines_history_and_large_pastes() {
    let room = Room::new(json!({"turns": [says("One."), says("Two."), says("Three.")]}));
    let chat = room.chat("");
    chat.write("first line");
    chat.press(&["C-j"]);
    chat.write("second line");
    chat.press(&["Enter"]);
    chat.wait_for("One.");
    assert!(
        room.server.requests()[0]
            .to_string()
            .contains("first line\\nsecond line"),
        "{}",
        room.server.requests()[0]
    );
    chat.press(&["Up"]);
    let twice = |screen: &str| screen.matches("> first line").count() == 2;
    chat.wait_until("what was said, to be said again", twice);
    chat.press(&["C-c"]);
    chat.wait_until("an empty editor", |screen| !twice(screen));
    let pasted: String = (0..500)
        .map(|number| format!("pasted line {number}\n"))
        .collect();
    chat.paste(&pasted);
    chat.wait_for("[paste #1");
    chat.press(&["Enter"]);
    chat.wait_for("Two.");
    let request = room.server.requests()[1].to_string();
    assert!(request.contains("pasted line 0\\n") && request.contains("pasted line 499"));
}

#[test]
#[ignore = "needs tmux: cargo xtask test --all"]
fn commands_and_files_complete_themselves() {
    let room = Room::new(json!({"turns": [says("One.")]}));
    room.sandbox
        .add_files(&json!({"src/lantern.rs": "", "src/main.rs": ""}));
    room.sandbox.add_agent_files(&json!({
        "prompts/review.md": "---\ndescription: Look at a change\n---\nPlease review $1.\n",
    }));
    let chat = room.chat("");
    chat.write("/rev");
    chat.wait_for("Look at a change");
    chat.press(&["Tab"]);
    chat.wait_for("> /review");
    chat.write("it ");
    chat.write("@lant");
    chat.wait_for("src/lantern.rs");
    chat.press(&["Tab"]);
    chat.wait_for("@src/lantern.rs");
    chat.press(&["Enter"]);
    chat.wait_for("One.");
    let request = room.server.requests()[0].to_string();
    assert!(request.contains("Please review it."), "{request}");
}

#[test]
#[ignore = "needs tmux: cargo xtask test --all"]
fn errors_say_what_happened_and_the_words_are_kept() {
    let room = Room::new(json!({"turns": [
        {"http": {"status": 401, "body": {"error": {"message": "the key was not accepted"}}}},
    ]}));
    let chat = room.chat("");
    chat.say("hello");
    chat.wait_for("401");
    chat.say("/thinking enormous");
    chat.wait_for("Unknown thinking level \"enormous\"");
}

#[test]
#[ignore = "needs tmux: cargo xtask test --all"]
fn messages_on_the_command_line_are_said_one_after_the_other() {
    let room = Room::new(json!({"turns": [says("One."), says("Two.")]}));
    room.sandbox
        .add_files(&json!({"facts.txt": "grass is green\n"}));
    room.start("@facts.txt 'what is green?' 'are you sure?'");
    room.terminal.wait_for("Two.");
    let requests = room.server.requests();
    assert!(requests[0].to_string().contains("grass is green"));
    assert!(!requests[0].to_string().contains("are you sure"));
    assert!(requests[1].to_string().contains("are you sure"));
}

#[test]
#[ignore = "needs tmux: cargo xtask test --all"]
fn answers_and_their_code_are_copied() {
    let answer = "Use *this*:\n\n```sh\nls -la\n```\n\nThat is all.";
    let room = Room::new(json!({"turns": [says(answer)]}));
    room.terminal.set_option("set-clipboard", "on");
    let chat = room.chat("");
    chat.say("how?");
    chat.wait_for("That is all.");
    chat.wait_for("Ctrl-G help");
    chat.say("/copy");
    chat.wait_for("Copied.");
    assert_eq!(chat.clipboard(), answer);
    chat.press(&["M-k"]);
    chat.wait_until("the code", |_| chat.clipboard().trim_end() == "ls -la");
}
