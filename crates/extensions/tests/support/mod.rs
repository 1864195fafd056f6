//! A script engine that runs files that a test writes.
#![allow(dead_code, clippy::unwrap_used)]

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use pinion_extensions::{Generation, Script, ScriptError, ScriptOptions, Uncaught};
use serde_json::Value;
use tempfile::TempDir;

/// A directory of files, and an engine that runs them.
pub struct Bench {
    pub directory: TempDir,
    pub script: Script,
    pub generation: Generation,
    pub uncaught: Arc<Mutex<Vec<Uncaught>>>,
}

impl Bench {
    pub async fn new() -> Self {
        Self::with(ScriptOptions::default()).await
    }

    pub async fn with(mut options: ScriptOptions) -> Self {
        let uncaught = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&uncaught);
        options.on_uncaught = Arc::new(move |one| seen.lock().unwrap().push(one));
        let script = Script::start(options).unwrap();
        let generation = script.open_generation().await.unwrap();
        Self {
            directory: tempfile::tempdir().unwrap(),
            script,
            generation,
            uncaught,
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(name)
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// Runs the default export of the file `name`.
    pub async fn run(&self, name: &str) -> Result<Value, ScriptError> {
        self.run_in(self.generation, name).await
    }

    pub async fn run_in(&self, generation: Generation, name: &str) -> Result<Value, ScriptError> {
        let path = serde_json::to_string(&self.path(name)).unwrap();
        let text = self
            .script
            .call(generation, "runtime/entry.run", vec![path])
            .await?;
        Ok(serde_json::from_str(&text).unwrap())
    }

    /// Runs `body` as the body of an async function in its own file.
    pub async fn eval(&self, body: &str) -> Result<Value, ScriptError> {
        let name = format!("eval-{}.ts", uuid_like());
        self.write(&name, &format!("export default async () => {{ {body} }}"));
        self.run(&name).await
    }
}

fn uuid_like() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
