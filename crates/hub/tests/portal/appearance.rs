//! Layout on a phone, dark colours, and names for screen readers.

use pinion_testkit::browser::Scheme;
use serde_json::json;

use crate::stage::{NOT_SIGNED_IN, Stage, open_command, run_to_end, visit};

const PAGES: [(&str, &str); 12] = [
    ("clips", ".clip-row"),
    ("clip/probe", ".command"),
    ("clip/probe/run/echo", ".run-form"),
    ("clip/probe/run/long", ".run-form"),
    ("clip/probe/manifest", ".facts-list"),
    ("clip/probe/bindings", ".slot"),
    ("clip/probe/data", ".tab p"),
    ("clip/probe/logs", ".log"),
    ("agent", ".prompt"),
    ("providers", ".rows, .empty"),
    ("tokens", ".token-row"),
    ("install", ".sources"),
];

#[test]
#[ignore = "needs Chromium: cargo xtask test --all"]
fn pages_fit_the_width_of_a_phone() {
    let stage = Stage::new();
    let page = stage.visitor();
    page.resize(360, 740);
    let sticks_out = "document.documentElement.scrollWidth > innerWidth";
    assert_eq!(page.evaluate(sticks_out), json!(false), "the sign-in page");
    crate::stage::sign_in(&page, &stage.hub.token);
    for (route, until) in PAGES {
        visit(&page, route, until);
        assert_eq!(page.evaluate(sticks_out), json!(false), "{route}");
    }
    open_command(&page, "probe", "long");
    assert_eq!(run_to_end(&page), "done");
    page.click(".block-actions [aria-expanded=false]");
    assert_eq!(page.evaluate(sticks_out), json!(false), "a long result");
    stage.assert_clean(&page, &[NOT_SIGNED_IN]);
}

#[test]
#[ignore = "needs Chromium: cargo xtask test --all"]
fn light_and_dark_colours_have_enough_contrast() {
    let stage = Stage::new();
    let page = stage.signed_in();
    visit(&page, "clip/probe/run/greet", ".run-form");
    let mut grounds = Vec::new();
    for scheme in [Scheme::Light, Scheme::Dark] {
        page.prefer(scheme);
        page.wait_for(&format!(
            "matchMedia('(prefers-color-scheme: dark)').matches === {}",
            scheme == Scheme::Dark
        ));
        let ground = page.evaluate("getComputedStyle(document.documentElement).backgroundColor");
        grounds.push(ground);
        for selector in [
            "h1",
            ".description",
            ".hint",
            "button.primary",
            ".command-name",
            ".tabs a",
            "#top nav a",
            "label",
        ] {
            let contrast = page.evaluate(&format!(
                "({CONTRAST})(document.querySelector({}))",
                json!(selector)
            ));
            assert!(
                contrast.as_f64().unwrap() >= 4.5,
                "{selector} {scheme:?}: {contrast}"
            );
        }
    }
    assert_ne!(grounds[0], grounds[1]);
    stage.assert_clean(&page, &[NOT_SIGNED_IN]);
}

/// The contrast of an element's text with its background, by the formula of the accessibility guidelines.
const CONTRAST: &str = "(element) => {
    const read = (colour) => { const found = colour.match(/[\\d.]+/g).map(Number); return colour.startsWith('color(srgb') ? found.map((part) => part * 255) : found; };
    const light = ([red, green, blue]) => [red, green, blue].map((part) => part / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
        .reduce((sum, part, index) => sum + part * [0.2126, 0.7152, 0.0722][index], 0);
    let behind = element;
    const see = (one) => getComputedStyle(one).backgroundColor;
    while (behind.parentElement && /, 0\\)$|transparent/.test(see(behind))) behind = behind.parentElement;
    const [one, other] = [light(read(getComputedStyle(element).color)), light(read(see(behind)))].sort((left, right) => right - left);
    return (one + 0.05) / (other + 0.05);
}";

#[test]
#[ignore = "needs Chromium: cargo xtask test --all"]
fn every_control_has_an_accessible_name() {
    let stage = Stage::new();
    let page = stage.signed_in();
    for (route, until) in PAGES {
        visit(&page, route, until);
        let nameless = page.evaluate(
            "[...document.querySelectorAll('button, a[href], input:not([hidden]), select, textarea')]\
                .filter((one) => !(one.textContent.trim() || one.getAttribute('aria-label') || one.labels?.length))\
                .map((one) => one.outerHTML)",
        );
        assert_eq!(nameless, json!([]), "{route}");
        assert_eq!(page.count("h1"), 1, "{route}");
        assert_eq!(
            page.evaluate("document.title.length > 3"),
            json!(true),
            "{route}"
        );
    }
    assert_eq!(
        page.count("[role=log][aria-live=polite], [role=status]"),
        page.count("[role=log], [role=status]")
    );
    stage.assert_clean(&page, &[NOT_SIGNED_IN]);
}
