//! A hub with two clips, a browser, and a page that is signed in.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use pinion_access::Mode;
use pinion_testkit::Browser;
use pinion_testkit::browser::{Key, Page, Scheme};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::common::Running;

/// A hub and a browser that shows it.
pub struct Stage {
    pub browser: Browser,
    pub hub: Running,
}

impl Stage {
    pub fn new() -> Self {
        let hub = Running::start(Mode::Secured);
        hub.install("probe", probe().path());
        hub.install("shell", shell().path());
        let browser = Browser::start();
        Self { browser, hub }
    }

    /// Returns the address of a page of the portal.
    pub fn address(&self, route: &str) -> String {
        format!("http://{}/#/{route}", self.hub.address)
    }

    /// Opens the portal without signing in.
    pub fn visitor(&self) -> Page {
        let page = self.browser.page();
        page.open(&self.address(""));
        page.wait_for_element("input[type=password]");
        page
    }

    /// Opens the portal and signs in with the hub's first token.
    pub fn signed_in(&self) -> Page {
        let page = self.visitor();
        sign_in(&page, &self.hub.token);
        page.wait_for_element(".clip-row");
        page
    }

    /// Returns the directory of a clip's files.
    pub fn data(&self, alias: &str) -> PathBuf {
        self.hub.root.path().join("data").join(alias)
    }

    /// Asserts that a page loaded everything from the hub and logged no errors but these.
    pub fn assert_clean(&self, page: &Page, expected: &[&str]) {
        let own = format!("http://{}/", self.hub.address);
        let foreign: Vec<String> = page
            .requests()
            .into_iter()
            .filter(|address| {
                !address.starts_with(&own)
                    && !address.starts_with("data:image/")
                    && !address.starts_with("blob:")
            })
            .collect();
        assert_eq!(foreign, Vec::<String>::new());
        let mut complaints = page.complaints();
        complaints.retain(|complaint| !expected.contains(&complaint.as_str()));
        assert_eq!(complaints, Vec::<String>::new());
        assert_ne!(page.evaluate("document.title"), json!("owned"));
    }
}

/// The expected error of a page that requests its session before it signs in.
pub const NOT_SIGNED_IN: &str = "401 /auth/session";

pub fn probe() -> TempDir {
    let place = tempfile::tempdir().unwrap();
    fs::write(
        place.path().join("probe.py"),
        include_str!("clips/probe.py"),
    )
    .unwrap();
    fs::write(
        place.path().join("clip.json"),
        include_str!("clips/probe.json"),
    )
    .unwrap();
    fs::create_dir(place.path().join("web")).unwrap();
    fs::write(
        place.path().join("web/index.html"),
        "<h1>The probe's own page</h1>",
    )
    .unwrap();
    place
}

fn shell() -> TempDir {
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join("shell.sh");
    fs::write(&program, include_str!("clips/shell.sh")).unwrap();
    fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let description = r#"{"name":"shell","version":"1.0.0","runtime":"exec","main":"shell.sh"}"#;
    fs::write(place.path().join("clip.json"), description).unwrap();
    place
}

pub fn sign_in(page: &Page, token: &str) {
    page.fill("input[type=password]", token);
    page.press(Key::Enter);
}

/// Opens a page of the portal and waits for an element.
pub fn visit(page: &Page, route: &str, until: &str) {
    page.evaluate(&format!("location.hash = {}", json!(format!("#/{route}"))));
    page.wait_for_element(until);
}

/// Opens the form of a command.
pub fn open_command(page: &Page, alias: &str, command: &str) {
    visit(page, &format!("clip/{alias}/run/{command}"), ".run-form");
    page.wait_for_text(".panel h2", command);
}

/// Submits the form and waits for the end of the call.
pub fn run_to_end(page: &Page) -> String {
    page.click(".run-form button[type=submit]");
    page.wait_for("['done', 'failed'].includes(document.querySelector('.results').dataset.state)");
    state(page)
}

pub fn state(page: &Page) -> String {
    let state = page.evaluate("document.querySelector('.results').dataset.state");
    state.as_str().unwrap_or_default().to_owned()
}

/// Returns the id of the control with this label.
pub fn control(page: &Page, label: &str) -> String {
    let found = format!(
        "[...document.querySelectorAll('label')].find((one) => one.firstChild.textContent.trim() === {0} || one.textContent.trim() === {0})?.control?.id ?? ''",
        json!(label)
    );
    page.wait_for(&format!("({found}) !== ''"));
    let id = page.evaluate(&found);
    format!("#{}", id.as_str().unwrap_or_default())
}

/// Parses the result that the page shows.
pub fn shown_json(page: &Page) -> Value {
    serde_json::from_str(&page.text(".output .block")).unwrap()
}

/// Stores a picture of the page if screenshots are requested.
pub fn picture(page: &Page, name: &str) {
    let Some(place) = std::env::var_os("PINION_SCREENSHOTS") else {
        return;
    };
    let place = Path::new(&place);
    for (width, height) in [(1280, 800), (360, 740)] {
        for scheme in [Scheme::Light, Scheme::Dark] {
            page.resize(width, height);
            page.prefer(scheme);
            page.screenshot(&place.join(format!("{name}-{width}-{scheme:?}.png").to_lowercase()));
        }
    }
    page.resize(1280, 800);
    page.prefer(Scheme::Light);
}
