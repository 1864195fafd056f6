//! `pinion clip`: every command, as it is typed.

use std::process::Command;

use serde_json::{Value, json};

use crate::stage::Home;

#[test]
fn clips_are_added_listed_shown_and_removed() {
    let home = Home::new();
    let _hub = home.serve();
    home.write_probe("probe");
    assert_eq!(home.names(), [""; 0]);
    let added = home.run(&["clip", "add", "./probe"]).json();
    assert_eq!(
        (&added["name"], &added["version"]),
        (&json!("probe"), &json!("1.2.0"))
    );
    let other = home
        .run(&[
            "clip",
            "add",
            "./probe",
            "--alias",
            "Second One",
            "--token",
            "open sesame",
        ])
        .json();
    assert_eq!(
        (&other["name"], &other["tokenProtected"]),
        (&json!("second-one"), &json!(true))
    );
    assert_eq!(home.names(), ["probe", "second-one"]);
    let shown = home.run(&["clip", "show", "probe"]).json();
    assert_eq!(shown["commands"].as_array().unwrap().len(), 7);
    let removed = home
        .run(&["clip", "remove", "second-one", "--purge"])
        .json();
    assert_eq!(removed, json!({"removed": "second-one"}));
    let said = home.run(&["clip", "show", "second-one"]).failed(1);
    assert!(said.contains("second-one"), "{said}");
    let said = home.run(&["clip", "add", "./nowhere"]).failed(1);
    assert!(said.contains("there is no ./nowhere"), "{said}");
}

#[test]
fn a_clip_is_added_from_an_archive_and_under_another_name() {
    let home = Home::new();
    let _hub = home.serve();
    home.write_probe("package");
    let packed = Command::new("tar")
        .args(["czf", "probe-1.2.0.tgz", "package"])
        .current_dir(home.path("."))
        .status();
    assert!(packed.unwrap().success());
    let added = home
        .run(&["clip", "add", "./probe-1.2.0.tgz", "--alias", "packed"])
        .json();
    assert_eq!(added["name"], "packed");
    let added = home
        .run(&["clip", "add", "local/named", "--path", "package"])
        .json();
    assert_eq!(added["name"], "named");
    let echoed = home
        .run(&["invoke", "packed", "echo", "--title", "x"])
        .json();
    assert_eq!(echoed, json!({"title": "x"}));
    let said = home.run(&["clip", "add", "local/named"]).failed(2);
    assert!(said.contains("--path"), "{said}");
}

#[test]
fn a_watched_clip_is_installed_anew_when_it_changes() {
    let home = Home::new();
    let _hub = home.serve();
    home.write_probe("probe");
    let mut command = home.command("pinion", &["clip", "add", "./probe", "--watch"]);
    let file = std::fs::File::create(home.path("added")).unwrap();
    let mut watching = command.stdout(file).spawn().unwrap();
    let added = || std::fs::read_to_string(home.path("added")).unwrap();
    home.until("the first version", || added().contains("1.2.0"));
    let text = std::fs::read_to_string(home.path("probe/clip.json")).unwrap();
    home.write("probe/clip.json", "{ half a fi");
    // Time to read the half file.
    std::thread::sleep(std::time::Duration::from_millis(1500));
    home.write("probe/clip.json", &text.replace("1.2.0", "1.3.0"));
    home.until("the second version", || added().contains("1.3.0"));
    assert_eq!(
        home.run(&["clip", "show", "probe"]).json()["version"],
        "1.3.0"
    );
    assert_eq!(home.names(), ["probe"]);
    watching.kill().unwrap();
    watching.wait().unwrap();
    let said = home.run(&["clip", "add", "npm/x", "--watch"]).failed(2);
    assert!(said.contains("--watch"), "{said}");
}

#[test]
fn packages_come_from_a_registry_and_are_updated() {
    let home = Home::new();
    let _hub = home.serve();
    home.write_probe("probe");
    let registry = home.path("registry");
    std::fs::create_dir(&registry).unwrap();
    let registry = registry.to_str().unwrap();
    home.run_as(
        "pinix",
        &["registry", "publish", "probe", "--registry", registry],
    )
    .fine();
    let found = home
        .run_as(
            "pinix",
            &["registry", "search", "told", "--registry", registry],
        )
        .fine();
    assert!(found.starts_with("@me/probe\t1.2.0\t"), "{found}");
    let said = home.run(&["clip", "add", "@me/probe"]).failed(1);
    assert!(said.contains("registry"), "{said}");
    let added = home
        .run(&["clip", "add", "@me/probe", "--registry", registry])
        .json();
    assert_eq!(
        (&added["name"], &added["package"]),
        (&json!("probe"), &json!("@me/probe"))
    );
    home.run_as("pinix", &["config", "set", "registry", registry])
        .fine();
    let same = home.run(&["clip", "update", "probe"]).json();
    assert_eq!(
        (&same["before"], &same["version"]),
        (&json!("1.2.0"), &json!("1.2.0"))
    );
    let text = std::fs::read_to_string(home.path("probe/clip.json")).unwrap();
    home.write("probe/clip.json", &text.replace("1.2.0", "1.3.0"));
    home.run_as("pinix", &["publish", "probe"]).fine();
    let newer = home.run(&["clip", "update", "--all"]).json();
    assert_eq!(
        (&newer["before"], &newer["version"]),
        (&json!("1.2.0"), &json!("1.3.0"))
    );
    let older = home
        .run(&["clip", "update", "probe", "--version", "1.2.0"])
        .json();
    assert_eq!(older["version"], "1.2.0");
    let said = home.run(&["clip", "update"]).failed(2);
    assert!(said.contains("--all"), "{said}");
}

#[test]
fn files_are_written_listed_read_and_deleted() {
    let home = Home::new();
    let _hub = home.serve_probe();
    let data = |words: &[&str]| {
        let mut all = vec!["clip", "data", "probe"];
        all.extend(words);
        home.run(&all)
    };
    let written = data(&["write", "notes/a.txt", "--content", "hello"]).json();
    assert_eq!(written, json!({"uri": "pinix://probe/notes/a.txt"}));
    let bytes = [0u8, 159, 146, 150, 255];
    home.run_fed(
        "pinion",
        &["clip", "data", "probe", "write", "b.bin"],
        &bytes,
    )
    .fine();
    assert_eq!(
        std::fs::read(home.root().join("data/probe/b.bin")).unwrap(),
        bytes
    );
    data(&[
        "write",
        "c.txt",
        "--content",
        "aGk=",
        "--encoding",
        "base64",
    ])
    .fine();
    assert_eq!(data(&["read", "c.txt"]).fine(), "hi");
    let listed = data(&["list"]).json();
    let names: Vec<&Value> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["name"])
        .collect();
    assert_eq!(names, ["b.bin", "c.txt", "notes"]);
    assert_eq!(data(&["stat", "notes/a.txt"]).json()["size"], "5");
    data(&["delete", "c.txt"]).fine();
    assert!(data(&["read", "c.txt"]).failed(1).contains("c.txt"));
    assert!(
        data(&["read", "../probe/clip.json"])
            .failed(1)
            .contains("Error:")
    );
    assert!(
        data(&["reed", "c.txt"])
            .failed(2)
            .contains("did you mean read?")
    );
    assert!(data(&["read"]).failed(2).contains("needs a path"));
}

#[test]
fn clips_that_fit_a_slot_are_listed() {
    let home = Home::new();
    let _hub = home.serve();
    for (alias, version) in [("probe", "1.2.0"), ("db", "1.4.0"), ("old", "0.9.0")] {
        home.write_probe(alias);
        let manifest = home.path(alias).join("clip.json");
        let text = std::fs::read_to_string(&manifest).unwrap();
        let text = text.replace("@me/db", "local/db").replace("1.2.0", version);
        std::fs::write(manifest, text).unwrap();
        let package = if alias == "probe" { "probe" } else { "db" };
        let source = format!("local/{package}:{}", home.path(alias).display());
        home.run(&["clip", "add", &source, "--alias", alias]).fine();
    }
    for words in [&["--list"][..], &["store", "--list"]] {
        let line = [&["clip", "bind", "probe"], words].concat();
        let fitting = home.run(&line).json()["candidates"].clone();
        assert_eq!(fitting, json!({"store": ["db"]}));
    }
    let said = home.run(&["clip", "bind", "probe", "none", "--list"]);
    assert!(said.failed(1).contains("no slot none"));
}

#[test]
fn slots_are_bound_and_freed() {
    let home = Home::new();
    let _hub = home.serve_probe();
    let before = home.run(&["clip", "bindings", "probe"]).json();
    assert_eq!(
        before,
        json!({"dependencySlots": {"store": {"package": "@me/db", "version": "^1"}}})
    );
    home.run(&["clip", "bind", "probe", "store", "db"]).fine();
    let bound = home.run(&["clip", "bind", "probe", "--list"]).json();
    assert_eq!(bound["bindings"]["store"]["alias"], "db");
    assert_eq!(bound["candidates"], json!({"store": []}));
    home.run(&["clip", "unbind", "probe", "store"]).fine();
    assert_eq!(home.run(&["clip", "bindings", "probe"]).json(), before);
    let said = home
        .run(&["clip", "bind", "probe", "store", "db", "--hub-token", "x"])
        .failed(2);
    assert!(said.contains("--hub"), "{said}");
}

#[test]
fn logs_are_shown_and_followed() {
    let home = Home::new();
    let _hub = home.serve_probe();
    home.run(&["invoke", "probe", "say", "--words", "warning: low on milk"])
        .fine();
    let said = |words: &[&str]| {
        let mut all = vec!["clip", "logs"];
        all.extend(words);
        home.run(&all).fine()
    };
    home.until("the line in the log", || {
        said(&["probe"]).contains("low on milk")
    });
    assert!(said(&["probe", "--level", "error"]).is_empty());
    let entry: Value = serde_json::from_str(said(&["probe", "--json", "-n", "1"]).trim()).unwrap();
    assert_eq!(
        (&entry["level"], &entry["origin"]),
        (&json!("warn"), &json!("stderr"))
    );
    assert!(said(&["--system"]).contains("installs local/probe:"));
    let mut follow = home.command("pinion", &["clip", "logs", "probe", "-f"]);
    let file = std::fs::File::create(home.path("followed")).unwrap();
    let mut follow = follow.stdout(file).spawn().unwrap();
    let followed = || std::fs::read_to_string(home.path("followed")).unwrap();
    home.until("the past", || followed().contains("low on milk"));
    home.run(&["invoke", "probe", "say", "--words", "and bread"])
        .fine();
    home.until("what comes", || followed().contains("and bread"));
    follow.kill().unwrap();
    follow.wait().unwrap();
}

#[test]
fn new_clips_work_as_the_documentation_has_them() {
    let documentation = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/clips.md");
    let documentation = std::fs::read_to_string(documentation).unwrap();
    let home = Home::new();
    let _hub = home.serve();
    let is_there = |program: &str| Command::new(program).arg("--version").output().is_ok();
    for (language, program, file, call, expected) in [
        (
            "python",
            "python3",
            "counter.py",
            &["count", "3"][..],
            "[1,2,3]\n",
        ),
        (
            "bash",
            "jq",
            "greeter.sh",
            &["greet", "Ada"],
            "Hello, Ada\n",
        ),
        ("ts", "bun", "todo.mts", &["add", "Buy milk"], "1\n"),
        ("rust", "cargo", "shout.rs", &["shout", "hello"], "HELLO\n"),
    ] {
        let made = home
            .run(&["clip", "new", language, "--lang", language])
            .json();
        assert_eq!(made["path"], language);
        let text = std::fs::read_to_string(home.path(language).join(file)).unwrap();
        assert!(
            documentation.contains(&text),
            "{file} is not in docs/clips.md"
        );
        if !is_there(program) {
            eprintln!("{language} is not tried: there is no {program}");
            continue;
        }
        if language == "rust" && !build(&home.path(language)) {
            eprintln!("rust is not tried: its dependency is not at hand");
            continue;
        }
        home.run(&["clip", "add", &format!("./{language}")]).fine();
        let mut words = vec!["invoke", language];
        words.extend(call);
        assert_eq!(home.run(&words).fine(), expected, "{language}");
    }
    let said = home
        .run(&["clip", "new", "bash", "--lang", "bash"])
        .failed(1);
    assert!(said.contains("Nothing was written"), "{said}");
    let said = home.run(&["clip", "new", "x", "--lang", "cobol"]).failed(2);
    assert!(said.contains("ts, python, bash or rust"), "{said}");
}

fn build(directory: &std::path::Path) -> bool {
    let built = Command::new("cargo")
        .args(["build", "--release", "--offline", "--quiet"])
        .env("CARGO_TARGET_DIR", directory.join("target"))
        .current_dir(directory)
        .status();
    built.is_ok_and(|status| status.success())
        && std::fs::rename(
            directory.join("target/release/shout"),
            directory.join("shout"),
        )
        .is_ok()
        && std::fs::remove_dir_all(directory.join("target")).is_ok()
}

#[test]
fn every_command_has_help_with_an_example() {
    let home = Home::new();
    let words = [
        "hub",
        "hub serve",
        "hub status",
        "hub stop",
        "hub info",
        "hub join",
        "hub token",
        "hub token create",
        "hub token list",
        "hub token revoke",
        "hub login",
        "hub logout",
        "hub whoami",
        "clip",
        "clip add",
        "clip list",
        "clip show",
        "clip remove",
        "clip update",
        "clip logs",
        "clip data",
        "clip bind",
        "clip unbind",
        "clip bindings",
        "clip new",
        "invoke",
        "mcp",
    ];
    for words in words {
        let mut line: Vec<&str> = words.split(' ').collect();
        line.push("--help");
        let help = home.run(&line).fine();
        assert!(
            help.contains("Examples:") && help.contains("Usage:"),
            "{words}: {help}"
        );
        let long = help.lines().find(|line| line.chars().count() > 120);
        assert_eq!(long, None, "{words}");
    }
    for (slip, meant) in [
        (["hub", "serv"], "hub serve"),
        (["clip", "lst"], "clip list"),
        (["hub", "tokn"], "hub token"),
    ] {
        let said = home.run(&slip).failed(2);
        assert!(said.contains(&format!("`pinion {meant}`")), "{said}");
    }
}
