//! Runs the clips of `docs/clips.md`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot be set up should fail"
)]

mod common;

use std::path::PathBuf;
use std::sync::Arc;

use common::{TestClip, ask, call, part};
use pinion_clip::logs::ClipLog;
use pinion_clip::{Clip, Code, Programs};
use serde_json::json;

/// Returns the first block of `language` in `docs/clips.md` that contains `name`.
fn example(language: &str, name: &str) -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/clips.md");
    let text = std::fs::read_to_string(path).unwrap();
    let blocks = text.split("```").skip(1).step_by(2);
    let mut blocks = blocks.filter_map(|block| block.strip_prefix(language)?.strip_prefix('\n'));
    blocks
        .find(|block| block.contains(name))
        .unwrap()
        .to_owned()
}

#[tokio::test]
#[ignore = "needs bash and jq; cargo xtask test brings them"]
async fn the_clip_in_bash() {
    let place = TestClip::new();
    place.write("clip.json", &example("json", "greeter.sh"));
    place.write("greeter.sh", &example("bash", "greeter.sh"));
    let clip = place.clip();
    let manifest = clip.inspect().await.unwrap();
    assert_eq!(manifest.package, "@me/greeter");
    let schema: serde_json::Value = serde_json::from_str(&manifest.commands[0].input).unwrap();
    assert_eq!(schema["required"], json!(["name"]));
    let hello = ask(&clip, "greet", &json!({"name": "Ada \"L\""})).await;
    assert_eq!(hello.unwrap(), "Hello, Ada \"L\"");
    let unknown = ask(&clip, "part", &json!({})).await.unwrap_err();
    assert_eq!(unknown.code, Code::NotFound);
}

#[tokio::test]
#[ignore = "needs python3; cargo xtask test brings it"]
async fn the_clip_in_python() {
    let place = TestClip::new();
    place.write(
        "clip.json",
        r#"{"runtime": "python", "main": "counter.py"}"#,
    );
    place.write("counter.py", &example("python", "counter.py"));
    let clip = place.clip();
    let mut stream = call(&clip, "count", &json!({"to": 3}));
    for number in 1..=3 {
        assert_eq!(part(&mut stream).await.unwrap().unwrap(), number);
    }
    assert!(part(&mut stream).await.is_none());
    let unknown = ask(&clip, "part", &json!({})).await.unwrap_err();
    assert_eq!(unknown.code, Code::NotFound);
}

/// Runs the list of tasks with the given programs.
async fn list_of_tasks(programs: Programs, clip_json: &str) {
    let place = TestClip::new();
    place.write("clip.json", clip_json);
    place.write("todo.mts", &example("typescript", "todo.mts"));
    let mut config = place.config();
    config.programs = programs;
    let log = Arc::new(ClipLog::in_memory());
    let clip = Clip::new(config, log, place.cross_calls.clone());
    assert_eq!(clip.inspect().await.unwrap().commands.len(), 2);
    for (number, text) in ["buy milk", "sell \"honey\""].iter().enumerate() {
        let count = ask(&clip, "add", &json!({ "text": text })).await;
        assert_eq!(count.unwrap(), number + 1);
    }
    let tasks = ask(&clip, "list", &json!({})).await.unwrap();
    assert_eq!(tasks, json!(["buy milk", "sell \"honey\""]));
    let unknown = ask(&clip, "part", &json!({})).await.unwrap_err();
    assert_eq!(unknown.code, Code::NotFound);
}

fn prepared(variable: &str) -> Option<PathBuf> {
    let path = std::env::var_os(variable);
    Some(
        path.unwrap_or_else(|| panic!("{variable} names the program to run"))
            .into(),
    )
}

#[tokio::test]
#[ignore = "needs bun; cargo xtask test --all brings it"]
async fn the_clip_in_typescript_on_bun() {
    let programs = Programs {
        bun: prepared("PINION_BUN"),
        ..Programs::default()
    };
    list_of_tasks(programs, r#"{"main": "todo.mts"}"#).await;
}

#[tokio::test]
#[ignore = "needs a node that runs TypeScript; cargo xtask test --all brings it"]
async fn the_clip_in_typescript_on_node() {
    let programs = Programs {
        node: prepared("PINION_NODE"),
        ..Programs::default()
    };
    list_of_tasks(programs, r#"{"runtime": "node", "main": "todo.mts"}"#).await;
}

#[tokio::test]
async fn the_clip_in_rust() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/bin/shout.rs");
    let program = std::fs::read_to_string(path).unwrap();
    let (_, shown) = program.split_once('\n').unwrap();
    assert_eq!(
        example("rust", "shout.rs"),
        shown,
        "it is the one that runs"
    );
    let place = TestClip::new();
    place.write("clip.json", r#"{"runtime": "exec", "main": "shout"}"#);
    let built = env!("CARGO_BIN_EXE_clip-shout");
    std::os::unix::fs::symlink(built, place.directory().join("shout")).unwrap();
    let clip = place.clip();
    let loud = ask(&clip, "shout", &json!({"text": "h\u{e9}llo"})).await;
    assert_eq!(loud.unwrap(), "H\u{c9}LLO");
    let unknown = ask(&clip, "part", &json!({})).await.unwrap_err();
    assert_eq!(unknown.code, Code::NotFound);
}
