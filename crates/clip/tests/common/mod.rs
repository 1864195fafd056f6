//! Clips for tests: directories with programs in them, and the configuration to run them.
#![allow(dead_code, reason = "each test file uses its part")]

pub mod archive;
pub mod server;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::{Arc, Once};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use pinion_clip::logs::ClipLog;
use pinion_clip::package::Package;
use pinion_clip::{
    CallError, ChunkStream, Clip, ClipConfig, ClipError, CrossCalls, Invocation, Limits,
    NoCrossCalls,
};
use serde_json::Value;
use tempfile::TempDir;

pub const PROBE: &str = env!("CARGO_BIN_EXE_clip-probe");

/// The directory of a clip, and beside it the directory of its data.
pub struct TestClip {
    pub root: TempDir,
    pub limits: Limits,
    pub cross_calls: Arc<dyn CrossCalls>,
    pub variables: Vec<(String, String)>,
}

impl TestClip {
    /// Creates an empty directory.
    pub fn new() -> Self {
        static GUARDIAN: Once = Once::new();
        GUARDIAN.call_once(|| {
            let arguments = vec![pinion_process::GUARDIAN_ARGUMENT.into()];
            pinion_process::set_guardian(PROBE.into(), arguments);
        });
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("clip")).unwrap();
        Self {
            root,
            limits: Limits::default(),
            cross_calls: Arc::new(NoCrossCalls),
            variables: Vec::new(),
        }
    }

    /// Creates a clip that is a shell script.
    pub fn script(clip_json: &str, script: &str) -> Self {
        let place = Self::new();
        place.write("clip.json", clip_json);
        place.write("run.sh", &format!("#!/bin/bash\n{script}"));
        place
    }

    /// Creates a clip that runs `tests/bin/probe.rs`.
    pub fn probe() -> Self {
        let place = Self::new();
        place.write("clip.json", r#"{"runtime":"exec","main":"probe"}"#);
        symlink(PROBE, place.directory().join("probe")).unwrap();
        place
    }

    pub fn directory(&self) -> std::path::PathBuf {
        self.root.path().join("clip")
    }

    pub fn path(&self, name: &str) -> std::path::PathBuf {
        self.root.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        write_program(&self.directory().join(name), text);
    }

    pub fn config(&self) -> ClipConfig {
        let package = Package::read(&self.directory()).unwrap();
        let mut config = ClipConfig::new("lab", package, self.path("data"));
        config.limits = self.limits.clone();
        let variables = self.variables.iter();
        config.variables = variables
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        config
    }

    pub fn clip(&self) -> Clip {
        let log = Arc::new(ClipLog::in_memory());
        Clip::new(self.config(), log, self.cross_calls.clone())
    }
}

pub fn write_program(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

pub const EXEC: &str = r#"{"runtime":"exec","main":"run.sh"}"#;
pub const DIRECT: &str = r#"{"runtime":"exec","main":"run.sh","ipc":"direct"}"#;

/// Functions for shell scripts: `next` reads the next call into `$line`, `$id` and `$command`, `say` prints a message.
pub const SHELL: &str = r#"
next() { while :; do read -r line || return 1; case $line in *'"invoke"'*) break;; esac; done; id=${line#*'"id":"'}; id=${id%%'"'*}; command=${line#*'"command":"'}; command=${command%%'"'*}; }
say() { printf '%s\n' "$1"; }
result() { say '{"type":"result","id":"'"$id"'","output":'"$1"'}'; }
chunk() { say '{"type":"chunk","id":"'"$id"'","output":'"$1"'}'; }
done_() { say '{"type":"done","id":"'"$id"'"}'; }
register() { say '{"type":"register","manifest":{"commands":["a"]}}'; }
"#;

pub fn raw(value: &Value) -> Bytes {
    value.to_string().into()
}

pub fn call(clip: &Clip, command: &str, input: &Value) -> ChunkStream {
    clip.invoke(Invocation::new(command, raw(input))).unwrap()
}

/// Calls a command and returns the whole answer.
pub async fn ask(clip: &Clip, command: &str, input: &Value) -> Result<Value, ClipError> {
    let output = call(clip, command, input).output().await?;
    Ok(serde_json::from_slice(&output).unwrap())
}

pub fn within(time: Duration, command: &str, input: &Value) -> Invocation {
    let mut invocation = Invocation::new(command, raw(input));
    invocation.deadline = Some(tokio::time::Instant::now() + time);
    invocation
}

/// Returns the next part of an answer.
pub async fn part(stream: &mut ChunkStream) -> Option<Result<Value, CallError>> {
    let item = stream.next().await?;
    Some(item.map(|output| serde_json::from_slice(&output).unwrap()))
}

pub fn messages(clip: &Clip) -> Vec<String> {
    let tail = clip.logs().tail(usize::MAX);
    tail.iter().map(|entry| entry.message.to_string()).collect()
}

/// Waits until a condition holds, without a tight limit on the time.
pub async fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let patience = std::time::Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(
            std::time::Instant::now() < patience,
            "{what} did not come about"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
