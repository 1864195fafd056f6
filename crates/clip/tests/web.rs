//! Tests of web pages: the served files and ranges, and that nothing else is served.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot be set up should fail"
)]

mod common;

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;

use common::TestClip;
use pinion_clip::package::Package;
use pinion_clip::web::{
    MAX_PIECE, WebAnswer, WebFiles, WebRequest, content_range, decode_path, parse_range,
};
use pinion_clip::{ClipError, Code};
use serde_json::Value;
use sha2::{Digest, Sha256};

fn write(place: &TestClip, name: &str, content: impl AsRef<[u8]>) {
    let path = place.directory().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn files(place: &TestClip) -> Arc<WebFiles> {
    let package = Package::read(&place.directory()).unwrap();
    Arc::new(WebFiles::new("todo", &package))
}

fn get(files: &WebFiles, path: &str) -> Result<WebAnswer, ClipError> {
    files.answer(&WebRequest {
        path: path.into(),
        ..WebRequest::default()
    })
}

/// Performs an exchange of the vector and derives the HTTP status from the answer.
fn exchange(files: &WebFiles, request: &Value) -> (u16, Option<WebAnswer>, Option<String>) {
    let path = request["path"].as_str().unwrap();
    let path = decode_path(path.strip_prefix("/clips/todo").unwrap()).unwrap();
    let header = |name: &str| request["headers"][name].as_str();
    let range = match header("range").map(parse_range).transpose() {
        Ok(range) => range,
        Err(error) => return (error.code.http_status(), None, None),
    };
    let answer = files.answer(&WebRequest {
        path,
        if_none_match: header("if-none-match").unwrap_or_default().into(),
        offset: range.map_or(0, |range| range.offset),
        length: range.map_or(0, |range| range.length),
    });
    match answer {
        Ok(answer) => {
            let length = answer.content.len() as u64;
            let said = range.filter(|_| !answer.is_fallback);
            let said =
                said.and_then(|range| content_range(range.offset, length, answer.total_size));
            let status = if answer.not_modified {
                304
            } else if said.is_some() {
                206
            } else {
                200
            };
            (status, Some(answer), said)
        }
        Err(error) => (error.code.http_status(), None, None),
    }
}

#[test]
fn the_vector_holds() {
    let place = TestClip::new();
    write(&place, "web/style.css", "body { color: red; }\n");
    write(
        &place,
        "web/index.html",
        "<!doctype html><title>todo</title>",
    );
    let files = files(&place);
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/pinix/connect/c06-clip-web.json"
    );
    let vector: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let mut replayed = 0;
    for entry in vector["exchanges"].as_array().unwrap() {
        let (request, expected) = (&entry["request"], &entry["response"]);
        // Redirects, methods and preflights are not handled by this crate.
        if request["method"] != "GET" || expected["status"] == 301 {
            continue;
        }
        replayed += 1;
        let (status, answer, range) = exchange(&files, request);
        assert_eq!(expected["status"], status, "{request}");
        let header = |name: &str| expected["headers"][name].as_str().map(str::to_owned);
        if header("content-range").is_some() {
            assert_eq!(range, header("content-range"));
        }
        let Some(answer) = answer else { continue };
        if let Some(etag) = header("etag") {
            assert_eq!(answer.etag, etag);
        }
        if let Some(kind) = header("content-type") {
            assert_eq!(answer.content_type, kind);
        }
        if let Some(body) = expected["body"].as_str() {
            assert_eq!(answer.content, body);
        }
        if expected.get("note").is_some() {
            assert!(answer.is_fallback && answer.content.starts_with(b"<!doctype"));
        }
    }
    assert_eq!(replayed, 8);
}

#[test]
fn directories_have_start_pages_and_unknown_paths_fall_back_to_them() {
    let place = TestClip::new();
    write(&place, "web/index.html", "start");
    write(&place, "web/docs/index.html", "docs");
    write(&place, "web/empty/inner/x.txt", "x");
    write(&place, "web/v1.2/x.txt", "x");
    write(&place, "web/README", "plain words");
    let files = files(&place);
    for (path, content, is_fallback) in [
        ("", "start", false),
        ("/", "start", false),
        ("//", "start", false),
        ("/index.html", "start", false),
        ("/docs", "docs", false),
        ("docs/", "docs", false),
        ("/empty", "start", true),
        ("/settings/profile", "start", true),
        ("/README/deeper", "start", true),
        ("/docs/../docs/./", "docs", false),
    ] {
        let answer = get(&files, path).unwrap();
        assert_eq!(answer.content, content, "{path}");
        assert_eq!(answer.is_fallback, is_fallback, "{path}");
    }
    let sniffed = get(&files, "README").unwrap();
    assert_eq!(sniffed.content_type, "text/plain; charset=utf-8");
    for missing in ["/missing.js", "/v1.2", "/settings/a.b"] {
        assert_eq!(get(&files, missing).unwrap_err().code, Code::NotFound);
    }
    // A range of a fallback page is the whole page.
    let ranged = files.answer(&WebRequest {
        path: "settings".into(),
        offset: 3,
        length: 1,
        ..WebRequest::default()
    });
    assert_eq!(ranged.unwrap().content, "start");
}

#[test]
fn built_pages_are_preferred_to_their_sources() {
    let place = TestClip::new();
    let none = get(&files(&place), "/").unwrap_err();
    assert_eq!(
        (none.code, &*none.message),
        (Code::NotFound, "clip \"todo\" web unavailable")
    );
    write(&place, "web/index.html", "source");
    write(&place, "web/dist/app.js", "built");
    assert_eq!(get(&files(&place), "/").unwrap().content, "source");
    write(&place, "web/dist/index.html", "built");
    assert_eq!(get(&files(&place), "/").unwrap().content, "built");
    assert_eq!(get(&files(&place), "/app.js").unwrap().content, "built");
    write(&place, "pages/site/index.html", "elsewhere");
    place.write("clip.json", r#"{"web": "./pages//site/"}"#);
    assert_eq!(get(&files(&place), "/").unwrap().content, "elsewhere");
    for outside in [".", "..", "/etc", "pages/..", "a/../.."] {
        place.write("clip.json", &format!(r#"{{"web": "{outside}"}}"#));
        let answer = get(&files(&place), "/").unwrap();
        assert_eq!(answer.content, "built", "{outside}");
    }
}

#[test]
fn parts_of_large_files_are_read_alone() {
    let place = TestClip::new();
    let large: Vec<u8> = (0..MAX_PIECE + 1000).map(|byte| byte as u8).collect();
    write(&place, "web/large.bin", &large);
    let files = files(&place);
    let ask = |offset, length| {
        files.answer(&WebRequest {
            path: "large.bin".into(),
            offset,
            length,
            ..WebRequest::default()
        })
    };
    let total = large.len() as u64;
    let piece = ask(MAX_PIECE - 5, 10).unwrap();
    let start = MAX_PIECE as usize - 5;
    assert_eq!(piece.content, large[start..start + 10]);
    let sum = format!("\"{}\"", hex(&Sha256::digest(&large)));
    assert_eq!((piece.etag, piece.total_size), (sum, total));
    assert_eq!(ask(5, MAX_PIECE).unwrap().content.len() as u64, MAX_PIECE);
    assert_eq!(ask(0, 0).unwrap_err().code, Code::ResourceExhausted);
}

#[test]
fn parts_end_where_the_file_does() {
    let place = TestClip::new();
    write(&place, "web/digits.txt", "0123456789");
    write(&place, "web/nothing.txt", "");
    let files = files(&place);
    let ask = |offset, length, if_none_match: &str| {
        files.answer(&WebRequest {
            path: "digits.txt".into(),
            if_none_match: if_none_match.into(),
            offset,
            length,
        })
    };
    for (offset, length, part) in [
        (0, 0, "0123456789"),
        (0, 1, "0"),
        (7, 0, "789"),
        (7, 500, "789"),
        (9, u64::MAX, "9"),
    ] {
        assert_eq!(ask(offset, length, "").unwrap().content, part);
    }
    for beyond in [10, 11, u64::MAX] {
        assert_eq!(ask(beyond, 1, "").unwrap_err().code, Code::OutOfRange);
    }
    let nothing = get(&files, "nothing.txt").unwrap();
    assert_eq!((nothing.content.len(), nothing.total_size), (0, 0));
    let etag = ask(0, 0, "").unwrap().etag;
    let known = ask(u64::MAX, 1, &format!("\"x\", W/{etag}")).unwrap();
    assert!(known.not_modified && known.content.is_empty());
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test]
async fn a_changed_file_is_another_file() {
    let place = TestClip::probe();
    write(&place, "web/a.txt", "one");
    let clip = place.clip();
    let request = |etag: &str| WebRequest {
        path: "/a.txt".into(),
        if_none_match: etag.into(),
        ..WebRequest::default()
    };
    let first = clip.web().serve(request("")).await.unwrap();
    write(&place, "web/a.txt", "two");
    let second = clip.web().serve(request(&first.etag)).await.unwrap();
    assert!(!second.not_modified);
    assert_eq!(second.content, "two");
    let third = clip.web().serve(request(&second.etag)).await.unwrap();
    assert!(third.not_modified);
    assert!(!clip.is_running(), "nothing was started for it");
}

/// However a path is written, only files among the pages are served.
#[test]
fn hostile_paths_lead_nowhere() {
    let place = TestClip::new();
    write(&place, "web/index.html", "start");
    write(&place, "web/a/ok.txt", "ok");
    write(&place, "web/bindings.json", "secret");
    write(&place, "web/a/bindings.json", "secret");
    write(&place, "webb/x.txt", "secret");
    write(&place, "clip.secret", "secret");
    fs::write(place.path("outside.txt"), "secret").unwrap();
    fs::create_dir(place.path("outside")).unwrap();
    fs::write(place.path("outside/x.txt"), "secret").unwrap();
    let web = place.directory().join("web");
    symlink("../clip.secret", web.join("up.txt")).unwrap();
    symlink(place.path("outside.txt"), web.join("absolute.txt")).unwrap();
    symlink(place.path("outside"), web.join("out")).unwrap();
    symlink("../../outside", web.join("a/out2")).unwrap();
    symlink("loop.txt", web.join("loop.txt")).unwrap();
    symlink("/proc/self/environ", web.join("environ.txt")).unwrap();
    symlink("/proc/self/root", web.join("root")).unwrap();
    symlink("a/ok.txt", web.join("fine.txt")).unwrap();
    nix::unistd::mkfifo(&web.join("pipe.txt"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let files = files(&place);
    assert_eq!(get(&files, "fine.txt").unwrap().content, "ok");
    let hostile = [
        "/../clip.secret",
        "/../../outside.txt",
        "/a/../../clip.secret",
        "/a/../../webb/x.txt",
        "/../webb/x.txt",
        "b/x.txt",
        "/./../clip.secret",
        "//../clip.secret",
        "/../../../../../../etc/passwd",
        "../../../etc/passwd",
        "/..",
        "..",
        "/../",
        "/a/../..",
        "/%2e%2e/clip.secret",
        "/%2e%2e%2fclip.secret",
        "/..%2fclip.secret",
        "/.%2e/clip.secret",
        "/%2E%2E/clip.secret",
        "/%252e%252e/clip.secret",
        "/..%252fclip.secret",
        "/..%5cclip.secret",
        "/..\\clip.secret",
        "/a\\..\\..\\clip.secret",
        "/%c0%ae%c0%ae/clip.secret",
        "/..%c0%afclip.secret",
        "/clip.secret%00.txt",
        "/%00/../clip.secret",
        "/a.txt\0",
        "/up.txt",
        "/absolute.txt",
        "/out/x.txt",
        "/a/out2/x.txt",
        "/a/../out/x.txt",
        "/loop.txt",
        "/environ.txt",
        "/root/etc/passwd.txt",
        "/root/etc/hostname.x",
        "/pipe.txt",
        "/bindings.json",
        "/a/bindings.json",
        "/a/./bindings.json",
        "/a//bindings.json",
        "//etc/passwd.txt",
        "file:///etc/passwd.txt",
        "/\u{2025}/clip.secret",
        "/\u{ff0e}\u{ff0e}/clip.secret",
        "/~/x.txt",
    ];
    assert!(hostile.len() >= 40);
    for path in hostile {
        for path in [Some(path.to_owned()), decode_path(path)]
            .into_iter()
            .flatten()
        {
            match get(&files, &path) {
                Ok(answer) => panic!("{path}: {answer:?}"),
                Err(error) => assert_eq!(error.code, Code::NotFound, "{path}: {error}"),
            }
        }
    }
    let long = format!("/{}.txt", "x/".repeat(3000));
    assert_eq!(get(&files, &long).unwrap_err().code, Code::NotFound);
}
