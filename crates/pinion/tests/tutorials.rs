//! The tutorials, run as they are written.
//!
//! Blocks marked `sh` run one after the other in one shell, in an empty directory with the project's examples. A block
//! marked `text` behind one is its output: `…` stands for any text in a line, and alone for any lines. Blocks without a
//! mark are for people, such as the start of a chat.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The port of a hub that a page names.
const PORT: &str = "9000";

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A block of code, with the word behind its fence.
#[derive(Debug)]
struct Block {
    kind: String,
    text: String,
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for line in page.lines() {
        open = match (open, line.strip_prefix("```")) {
            (Some(block), Some("")) => {
                blocks.push(block);
                None
            }
            (Some(mut block), _) => {
                block.text.push_str(line);
                block.text.push('\n');
                Some(block)
            }
            (None, Some(kind)) => Some(Block {
                kind: kind.to_owned(),
                text: String::new(),
            }),
            (None, None) => None,
        };
    }
    assert!(open.is_none(), "a block does not end");
    blocks
}

/// Reports whether a line is like a pattern, in which `…` stands for any text.
fn fits(pattern: &str, line: &str) -> bool {
    let mut parts = pattern.split('…');
    let first = parts.next().unwrap();
    let Some(mut rest) = line.strip_prefix(first) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((last, inner)) = parts.split_last() else {
        return rest.is_empty();
    };
    for part in inner {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Compares output with the block that shows it.
fn compare(expected: &str, output: &str) -> Result<(), String> {
    let mut lines = output.lines();
    let mut skips = false;
    for pattern in expected.lines() {
        if pattern == "…" {
            skips = true;
            continue;
        }
        loop {
            match lines.next() {
                Some(line) if fits(pattern, line) => break,
                Some(_) if skips => {}
                line => {
                    return Err(format!(
                        "{pattern:?} is expected, not {line:?}, in:\n{output}"
                    ));
                }
            }
        }
        skips = false;
    }
    match lines.find(|line| !line.is_empty()) {
        Some(line) if !skips => Err(format!("{line:?} is not expected in:\n{output}")),
        _ => Ok(()),
    }
}

fn run(page: &str) {
    let text = fs::read_to_string(project().join(page)).unwrap();
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let text = text.replace(&format!("127.0.0.1:{PORT}"), &format!("127.0.0.1:{port}"));
    let blocks = blocks(&text);
    let home = tempfile::tempdir().unwrap();
    let (work, bin) = (home.path().join("work"), home.path().join("bin"));
    fs::create_dir_all(&work).unwrap();
    fs::create_dir_all(&bin).unwrap();
    symlink(env!("CARGO_BIN_EXE_pinion"), bin.join("pinion")).unwrap();
    let copied = Command::new("cp")
        .arg("-r")
        .arg(project().join("examples"))
        .arg(&work)
        .status();
    assert!(copied.unwrap().success());
    let mut script = String::from("set -eu -o pipefail\n");
    for (number, block) in blocks
        .iter()
        .enumerate()
        .filter(|(_, block)| block.kind == "sh")
    {
        let commands = block.text.replace(
            "pinion hub serve ",
            &format!("pinion hub serve --port {port} "),
        );
        script.push_str(&format!("printf '\\n@@@%s\\n' {number}\n{commands}"));
    }
    let path = std::env::var("PATH").unwrap();
    let ran = Command::new("bash")
        .args(["-c", &script])
        .current_dir(&work)
        .env_clear()
        .env("HOME", home.path())
        .env("PATH", format!("{}:{path}", bin.display()))
        .env("LANG", "C.UTF-8")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let output = String::from_utf8(ran.stdout).unwrap();
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{page}: {errors}\n{output}");
    let mut compared = 0;
    for part in output.split("\n@@@").skip(1) {
        let (number, printed) = part.split_once('\n').unwrap();
        let number: usize = number.parse().unwrap();
        let Some(shown) = blocks.get(number + 1).filter(|next| next.kind == "text") else {
            continue;
        };
        let same = compare(&shown.text, printed);
        same.unwrap_or_else(|difference| {
            panic!("{page}, behind {:?}: {difference}", blocks[number].text)
        });
        compared += 1;
    }
    assert!(compared > 0, "{page} shows no output");
}

#[test]
fn lines_are_compared_with_what_a_page_shows() {
    assert!(fits("a…c", "abc") && fits("…", "") && fits("a", "a"));
    assert!(!fits("a…c", "abd") && !fits("a", "ab"));
    assert_eq!(compare("a\n…\nc\n", "a\nb\nc\n"), Ok(()));
    assert!(compare("a\nc\n", "a\nb\nc\n").is_err());
    assert!(compare("a\n", "a\nb\n").is_err());
    assert!(compare("a\n…\nd\n", "a\nb\n").is_err());
}

#[test]
#[ignore = "needs bash and python3"]
fn embed() {
    run("docs/tutorials/embed.md");
}

#[test]
#[ignore = "needs bash and jq"]
fn script() {
    run("docs/tutorials/script.md");
}

#[test]
#[ignore = "needs bash, jq and python3"]
fn hub() {
    run("docs/tutorials/hub.md");
}

#[test]
#[ignore = "needs bash and jq"]
fn review() {
    run("docs/tutorials/review.md");
}

#[test]
#[ignore = "needs bash"]
fn chat() {
    run("docs/tutorials/chat.md");
}
