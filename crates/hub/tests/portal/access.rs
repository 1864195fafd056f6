//! Signing in and out, and creating tokens.

use pinion_testkit::browser::Key;
use serde_json::json;

use crate::stage::{NOT_SIGNED_IN, Stage, control, picture, sign_in, visit};

#[test]
#[ignore = "needs Chromium: cargo xtask test --all"]
fn a_valid_token_signs_in_and_a_wrong_one_does_not() {
    let stage = Stage::new();
    let page = stage.visitor();
    picture(&page, "signin");
    assert!(page.text("main").contains("pinion hub token"));
    sign_in(&page, "pns_this-is-not-the-token");
    page.wait_for_text(".problem", "unauthenticated");
    picture(&page, "signin-wrong");

    sign_in(&page, &stage.hub.token);
    page.wait_for_element(".clip-row");
    // Scripts cannot read the cookie, and the page stores nothing.
    assert_eq!(page.evaluate("document.cookie"), json!(""));
    assert_eq!(
        page.evaluate("localStorage.length + sessionStorage.length"),
        json!(0)
    );
    page.reload();
    page.wait_for_element(".clip-row");

    page.click_text("Sign out");
    page.wait_for_text("main", "You are signed out.");
    page.reload();
    page.wait_for_element("input[type=password]");
    stage.assert_clean(&page, &[NOT_SIGNED_IN]);
}

#[test]
#[ignore = "needs Chromium: cargo xtask test --all"]
fn a_token_is_made_copied_used_and_revoked() {
    let stage = Stage::new();
    let page = stage.signed_in();
    page.allow_clipboard(&format!("http://{}", stage.hub.address));
    visit(&page, "tokens", ".token-row");
    assert_eq!(page.count(".token-row"), 1);
    page.click_text("New token…");
    page.wait_for_element("dialog[open]");
    // Escape closes the dialog without creating a token.
    page.press(Key::Escape);
    page.wait_for("!document.querySelector('dialog')");
    page.click_text("New token…");
    page.type_text("Ana <b>laptop</b>");
    let scope = control(&page, "Scope");
    page.fill(&scope, "@ana");
    let manage = control(&page, "May install, remove and bind clips");
    let is_checked = format!("document.querySelector({}).checked", json!(manage));
    assert_eq!(page.evaluate(&is_checked), json!(false));
    picture(&page, "token-new");
    page.click_text("Create");

    page.wait_for_element("#new-token");
    picture(&page, "token-once");
    let token = page.evaluate("document.querySelector('#new-token').value");
    let token = token.as_str().unwrap().to_owned();
    assert!(token.starts_with("pnx_"), "{token}");
    page.click_text("Copy");
    page.wait_for_text("dialog", "Copied.");
    assert_eq!(
        page.evaluate("navigator.clipboard.readText()"),
        json!(token)
    );
    page.click_text("Done");
    page.wait_for_text(".token-row", "Ana <b>laptop</b>");
    // The token is shown once and never again.
    assert_eq!(
        page.evaluate(&format!(
            "document.documentElement.outerHTML.includes({})",
            json!(token)
        )),
        json!(false)
    );
    picture(&page, "tokens");

    let other = stage.visitor();
    sign_in(&other, &token);
    other.wait_for_element(".clip-row");
    let pages = other.text("#top");
    assert!(
        pages.contains("@ana") && !pages.contains("Tokens"),
        "{pages}"
    );
    // A denied action is reported, and the session stays open.
    visit(&other, "tokens", ".problem");
    assert!(other.text(".problem").contains("permission_denied"));
    visit(&other, "clips", ".clip-row");

    page.click("[aria-label='Revoke Ana <b>laptop</b>']");
    page.wait_for_element("dialog[open]");
    page.click_text("Cancel");
    page.wait_for("!document.querySelector('dialog')");
    assert_eq!(page.count(".token-row"), 2);
    page.click("[aria-label='Revoke Ana <b>laptop</b>']");
    page.click_text("Revoke");
    page.wait_for("document.querySelectorAll('.token-row').length === 1");

    // The other page notices on its own.
    other.wait_for_element("input[type=password]");
    other.wait_for_text("main", "Your session has ended");
    stage.assert_clean(&page, &[NOT_SIGNED_IN]);
    let refused = [
        NOT_SIGNED_IN,
        "403 /auth/tokens",
        "401 /pinix.v2.HubService/ListClips",
    ];
    stage.assert_clean(&other, &refused);
}
