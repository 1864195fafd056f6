//! The cache of compiled scripts between two starts.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;

use pinion_extensions::ScriptOptions;
use serde_json::json;
use support::Bench;

fn kept(directory: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut files: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
}

#[tokio::test]
async fn a_second_start_uses_the_cache_of_the_first() {
    let cache = tempfile::tempdir().unwrap();
    let options = || ScriptOptions {
        cache_dir: Some(cache.path().to_owned()),
        ..ScriptOptions::default()
    };
    let first = Bench::with(options()).await;
    let helper = first.write(
        "helper.ts",
        "export const twice = (n: number): number => n * 2;",
    );
    let main = first.write(
        "main.ts",
        "import { twice } from './helper.js'; export default () => [twice(4), require('./helper').twice(1), import.meta.filename];",
    );
    assert_eq!(first.run("main.ts").await.unwrap(), json!([8, 2, main]));
    let files = kept(cache.path());
    assert_eq!(files.len(), 2);

    let mut second = Bench::with(options()).await;
    second.directory = first.directory;
    assert_eq!(second.run("main.ts").await.unwrap(), json!([8, 2, main]));
    assert_eq!(kept(cache.path()), files);

    // The cached code is the code that runs: a damaged file is compiled again, a changed source is another file.
    for file in &files {
        fs::write(file, b"pinion-script-1\nnonsense").unwrap();
    }
    fs::write(
        &helper,
        "export const twice = (n: number): number => n * 20;",
    )
    .unwrap();
    let third = second.script.open_generation().await.unwrap();
    assert_eq!(
        second.run_in(third, "main.ts").await.unwrap(),
        json!([80, 20, main])
    );
    assert_eq!(kept(cache.path()).len(), 3);
}

#[tokio::test]
async fn an_unwritable_cache_is_not_an_error() {
    let bench = Bench::with(ScriptOptions {
        cache_dir: Some("/proc/no-such-place/scripts".into()),
        ..ScriptOptions::default()
    })
    .await;
    assert_eq!(bench.eval("return 1").await.unwrap(), json!(1));
}
