//! Clients of pi as published on npm, unmodified, with pinion in the place of `pi`. A driver in `tests/interop/clients`
//! uses each as its users do and reports the steps it has done; the table in `docs/clients/README.md` must list the
//! same. Needs the packages in `PINION_INTEROP_DIR`; `cargo xtask interop` puts them there.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use pinion_testkit::{ModelServer, Sandbox};
use serde_json::{Value, json};

const NEEDS: &str = "PINION_INTEROP_DIR names the directory with the clients";
const PI: &str = "node_modules/@mariozechner/pi-coding-agent/dist";

fn project() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().unwrap()
}

fn installed(path: &str) -> PathBuf {
    let path = PathBuf::from(std::env::var_os("PINION_INTEROP_DIR").expect(NEEDS)).join(path);
    assert!(path.exists(), "{} is not there", path.display());
    path
}

/// Returns a home in which the built-in model is the default, and a second model answers from the test's server.
fn home(server: &ModelServer, last_release: Option<&str>) -> Sandbox {
    let settings = json!({"defaultProvider": "offline", "defaultModel": "demo",
        "lastChangelogVersion": last_release});
    let sandbox = Sandbox::with_settings(server.port(), &settings);
    let bin = sandbox.root().join("bin");
    fs::create_dir(&bin).unwrap();
    // Any implementation can be put to the same test.
    let ours = std::env::var_os("PINION_INTEROP_OURS");
    let ours = ours.unwrap_or_else(|| env!("CARGO_BIN_EXE_pinion").into());
    symlink(ours, bin.join("pi")).unwrap();
    sandbox
}

/// A client and its driver.
struct Client {
    /// The name in the table.
    name: &'static str,
    driver: &'static str,
    /// The path that the driver uses, below the directory of installed clients.
    path: String,
    /// Features that the driver cannot detect, passed to it as arguments.
    offers: &'static [&'static str],
}

/// Runs a driver to its end and returns the names of the steps it has done. The user last ran the release of pi
/// `last_release`, if any.
fn drive(client: &Client, last_release: Option<&str>) -> Vec<String> {
    let server = ModelServer::start(json!({"turns": [
        {"repeat_turn": 20, "turn": {"steps": ["The mock server."]}},
    ]}));
    let sandbox = home(&server, last_release);
    let drivers = project().join("tests/interop/clients");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = vec![sandbox.root().join("bin")];
    places.extend(std::env::split_paths(&path));
    let output = Command::new("node")
        .arg(drivers.join(client.driver))
        .arg(installed(&client.path))
        .arg(drivers.join("questions.ts"))
        .args(client.offers)
        .current_dir(sandbox.work())
        .env_clear()
        .envs(sandbox.environment())
        .env("PATH", std::env::join_paths(places).unwrap())
        .output()
        .expect("node");
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}{wrong}");
    told.lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|line| line["did"].as_str().unwrap().to_owned())
        .collect()
}

/// Checks that the row of the table with this name lists the same steps.
fn is_documented(name: &str, done: &[String]) {
    let page = fs::read_to_string(project().join("docs/clients/README.md")).unwrap();
    let row = page
        .lines()
        .find(|line| line.starts_with(&format!("| {name} |")));
    let row = row.unwrap_or_else(|| panic!("docs/clients/README.md has no row for {name}"));
    let done = done.join(", ");
    assert!(
        row.contains(&format!("| {done} |")),
        "{name} did: {done}\n{row}"
    );
}

fn check(client: &Client) {
    check_after(None, client);
}

fn check_after(last_release: Option<&str>, client: &Client) {
    is_documented(client.name, &drive(client, last_release));
}

fn class(name: &'static str, path: String) -> Client {
    Client {
        name,
        driver: "rpc-client.mjs",
        path,
        offers: &[],
    }
}

#[test]
#[ignore = "needs the clients: cargo xtask interop"]
fn pis_own_client_class_of_0_52_12() {
    // This release does not export it from its front door.
    let path = format!("pi-0.52.12/{PI}/modes/rpc/rpc-client.js");
    check(&class("`RpcClient` of pi 0.52.12", path));
}

#[test]
#[ignore = "needs the clients: cargo xtask interop"]
fn pis_own_client_class_of_0_73_1() {
    let path = format!("pi-0.73.1/{PI}/index.js");
    check(&class("`RpcClient` of pi 0.73.1", path));
}

/// Returns pi's class of a release whose package is unpacked but not installed.
fn unpacked(name: &'static str, release: &str) -> Client {
    let path = format!("rpc-client-{release}/package/dist/modes/rpc/rpc-client.js");
    class(name, path)
}

#[test]
#[ignore = "needs the clients: cargo xtask interop"]
fn pis_own_client_class_of_0_87_1() {
    let client = unpacked("`RpcClient` of pi 0.87.1", "0.87.1");
    check(&client);
    check_after(Some("0.87.1"), &client);
}

#[test]
#[ignore = "needs the clients: cargo xtask interop"]
fn pis_own_client_class_of_1_5_0() {
    let client = unpacked("`RpcClient` of pi 1.5.0", "1.5.0");
    check(&client);
    check_after(Some("1.5.0"), &client);
}

#[test]
#[ignore = "needs the clients: cargo xtask interop"]
fn the_client_library_of_gsd() {
    let path = "gsd-rpc-client-2.52.0/node_modules/@gsd-build/rpc-client/dist/index.js";
    check(&class("`@gsd-build/rpc-client` 2.52.0", path.into()));
}

#[test]
#[ignore = "needs the clients: cargo xtask interop"]
fn an_editor_through_pi_acp_0_0_24() {
    check(&Client {
        name: "`pi-acp` 0.0.24",
        driver: "acp.mjs",
        path: "pi-acp-0.0.24/node_modules/pi-acp/dist/index.js".into(),
        offers: &[],
    });
}

#[test]
#[ignore = "needs the clients: cargo xtask interop"]
fn an_editor_through_pi_acp_0_0_34() {
    let client = Client {
        name: "`pi-acp` 0.0.34",
        driver: "acp.mjs",
        path: "pi-acp-0.0.34/node_modules/pi-acp/dist/index.js".into(),
        offers: &["dialogs"],
    };
    check(&client);
    check_after(Some("1.5.0"), &client);
}

#[test]
#[ignore = "needs the clients: cargo xtask interop"]
fn a_command_line_through_acpx_and_pi_acp() {
    check(&Client {
        name: "`acpx` 0.1.15",
        driver: "acpx.mjs",
        path: "acpx-0.1.15/node_modules/acpx/dist/cli.js".into(),
        offers: &[],
    });
}
