//! Paths that do not lead to files, and files that are larger than they look: no tool waits, reads without end or
//! reaches a descriptor of this process.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot be set up should fail"
)]

mod common;

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::Duration;

use common::{Workspace, text};
use nix::sys::stat::Mode;
use serde_json::{Value, json};

/// Far longer than any of these calls takes; only a call that hangs reaches it.
const HANG_TIMEOUT: Duration = Duration::from_secs(30);

/// Every tool that takes a path, with arguments for `path`.
fn calls(path: &str) -> [(&'static str, Value); 6] {
    [
        ("read", json!({"path": path})),
        ("write", json!({"path": path, "content": "written\n"})),
        (
            "edit",
            json!({"path": path, "oldText": "a", "newText": "b"}),
        ),
        ("grep", json!({"pattern": ".", "path": path})),
        ("find", json!({"pattern": "*", "path": path})),
        ("ls", json!({"path": path})),
    ]
}

async fn error(workspace: &Workspace, name: &str, arguments: Value) -> String {
    let call = workspace.error(name, arguments);
    tokio::time::timeout(HANG_TIMEOUT, call).await.expect(name)
}

fn fifo(path: &Path) {
    nix::unistd::mkfifo(path, Mode::S_IRWXU).unwrap();
}

#[tokio::test]
async fn no_tool_opens_a_fifo_a_device_or_a_socket() {
    let workspace = Workspace::new(&[]);
    fifo(&workspace.path().join("fifo"));
    std::os::unix::fs::symlink("/dev/zero", workspace.path().join("zero")).unwrap();
    std::os::unix::net::UnixListener::bind(workspace.path().join("socket")).unwrap();
    for (path, kind) in [("fifo", "FIFO"), ("zero", "device"), ("socket", "socket")] {
        for (name, arguments) in calls(path) {
            let error = error(&workspace, name, arguments).await;
            let expected = match name {
                "find" => "Path not found: ".to_owned(),
                "ls" => "Not a directory: ".to_owned(),
                _ => format!("is a {kind}, not a regular file"),
            };
            assert!(error.contains(&expected), "{name} {path}: {error}");
        }
    }
    assert!(fs::metadata("/dev/zero").is_ok_and(|zero| !zero.is_file()));
}

#[tokio::test]
async fn no_tool_reaches_a_descriptor_of_this_process() {
    let workspace = Workspace::new(&[("sub/file", "abc")]);
    let (mut reader, writer) = std::io::pipe().unwrap();
    let own = writer.as_raw_fd();
    std::os::unix::fs::symlink(
        format!("/proc/self/fd/{own}"),
        workspace.path().join("link"),
    )
    .unwrap();
    // A regular file is not reached through a descriptor either.
    let file = File::open(workspace.path().join("sub/file")).unwrap();
    let file = file.as_raw_fd();
    for path in [
        "/dev/stdin".to_owned(),
        "/dev/stdout".into(),
        "/dev/stderr".into(),
        "/dev/fd/0".into(),
        format!("/proc/self/fd/{own}"),
        format!("/proc/self/fd/{file}"),
        format!("/proc/thread-self/fd/{own}"),
        format!("/proc/{}/fd/{own}", std::process::id()),
        format!("/dev/fd/{own}"),
        format!("/dev/../proc/self/fd/{own}"),
        format!("/proc/self/task/../fd/{own}"),
        format!("@/proc/self/fd/{own}"),
        format!("/proc/self/cwd/../../proc/self/fd/{own}"),
        "link".into(),
        "/proc/self/mem".into(),
        "/proc/self/environ".into(),
        "/dev/fd".into(),
        "/proc/self/fd".into(),
    ] {
        for (name, arguments) in calls(&path) {
            let error = error(&workspace, name, arguments).await;
            assert!(
                error.contains("leads to an open descriptor of a process")
                    || error.contains("belongs to the running pinion process"),
                "{name} {path}: {error}"
            );
        }
    }
    let arguments = json!({"path": "/proc/self/fd/new", "content": "x"});
    let error = error(&workspace, "write", arguments).await;
    assert!(error.contains("belongs to the running pinion process"));
    drop(writer);
    let mut got = Vec::new();
    reader.read_to_end(&mut got).unwrap();
    assert_eq!(got, b"", "nothing was written into the pipe");
    assert_eq!(workspace.text_of("sub/file"), "abc");
}

#[tokio::test]
async fn a_search_passes_by_what_is_not_a_file() {
    let workspace = Workspace::new(&[("a.txt", "needle\n"), ("sub/b.txt", "needle\n")]);
    fifo(&workspace.path().join("fifo"));
    fifo(&workspace.path().join("sub/.ignore"));
    fifo(&workspace.path().join(".gitignore"));
    std::os::unix::fs::symlink("/dev/zero", workspace.path().join("zero")).unwrap();
    std::os::unix::fs::symlink("/dev/stdin", workspace.path().join("input")).unwrap();
    for context in [0, 2] {
        let call = workspace.text("grep", json!({"pattern": "needle", "context": context}));
        let found = tokio::time::timeout(HANG_TIMEOUT, call)
            .await
            .expect("grep hangs");
        assert!(found.starts_with("a.txt:1: needle\n"), "{found}");
        assert!(found.contains("sub/b.txt:1: needle"), "{found}");
    }
    let call = workspace.text("find", json!({"pattern": "*.txt"}));
    let found = tokio::time::timeout(HANG_TIMEOUT, call)
        .await
        .expect("find hangs");
    assert_eq!(found, "a.txt\nsub/b.txt");
}

#[tokio::test]
async fn a_file_too_large_to_edit_is_refused_before_it_is_read() {
    let workspace = Workspace::new(&[("log", "start\n")]);
    let file = File::options()
        .write(true)
        .open(workspace.path().join("log"));
    file.unwrap().set_len(10 << 30).unwrap();
    let arguments = json!({"path": "log", "oldText": "start", "newText": "end"});
    assert_eq!(
        error(&workspace, "edit", arguments).await,
        "log is larger than the limit of 32 MiB for edits. Use bash to change it."
    );
}

/// A PNG with this size in its head and nothing in it.
fn bomb(width: u32, height: u32) -> Vec<u8> {
    fn chunk(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
        let mut checksum = u32::MAX;
        for byte in kind.iter().chain(data) {
            checksum ^= u32::from(*byte);
            for _ in 0..8 {
                checksum = (checksum >> 1) ^ (0xedb8_8320 * (checksum & 1));
            }
        }
        let mut chunk = (data.len() as u32).to_be_bytes().to_vec();
        chunk.extend_from_slice(kind);
        chunk.extend_from_slice(data);
        chunk.extend_from_slice(&(!checksum).to_be_bytes());
        chunk
    }
    let mut head = [width.to_be_bytes(), height.to_be_bytes()].concat();
    head.extend_from_slice(&[8, 6, 0, 0, 0]);
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    png.extend(chunk(b"IHDR", &head));
    // An empty deflate stream.
    png.extend(chunk(b"IDAT", &[0x78, 0x9c, 3, 0, 0, 0, 0, 1]));
    png.extend(chunk(b"IEND", &[]));
    png
}

#[tokio::test]
async fn an_image_that_would_not_fit_into_memory_is_refused() {
    let workspace = Workspace::new(&[]);
    let gif = b"GIF89a\xff\xff\xff\xff\x00\x00\x00,\0\0\0\0\xff\xff\xff\xff\0\x02\x02\x44\x01\0;";
    let mut webp = b"RIFF\x1e\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff".to_vec();
    webp.extend_from_slice(b"VP8L\x05\0\0\0\x2f\xff\xff\xff\x0f\0");
    let mut jpeg = vec![0xff, 0xd8, 0xff, 0xc0, 0, 17, 8, 0xff, 0xff, 0xff, 0xff, 3];
    jpeg.extend_from_slice(&[1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0, 0xff, 0xd9]);
    for (name, bytes) in [
        ("a.png", bomb(100_000, 100_000)),
        ("thin.png", bomb(2_000_000_000, 1)),
        ("a.gif", gif.to_vec()),
        ("a.webp", webp),
        ("a.jpg", jpeg),
    ] {
        fs::write(workspace.path().join(name), &bytes).unwrap();
        let call = workspace.call("read", json!({"path": name}));
        let result = tokio::time::timeout(HANG_TIMEOUT, call)
            .await
            .expect("read hangs");
        if name.ends_with(".png") || name.ends_with(".gif") {
            let error = result.unwrap_err().0;
            let expected = match name {
                "thin.png" => "is too large for models",
                _ => " pixels, more than can be scaled down",
            };
            assert!(error.contains(expected), "{name}: {error}");
            assert!(error.contains("Make a smaller copy"), "{name}: {error}");
        } else if let Ok(output) = result {
            // The decoder rejects the header: the bytes are sent as they are.
            assert!(text(&output).starts_with("Read image file ["), "{name}");
        }
        let prepared = pinion_tools::prepare_image(bytes);
        assert!(!matches!(
            prepared,
            Err(pinion_tools::UnusableImage::Unknown)
        ));
    }
}

#[tokio::test]
async fn numbers_without_measure_stay_within_bounds() {
    let many: String = (0..200_000).map(|n| format!("x{n}\n")).collect();
    let workspace = Workspace::new(&[("many", &many)]);
    let huge = 1e300;
    for (name, arguments) in [
        (
            "grep",
            json!({"pattern": "x", "context": huge, "limit": huge}),
        ),
        (
            "grep",
            json!({"pattern": "x", "path": "many", "limit": huge}),
        ),
        ("find", json!({"pattern": "*", "limit": huge})),
        ("ls", json!({"limit": huge})),
        ("read", json!({"path": "many", "limit": huge})),
        ("bash", json!({"command": "true", "timeout": huge})),
    ] {
        let call = workspace.call(name, arguments);
        let output = tokio::time::timeout(HANG_TIMEOUT, call)
            .await
            .expect("hangs");
        assert!(text(&output.unwrap()).len() < 100_000, "{name}");
    }
}

#[tokio::test]
async fn devices_are_never_replaced() {
    let workspace = Workspace::new(&[]);
    let null = workspace.path().join("null");
    fifo(&null);
    let arguments = json!({"path": "null", "content": "x"});
    error(&workspace, "write", arguments).await;
    let kind = fs::symlink_metadata(&null).unwrap().file_type();
    assert!(std::os::unix::fs::FileTypeExt::is_fifo(&kind));
    let mut held = File::options().read(true).write(true).open(&null).unwrap();
    held.write_all(b"still a FIFO").unwrap();
}
