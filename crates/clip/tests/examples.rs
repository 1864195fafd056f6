//! The clips in the documentation, cut out of it and run.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot be set up should fail"
)]

mod common;

use common::{Place, ask, call, part};
use pinion_clip::Code;
use serde_json::json;

/// The first block of `language` in the documentation that contains `name`.
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

/// Whether a program the example needs is there; without it there is nothing to try.
fn is_there(program: &str) -> bool {
    let found = std::process::Command::new(program)
        .arg("--version")
        .output();
    found.is_ok_and(|output| output.status.success())
}

#[tokio::test]
async fn the_clip_in_bash() {
    if !is_there("jq") {
        return;
    }
    let place = Place::new();
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
async fn the_clip_in_python() {
    if !is_there("python3") {
        return;
    }
    let place = Place::new();
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
