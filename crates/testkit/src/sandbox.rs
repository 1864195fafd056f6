//! An isolated environment for the program: home, agent directory, working directory and temporary directory, with the
//! mock model server configured as four providers. Everything is removed on drop.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

/// The directories of one run of the program.
#[derive(Debug)]
pub struct Sandbox {
    root: PathBuf,
    marker: String,
    _held: Option<TempDir>,
}

impl Sandbox {
    /// Creates the directories and a configuration that points at a model server on `port`.
    pub fn new(port: u16) -> Self {
        Self::with_settings(port, &json!({}))
    }

    /// Like [`Sandbox::new`], with `settings` merged over the defaults; a null removes one.
    pub fn with_settings(port: u16, settings: &Value) -> Self {
        let held = tempfile::Builder::new()
            .prefix("pinion-test-")
            .tempdir()
            .expect("a sandbox");
        let root = held
            .path()
            .canonicalize()
            .expect("the sandbox has a real path");
        let marker = root
            .file_name()
            .map(|n| n.to_string_lossy().into_owned())
            .unwrap_or_default();
        let sandbox = Self {
            root,
            marker,
            _held: Some(held),
        };
        for directory in [sandbox.work(), sandbox.agent(), sandbox.temporary()] {
            fs::create_dir_all(directory).expect("a directory in the sandbox");
        }
        write(&sandbox.agent().join("models.json"), &models(port));
        let mut all = json!({"defaultProvider": "mock", "defaultModel": "mock-1",
            "defaultThinkingLevel": "off", "quietStartup": true,
            // Its protocol is the one to speak, also on a machine whose PATH has a newer pi.
            "lastChangelogVersion": "0.52.12"});
        for (name, value) in settings.as_object().into_iter().flatten() {
            all[name] = value.clone();
        }
        let kept: Map<String, Value> = all
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(_, v)| !v.is_null())
            .map(own)
            .collect();
        write(&sandbox.agent().join("settings.json"), &Value::Object(kept));
        sandbox
    }

    /// The directory that holds all others.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The working directory of the program.
    pub fn work(&self) -> PathBuf {
        self.root.join("work")
    }

    /// The home directory of its user.
    pub fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// The directory of settings, models and sessions.
    pub fn agent(&self) -> PathBuf {
        self.root.join("home/.pi/agent")
    }

    /// Returns the directory of temporary files.
    pub fn temporary(&self) -> PathBuf {
        self.root.join("tmp")
    }

    /// Returns a text found in the environment of every process started in this sandbox, and nowhere else.
    pub fn marker(&self) -> &str {
        &self.marker
    }

    /// Returns the whole environment of the program; only PATH comes from the caller.
    pub fn environment(&self) -> Vec<(String, String)> {
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        [
            ("PATH", std::env::var("PATH").unwrap_or_default()),
            ("HOME", text(self.home())),
            ("PI_CODING_AGENT_DIR", text(self.agent())),
            ("TMPDIR", text(self.temporary())),
            ("LANG", "C.UTF-8".into()),
            ("TZ", "UTC".into()),
            ("PI_OFFLINE", "1".into()),
            ("PI_SKIP_VERSION_CHECK", "1".into()),
            ("PI_TELEMETRY", "0".into()),
            ("SHELL", "/bin/bash".into()),
            (MARKER_VARIABLE, self.marker.clone()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    /// Writes files into the working directory.
    pub fn add_files(&self, files: &Value) {
        write_all(&self.work(), files);
    }

    /// Writes files into the agent directory.
    pub fn add_agent_files(&self, files: &Value) {
        write_all(&self.agent(), files);
    }

    /// Writes files given in base64 into the working directory.
    pub fn add_base64_files(&self, files: &Value) {
        for (name, value) in files.as_object().into_iter().flatten() {
            let bytes = base64::engine::general_purpose::STANDARD
                .decode(value.as_str().unwrap_or_default())
                .expect("a file in base64");
            write_bytes(&self.work().join(name), &bytes);
        }
    }

    /// The session files below the sandbox, by path, each with its relative name.
    pub fn session_files(&self) -> Vec<(String, PathBuf)> {
        let mut found = Vec::new();
        collect(&self.root, &self.root, &mut found);
        found
    }

    /// Preserves the directories, for inspection after a failure.
    pub fn keep(&mut self) -> &Path {
        if let Some(held) = self._held.take() {
            let _ = held.keep();
        }
        &self.root
    }
}

/// The environment variable that contains [`Sandbox::marker`].
pub const MARKER_VARIABLE: &str = "PINION_TEST_MARKER";

/// The mock providers, one for each wire format.
pub fn models(port: u16) -> Value {
    let base = format!("http://127.0.0.1:{port}");
    let model = |id: &str, name: &str, reasoning: bool, window: u64, input: &[&str]| {
        json!({"id": id, "name": name, "reasoning": reasoning, "input": input,
            "contextWindow": window, "maxTokens": 8192,
            "cost": {"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75}})
    };
    let large = |id, name| model(id, name, true, 200_000, &["text", "image"]);
    let provider = |path: &str, api: &str, models: Vec<Value>| {
        json!({"baseUrl": format!("{base}{path}"), "api": api, "apiKey": "mock-key",
               "models": models})
    };
    json!({"providers": {
        "mock": provider("", "anthropic-messages", vec![
            large("mock-1", "Mock One"),
            model("mock-2", "Mock Two", false, 200_000, &["text"]),
            model("mock-small", "Mock Small Window", true, 20_000, &["text", "image"]),
        ]),
        "mock-chat": provider("/v1", "openai-completions", vec![large("chat-1", "Mock Chat")]),
        "mock-resp": provider("/v1", "openai-responses", vec![large("resp-1", "Mock Responses")]),
        "mock-gem": provider("/v1beta", "google-generative-ai", vec![large("gem-1", "Mock Gemini")]),
    }})
}

fn own((name, value): (&String, &Value)) -> (String, Value) {
    (name.clone(), value.clone())
}

fn write_all(root: &Path, files: &Value) {
    for (name, value) in files.as_object().into_iter().flatten() {
        match value.as_str() {
            Some(text) => write_bytes(&root.join(name), text.as_bytes()),
            None => write(&root.join(name), value),
        }
    }
}

fn write(path: &Path, value: &Value) {
    let text = serde_json::to_string_pretty(value).expect("a JSON value can be written");
    write_bytes(path, text.as_bytes());
}

fn write_bytes(path: &Path, bytes: &[u8]) {
    let directory = path
        .parent()
        .expect("a file in the sandbox has a directory");
    fs::create_dir_all(directory).expect("a directory in the sandbox");
    fs::write(path, bytes).expect("a file in the sandbox");
}

fn collect(root: &Path, directory: &Path, found: &mut Vec<(String, PathBuf)>) {
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    let mut entries: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    entries.sort();
    // Files of a directory before the directories in it.
    let (directories, files): (Vec<_>, Vec<_>) = entries.into_iter().partition(|p| p.is_dir());
    for file in files
        .into_iter()
        .filter(|p| p.extension().is_some_and(|e| e == "jsonl"))
    {
        let name = file
            .strip_prefix(root)
            .unwrap_or(&file)
            .to_string_lossy()
            .into_owned();
        found.push((name, file));
    }
    for directory in directories.iter().filter(|p| !p.is_symlink()) {
        collect(root, directory, found);
    }
}
