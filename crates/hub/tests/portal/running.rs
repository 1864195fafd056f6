//! Finding clips and running their commands.

use std::fs;

use pinion_testkit::browser::Key;
use serde_json::{Value, json};

use crate::stage::{
    NOT_SIGNED_IN, Stage, control, open_command, picture, run_to_end, shown_json, state, visit,
};

#[test]
#[ignore = "needs Chromium: cargo xtask test --all"]
fn clips_are_listed_and_searched() {
    let stage = Stage::new();
    let page = stage.signed_in();
    page.wait_for("document.querySelectorAll('.clip-row').length === 2");
    let row = page.text(".clip-row[data-alias=probe]");
    for part in [
        "probe",
        "local/probe",
        "v0.3.0",
        "13 commands",
        "Open web UI",
    ] {
        assert!(row.contains(part), "{part} in {row}");
    }
    picture(&page, "clips");
    page.press(Key::Slash);
    page.type_text("forever");
    page.wait_for("document.querySelectorAll('.clip-row').length === 1");
    assert!(page.text("main").contains("1 of 2 clips"));
    page.press(Key::Escape);
    page.wait_for("document.querySelectorAll('.clip-row').length === 2");
    page.type_text("nothing like it");
    page.wait_for_text(".groups", "No clip matches.");
    page.press(Key::Escape);
    page.type_text("bash");
    page.wait_for("document.querySelectorAll('.clip-row').length === 1");
    page.press(Key::Enter);
    page.wait_for_text("h1", "shell");

    // Added and removed clips appear without loading the page again.
    visit(&page, "clips", ".clip-row");
    page.press(Key::Slash);
    page.press(Key::Escape);
    let another = crate::stage::probe();
    stage.hub.install("another", another.path());
    page.wait_for_element(".clip-row[data-alias=another]");
    stage.hub.call("RemoveClip", r#"{"clipName":"another"}"#);
    page.wait_for("!document.querySelector('.clip-row[data-alias=another]')");

    // The same session opens a clip's own page.
    page.open(&format!("http://{}/clips/probe/", stage.hub.address));
    page.wait_for_text("h1", "The probe's own page");
    stage.assert_clean(&page, &[NOT_SIGNED_IN]);
}

#[test]
#[ignore = "needs Chromium: cargo xtask test --all"]
fn a_form_is_filled_and_the_answer_is_shown() {
    let stage = Stage::new();
    let page = stage.signed_in();
    page.click_text("probe");
    page.wait_for_element(".command");
    picture(&page, "clip");
    page.click("a[href='#/clip/probe/run/greet']");
    page.wait_for_element(".run-form");
    // A default makes a field optional even if the schema requires it, and is filled in.
    assert_eq!(
        page.evaluate(&format!(
            "document.querySelector('{}').value",
            control(&page, "times")
        )),
        json!("1")
    );
    page.fill(&control(&page, "name"), "Ada");
    page.fill(&control(&page, "times"), "3");
    page.choose(&control(&page, "loud"), "true");
    assert_eq!(run_to_end(&page), "done");
    assert_eq!(page.text(".output .block"), "Hello, Hello, Hello ADA");
    picture(&page, "form-greet");

    page.fill(&control(&page, "times"), "many");
    page.click(".run-form button[type=submit]");
    page.wait_for_text(".field-error", "times is not a whole number");
    assert_eq!(
        page.evaluate("document.activeElement.getAttribute('aria-invalid')"),
        json!("true")
    );

    open_command(&page, "shell", "hello");
    assert_eq!(run_to_end(&page), "done");
    assert_eq!(page.text(".output .block"), "hello from bash");
    stage.assert_clean(&page, &[NOT_SIGNED_IN]);
}

#[test]
#[ignore = "needs Chromium: cargo xtask test --all"]
fn every_kind_of_field_is_sent_as_its_type() {
    let stage = Stage::new();
    let page = stage.signed_in();
    open_command(&page, "probe", "echo");
    picture(&page, "form-echo");
    page.click(".run-form button[type=submit]");
    page.wait_for_text(".field-error", "count needs a number");
    page.fill(&control(&page, "count"), "9007199254740993");
    assert_eq!(run_to_end(&page), "done");
    // Only filled and required fields are sent; a number too large for a double is not rounded.
    assert_eq!(
        page.text(".output .block").replace([' ', '\n'], ""),
        r#"{"text":"","count":9007199254740993,"urgent":false}"#
    );

    page.fill(&control(&page, "text"), "ä \"quoted\" \u{1F600}");
    page.fill(&control(&page, "count"), "-7");
    page.fill(&control(&page, "ratio"), "0.25");
    page.choose(&control(&page, "colour"), "green");
    page.evaluate(&format!(
        "document.querySelector('{}').value = '2026-02-28'",
        control(&page, "day")
    ));
    page.click(&control(&page, "urgent"));
    page.click_text("Add tags entry");
    page.type_text("one");
    page.click_text("Add tags entry");
    page.type_text("two");
    page.fill(&control(&page, "name"), "Grace");
    page.fill(&control(&page, "age"), "36");
    page.fill(&control(&page, "rest"), r#"{"free": [null, 1.5]}"#);
    assert_eq!(run_to_end(&page), "done");
    let expected = json!({
        "text": "ä \"quoted\" \u{1F600}", "count": -7, "ratio": 0.25, "colour": "green", "day": "2026-02-28", "urgent": true,
        "tags": ["one", "two"], "owner": {"name": "Grace", "age": 36}, "rest": {"free": [null, 1.5]}
    });
    assert_eq!(shown_json(&page), expected);
    picture(&page, "form-echo-result");

    // The same value as JSON, and back, with a member that the schema does not have.
    page.click_text("Edit as JSON");
    let written = page.evaluate("document.querySelector('.run-form textarea').value");
    let mut value: Value = serde_json::from_str(written.as_str().unwrap()).unwrap();
    assert_eq!(value, expected);
    value["unknown"] = json!("kept");
    value["count"] = json!(8);
    page.fill(".run-form textarea", &value.to_string());
    page.click_text("Back to the form");
    assert_eq!(
        page.evaluate(&format!(
            "document.querySelector('{}').value",
            control(&page, "count")
        )),
        json!("8")
    );
    assert_eq!(run_to_end(&page), "done");
    assert_eq!(shown_json(&page), value);

    page.click_text("Edit as JSON");
    page.fill(".run-form textarea", "{not json");
    page.click(".run-form button[type=submit]");
    page.wait_for_text(".field-error", "is not JSON");
    stage.assert_clean(&page, &[NOT_SIGNED_IN]);
}

#[test]
#[ignore = "needs Chromium: cargo xtask test --all"]
fn parts_are_shown_as_they_come_in_order() {
    let stage = Stage::new();
    let page = stage.signed_in();
    open_command(&page, "probe", "steps");
    page.click(".run-form button[type=submit]");
    let steps = ["step 1\n", "step 1\nstep 2\n", "step 1\nstep 2\nstep 3\n"];
    for (number, text) in steps.into_iter().enumerate() {
        page.wait_for(&format!(
            "document.querySelector('.output .block')?.textContent === {}",
            json!(text)
        ));
        assert_eq!(state(&page), "running");
        if number == 1 {
            picture(&page, "stream");
        }
        // The clip continues when it sees this: nothing later can be on the page yet.
        fs::write(stage.data("probe").join(format!("go-{}", number + 1)), "").unwrap();
    }
    page.wait_for("document.querySelector('.results').dataset.state === 'done'");
    assert!(page.text(".run-status").contains("3 parts"));
    assert!(!page.text(".run-time").is_empty());
    stage.assert_clean(&page, &[NOT_SIGNED_IN]);
}

#[test]
#[ignore = "needs Chromium: cargo xtask test --all"]
fn a_great_many_parts_do_not_fill_the_page() {
    let stage = Stage::new();
    let page = stage.signed_in();
    open_command(&page, "probe", "many");
    assert_eq!(run_to_end(&page), "done");
    assert!(page.text(".run-status").contains("1,500 parts"));
    assert!(page.count(".output > *") <= 401);
    let last = "[...document.querySelectorAll('.output .block')].at(-1).textContent";
    assert_eq!(
        page.evaluate(&format!("JSON.parse({last}).number")),
        json!(1500)
    );
    stage.assert_clean(&page, &[NOT_SIGNED_IN]);
}

#[test]
#[ignore = "needs Chromium: cargo xtask test --all"]
fn a_call_is_cancelled_down_to_the_clip() {
    let stage = Stage::new();
    let page = stage.signed_in();
    open_command(&page, "probe", "forever");
    page.click(".run-form button[type=submit]");
    page.wait_for("document.querySelectorAll('.output .part').length > 3");
    page.click_text("Cancel");
    page.wait_for("document.querySelector('.results').dataset.state === 'cancelled'");
    let parts = page.count(".output .part");
    visit(&page, "clip/probe/logs", ".log-line");
    page.wait_for_text(".log-line", "forever was cancelled");
    assert!(parts > 3);

    // Leaving the page cancels the call too.
    open_command(&page, "probe", "forever");
    page.click(".run-form button[type=submit]");
    page.wait_for_element(".output .part");
    visit(&page, "clip/probe/logs", ".log-line");
    page.wait_for("[...document.querySelectorAll('.log-line')].filter((line) => line.innerText.includes('forever was cancelled')).length === 2");
    stage.assert_clean(&page, &[NOT_SIGNED_IN]);
}

#[test]
#[ignore = "needs Chromium: cargo xtask test --all"]
fn answers_of_all_kinds_are_shown_and_markup_stays_text() {
    let stage = Stage::new();
    let page = stage.signed_in();
    open_command(&page, "probe", "evil");
    assert_eq!(run_to_end(&page), "done");
    assert!(
        page.text(".output .block")
            .starts_with("<img src=x onerror=")
    );
    page.choose(&control(&page, "as"), "json");
    assert_eq!(run_to_end(&page), "done");
    assert!(
        page.text(".output .block")
            .contains("<script>document.title='owned'</script>")
    );

    open_command(&page, "probe", "fail");
    assert_eq!(run_to_end(&page), "failed");
    let failure = page.text(".output .problem");
    assert!(
        failure.contains("failed_precondition") && failure.contains("the door is <img"),
        "{failure}"
    );
    picture(&page, "failed");

    open_command(&page, "probe", "picture");
    assert_eq!(run_to_end(&page), "done");
    page.wait_for("document.querySelector('.output img')?.naturalWidth === 1");

    open_command(&page, "probe", "long");
    assert_eq!(run_to_end(&page), "done");
    assert_eq!(
        page.evaluate("document.querySelector('.output .block').textContent.length"),
        json!(1501)
    );
    page.click(".block-actions [aria-expanded=false]");
    assert_eq!(shown_json(&page).as_array().unwrap().len(), 100);
    picture(&page, "long");

    open_command(&page, "probe", "keep");
    assert!(
        page.text(".run-form")
            .contains("{ name: string; text: string }")
    );
    picture(&page, "opaque");
    for route in [
        "clips",
        "clip/probe",
        "clip/probe/manifest",
        "clip/probe/bindings",
    ] {
        visit(&page, route, "h1");
        page.wait_for_text("main", "<script>document.title='owned'</script>");
    }
    picture(&page, "manifest");
    assert_eq!(page.count("main script, main b, main u, main i"), 0);
    assert_eq!(page.count("img:not([src^='/portal/'])"), 0);
    stage.assert_clean(&page, &[NOT_SIGNED_IN]);
}

#[test]
#[ignore = "needs Chromium: cargo xtask test --all"]
fn a_command_is_run_with_the_keyboard_alone() {
    let stage = Stage::new();
    let page = stage.signed_in();
    page.press(Key::Slash);
    page.type_text("probe");
    page.wait_for("document.querySelectorAll('.clip-row').length === 1");
    page.press(Key::Enter);
    page.wait_for_element(".command");
    tab_to(
        &page,
        "document.activeElement.getAttribute('href') === '#/clip/probe/run/greet'",
    );
    page.press(Key::Enter);
    page.wait_for_element(".run-form");
    let name = control(&page, "name");
    tab_to(&page, &format!("document.activeElement.matches('{name}')"));
    // The focused element is visibly marked.
    assert_ne!(
        page.evaluate("getComputedStyle(document.activeElement).outlineStyle"),
        json!("none")
    );
    page.type_text("Lin");
    page.press(Key::Tab);
    page.press(Key::BackTab);
    assert_eq!(page.evaluate("document.activeElement.value"), json!("Lin"));
    tab_to(&page, "document.activeElement.textContent === 'Run'");
    page.press(Key::Space);
    page.wait_for_text(".output .block", "Hello Lin");

    // Enter in a field also runs the command, and the skip link is first in the tab order.
    tab_to(&page, &format!("document.activeElement.matches('{name}')"));
    page.type_text("a");
    page.press(Key::Enter);
    page.wait_for_text(".output .block", "a");
    page.reload();
    page.wait_for_element(".run-form");
    page.press(Key::Tab);
    assert_eq!(
        page.evaluate("document.activeElement.className"),
        json!("skip")
    );
    page.press(Key::Enter);
    page.wait_for("document.activeElement.id === 'main'");
    stage.assert_clean(&page, &[NOT_SIGNED_IN]);
}

fn tab_to(page: &pinion_testkit::browser::Page, found: &str) {
    for _ in 0..60 {
        if page.evaluate(found) == json!(true) {
            return;
        }
        page.press(Key::Tab);
    }
    panic!("no way with the keyboard to {found}");
}
