//! A real Chromium without a window, driven over its debugging pipe: JSON messages that end in NUL, in on descriptor 3, out on
//! descriptor 4. It has a profile of its own, and is ended with it on drop.
//!
//! Tests use [`Page`]: it clicks and types like a person, and stores the errors that the page reports.

mod page;

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::{Pid, geteuid};
use serde_json::{Value, json};
use tempfile::TempDir;

pub use page::{Key, Page, Scheme};

/// The variable that names a browser, and the programs that are tried without it.
const BROWSER_VARIABLE: &str = "PINION_CHROMIUM";
const BROWSER_NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

/// No requests to the vendor, and the same picture on every machine.
const FLAGS: [&str; 14] = [
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-proxy-server",
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-gpu",
    "--disable-sync",
    "--hide-scrollbars",
];

/// The shell passes its own standard streams on as the descriptors of the pipe.
const PIPE_SCRIPT: &str = r#"exec "$0" "$@" 3<&0 4>&1 0</dev/null 1>/dev/null 2>/dev/null"#;

/// Time that an answer of the browser may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub struct Browser {
    child: Child,
    line: Arc<Line>,
    reader: Option<JoinHandle<()>>,
    /// Declared last: removed when everything that writes there has ended.
    _profile: TempDir,
}

/// The pipe to the browser, shared by its pages.
#[derive(Debug)]
struct Line {
    input: Mutex<Option<ChildStdin>>,
    heard: Mutex<Heard>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Heard {
    asked: u64,
    answers: HashMap<u64, Value>,
    /// The events, by the session of the page.
    events: HashMap<String, Vec<Value>>,
    ended: bool,
}

impl Browser {
    /// Starts the Chromium of this machine.
    pub fn start() -> Self {
        let profile = tempfile::Builder::new()
            .prefix("pinion-browser-")
            .tempdir()
            .expect("a profile");
        let mut data = OsString::from("--user-data-dir=");
        data.push(profile.path());
        let mut command = Command::new("/bin/sh");
        command.args(["-c", PIPE_SCRIPT]).arg(program());
        command.args(FLAGS).arg(data);
        if geteuid().is_root() {
            // Chromium has no sandbox for root.
            command.arg("--no-sandbox");
        }
        let mut child = command
            .arg("about:blank")
            .env("HOME", profile.path())
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell starts");
        let output = child.stdout.take().expect("stdout is a pipe");
        let line = Arc::new(Line {
            input: Mutex::new(child.stdin.take()),
            heard: Mutex::default(),
            changed: Condvar::new(),
        });
        let reader = Some(thread::spawn({
            let line = Arc::clone(&line);
            move || line.listen(output)
        }));
        Self {
            child,
            line,
            reader,
            _profile: profile,
        }
    }

    /// A new page, in a window and with cookies of its own.
    pub fn page(&self) -> Page {
        let context = self
            .line
            .ask(None, "Target.createBrowserContext", json!({}));
        let context = &context["browserContextId"];
        let target = json!({"url": "about:blank", "browserContextId": context, "width": 1280, "height": 800});
        let target = self.line.ask(None, "Target.createTarget", target);
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let session = self.line.ask(None, "Target.attachToTarget", attach);
        let session = session["sessionId"].as_str().expect("a session").to_owned();
        Page::new(Arc::clone(&self.line), session, context.clone())
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Chromium exits when its pipe is closed.
        self.line.input().take();
        let end = Instant::now() + SHUTDOWN_TIMEOUT;
        while Instant::now() < end && matches!(self.child.try_wait(), Ok(None)) {
            thread::sleep(Duration::from_millis(10));
        }
        let _ = killpg(Pid::from_raw(self.child.id() as i32), Signal::SIGKILL);
        let _ = self.child.wait();
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

fn program() -> OsString {
    if let Some(named) = std::env::var_os(BROWSER_VARIABLE) {
        return named;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = BROWSER_NAMES.iter().find_map(|name| {
        let mut places = std::env::split_paths(&path).map(|place| place.join(name));
        places.find(|place| place.is_file())
    });
    found
        .unwrap_or_else(|| {
            panic!("no Chromium: install chromium, or name one in {BROWSER_VARIABLE}")
        })
        .into_os_string()
}

impl Line {
    /// Sends a request to the browser or one of its pages and waits for the answer.
    fn ask(&self, session: Option<&str>, method: &str, parameters: Value) -> Value {
        self.try_ask(session, method, parameters)
            .unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    fn try_ask(
        &self,
        session: Option<&str>,
        method: &str,
        parameters: Value,
    ) -> Result<Value, String> {
        let id = {
            let mut heard = self.heard();
            heard.asked += 1;
            heard.asked
        };
        let mut message = json!({"id": id, "method": method, "params": parameters});
        if let Some(session) = session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        let sent = match self.input().as_mut() {
            Some(input) => input.write_all(&bytes).and_then(|()| input.flush()),
            None => return Err("the browser is closed".into()),
        };
        sent.map_err(|error| format!("the browser does not listen: {error}"))?;
        let answered = |heard: &mut Heard| heard.answers.remove(&id);
        let mut answer = self
            .wait(ANSWER_TIMEOUT, answered)
            .ok_or("the browser does not answer")?;
        match answer.get("error") {
            Some(error) => Err(error.to_string()),
            None => Ok(answer["result"].take()),
        }
    }

    /// Waits until `found` returns a value.
    fn wait<T>(&self, time: Duration, mut found: impl FnMut(&mut Heard) -> Option<T>) -> Option<T> {
        let end = Instant::now() + time;
        let mut heard = self.heard();
        loop {
            if let Some(found) = found(&mut heard) {
                return Some(found);
            }
            let left = end.saturating_duration_since(Instant::now());
            if heard.ended || left.is_zero() {
                return None;
            }
            let waited = self.changed.wait_timeout(heard, left);
            heard = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn listen(&self, output: ChildStdout) {
        let mut output = BufReader::new(output);
        let mut bytes = Vec::new();
        while matches!(output.read_until(0, &mut bytes), Ok(1..)) {
            if bytes.last() == Some(&0) {
                bytes.pop();
            }
            if let Ok(message) = serde_json::from_slice::<Value>(&bytes) {
                self.hear(message);
            }
            bytes.clear();
        }
        self.heard().ended = true;
        self.changed.notify_all();
    }

    fn hear(&self, message: Value) {
        let mut heard = self.heard();
        if let Some(id) = message["id"].as_u64() {
            heard.answers.insert(id, message);
        } else {
            let session = message["sessionId"].as_str().unwrap_or_default().to_owned();
            heard.events.entry(session).or_default().push(message);
        }
        drop(heard);
        self.changed.notify_all();
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn input(&self) -> MutexGuard<'_, Option<ChildStdin>> {
        self.input.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
