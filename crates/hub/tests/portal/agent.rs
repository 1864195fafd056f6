//! The page of the agent, with a clip in place of the real agent.

use pinion_testkit::browser::Key;

use crate::stage::{NOT_SIGNED_IN, Stage, picture, probe, visit};

#[test]
#[ignore = "needs Chromium: cargo xtask test --all"]
fn the_agent_answers_takes_further_messages_and_stops() {
    let stage = Stage::new();
    let page = stage.signed_in();
    visit(&page, "agent", ".prompt");
    page.wait_for_text("main", "cannot talk to an agent");
    stage.hub.install("agent", probe().path());
    page.wait_for("!document.querySelector('main').innerText.includes('cannot talk to an agent')");

    page.fill(".prompt textarea", "list my entries");
    page.press(Key::Enter);
    page.wait_for_text(".turn.user", "list my entries");
    page.wait_for_text("main", "Done in");
    page.wait_for_text(".turn.agent", "In topic-1 you said: list my entries");
    page.wait_for_text(".turn.tool[data-state=done]", "todo_list");
    page.wait_for_text(".turn.agent .block", "code <img src=x onerror=");
    page.wait_for_text(".event-note", "1,200 tokens read, 7 written, $0.0125");
    page.click(".turn.tool summary");
    page.wait_for_text(".turn.tool", "nothing to do");
    page.wait_for_text(".turn.tool[data-state=failed]", "rm");
    picture(&page, "agent");

    // A running run can receive a message.
    page.fill(".prompt textarea", "listen");
    page.press(Key::Enter);
    page.wait_for_text(".prompt", "Steer");
    page.fill(".prompt textarea", "go on then");
    page.press(Key::Enter);
    page.wait_for_text(".turn.user", "go on then");
    page.wait_for_text(".turn.agent", "listen");
    page.wait_for_text(".prompt", "Send");

    // A failure is shown once.
    page.fill(".prompt textarea", "fail");
    page.press(Key::Enter);
    page.wait_for_text("main", "Failed in");
    assert_eq!(page.count(".timeline .problem"), 1);
    let before = page.count(".turn.agent");

    // The next message continues the same topic, and a run can be stopped.
    page.fill(".prompt textarea", "wait");
    page.click_text("Send");
    page.wait_for(&format!(
        "document.querySelectorAll('.turn.agent').length === {}",
        before + 1
    ));
    page.wait_for_text(
        ".turn.agent:last-of-type, .turn.agent",
        "In topic-1 you said:",
    );
    // The run continues while other pages are open.
    visit(&page, "clips", ".clip-row");
    visit(&page, "agent", ".turn.user");
    page.click_text("Stop");
    page.wait_for_text(".event-note", "You stopped the run.");
    page.wait_for("!document.querySelector('.prompt button[type=submit]').disabled");
    page.click_text("New conversation");
    page.wait_for("!document.querySelector('.turn')");
    stage.assert_clean(&page, &[NOT_SIGNED_IN]);
}
