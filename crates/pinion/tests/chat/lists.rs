//! Lists to choose from: sessions, models, the tree; and the commands of the chat.

use serde_json::json;

use super::{Room, says};

#[test]
#[ignore = "needs tmux: cargo xtask test --all"]
fn sessions_are_picked_and_gone_on_with() {
    let room =
        Room::new(json!({"turns": [says("About apples."), says("About pears."), says("More.")]}));
    for (question, answer) in [
        ("tell me of apples", "About apples."),
        ("tell me of pears", "About pears."),
    ] {
        let chat = room.chat("");
        chat.say(question);
        chat.wait_for(answer);
        chat.wait_for("Ctrl-G help");
        chat.press(&["C-d"]);
        chat.wait_for("ended with 0");
    }
    room.start("--resume");
    room.terminal.wait_for("tell me of pears");
    room.terminal.write("apples");
    room.terminal.wait_for("1 of 2");
    room.terminal.press(&["Enter"]);
    let screen = room.terminal.wait_for("About apples.");
    assert!(!screen.contains("pears"), "{screen}");
    room.terminal.say("/resume");
    room.terminal.wait_for("tell me of pears");
    room.terminal.write("pears");
    room.terminal.wait_for("1 of 2");
    room.terminal.press(&["Enter"]);
    room.terminal.wait_for("About pears.");
    room.terminal.say("and more");
    room.terminal.wait_for("More.");
    let request = room.server.requests()[2].to_string();
    assert!(
        request.contains("tell me of pears") && !request.contains("apples"),
        "{request}"
    );
}

#[test]
#[ignore = "needs tmux: cargo xtask test --all"]
fn resume_needs_somebody_who_picks() {
    let room = Room::new(json!({}));
    room.start("--resume </dev/null");
    room.terminal
        .wait_for("--resume needs a terminal to pick from");
    room.terminal.wait_for("ended with 2");
    room.start("--resume");
    room.terminal.wait_until_asked("#{alternate_on}", "1");
    room.terminal.press(&["Escape"]);
    room.terminal.wait_for("ended with 0");
}

#[test]
#[ignore = "needs tmux: cargo xtask test --all"]
fn another_model_is_chosen() {
    let room = Room::new(json!({}));
    let chat = room.chat("--model offline/demo");
    chat.press(&["C-l"]);
    chat.wait_for("mock-1");
    chat.write("mock-1");
    chat.wait_without("offline/");
    chat.press(&["Enter"]);
    chat.wait_until("the model in the status line", |screen| {
        screen.lines().last().unwrap_or_default().contains("mock-1")
    });
    chat.say("/model offline/demo");
    chat.wait_until("the other one again", |screen| {
        screen.lines().last().unwrap_or_default().contains("demo")
    });
}

#[test]
#[ignore = "needs tmux: cargo xtask test --all"]
fn the_tree_leads_back_and_to_a_fork() {
    let room = Room::new(
        json!({"turns": [says("First answer."), says("Second answer."), says("Another answer.")]}),
    );
    let chat = room.chat("");
    chat.say("first question");
    chat.wait_for("First answer.");
    chat.say("second question");
    chat.wait_for("Second answer.");
    chat.wait_for("Ctrl-G help");
    chat.say("/tree");
    chat.wait_for("◂ here");
    // From where the conversation stands, one up is the second question.
    chat.press(&["Up", "Enter"]);
    chat.wait_for("> second question");
    chat.wait_without("Second answer.");
    chat.press(&["C-u"]);
    chat.say("other question");
    chat.wait_for("Another answer.");
    chat.wait_for("Ctrl-G help");
    let request = room.server.requests()[2].to_string();
    assert!(
        request.contains("First answer.") && !request.contains("Second answer."),
        "{request}"
    );
    chat.say("/tree");
    chat.wait_for("◂ here");
    chat.press(&["Up", "f"]);
    chat.wait_for("> other question");
    let screen = chat.wait_without("Another answer.");
    assert!(screen.contains("First answer."), "{screen}");
}

#[test]
#[ignore = "needs tmux: cargo xtask test --all"]
fn commands_of_the_chat() {
    let room = Room::new(json!({"turns": [
        says("A long story."),
        {"match": {"no_tools": true}, "sticky": true, "steps": [{"text": "The summary."}]},
    ]}));
    let chat = room.chat("");
    chat.say("tell me a story");
    chat.wait_for("A long story.");
    chat.wait_for("Ctrl-G help");
    chat.say("/name the story");
    chat.wait_for(" the story ");
    chat.say("/export page.html");
    chat.wait_for("Written to ");
    let page = std::fs::read_to_string(room.sandbox.work().join("page.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>"), "{}", &page[..100]);
    chat.say("/session");
    chat.wait_for("Statistics");
    chat.press(&["Escape"]);
    chat.wait_without("Statistics");
    chat.press(&["C-g"]);
    chat.wait_for("Talking");
    chat.press(&["Escape"]);
    chat.wait_without("Talking");
    chat.say("/new");
    chat.wait_without("A long story.");
    chat.say("/quit");
    chat.wait_for("ended with 0");
}

#[test]
#[ignore = "needs tmux: cargo xtask test --all"]
fn a_conversation_is_summarised() {
    let story = "word ".repeat(30_000);
    let summary = json!({"match": {"contains": "keep the words", "in": "any"}, "sticky": true,
        "steps": [{"text": "A summary of the story."}]});
    let room = Room::new(json!({"turns": [
        says("Gladly."), says(&story), says("Short."), summary,
    ]}));
    let chat = room.chat("");
    for (question, answer) in [
        ("will you tell me a story?", "Gladly."),
        ("please do", "word word"),
        ("and a short one", "Short."),
    ] {
        chat.say(question);
        chat.wait_until(answer, |screen| {
            screen.contains(answer) && screen.contains("Ctrl-G help")
        });
    }
    chat.say("/compact keep the words");
    chat.wait_for("Summary of the earlier conversation");
    chat.press(&["C-o"]);
    chat.wait_for("A summary of the story.");
}
