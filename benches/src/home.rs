//! The directories of one run: agent directory, working directory and environment, with the model server configured the
//! same way for every agent. They are removed on drop.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process};

use serde_json::{Value, json};

use crate::Fallible;

/// The directories of one run of an agent.
#[derive(Debug)]
pub struct Home {
    root: PathBuf,
}

impl Home {
    /// Creates the directories and a configuration that points at a model server on `port`.
    pub fn new(port: u16) -> Fallible<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("pinion-bench-{}-{number}", process::id());
        let home = Self {
            root: env::temp_dir().join(name),
        };
        for directory in [home.work(), home.agent(), home.root.join("tmp")] {
            fs::create_dir_all(&directory)?;
        }
        let model = json!({"id": "mock-1", "name": "Mock One", "reasoning": true,
            "input": ["text", "image"], "contextWindow": 200_000, "maxTokens": 8192,
            "cost": {"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75}});
        let provider = json!({"baseUrl": format!("http://127.0.0.1:{port}"),
            "api": "anthropic-messages", "apiKey": "mock-key", "models": [model]});
        home.write("models.json", &json!({"providers": {"mock": provider}}))?;
        let settings = json!({"defaultProvider": "mock", "defaultModel": "mock-1",
            "defaultThinkingLevel": "off", "quietStartup": true});
        home.write("settings.json", &settings)?;
        Ok(home)
    }

    /// The working directory of the agent.
    pub fn work(&self) -> PathBuf {
        self.root.join("work")
    }

    /// The directory that holds all others.
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn agent(&self) -> PathBuf {
        self.root.join("home/.pi/agent")
    }

    fn write(&self, name: &str, value: &Value) -> Fallible<()> {
        Ok(fs::write(self.agent().join(name), value.to_string())?)
    }

    /// Makes a command run here, with only PATH of this program's environment.
    pub fn apply_to(&self, command: &mut Command) {
        command
            .env_clear()
            .env("PATH", env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.root.join("home"))
            .env("PI_CODING_AGENT_DIR", self.agent())
            .env("TMPDIR", self.root.join("tmp"))
            .envs([("LANG", "C.UTF-8"), ("TZ", "UTC"), ("SHELL", "/bin/bash")])
            .envs([
                ("PI_OFFLINE", "1"),
                ("PI_SKIP_VERSION_CHECK", "1"),
                ("PI_TELEMETRY", "0"),
            ])
            .current_dir(self.work());
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // A failure leaves only a directory among temporary files.
        let _ = fs::remove_dir_all(&self.root);
    }
}
