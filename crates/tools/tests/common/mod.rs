//! A working directory for calls of tools.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot be set up should fail"
)]

use std::path::Path;
use std::sync::{Arc, Mutex, Once};

use pinion_process::{GUARDIAN_ARGUMENT, set_guardian};
use pinion_tools::{Tool, ToolContext, ToolError, ToolOutput, ToolSettings, builtin};
use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// A program that can be a guardian; test binaries cannot.
pub const PROBE: &str = env!("CARGO_BIN_EXE_tools-probe");

/// A working directory with files, and the updates of tools while they run.
pub struct Workspace {
    pub dir: TempDir,
    pub cancel: CancellationToken,
    /// Variables for the commands of calls.
    pub env: Vec<(String, String)>,
    pub updates: Arc<Mutex<Vec<ToolOutput>>>,
}

impl Workspace {
    pub fn new(files: &[(&str, &str)]) -> Self {
        static GUARDED: Once = Once::new();
        GUARDED.call_once(|| {
            set_guardian(PROBE.into(), vec![GUARDIAN_ARGUMENT.into()]);
        });
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Self {
            dir,
            cancel: CancellationToken::new(),
            env: Vec::new(),
            updates: Arc::default(),
        }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn text_of(&self, name: &str) -> String {
        String::from_utf8(std::fs::read(self.path().join(name)).unwrap()).unwrap()
    }

    pub fn context(&self) -> ToolContext {
        let updates = self.updates.clone();
        ToolContext {
            call_id: "call".into(),
            cwd: Arc::new(self.path().to_owned()),
            env: self.env.clone(),
            cancel: self.cancel.clone(),
            updates: Arc::new(move |update| updates.lock().unwrap().push(update)),
            nested: None,
            follower: None,
            records_change: false,
        }
    }

    /// Validates and calls, as the engine does.
    pub async fn call(&self, name: &str, arguments: Value) -> Result<ToolOutput, ToolError> {
        self.call_with(name, arguments, ToolSettings::default())
            .await
    }

    pub async fn call_with(
        &self,
        name: &str,
        arguments: Value,
        settings: ToolSettings,
    ) -> Result<ToolOutput, ToolError> {
        let tool = tool_named(name, settings);
        let arguments = tool.validate(&arguments).map_err(ToolError)?;
        tool.call(arguments, &self.context()).await
    }

    /// The text of a call that works.
    pub async fn text(&self, name: &str, arguments: Value) -> String {
        text(&self.call(name, arguments).await.unwrap())
    }

    /// The text of a call that fails.
    pub async fn error(&self, name: &str, arguments: Value) -> String {
        self.call(name, arguments).await.unwrap_err().0
    }
}

pub fn tool_named(name: &str, settings: ToolSettings) -> Arc<dyn Tool> {
    builtin(&[name], settings).pop().unwrap()
}

pub fn text(output: &ToolOutput) -> String {
    output.content[0].as_text().unwrap().to_owned()
}
