//! Tests of stored files: operations on them, and that paths cannot leave the directory of a clip.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot be set up should fail"
)]

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;

use bytes::Bytes;
use nix::sys::stat::Mode;
use pinion_clip::Code;
use pinion_clip::data::{
    DataAnswer, DataOperation, DataRequest, DataStore, EntryKind, MAX_ENTRIES, MAX_FILE,
};
use tempfile::TempDir;

const SECRET: &str = "not for clips";

/// Creates a store with two clips and a secret beside it.
fn store() -> (TempDir, DataStore) {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("secret"), SECRET).unwrap();
    let store = DataStore::open(root.path().join("data")).unwrap();
    store.write("todo", "a/b.txt", b"ours").unwrap();
    store.write("todo-2", "b.txt", b"theirs").unwrap();
    (root, store)
}

#[test]
fn files_are_written_read_listed_and_deleted() {
    let (_root, store) = store();
    assert_eq!(
        store.write("todo", "a/x/n.json", b"{}").unwrap(),
        "pinix://todo/a/x/n.json"
    );
    assert_eq!(store.read("todo", " a//x/./n.json ").unwrap(), b"{}");
    store.write("todo", "a/x/n.json", b"[1]").unwrap();
    let stat = store.stat("todo", "a/x/n.json").unwrap();
    assert_eq!((stat.size, &*stat.mime), (3, "application/json"));
    assert!(
        stat.modified.ends_with('Z') && stat.modified.len() == 20,
        "{}",
        stat.modified
    );

    let entries = store.list("todo", "a").unwrap();
    let seen: Vec<_> = entries
        .iter()
        .map(|entry| {
            (
                entry.name.as_str(),
                entry.path.as_str(),
                entry.r#type,
                entry.mime.as_deref(),
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            (
                "b.txt",
                "pinix://todo/a/b.txt",
                EntryKind::File,
                Some("text/plain; charset=utf-8")
            ),
            ("x", "pinix://todo/a/x", EntryKind::Directory, None),
        ]
    );
    assert_eq!(store.list("todo", "").unwrap().len(), 1);
    assert_eq!(store.list("todo", "nowhere").unwrap(), []);
    assert_eq!(store.list("nobody", "").unwrap(), []);

    let full = store.delete("todo", "a/x").unwrap_err();
    assert_eq!(full.code, Code::FailedPrecondition);
    assert_eq!(
        store.delete("todo", "a/x/n.json").unwrap(),
        "pinix://todo/a/x/n.json"
    );
    store.delete("todo", "a/x").unwrap();
    for missing in [
        store.read("todo", "a/x/n.json").unwrap_err(),
        store.stat("todo", "a/b.txt/c").unwrap_err(),
        store.delete("todo", "a/x").unwrap_err(),
        store.read("nobody", "a").unwrap_err(),
    ] {
        assert_eq!(missing.code, Code::NotFound, "{missing}");
    }
    let in_the_way = store.write("todo", "a/b.txt/c", b"").unwrap_err();
    assert_eq!(in_the_way.code, Code::FailedPrecondition);
    assert_eq!(
        store.write("todo", "a", b"").unwrap_err().code,
        Code::InvalidArgument
    );
    assert_eq!(
        store.read("todo", "a").unwrap_err().code,
        Code::InvalidArgument
    );
}

#[test]
fn a_link_that_leads_out_is_not_written_over() {
    let (root, store) = store();
    let todo = root.path().join("data/todo");
    symlink("../../secret", todo.join("up")).unwrap();
    symlink("a/b.txt", todo.join("in")).unwrap();
    let refused = store.write("todo", "up", b"x").unwrap_err();
    assert_eq!(refused.code, Code::PermissionDenied);
    assert_eq!(refused.code, store.read("todo", "up").unwrap_err().code);
    assert!(todo.join("up").is_symlink());
    store.write("todo", "in", b"x").unwrap();
}

#[test]
fn forty_hostile_paths_lead_nowhere() {
    let (root, store) = store();
    let todo = root.path().join("data/todo");
    symlink("../../secret", todo.join("up")).unwrap();
    symlink(root.path().join("secret"), todo.join("absolute")).unwrap();
    symlink(root.path(), todo.join("root")).unwrap();
    symlink("..", todo.join("parent")).unwrap();
    symlink("loop-b", todo.join("loop-a")).unwrap();
    symlink("loop-a", todo.join("loop-b")).unwrap();
    symlink("/proc/self", todo.join("proc")).unwrap();
    symlink("/dev/null", todo.join("null")).unwrap();
    symlink("a/../../todo-2", todo.join("sibling")).unwrap();
    nix::unistd::mkfifo(&todo.join("pipe"), Mode::S_IRWXU).unwrap();
    let long_name = "n".repeat(256);
    let long_path = "d/".repeat(520) + "f";
    let secret = root.path().join("secret");
    let hostile = [
        "",
        ".",
        "..",
        "../",
        "../secret",
        "../../secret",
        "a/../../../secret",
        "./../../secret",
        "a/./.././../../secret",
        "../todo-2/b.txt",
        "a/../../todo-2/b.txt",
        "/etc/passwd",
        "//etc/passwd",
        "/",
        secret.to_str().unwrap(),
        "pinix://todo-2/b.txt",
        "up",
        "up/",
        "absolute",
        "root/secret",
        "root/data/todo-2/b.txt",
        "root",
        "parent/todo-2/b.txt",
        "parent/parent/secret",
        "parent",
        "loop-a",
        "loop-a/x",
        "proc/cmdline",
        "proc/cwd/Cargo.toml",
        "proc/root/etc/passwd",
        "null",
        "sibling/b.txt",
        "pipe",
        "a\0b",
        "up\0.txt",
        &long_name,
        &long_path,
        "%2e%2e/%2e%2e/secret",
        "..\\..\\secret",
        "a/b.txt/../../../secret",
        "\u{ff0e}\u{ff0e}/secret",
        "~/secret",
        "$HOME/secret",
    ];
    assert!(hostile.len() >= 40);
    for path in hostile {
        let read = store.read("todo", path);
        let code = read.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let refused = code.expect_err(path).code;
        assert!(
            matches!(
                refused,
                Code::InvalidArgument | Code::PermissionDenied | Code::NotFound
            ),
            "{path}: {refused}"
        );
        // Some of the names only look hostile and may be written; the file must be inside then.
        let _ = store.write("todo", path, b"overwritten");
        let _ = store.delete("todo", path);
        if let Ok(entries) = store.list("todo", path) {
            assert!(
                entries.iter().all(|entry| entry.name != "secret"),
                "{path}: {entries:?}"
            );
        }
    }
    assert_eq!(fs::read_to_string(&secret).unwrap(), SECRET);
    assert_eq!(store.read("todo-2", "b.txt").unwrap(), b"theirs");
    assert_eq!(store.read("todo", "a/b.txt").unwrap(), b"ours");
    for alias in ["", "..", ".", "todo/..", "Todo", ".unfinished", "a/b", "\0"] {
        assert!(store.read(alias, "b.txt").is_err(), "{alias:?}");
        assert!(store.write(alias, "b.txt", b"").is_err(), "{alias:?}");
        assert!(store.purge(alias).is_err(), "{alias:?}");
    }
}

#[test]
fn a_namespace_that_is_a_link_is_not_followed() {
    let (root, store) = store();
    symlink(root.path(), root.path().join("data/linked")).unwrap();
    assert!(store.read("linked", "secret").is_err());
    assert!(store.write("linked", "secret", b"x").is_err());
    store.purge("linked").unwrap();
    assert_eq!(
        fs::read_to_string(root.path().join("secret")).unwrap(),
        SECRET
    );
}

#[test]
fn a_fifo_is_not_written_over() {
    let (place, store) = store();
    let fifo = store.directory("todo").unwrap().join("pipe");
    nix::unistd::mkfifo(&fifo, Mode::S_IRWXU).unwrap();
    let error = store.write("todo", "pipe", b"x").unwrap_err();
    assert_eq!(error.code, Code::FailedPrecondition, "{error}");
    assert!(fifo.exists() && !fifo.is_file());
    drop(place);
}

#[test]
fn links_inside_are_followed_and_replaced_by_writing() {
    let (root, store) = store();
    symlink("a/b.txt", root.path().join("data/todo/inside")).unwrap();
    symlink("a", root.path().join("data/todo/directory")).unwrap();
    assert_eq!(store.read("todo", "inside").unwrap(), b"ours");
    store.write("todo", "inside", b"new").unwrap();
    assert_eq!(store.read("todo", "a/b.txt").unwrap(), b"ours");
    store.write("todo", "directory/c", b"c").unwrap();
    assert_eq!(store.read("todo", "a/c").unwrap(), b"c");
}

#[test]
fn limits_are_stated_and_kept() {
    let (root, store) = store();
    let big = vec![0; MAX_FILE + 1];
    let written = store.write("todo", "big", &big).unwrap_err();
    assert_eq!(written.code, Code::ResourceExhausted);
    store.write("todo", "fits", &big[1..]).unwrap();
    assert_eq!(store.read("todo", "fits").unwrap().len(), MAX_FILE);
    fs::write(root.path().join("data/todo/big"), &big).unwrap();
    assert_eq!(
        store.read("todo", "big").unwrap_err().code,
        Code::ResourceExhausted
    );
    let many = root.path().join("data/todo/many");
    fs::create_dir(&many).unwrap();
    for number in 0..=MAX_ENTRIES {
        fs::write(many.join(number.to_string()), "").unwrap();
    }
    assert_eq!(
        store.list("todo", "many").unwrap_err().code,
        Code::ResourceExhausted
    );
    fs::remove_file(many.join("0")).unwrap();
    assert_eq!(store.list("todo", "many").unwrap().len(), MAX_ENTRIES);
}

#[test]
fn unfinished_files_are_removed() {
    let (root, store) = store();
    drop(store);
    let unfinished = root.path().join("data/.unfinished/half");
    fs::write(&unfinished, "half").unwrap();
    let store = DataStore::open(root.path().join("data")).unwrap();
    assert!(!unfinished.exists());
    assert_eq!(store.read("todo", "a/b.txt").unwrap(), b"ours");
}

#[tokio::test]
async fn a_clip_changes_only_its_own_files() {
    let (_root, store) = store();
    let store = Arc::new(store);
    let write = |text: &'static str| DataOperation::Write {
        content: text.into(),
        mime: String::new(),
    };
    let request = |operation, clip: Option<&str>| DataRequest {
        operation,
        path: "b.txt".into(),
        clip: clip.map(str::to_owned),
    };
    let theirs = store.serve("todo", request(DataOperation::Read, Some("todo-2")));
    assert_eq!(
        theirs.await.unwrap(),
        DataAnswer::Content(Bytes::from_static(b"theirs"))
    );
    for operation in [write("x"), DataOperation::Delete] {
        let refused = store
            .serve("todo", request(operation, Some("todo-2")))
            .await;
        assert_eq!(refused.unwrap_err().code, Code::PermissionDenied);
    }
    let own = store.serve("todo", request(write("x"), None));
    assert_eq!(
        own.await.unwrap(),
        DataAnswer::Uri("pinix://todo/b.txt".into())
    );
    assert_eq!(store.read("todo-2", "b.txt").unwrap(), b"theirs");
}
