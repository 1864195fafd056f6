//! The small clients in `docs/clients`, each put through the same conversations with the real binary and the built-in
//! model. The Rust client needs nothing more; the others need their language, which `cargo xtask test --all` installs.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

#[path = "../support/mod.rs"]
mod support;

mod conversations;
mod talk;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Upper limit, exclusive, of the lines of a client.
const TOO_LONG: usize = 60;

fn clients() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/clients")
}

fn source(name: &str) -> PathBuf {
    clients().join(name).canonicalize().unwrap()
}

/// Returns the directory of build results, which all tests share.
fn built() -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("clients");
    fs::create_dir_all(&directory).unwrap();
    directory
}

fn run(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let (said, wrong) = (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{command:?}: {said}{wrong}");
    said
}

#[test]
fn all_clients_are_short() {
    for file in fs::read_dir(clients()).unwrap().flatten() {
        let name = file.file_name().to_string_lossy().into_owned();
        if name.starts_with("ask.") {
            let lines = fs::read_to_string(file.path()).unwrap().lines().count();
            assert!(lines < TOO_LONG, "{name} has {lines} lines");
        }
    }
}

/// Returns the Rust client, built as an example of the package. Cargo builds examples along with tests, but not when
/// only certain targets are requested.
fn example() -> PathBuf {
    let binary = Path::new(env!("CARGO_BIN_EXE_pinion"));
    let example = binary.with_file_name("examples").join("ask");
    let age = |path: &Path| fs::metadata(path).and_then(|data| data.modified()).ok();
    if age(&example) > age(&source("ask.rs")) {
        return example;
    }
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // For the whole workspace, as `cargo xtask test` builds: with one package, dependencies would be built a second time.
    cargo.args(["build", "--quiet", "--workspace", "--example", "ask"]);
    cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
    // Cargo's variables about the package under test would make other packages look changed, and be built anew.
    for (name, _) in std::env::vars_os() {
        let of_cargo = |prefix| name.to_string_lossy().starts_with(prefix);
        if of_cargo("CARGO_PKG_") || of_cargo("CARGO_MANIFEST_") {
            cargo.env_remove(&name);
        }
    }
    run(&mut cargo);
    example
}

#[test]
fn the_rust_client_works() {
    conversations::all(&[example().into()]);
}

#[test]
#[ignore = "needs python3: cargo xtask test --all"]
fn the_python_client_works() {
    conversations::all(&["python3".into(), source("ask.py").into()]);
}

#[test]
#[ignore = "needs bash and jq: cargo xtask test --all"]
fn the_bash_client_works() {
    conversations::all(&["bash".into(), source("ask.sh").into()]);
}

#[test]
#[ignore = "needs go: cargo xtask test --all"]
fn the_go_client_works() {
    let program = built().join("ask-go");
    let mut go = Command::new("go");
    go.args(["build", "-o"]).arg(&program).arg(source("ask.go"));
    // Only installed packages, no downloads.
    go.env("GOCACHE", built().join("go-cache"))
        .env("GOTOOLCHAIN", "local")
        .env("GOPROXY", "off")
        .env("GOFLAGS", "");
    run(&mut go);
    conversations::all(&[program.into()]);
}

#[test]
#[ignore = "needs node and the TypeScript compiler: cargo xtask test --all"]
fn the_typescript_client_works() {
    let tools = PathBuf::from(
        std::env::var_os("PINION_TYPESCRIPT_DIR").expect("the directory with the compiler"),
    );
    let tools = tools.join("node_modules");
    let script = source("ask.ts");
    let place = built().join("ask-ts");
    fs::create_dir_all(&place).unwrap();
    fs::write(place.join("package.json"), r#"{"type": "module"}"#).unwrap();
    let mut compiler = Command::new("node");
    compiler
        .arg(tools.join("typescript/bin/tsc"))
        .args(["--strict", "--erasableSyntaxOnly", "--noEmitOnError"])
        .args(["--target", "es2022", "--module", "esnext"])
        .args([
            "--moduleResolution",
            "bundler",
            "--types",
            "node",
            "--typeRoots",
        ])
        .arg(tools.join("@types"))
        .arg("--outDir")
        .arg(&place)
        .arg(&script);
    run(&mut compiler);
    let node: OsString = "node".into();
    let strips = run(Command::new(&node).args(["-p", "process.features.typescript"]));
    // A node that takes types out itself gets the file as it is.
    if strips.trim() == "strip" {
        conversations::all(&[node.clone(), script.into()]);
    }
    conversations::all(&[node, place.join("ask.js").into()]);
}
