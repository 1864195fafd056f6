//! The command line of extensions: discovery, unknown flags, and the installation and removal of packages.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

mod support;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use pinion_testkit::{Exit, Program, Sandbox};
use serde_json::{Value, json};
use support::{Client, args, offline_sandbox, pinion};

struct Ran {
    code: Exit,
    out: String,
    err: String,
}

fn run_as(program: &Program, sandbox: &Sandbox, arguments: &[&str], env: &[(&str, &str)]) -> Ran {
    let output = program
        .command(sandbox, &args(arguments))
        .envs(env.iter().copied())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Ran {
        code: Exit::of(output.status),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

fn run(sandbox: &Sandbox, arguments: &[&str]) -> Ran {
    run_as(&pinion(), sandbox, arguments, &[])
}

fn succeed(sandbox: &Sandbox, arguments: &[&str], env: &[(&str, &str)]) -> Ran {
    let ran = run_as(&pinion(), sandbox, arguments, env);
    assert_eq!(
        ran.code,
        Exit::Code(0),
        "{arguments:?}: {}{}",
        ran.out,
        ran.err
    );
    ran
}

fn fail(sandbox: &Sandbox, arguments: &[&str], env: &[(&str, &str)]) -> String {
    let ran = run_as(&pinion(), sandbox, arguments, env);
    assert_eq!(
        ran.code,
        Exit::Code(1),
        "{arguments:?}: {}{}",
        ran.out,
        ran.err
    );
    assert_eq!(ran.out, "", "{arguments:?}");
    ran.err
}

fn settings(sandbox: &Sandbox) -> Value {
    let text = fs::read(sandbox.agent().join("settings.json")).unwrap();
    serde_json::from_slice(&text).unwrap()
}

/// Returns the extensions that a run would load, relative to the sandbox.
fn found(sandbox: &Sandbox) -> Vec<String> {
    let ran = succeed(sandbox, &["extensions", "list", "--no-load", "--json"], &[]);
    let line = |line: &str| -> Value { serde_json::from_str(line).unwrap() };
    let path = |line: Value| {
        let path = PathBuf::from(line["path"].as_str().unwrap());
        path.strip_prefix(sandbox.root())
            .unwrap_or(&path)
            .display()
            .to_string()
    };
    ran.out.lines().map(line).map(path).collect()
}

/// Returns every file below a directory, to check that nothing was left behind.
fn everything(directory: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.is_symlink() {
            all.extend(everything(&path));
        }
        all.push(path);
    }
    all.sort();
    all
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Writes the source of a package: one extension, one template.
fn write_package(directory: &Path, name: &str, version: &str) {
    let manifest = json!({"name": name, "version": version,
        "pi": {"extensions": ["src/main.ts"], "prompts": ["say"]}});
    write(&directory.join("package.json"), &manifest.to_string());
    write(
        &directory.join("src/main.ts"),
        "export default function () {}",
    );
    write(&directory.join("say/greet.md"), "Greet $1");
}

fn shell(directory: &Path, script: &str) -> String {
    let output = Command::new("sh")
        .args(["-ec", script])
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}: {errors}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn archive(sandbox: &Sandbox, name: &str, version: &str) -> PathBuf {
    let made = sandbox.root().join("made");
    let _ = fs::remove_dir_all(&made);
    write_package(&made.join("package"), name, version);
    let file = sandbox.root().join(format!("{name}-{version}.tgz"));
    shell(&made, &format!("tar czf '{}' package", file.display()));
    file
}

#[test]
fn unknown_flags_are_mistakes_only_if_no_extension_may_know_them() {
    let sandbox = offline_sandbox(&json!({}));
    let ran = run(&sandbox, &["-p", "--sesion", "x", "hello"]);
    assert_eq!(ran.code, Exit::Code(2));
    assert!(ran.err.contains("Did you mean --session?"), "{}", ran.err);
    let bin = sandbox.root().join("bin");
    fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_pinion"), bin.join("pi")).unwrap();
    let pi = Program::new(bin.join("pi"));
    let ran = run_as(
        &pi,
        &sandbox,
        &["-p", "--model", "offline/demo", "--zzz", "hello"],
        &[],
    );
    assert_eq!(
        ran.code,
        Exit::Code(0),
        "the message is not taken for a value: {}",
        ran.err
    );
    assert!(
        ran.err.contains("unknown option --zzz is ignored"),
        "{}",
        ran.err
    );
    let ran = run_as(&pi, &sandbox, &["list"], &[]);
    assert_eq!(ran.code, Exit::Code(0), "{}", ran.err);
}

#[test]
fn a_directory_is_used_where_it_is() {
    let sandbox = offline_sandbox(&json!({}));
    let before = settings(&sandbox);
    let pack = sandbox.work().join("pack");
    write_package(&pack, "pack", "1.0.0");
    let ran = succeed(&sandbox, &["install", "./pack"], &[]);
    assert!(
        ran.out.contains("1 extension, 1 prompt template"),
        "{}",
        ran.out
    );
    assert_eq!(settings(&sandbox)["packages"], json!([pack]));
    assert_eq!(found(&sandbox), ["work/pack/src/main.ts"]);
    let mut client = Client::start(
        sandbox,
        &["--mode", "rpc", "--model", "offline/demo", "-ne"],
    );
    let commands = client.data("get_commands")["commands"].clone();
    let names: Vec<&str> = commands
        .as_array()
        .unwrap()
        .iter()
        .map(|command| command["name"].as_str().unwrap())
        .collect();
    assert!(names.contains(&"greet"), "{commands}");
    client.finish();
    let sandbox = client.sandbox;

    let ran = succeed(&sandbox, &["list"], &[]);
    assert!(
        ran.out.contains("user") && ran.out.contains("1.0.0"),
        "{}",
        ran.out
    );
    succeed(&sandbox, &["remove", "pack"], &[]);
    assert!(
        pack.join("src/main.ts").exists(),
        "what was not fetched is not deleted"
    );
    let mut after = settings(&sandbox);
    assert_eq!(after["packages"], json!([]));
    after.as_object_mut().unwrap().shift_remove("packages");
    assert_eq!(after, before);
    let errors = fail(&sandbox, &["remove", "pack"], &[]);
    assert!(errors.contains("pinion list"), "{errors}");
}

#[test]
fn what_is_no_package_is_not_installed() {
    let sandbox = offline_sandbox(&json!({}));
    sandbox.add_files(&json!({"empty/readme.md": "nothing", "broken.tgz": "no archive"}));
    let before = everything(&sandbox.agent());
    let unchanged = settings(&sandbox);
    for (source, hint) in [
        ("./empty", "brings no extensions"),
        ("./gone", "is not there"),
        ("./broken.tgz", "could not be unpacked"),
        ("npm:../x", "is no package"),
    ] {
        let errors = fail(&sandbox, &["install", source], &[]);
        assert!(errors.contains(hint), "{source}: {errors}");
    }
    // The sandbox turns the network off.
    for source in ["npm:tools", "git:git.invalid/o/r"] {
        let errors = fail(&sandbox, &["install", source], &[]);
        assert!(errors.contains("network is off"), "{errors}");
    }
    assert_eq!(everything(&sandbox.agent()), before);
    assert_eq!(settings(&sandbox), unchanged);
}

#[test]
#[ignore = "needs git: cargo xtask test --all"]
fn a_repository_that_is_not_there_is_not_installed() {
    let sandbox = offline_sandbox(&json!({}));
    let before = everything(&sandbox.agent());
    let errors = fail(&sandbox, &["install", "git:./gone.git"], &[]);
    assert!(errors.contains("git failed"), "{errors}");
    assert_eq!(everything(&sandbox.agent()), before);
}

#[test]
fn an_archive_needs_neither_npm_nor_git() {
    let sandbox = offline_sandbox(&json!({}));
    let file = archive(&sandbox, "tools", "1.2.0");
    let alone = [("PATH", "/nonexistent")];
    let ran = succeed(&sandbox, &["install", file.to_str().unwrap()], &alone);
    assert!(
        ran.out.contains("npm:tools@1.2.0: 1 extension"),
        "{}",
        ran.out
    );
    assert_eq!(settings(&sandbox)["packages"], json!(["npm:tools@1.2.0"]));
    let place = "home/.pi/agent/npm/node_modules/tools/src/main.ts";
    assert_eq!(found(&sandbox), [place]);

    // Another version takes its place, in the settings too.
    let file = archive(&sandbox, "tools", "1.3.0");
    succeed(
        &sandbox,
        &["install", &format!("file:{}", file.display())],
        &alone,
    );
    assert_eq!(settings(&sandbox)["packages"], json!(["npm:tools@1.3.0"]));
    assert_eq!(found(&sandbox), [place]);
    let ran = succeed(&sandbox, &["update"], &[]);
    assert!(ran.out.contains("pinned"), "{}", ran.out);

    // A file that cannot be written leaves everything as it was.
    fs::write(sandbox.agent().join("settings.json"), "{ broken").unwrap();
    let before = everything(&sandbox.agent());
    let file = archive(&sandbox, "others", "1.0.0");
    let errors = fail(&sandbox, &["install", file.to_str().unwrap()], &alone);
    assert!(errors.contains("correct it and try again"), "{errors}");
    assert_eq!(everything(&sandbox.agent()), before);

    fs::write(
        sandbox.agent().join("settings.json"),
        "{\"packages\": [\"npm:tools\"]}",
    )
    .unwrap();
    succeed(&sandbox, &["remove", "npm:tools"], &[]);
    assert!(!sandbox.agent().join("npm").exists());
    assert_eq!(found(&sandbox), [""; 0]);
}

#[test]
fn an_archive_stays_inside() {
    let sandbox = offline_sandbox(&json!({}));
    let made = sandbox.root().join("made");
    write_package(&made.join("package"), "evil", "1.0.0");
    write(&made.join("escape"), "out");
    shell(
        &made,
        "ln -s ../../../../../.. package/up; tar cf evil.tar package; tar rf evil.tar --absolute-names --transform 's,escape,package/../../../../../../../escaped,' escape; gzip -c evil.tar > evil.tgz",
    );
    let before = everything(sandbox.root());
    let errors = fail(
        &sandbox,
        &["install", made.join("evil.tgz").to_str().unwrap()],
        &[],
    );
    assert!(errors.contains("outside of the package"), "{errors}");
    assert_eq!(everything(sandbox.root()), before);
}

#[test]
#[ignore = "needs git: cargo xtask test --all"]
fn a_repository_is_cloned_at_its_reference() {
    let sandbox = offline_sandbox(&json!({}));
    let work = sandbox.root().join("author");
    write_package(&work, "tools", "1.0.0");
    let identity = "git config user.email a@b; git config user.name A";
    shell(
        &work,
        &format!("git init -q -b main; {identity}; git add .; git commit -qm one; git tag v1"),
    );
    let first = shell(&work, "git rev-parse HEAD");
    write_package(&work, "tools", "2.0.0");
    shell(
        &work,
        "git commit -qam two; git clone -q --bare . ../tools.git",
    );
    let url = format!("git:{}", sandbox.root().join("tools.git").display());

    let ran = succeed(&sandbox, &["install", &url], &[]);
    assert!(ran.out.contains("2.0.0"), "{}", ran.out);
    assert_eq!(settings(&sandbox)["packages"], json!([url]));
    let list = found(&sandbox);
    assert!(
        list.len() == 1 && list[0].starts_with("home/.pi/agent/git/localhost/"),
        "{list:?}"
    );

    for reference in ["v1", first.as_str()] {
        let pinned = format!("{url}@{reference}");
        let ran = succeed(&sandbox, &["install", &pinned], &[]);
        assert!(ran.out.contains("1.0.0"), "{}", ran.out);
        assert_eq!(
            settings(&sandbox)["packages"],
            json!([pinned]),
            "one package, one entry"
        );
    }
    succeed(&sandbox, &["install", &url], &[]);
    write_package(&work, "tools", "3.0.0");
    shell(
        &work,
        "git commit -qam three; git push -q ../tools.git main",
    );
    let ran = succeed(&sandbox, &["update", &url], &[]);
    assert!(ran.out.contains("2.0.0 → 3.0.0"), "{}", ran.out);

    let before = everything(&sandbox.agent());
    let errors = fail(
        &sandbox,
        &["install", &format!("{url}@no-such-branch")],
        &[],
    );
    assert!(errors.contains("git failed"), "{errors}");
    assert_eq!(
        everything(&sandbox.agent()),
        before,
        "the old one is still there"
    );
    assert_eq!(settings(&sandbox)["packages"], json!([url]));
    succeed(&sandbox, &["remove", &url], &[]);
    assert!(!sandbox.agent().join("git").exists());
    let errors = fail(&sandbox, &["install", &url], &[("PATH", "/nonexistent")]);
    assert!(errors.contains("git is needed"), "{errors}");
}

/// Starts a registry of archives on loopback: each name has one version.
fn registry(packages: Vec<(String, String, Value, Vec<u8>)>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = stream;
            let mut request = Vec::new();
            let mut buffer = [0; 4096];
            while !request.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
                match stream.read(&mut buffer) {
                    Ok(count @ 1..) => request.extend_from_slice(&buffer[..count]),
                    _ => break,
                }
            }
            let line = String::from_utf8_lossy(&request).into_owned();
            let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
            let found = packages
                .iter()
                .find_map(|(name, version, manifest, archive)| {
                    if path == format!("/{name}.tgz") {
                        return Some(archive.clone());
                    }
                    let mut manifest = manifest.clone();
                    manifest["dist"] =
                        json!({"tarball": format!("http://127.0.0.1:{port}/{name}.tgz")});
                    let document = json!({"name": name, "dist-tags": {"latest": version},
                    "versions": {version: manifest}});
                    (path == format!("/{name}")).then(|| document.to_string().into_bytes())
                });
            let (status, body) = match found {
                Some(body) => ("200 OK", body),
                None => ("404 Not Found", b"{}".to_vec()),
            };
            let head = format!(
                "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            let _ = stream.write_all(head.as_bytes());
            let _ = stream.write_all(&body);
        }
    });
    port
}

#[test]
fn npm_fetches_a_package_and_what_it_depends_on() {
    let sandbox = offline_sandbox(&json!({}));
    let errors = fail(
        &sandbox,
        &["install", "npm:tools"],
        &[("PATH", "/nonexistent"), ("PI_OFFLINE", "0")],
    );
    assert!(
        errors.contains("npm is needed") && errors.contains("FILE.tgz"),
        "{errors}"
    );
    if Command::new("npm").arg("--version").output().is_err() {
        eprintln!("npm is not here: nothing to fetch with");
        return;
    }
    let made = sandbox.root().join("made");
    write_package(&made.join("package"), "tools", "1.0.0");
    let manifest = json!({"name": "tools", "version": "1.0.0", "pi": {"extensions": ["src/main.ts"]},
        "dependencies": {"helper": "^1"}, "peerDependencies": {"not-in-the-registry": "*"},
        "scripts": {"postinstall": "touch ../../../ran"}});
    write(&made.join("package/package.json"), &manifest.to_string());
    shell(
        &made,
        "tar czf tools.tgz package; rm -r package; mkdir package",
    );
    let helper = json!({"name": "helper", "version": "1.1.0", "main": "index.js"});
    write(&made.join("package/package.json"), &helper.to_string());
    write(&made.join("package/index.js"), "");
    shell(&made, "tar czf helper.tgz package");
    let read = |name: &str| fs::read(made.join(name)).unwrap();
    let port = registry(vec![
        ("tools".into(), "1.0.0".into(), manifest, read("tools.tgz")),
        ("helper".into(), "1.1.0".into(), helper, read("helper.tgz")),
    ]);
    let address = format!("http://127.0.0.1:{port}/");
    let env = [
        ("npm_config_registry", address.as_str()),
        ("PI_OFFLINE", "0"),
    ];

    let before = everything(&sandbox.agent());
    let errors = fail(&sandbox, &["install", "npm:no-such-package"], &env);
    assert!(errors.contains("npm failed"), "{errors}");
    assert_eq!(everything(&sandbox.agent()), before);

    let ran = succeed(&sandbox, &["install", "npm:tools"], &env);
    assert!(
        ran.out.contains("npm:tools 1.0.0: 1 extension"),
        "{}",
        ran.out
    );
    let root = sandbox.agent().join("npm/node_modules/tools");
    assert!(root.join("node_modules/helper/index.js").exists());
    assert!(
        !everything(sandbox.root())
            .iter()
            .any(|path| path.ends_with("ran"))
    );
    assert_eq!(
        found(&sandbox),
        ["home/.pi/agent/npm/node_modules/tools/src/main.ts"]
    );
    let ran = succeed(&sandbox, &["update"], &env);
    assert!(
        ran.out.contains("Fetched npm:tools 1.0.0 again"),
        "{}",
        ran.out
    );

    // A package that settings name and that is not there is named at start, with what to do.
    fs::remove_dir_all(sandbox.agent().join("npm")).unwrap();
    let ran = succeed(&sandbox, &["extensions", "list"], &[]);
    assert!(
        ran.err.contains("`pinion install npm:tools`"),
        "{}",
        ran.err
    );
    let ran = succeed(&sandbox, &["update"], &env);
    assert!(ran.out.contains("Installed npm:tools"), "{}", ran.out);
    assert!(root.exists());
}

#[test]
fn packages_of_a_project_wait_for_its_trust() {
    let sandbox = offline_sandbox(&json!({}));
    let file = archive(&sandbox, "tools", "1.2.0");
    write_package(&sandbox.work().join("pack"), "pack", "1.0.0");
    sandbox.add_files(&json!({".pi/extensions/own.ts": "", ".pi/extensions/more/index.ts": ""}));
    let ran = succeed(&sandbox, &["install", "-l", file.to_str().unwrap()], &[]);
    assert!(ran.err.contains("pinion trust"), "{}", ran.err);
    succeed(&sandbox, &["install", "pack", "--local"], &[]);
    let project = sandbox.work().join(".pi");
    let text = fs::read(project.join("settings.json")).unwrap();
    let written: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(written, json!({"packages": ["npm:tools@1.2.0", "../pack"]}));
    assert_eq!(settings(&sandbox)["packages"], Value::Null);
    assert_eq!(
        fs::read_to_string(project.join("npm/.gitignore")).unwrap(),
        "*\n"
    );

    assert_eq!(found(&sandbox), [""; 0]);
    let ran = succeed(&sandbox, &["extensions", "list"], &[]);
    assert!(
        ran.err.contains("2 extensions are not loaded"),
        "{}",
        ran.err
    );
    assert!(
        ran.err.contains("its settings are ignored") && ran.err.contains("pinion trust"),
        "{}",
        ran.err
    );

    let ran = succeed(
        &sandbox,
        &["extensions", "list", "--no-load", "--trust"],
        &[],
    );
    assert_eq!(ran.out.matches("  from: ").count(), 4, "{}", ran.out);
    succeed(&sandbox, &["trust"], &[]);
    assert_eq!(
        found(&sandbox),
        [
            "work/.pi/extensions/more/index.ts",
            "work/.pi/extensions/own.ts",
            "work/.pi/npm/node_modules/tools/src/main.ts",
            "work/pack/src/main.ts",
        ]
    );
    let errors = fail(&sandbox, &["remove", "npm:tools"], &[]);
    assert!(errors.contains("with --local"), "{errors}");
    succeed(&sandbox, &["remove", "npm:tools", "-l"], &[]);
    assert_eq!(found(&sandbox).len(), 3);
}

#[test]
fn npm_directories_of_global_packages_are_looked_into() {
    let sandbox = offline_sandbox(&json!({"packages": ["npm:shared"]}));
    let root = sandbox.root().join("prefix/lib/node_modules/shared");
    write_package(&root, "shared", "1.0.0");
    let prefix = sandbox.root().join("prefix");
    let env = [("npm_config_prefix", prefix.to_str().unwrap())];
    let ran = succeed(&sandbox, &["extensions", "list"], &env);
    assert!(
        ran.out.contains("shared/src/main.ts"),
        "{}{}",
        ran.out,
        ran.err
    );
}

#[test]
fn the_list_says_what_every_extension_registers() {
    let sandbox = offline_sandbox(&json!({}));
    sandbox.add_agent_files(&json!({
        "extensions/good.ts": "import { words } from './words';
            export default function (pi: any) {
                pi.registerCommand(words[0], { description: 'Greets', handler: async () => {} });
                pi.registerFlag('plan', { type: 'boolean' });
                pi.registerTool({ name: 'count', description: 'Counts', parameters: {}, execute: async () => ({ content: [] }) });
                pi.on('turn_end', () => {});
            }",
        "extensions/thrower.ts": "export default function () { throw new Error('not today'); }",
    }));
    fs::write(
        sandbox.agent().join("extensions/words.js"),
        "export const words = ['greet']; export default function () {}",
    )
    .unwrap();
    let ran = run(&sandbox, &["extensions", "list", "--json"]);
    assert_eq!(ran.code, Exit::Code(1), "one of them fails: {}", ran.err);
    let lines: Vec<Value> = ran
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 3, "{}", ran.out);
    let good = &lines[0];
    assert_eq!(good["sourceInfo"]["source"], "auto", "{good}");
    for (member, expected) in [
        ("commands", json!(["greet"])),
        ("flags", json!(["plan"])),
        ("tools", json!(["count"])),
        ("events", json!(["turn_end"])),
    ] {
        assert_eq!(good[member], expected, "{member}");
    }
    assert!(
        good["loadMilliseconds"].is_number() && good["modules"].is_array(),
        "{good}"
    );
    assert_eq!(good["error"], Value::Null);
    let thrower = &lines[1];
    assert!(thrower["path"].as_str().unwrap().ends_with("thrower.ts"));
    assert!(
        thrower["error"].as_str().unwrap().contains("not today"),
        "{thrower}"
    );

    let ran = run(&sandbox, &["extensions", "list"]);
    assert_eq!(ran.code, Exit::Code(1));
    assert!(
        ran.out.contains("commands: /greet") && ran.out.contains("not today"),
        "{}",
        ran.out
    );
}

#[test]
fn help_and_slips() {
    let sandbox = offline_sandbox(&json!({}));
    for arguments in [
        &["install", "--help"][..],
        &["remove", "-h"],
        &["update", "--help"],
        &["list", "--help"],
        &["extensions", "--help"],
        &["install"],
        &["extensions"],
    ] {
        let ran = succeed(&sandbox, arguments, &[]);
        assert!(ran.out.contains("Examples:"), "{arguments:?}: {}", ran.out);
    }
    for arguments in [
        &["install", "a", "b"][..],
        &["install", "--loca", "a"],
        &["list", "files", "here"],
        &["extensions", "lst"],
        &["extensions", "list", "-e"],
    ] {
        let ran = run(&sandbox, arguments);
        assert_eq!(ran.code, Exit::Code(2), "{arguments:?}: {}", ran.err);
    }
}

#[test]
fn a_list_of_tools_is_about_those_of_extensions_too() {
    let source = "export default (pi) => {
       pi.registerTool({ name: 'greet', label: 'Greet', description: 'Greets', parameters: { type: 'object', properties: {} },
         execute: async () => ({ content: [] }) });
       pi.on('session_start', (_, ctx) =>
         ctx.ui.notify(`${pi.getAllTools().map(({ name }) => name)}; ${pi.getActiveTools()}`));
     };";
    let rpc = ["--mode", "rpc", "--model", "offline/demo", "-e", "tools.ts"];
    for (flags, tools) in [
        (&["--tools", "read,greet"][..], "read,greet; read,greet"),
        (&["--tools", "greet"], "greet; greet"),
        (&["--no-tools"], "; "),
    ] {
        let sandbox = offline_sandbox(&json!({}));
        sandbox.add_files(&json!({"tools.ts": source}));
        let mut client = Client::start(sandbox, &[&rpc[..], flags].concat());
        let at = client.wait_for(0, &json!({"method": "notify"}));
        assert_eq!(client.line(at)["message"], tools, "{flags:?}");
        client.finish();
    }

    let sandbox = offline_sandbox(&json!({}));
    sandbox.add_files(&json!({"tools.ts": source}));
    let flags = ["-p", "--model", "offline/demo", "-e", "tools.ts"];
    let ran = run(
        &sandbox,
        &[&flags[..], &["--tools", "greet,gret", "hi"]].concat(),
    );
    let error = "Error: --tools: unknown tool \"gret\". Did you mean grep?";
    assert_eq!(ran.code, Exit::Code(2), "{}", ran.err);
    assert!(ran.err.contains(error), "{}", ran.err);
}

#[test]
fn what_the_command_line_says_is_interactive() {
    let sandbox = offline_sandbox(&json!({}));
    let source =
        "export default (pi) => pi.on('input', ({ source }) => console.error(`said ${source}`));";
    sandbox.add_files(&json!({"hears.ts": source}));
    let flags = ["--model", "offline/demo", "-e", "hears.ts"];
    for mode in ["text", "json"] {
        let ran = run(
            &sandbox,
            &[&flags[..], &["-p", "--mode", mode, "hi"]].concat(),
        );
        assert!(ran.err.contains("said interactive"), "{mode}: {}", ran.err);
    }
    let mut client = Client::start(sandbox, &[&flags[..], &["--mode", "rpc"]].concat());
    client.prompt("hi");
    client.finish();
    let told = client.report(0);
    assert!(told.contains("said rpc"), "{told}");
}

#[test]
fn a_provider_that_lacks_something_keeps_the_program_from_starting() {
    let sandbox = offline_sandbox(&json!({}));
    let source = "export default (pi) => pi.registerProvider('p', { models: [{ id: 'x' }] });";
    sandbox.add_files(&json!({"bad.ts": source}));
    let told = fail(&sandbox, &["-p", "-e", "bad.ts", "hi"], &[]);
    let file = sandbox.work().join("bad.ts");
    let words = "Provider p: \"baseUrl\" is required when defining models.";
    assert_eq!(
        told,
        format!("Error: Extension \"{}\" error: {words}\n", file.display())
    );
}
