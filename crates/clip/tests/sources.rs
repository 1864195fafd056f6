//! Tests of packages from npm and from repositories, fetched by the real programs from this machine.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot be set up should fail"
)]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::archive::{Item, archive};
use common::server::{Answer, Server};
use common::{SHELL, TestClip, write_program};
use pinion_clip::install::{Install, Library, Record};
use pinion_clip::{ClipError, Code, Programs};
use serde_json::json;
use sha1::{Digest, Sha1};
use tempfile::TempDir;

/// Creates a program that runs another with additional arguments or variables.
fn wrapper(root: &TempDir, name: &str, script: &str) -> PathBuf {
    let path = root.path().join(name);
    write_program(&path, &format!("#!/bin/bash\n{script}\n"));
    path
}

async fn add(library: &Library, source: &str) -> Result<Record, ClipError> {
    let source = library.source(source)?;
    let install = Install {
        alias: "todo",
        source: &source,
        owner: "",
        call_secret: "",
        registry_token: None,
    };
    let staged = library.stage(&install).await?;
    library.commit(staged)
}

fn script(version: &str) -> String {
    format!("#!/bin/bash\n{SHELL}\nregister\nwhile next; do result '\"{version}\"'; done")
}

const CLIP_JSON: &str = r#"{"runtime":"exec","main":"run.sh"}"#;

#[tokio::test]
#[ignore = "needs npm; cargo xtask test brings it"]
async fn a_package_of_npm_is_installed_and_upgraded() {
    drop(TestClip::new());
    let root = tempfile::tempdir().unwrap();
    let packed = |version: &str| {
        let package_json = json!({"name": "@lab/todo", "version": version}).to_string();
        archive(&[
            Item::File("package/package.json", &package_json),
            Item::File("package/clip.json", CLIP_JSON),
            Item::File("package/run.sh", &script(version)),
        ])
    };
    let server = Server::start(move |request| {
        if let Some(version) = request.path.strip_prefix("/files/") {
            return Answer::ok(packed(version.trim_end_matches(".tgz")));
        }
        if !request.path.eq_ignore_ascii_case("/@lab%2ftodo") {
            return Answer::status(404, "{}");
        }
        let host = request.header("host").unwrap();
        let entry = |version: &str, sum: String| {
            json!({"name": "@lab/todo", "version": version,
                "dist": {"tarball": format!("http://{host}/files/{version}.tgz"), "shasum": sum}})
        };
        let sum = |version: &str| {
            let digest = Sha1::digest(packed(version));
            digest.iter().map(|byte| format!("{byte:02x}")).collect()
        };
        let versions = json!({"1.0.0": entry("1.0.0", sum("1.0.0")), "1.1.0": entry("1.1.0", sum("1.1.0")),
            "2.0.0": entry("2.0.0", "0".repeat(40))});
        let tags = json!({"latest": "1.1.0", "old": "1.0.0"});
        let document = json!({"name": "@lab/todo", "dist-tags": tags, "versions": versions});
        let mut answer = Answer::ok(document.to_string());
        answer
            .headers
            .push(("Content-Type", "application/json".into()));
        answer
    });
    let cache = root.path().join("cache");
    let settings = format!(
        "export npm_config_registry={} npm_config_cache={} npm_config_fetch_retries=0 npm_config_update_notifier=false",
        server.url,
        cache.display()
    );
    let programs = Programs {
        npm: Some(wrapper(
            &root,
            "npm",
            &format!("{settings}\nexec npm \"$@\""),
        )),
        ..Programs::default()
    };
    let library = Library::open(root.path().join("home"), programs).unwrap();
    let record = add(&library, "npm/@lab/todo@old").await.unwrap();
    assert_eq!(record.source, "npm/@lab/todo@1.0.0");
    assert_eq!(
        (record.package.as_str(), record.version.as_str()),
        ("@lab/todo", "1.0.0")
    );
    let newer = library.newer(&record, None, None).await.unwrap().unwrap();
    assert_eq!(newer.to_string(), "npm/@lab/todo@1.1.0");
    let record = add(&library, &newer.to_string()).await.unwrap();
    assert_eq!(library.newer(&record, None, None).await.unwrap(), None);
    for wrong in ["npm/@lab/todo@2.0.0", "npm/@lab/ghost", "npm/@lab/todo@7"] {
        let error = add(&library, wrong).await.unwrap_err();
        assert_eq!(error.code, Code::FailedPrecondition, "{error}");
    }
    assert_eq!(library.records().unwrap()["todo"].version, "1.1.0");
}

fn git(directory: &Path, words: &[&str]) {
    let identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"];
    let done = Command::new("git")
        .args(identity)
        .args(words)
        .current_dir(directory)
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
}

#[tokio::test]
#[ignore = "needs git; cargo xtask test brings it"]
async fn a_repository_is_installed_without_its_history() {
    drop(TestClip::new());
    let root = tempfile::tempdir().unwrap();
    let repository = root.path().join("hub/me/todo.git");
    fs::create_dir_all(&repository).unwrap();
    git(&repository, &["init", "--quiet", "--initial-branch=main"]);
    for (branch, version) in [("main", "1.0.0"), ("next", "2.0.0")] {
        if branch == "next" {
            git(&repository, &["checkout", "--quiet", "-b", "next"]);
        }
        let clip_json = json!({"runtime": "exec", "main": "run.sh", "version": version});
        fs::write(repository.join("clip.json"), clip_json.to_string()).unwrap();
        write_program(&repository.join("run.sh"), &script(version));
        git(&repository, &["add", "--all"]);
        git(&repository, &["commit", "--quiet", "-m", version]);
    }
    git(&repository, &["checkout", "--quiet", "main"]);
    let instead = format!(
        "exec git -c url.file://{}/hub/.insteadOf=https://github.com/ \"$@\"",
        root.path().display()
    );
    let programs = Programs {
        git: Some(wrapper(&root, "git", &instead)),
        ..Programs::default()
    };
    let library = Library::open(root.path().join("home"), programs).unwrap();
    let record = add(&library, "github/me/todo").await.unwrap();
    assert_eq!(
        (record.package.as_str(), record.version.as_str()),
        ("github/me/todo", "1.0.0")
    );
    assert!(!library.directory("todo").join(".git").exists());
    let record = add(&library, "github/me/todo#next").await.unwrap();
    assert_eq!(record.version, "2.0.0");
    for missing in ["github/me/ghost", "github/me/todo#nowhere"] {
        let error = add(&library, missing).await.unwrap_err();
        assert_eq!(error.code, Code::FailedPrecondition, "{error}");
    }
    let names = fs::read_dir(root.path().join("home/clips")).unwrap();
    assert_eq!(names.count(), 1, "nothing is left behind");
}
