//! Installing and removing, data, bindings, logs, providers.

use std::fs;

use serde_json::json;

use crate::proxy::Proxy;
use crate::stage::{
    NOT_SIGNED_IN, Stage, control, open_command, picture, probe, run_to_end, sign_in, visit,
};

#[test]
#[ignore = "needs Chromium: cargo xtask test --all"]
fn a_clip_is_installed_and_removed() {
    let stage = Stage::new();
    let page = stage.signed_in();
    page.click_text("Install…");
    page.wait_for_text("h1", "Install a clip");
    picture(&page, "install");
    page.fill(&control(&page, "Source"), "nonsense");
    page.click_text("Install");
    page.wait_for_text(".problem", "invalid_argument");
    let directory = probe();
    let source = format!("local/second:{}", directory.path().display());
    page.fill(&control(&page, "Source"), &source);
    page.fill(&control(&page, "Alias"), "Second One");
    page.fill(&control(&page, "Secret"), "sesame");
    page.click_text("Install");
    page.wait_for_text("main", "Installed second-one");

    open_command(&page, "second-one", "greet");
    let secret = control(&page, "Secret of this clip");
    page.fill(&control(&page, "name"), "Ali");
    page.fill(&secret, "wrong");
    assert_eq!(run_to_end(&page), "failed");
    assert!(page.text(".output .problem").contains("permission_denied"));
    page.fill(&secret, "sesame");
    assert_eq!(run_to_end(&page), "done");

    fs::write(stage.data("second-one").join("note.txt"), "kept").unwrap();
    page.click_text("Remove…");
    page.wait_for_element("dialog[open]");
    picture(&page, "remove");
    page.click_text("Remove second-one");
    page.wait_for_element(".clip-row");
    page.wait_for("!document.querySelector('.clip-row[data-alias=second-one]')");
    assert!(stage.data("second-one").join("note.txt").exists());

    stage.hub.install("second-one", directory.path());
    visit(&page, "clip/second-one", ".command");
    page.click_text("Remove…");
    page.click("#purge");
    page.click_text("Remove second-one");
    page.wait_for("location.hash === '#/clips'");
    page.wait_for("!document.querySelector('.clip-row[data-alias=second-one]')");
    assert!(!stage.data("second-one").exists());
    stage.assert_clean(&page, &[NOT_SIGNED_IN, "400 /pinix.v2.HubService/AddClip"]);
}

#[test]
#[ignore = "needs Chromium: cargo xtask test --all"]
fn files_of_a_clip_are_listed_shown_and_deleted() {
    let stage = Stage::new();
    let page = stage.signed_in();
    let data = stage.data("probe");
    fs::create_dir_all(data.join("folder/empty")).unwrap();
    fs::write(data.join("folder/entries.json"), r#"{"html":"<b>x</b>"}"#).unwrap();
    fs::write(data.join("binary.bin"), [0, 159, 146, 150]).unwrap();
    fs::write(data.join("<b>odd & name?#%.txt"), "odd text").unwrap();
    visit(&page, "clip/probe/data", ".file-row");
    assert_eq!(page.count(".file-row"), 3);
    picture(&page, "data");
    page.click_text("folder/");
    page.wait_for_text(".file-row", "entries.json");
    page.click_text("empty/");
    page.wait_for_text("main", "This folder is empty.");
    page.click_text("folder");
    page.wait_for_text(".file-row", "entries.json");
    page.click_text("entries.json");
    page.wait_for_text(".tab .block", r#"{"html":"<b>x</b>"}"#);
    picture(&page, "file");
    visit(
        &page,
        "clip/probe/data",
        "[aria-label='Download binary.bin']",
    );
    page.click_text("binary.bin");
    page.wait_for_text("main", "not text");
    visit(
        &page,
        "clip/probe/data",
        "[aria-label='Download binary.bin']",
    );
    page.click_text("<b>odd & name?#%.txt");
    page.wait_for_text(".tab .block", "odd text");

    // The download equals the file.
    page.evaluate(
        "window.saved = null; window.make = URL.createObjectURL; URL.createObjectURL = (blob) => { blob.bytes().then((bytes) => (window.saved = [...bytes])); return window.make.call(URL, blob); }",
    );
    visit(
        &page,
        "clip/probe/data",
        "[aria-label='Download binary.bin']",
    );
    page.click("[aria-label='Download binary.bin']");
    page.wait_for("JSON.stringify(window.saved) === '[0,159,146,150]'");

    page.click("[aria-label='Delete binary.bin']");
    page.wait_for_element("dialog[open]");
    page.click_text("Cancel");
    page.wait_for("!document.querySelector('dialog')");
    assert!(data.join("binary.bin").exists());
    page.click("[aria-label='Delete binary.bin']");
    page.click("dialog .danger");
    page.wait_for("document.querySelectorAll('.file-row').length === 2");
    assert!(!data.join("binary.bin").exists());
    stage.assert_clean(&page, &[NOT_SIGNED_IN]);
}

#[test]
#[ignore = "needs Chromium: cargo xtask test --all"]
fn a_slot_is_bound_and_unbound() {
    let stage = Stage::new();
    let page = stage.signed_in();
    visit(&page, "clip/probe/bindings", ".slot[data-slot=shell]");
    page.choose(".slot select", "shell");
    page.click_text("Bind");
    page.wait_for_text(".slot", "Bound to shell");
    picture(&page, "bindings");
    let (_, bindings) = stage.hub.call("GetBindings", r#"{"clipName":"probe"}"#);
    assert_eq!(bindings["bindings"]["shell"]["alias"], json!("shell"));
    page.click_text("Unbind");
    page.wait_for_text(".slot", "Not bound");
    let (_, bindings) = stage.hub.call("GetBindings", r#"{"clipName":"probe"}"#);
    assert_eq!(bindings["bindings"]["shell"], json!(null));
    stage.assert_clean(&page, &[NOT_SIGNED_IN]);
}

#[test]
#[ignore = "needs Chromium: cargo xtask test --all"]
fn logs_are_followed_paused_and_filtered() {
    let stage = Stage::new();
    let page = stage.signed_in();
    let complain = |level: &str, text: &str| {
        let input = json!({"clipName": "probe", "command": "complain", "input": {"level": level, "text": text}});
        assert_eq!(stage.hub.call("Invoke", &input.to_string()).0, 200);
    };
    complain("info", "before <b>anybody</b> looked");
    visit(&page, "clip/probe/logs", ".log");
    page.wait_for_text(".log-line", "before <b>anybody</b> looked");
    complain("warn", "while somebody looks");
    page.wait_for_text(".log-line[data-level=warn]", "while somebody looks");
    picture(&page, "logs");

    page.click_text("Pause");
    complain("error", "while it is paused");
    page.wait_for_text(".log-tools", "1 new line");
    assert!(!page.text(".log").contains("while it is paused"));
    page.click_text("Resume");
    page.wait_for_text(".log-line", "while it is paused");

    page.choose(".log-tools select", "error");
    page.wait_for("document.querySelectorAll('.log-line').length === 1");
    complain("info", "too low");
    complain("error", "high enough");
    page.wait_for_text(".log-line", "high enough");
    assert!(!page.text(".log").contains("too low"));
    page.fill(".log-tools input[type=search]", "HIGH");
    page.wait_for("[...document.querySelectorAll('.log-line')].filter((line) => line.checkVisibility()).length === 1");

    visit(&page, "logs", ".log");
    page.wait_for_text("h1", "Hub log");
    picture(&page, "hub-log");
    visit(&page, "providers", "h1");
    page.wait_for_text("h1", "Providers");
    picture(&page, "providers");
    stage.assert_clean(&page, &[NOT_SIGNED_IN]);
}

#[test]
#[ignore = "needs Chromium: cargo xtask test --all"]
fn the_portal_reconnects_to_a_hub_that_was_unreachable() {
    let stage = Stage::new();
    let proxy = Proxy::to(stage.hub.address);
    let page = stage.browser.page();
    page.open(&format!("http://{}/", proxy.address));
    page.wait_for_element("input[type=password]");
    sign_in(&page, &stage.hub.token);
    page.wait_for_element(".clip-row");
    let complain = |text: &str| {
        let input = json!({"clipName": "probe", "command": "complain", "input": {"text": text}});
        assert_eq!(stage.hub.call("Invoke", &input.to_string()).0, 200);
    };
    complain("first");
    visit(&page, "clip/probe/logs", ".log");
    page.wait_for_text(".log-line", "first");
    proxy.cut();
    page.wait_for("document.body.classList.contains('lost')");
    page.wait_for_text(".log-tools", "trying again");
    complain("second");
    proxy.restore();
    page.wait_for_text(".log-line", "second");
    page.wait_for("!document.body.classList.contains('lost')");
    complain("third");
    page.wait_for_text(".log-line", "third");
    for text in ["first", "second", "third"] {
        let lines = format!(
            "[...document.querySelectorAll('.log-text')].filter((line) => line.textContent === {}).length",
            json!(text)
        );
        assert_eq!(page.evaluate(&lines), json!(1), "{text}");
    }
    let mut complaints = page.complaints();
    complaints.retain(|complaint| complaint != NOT_SIGNED_IN);
    assert_eq!(complaints, Vec::<String>::new());
}
