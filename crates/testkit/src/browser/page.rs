//! One page of a browser, used like a person uses it.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine as _;
use serde_json::{Value, json};

use super::Line;

/// Time that an awaited state of a page may take before the test fails.
const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub struct Page {
    line: Arc<Line>,
    session: String,
    context: Value,
}

/// A key that is not a letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// Enter.
    Enter,
    /// Escape.
    Escape,
    /// To the next control.
    Tab,
    /// To the one before.
    BackTab,
    /// The space bar.
    Space,
    /// The slash.
    Slash,
}

/// The colour scheme of the user's system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// Dark on light.
    Light,
    /// Light on dark.
    Dark,
}

impl Page {
    pub(super) fn new(line: Arc<Line>, session: String, context: Value) -> Self {
        let page = Self {
            line,
            session,
            context,
        };
        for domain in ["Page", "Runtime", "Log", "Network"] {
            page.ask(&format!("{domain}.enable"), json!({}));
        }
        page
    }

    /// Opens an address and waits until the page has loaded.
    pub fn open(&self, address: &str) {
        self.ask("Page.navigate", json!({"url": address}));
        let loaded = "document.readyState === 'complete' && location.href !== 'about:blank'";
        self.wait_for(loaded);
    }

    /// Loads the page again.
    pub fn reload(&self) {
        self.evaluate("window.isOld = true");
        self.ask("Page.reload", json!({}));
        self.wait_for("!window.isOld && document.readyState === 'complete'");
    }

    /// Evaluates an expression; promises are awaited.
    pub fn evaluate(&self, expression: &str) -> Value {
        self.try_evaluate(expression)
            .unwrap_or_else(|error| panic!("{expression}: {error}"))
    }

    fn try_evaluate(&self, expression: &str) -> Result<Value, String> {
        let parameters = json!({"expression": expression, "awaitPromise": true, "returnByValue": true, "userGesture": true});
        let mut answer = self
            .line
            .try_ask(Some(&self.session), "Runtime.evaluate", parameters)?;
        match answer.get("exceptionDetails") {
            Some(details) => Err(details.to_string()),
            None => Ok(answer["result"]["value"].take()),
        }
    }

    /// Waits until an expression is true.
    pub fn wait_for(&self, expression: &str) {
        let end = Instant::now() + WAIT_TIMEOUT;
        // A page that is being replaced cannot evaluate anything.
        while self.try_evaluate(expression).unwrap_or(Value::Null) != json!(true) {
            if Instant::now() > end {
                let text = self.try_evaluate("document.body.innerText");
                panic!(
                    "never came true: {expression}\nthe page says: {text:?}\nit complained: {:?}",
                    self.complaints()
                );
            }
            thread::sleep(Duration::from_millis(15));
        }
    }

    /// Waits until the text of an element that matches `selector` contains `text`.
    pub fn wait_for_text(&self, selector: &str, text: &str) {
        self.wait_for(&format!(
            "[...document.querySelectorAll({})].some((found) => found.innerText.includes({}))",
            json!(selector),
            json!(text)
        ));
    }

    /// Waits until an element matches `selector`.
    pub fn wait_for_element(&self, selector: &str) {
        self.wait_for(&format!("!!document.querySelector({})", json!(selector)));
    }

    /// Returns the text of the first element that matches `selector`.
    pub fn text(&self, selector: &str) -> String {
        self.wait_for_element(selector);
        let text = self.evaluate(&format!(
            "document.querySelector({}).innerText",
            json!(selector)
        ));
        text.as_str().unwrap_or_default().to_owned()
    }

    /// Returns the number of elements that match `selector`.
    pub fn count(&self, selector: &str) -> u64 {
        let count = self.evaluate(&format!(
            "document.querySelectorAll({}).length",
            json!(selector)
        ));
        count.as_u64().unwrap_or_default()
    }

    /// Clicks with the mouse on the middle of an element, wherever it is.
    pub fn click(&self, selector: &str) {
        self.wait_for_element(selector);
        self.click_found(&format!("document.querySelector({})", json!(selector)));
    }

    /// Clicks the first button or link with this text.
    pub fn click_text(&self, text: &str) {
        let found = format!(
            "[...document.querySelectorAll('button, a, summary')].find((one) => one.textContent.trim() === {} && one.checkVisibility())",
            json!(text)
        );
        self.wait_for(&format!("!!({found})"));
        self.click_found(&found);
    }

    fn click_found(&self, found: &str) {
        let middle = self.evaluate(&format!(
            "(() => {{ const one = {found}; one.scrollIntoView({{block: 'center', behavior: 'instant'}}); const box = one.getBoundingClientRect(); \
             const [x, y] = [box.x + box.width / 2, box.y + box.height / 2]; const top = document.elementFromPoint(x, y); \
             return {{x, y, free: one === top || one.contains(top) || (top && top.contains(one))}}; }})()"
        ));
        assert_eq!(
            middle["free"],
            json!(true),
            "something lies over {found}: {middle}"
        );
        for kind in ["mouseMoved", "mousePressed", "mouseReleased"] {
            let event = json!({"type": kind, "x": middle["x"], "y": middle["y"], "button": if kind == "mouseMoved" { "none" } else { "left" }, "clickCount": 1});
            self.ask("Input.dispatchMouseEvent", event);
        }
    }

    /// Types text into the focused element.
    pub fn type_text(&self, text: &str) {
        self.ask("Input.insertText", json!({"text": text}));
    }

    /// Clicks a field and replaces its content.
    pub fn fill(&self, selector: &str, text: &str) {
        self.click(selector);
        self.evaluate("document.activeElement.select?.()");
        self.type_text(text);
    }

    /// Chooses an option of a select by its text.
    pub fn choose(&self, selector: &str, option: &str) {
        self.wait_for_element(selector);
        let script = format!(
            "(() => {{ const select = document.querySelector({}); const option = [...select.options].find((one) => one.textContent.startsWith({})); \
             select.value = option.value; select.dispatchEvent(new Event('change', {{bubbles: true}})); }})()",
            json!(selector),
            json!(option)
        );
        self.evaluate(&script);
    }

    /// Presses a key, with all events of a real one.
    pub fn press(&self, key: Key) {
        let (name, code, number, text) = match key {
            Key::Enter => ("Enter", "Enter", 13, "\r"),
            Key::Escape => ("Escape", "Escape", 27, ""),
            Key::Tab | Key::BackTab => ("Tab", "Tab", 9, ""),
            Key::Space => (" ", "Space", 32, " "),
            Key::Slash => ("/", "Slash", 191, "/"),
        };
        let modifiers = if key == Key::BackTab { 8 } else { 0 };
        let mut event = json!({"type": "rawKeyDown", "key": name, "code": code, "windowsVirtualKeyCode": number, "modifiers": modifiers});
        if !text.is_empty() {
            event["type"] = json!("keyDown");
            event["text"] = json!(text);
        }
        self.ask("Input.dispatchKeyEvent", event.clone());
        event["type"] = json!("keyUp");
        event["text"] = Value::Null;
        if let Some(fields) = event.as_object_mut() {
            fields.remove("text");
        }
        self.ask("Input.dispatchKeyEvent", event);
    }

    /// Resizes the page; a narrow one emulates a telephone.
    pub fn resize(&self, width: u32, height: u32) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600});
        self.ask("Emulation.setDeviceMetricsOverride", size);
        self.wait_for(&format!("innerWidth === {width}"));
    }

    /// Sets the preferred colour scheme.
    pub fn prefer(&self, scheme: Scheme) {
        let value = match scheme {
            Scheme::Light => "light",
            Scheme::Dark => "dark",
        };
        let features = json!([{"name": "prefers-color-scheme", "value": value}]);
        self.ask("Emulation.setEmulatedMedia", json!({"features": features}));
    }

    /// Allows pages of `origin` to use the clipboard without asking.
    pub fn allow_clipboard(&self, origin: &str) {
        let permissions = ["clipboardReadWrite", "clipboardSanitizedWrite"];
        let grant =
            json!({"origin": origin, "permissions": permissions, "browserContextId": self.context});
        self.line.ask(None, "Browser.grantPermissions", grant);
        self.ask("Page.bringToFront", json!({}));
    }

    /// Writes a picture of the page to a file.
    pub fn screenshot(&self, path: &Path) {
        let picture = self.ask("Page.captureScreenshot", json!({"format": "png"}));
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(picture["data"].as_str().unwrap_or_default());
        fs::write(path, bytes.expect("base64")).expect("the picture is written");
    }

    /// Returns the errors and violations that the page reported: uncaught exceptions, errors on its console, refused
    /// content. Failed requests appear with their status, as in `401 /auth/session`.
    pub fn complaints(&self) -> Vec<String> {
        self.events()
            .iter()
            .filter_map(|event| {
                let parameters = &event["params"];
                let entry = &parameters["entry"];
                let level = entry["level"].as_str().unwrap_or_default();
                match event["method"].as_str()? {
                    "Runtime.exceptionThrown" => Some(parameters["exceptionDetails"].to_string()),
                    "Runtime.consoleAPICalled" if parameters["type"] == "error" => {
                        Some(parameters["args"].to_string())
                    }
                    "Log.entryAdded" if entry["source"] == "network" && level == "error" => None,
                    "Log.entryAdded" if level == "error" || entry["source"] == "security" => {
                        Some(entry["text"].to_string())
                    }
                    "Network.responseReceived" => {
                        let response = &parameters["response"];
                        let status = response["status"].as_u64()?;
                        (status >= 400).then(|| format!("{status} {}", path_of(&response["url"])))
                    }
                    _ => None,
                }
            })
            .collect()
    }

    /// Returns the requested addresses.
    pub fn requests(&self) -> Vec<String> {
        let events = self.events();
        let sent = events
            .iter()
            .filter(|event| event["method"] == "Network.requestWillBeSent");
        sent.filter_map(|event| event["params"]["request"]["url"].as_str())
            .map(str::to_owned)
            .collect()
    }

    fn events(&self) -> Vec<Value> {
        let heard = self.line.heard();
        heard.events.get(&self.session).cloned().unwrap_or_default()
    }

    fn ask(&self, method: &str, parameters: Value) -> Value {
        self.line.ask(Some(&self.session), method, parameters)
    }
}

fn path_of(address: &Value) -> &str {
    let address = address.as_str().unwrap_or_default();
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    rest.find('/').map_or("/", |at| &rest[at..])
}
