//! Extensions: discovery, order, and notices about those that are left out.

#![allow(
    clippy::unwrap_used,
    reason = "a sandbox that cannot be built fails the test"
)]

mod sandbox;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use pinion_config::{
    Discovery, ExtensionFlags, FoundExtensions, ProjectTrust, ResourceFlags, Resources, Scope,
    Settings, find_extensions, list_packages, record_package, remove_package,
};
use sandbox::{Sandbox, codes, names};
use serde_json::{Value, json};

const TRUSTED: ProjectTrust = ProjectTrust::Trusted;
const UNTRUSTED: ProjectTrust = ProjectTrust::Untrusted;

fn find_with(sandbox: &Sandbox, flags: &[&str], discovery: Discovery) -> FoundExtensions {
    let (settings, _) = Settings::load(&sandbox.dirs, TRUSTED);
    let flags = ExtensionFlags {
        extensions: flags.iter().map(ToString::to_string).collect(),
        discovery,
    };
    find_extensions(&sandbox.dirs, &settings, &flags, TRUSTED)
}

fn find(sandbox: &Sandbox) -> FoundExtensions {
    find_with(sandbox, &[], Discovery::On)
}

/// The paths that were found, relative to the sandbox.
fn paths(sandbox: &Sandbox, found: &FoundExtensions) -> Vec<String> {
    let base = sandbox.dirs.home.parent().unwrap();
    let relative = |path: &PathBuf| {
        path.strip_prefix(base)
            .unwrap_or(path)
            .display()
            .to_string()
    };
    found
        .entries
        .iter()
        .map(|entry| relative(&entry.path))
        .collect()
}

/// The paths below one directory, relative to it.
fn below(directory: &Path, found: &FoundExtensions) -> Vec<String> {
    let relative = |path: &PathBuf| path.strip_prefix(directory).unwrap().display().to_string();
    found
        .entries
        .iter()
        .map(|entry| relative(&entry.path))
        .collect()
}

fn settings(value: &Value) -> String {
    value.to_string()
}

#[test]
fn with_nothing_there_nothing_is_found_and_nothing_is_said() {
    let sandbox = Sandbox::new();
    let found = find(&sandbox);
    assert_eq!(found.entries, []);
    assert_eq!(found.notices, []);
    assert_eq!(found.missing, []);
}

#[test]
fn flags_then_project_then_user_then_packages() {
    let sandbox = Sandbox::new();
    sandbox.project("z-flag.ts", "");
    sandbox.project("a-flag.ts", "");
    sandbox.project(".pi/listed.ts", "");
    sandbox.project(".pi/extensions/auto.ts", "");
    sandbox.project(".pi/pack/extensions/in-pack.ts", "");
    sandbox.agent("listed.js", "");
    sandbox.agent("extensions/auto.js", "");
    sandbox.agent("pack/extensions/in-pack.ts", "");
    let lists = json!({"extensions": ["listed.js"], "packages": ["./pack"]});
    sandbox.agent("settings.json", &settings(&lists));
    let lists = json!({"extensions": ["./listed.ts"], "packages": ["./pack"]});
    sandbox.project(".pi/settings.json", &settings(&lists));

    let found = find_with(&sandbox, &["z-flag.ts", "./a-flag.ts"], Discovery::On);
    assert_eq!(found.notices, []);
    assert_eq!(
        paths(&sandbox, &found),
        [
            "parent/work/z-flag.ts",
            "parent/work/a-flag.ts",
            "parent/work/.pi/listed.ts",
            "parent/work/.pi/extensions/auto.ts",
            "home/.pi/agent/listed.js",
            "home/.pi/agent/extensions/auto.js",
            "parent/work/.pi/pack/extensions/in-pack.ts",
            "home/.pi/agent/pack/extensions/in-pack.ts",
        ]
    );
    let infos: Vec<Value> = found
        .entries
        .iter()
        .map(|entry| {
            let mut info = serde_json::to_value(&entry.source_info).unwrap();
            assert_eq!(info["path"], entry.path.to_str().unwrap());
            info.as_object_mut().unwrap().shift_remove("path");
            info
        })
        .collect();
    let project_dir = sandbox.dirs.project_dir.to_str().unwrap();
    let agent_dir = sandbox.dirs.agent_dir.to_str().unwrap();
    let pack = |base: &str| format!("{base}/pack");
    assert_eq!(
        infos,
        [
            json!({"source": "cli", "scope": "temporary", "origin": "top-level"}),
            json!({"source": "cli", "scope": "temporary", "origin": "top-level"}),
            json!({"source": "local", "scope": "project", "origin": "top-level"}),
            json!({"source": "auto", "scope": "project", "origin": "top-level", "baseDir": project_dir}),
            json!({"source": "local", "scope": "user", "origin": "top-level"}),
            json!({"source": "auto", "scope": "user", "origin": "top-level", "baseDir": agent_dir}),
            json!({"source": "./pack", "scope": "project", "origin": "package", "baseDir": pack(project_dir)}),
            json!({"source": "./pack", "scope": "user", "origin": "package", "baseDir": pack(agent_dir)}),
        ]
    );

    let found = find_with(&sandbox, &["a-flag.ts"], Discovery::Off);
    assert_eq!(paths(&sandbox, &found), ["parent/work/a-flag.ts"]);
}

#[test]
fn a_manifest_may_mix_paths_and_patterns() {
    let sandbox = Sandbox::new();
    for name in [
        "a.ts",
        "b.ts",
        "old.ts",
        "src/c.ts",
        "src/d.ts",
        "src/deep/e.ts",
    ] {
        sandbox.agent(&format!("pack/{name}"), "");
        sandbox.agent(&format!("extensions/inside/{name}"), "");
    }
    let cases = [
        (
            json!(["./a.ts", "./gone.ts", "src/*.ts"]),
            vec!["a.ts", "src/c.ts", "src/d.ts"],
        ),
        (
            json!(["src/c.ts", "*.ts", "!old*"]),
            vec!["src/c.ts", "a.ts", "b.ts"],
        ),
        (json!(["src", "!d.ts"]), vec!["src/c.ts"]),
        (
            json!(["a.ts", "src/**/*.ts", "-src/c.ts"]),
            vec!["a.ts", "src/d.ts", "src/deep/e.ts"],
        ),
    ];
    for (extensions, expected) in cases {
        let manifest = json!({"name": "pack", "pi": {"extensions": extensions}}).to_string();
        sandbox.agent("extensions/inside/package.json", &manifest);
        let inside = sandbox.dirs.agent_dir.join("extensions/inside");
        let found = find(&sandbox);
        assert_eq!(below(&inside, &found), expected, "{manifest}");
        assert_eq!(found.notices, []);

        sandbox.agent("pack/package.json", &manifest);
        let pack = sandbox.dirs.agent_dir.join("pack");
        let found = find_with(&sandbox, &[pack.to_str().unwrap()], Discovery::Off);
        assert_eq!(below(&pack, &found), expected, "{manifest}");
        assert_eq!(found.notices, []);
    }
}

#[test]
fn a_directory_is_a_list_a_module_or_a_collection() {
    let sandbox = Sandbox::new();
    for name in [
        "b.ts",
        "a.js",
        "B.ts",
        "types.d.ts",
        "notes.md",
        ".hidden.ts",
        "node_modules/x/index.ts",
        "module/index.ts",
        "module/index.js",
        "module/helper.ts",
        "script/index.js",
        "deep/down/index.ts",
        "pack/src/one.ts",
        "pack/src/two.ts",
        "pack/index.ts",
        "gone/index.ts",
        "dir/lib/index.ts",
    ] {
        sandbox.agent(&format!("extensions/{name}"), "");
    }
    let manifest = |list: Value| settings(&json!({"pi": {"extensions": list}}));
    sandbox.agent(
        "extensions/pack/package.json",
        &manifest(json!(["src/two.ts", "src/gone.ts", "./src/one.ts"])),
    );
    sandbox.agent(
        "extensions/gone/package.json",
        &manifest(json!(["nothing.ts"])),
    );
    sandbox.agent(
        "extensions/dir/package.json",
        &manifest(json!(["lib", "."])),
    );
    let found = find(&sandbox);
    assert_eq!(
        below(&sandbox.dirs.agent_dir.join("extensions"), &found),
        [
            "B.ts",
            "a.js",
            "b.ts",
            "dir/lib/index.ts",
            "gone/index.ts",
            "module/index.ts",
            "pack/src/two.ts",
            "pack/src/one.ts",
            "script/index.js",
        ]
    );
}

#[test]
fn a_scanned_directory_may_itself_be_one_extension() {
    let sandbox = Sandbox::new();
    sandbox.agent("extensions/index.ts", "");
    sandbox.agent("extensions/other.ts", "");
    let found = find(&sandbox);
    assert_eq!(
        below(&sandbox.dirs.agent_dir, &found),
        ["extensions/index.ts"]
    );
}

#[test]
fn ignore_files_are_honoured_and_links_followed_once() {
    let sandbox = Sandbox::new();
    for name in ["a.ts", "b.ts", "c.ts", "d.ts", "sub/index.ts"] {
        sandbox.agent(&format!("extensions/{name}"), "");
    }
    sandbox.agent("extensions/.gitignore", "a.ts\n");
    sandbox.agent("extensions/.ignore", "b.ts\n");
    sandbox.agent("extensions/.fdignore", "sub/\n");
    let real = sandbox.home("elsewhere/tool.ts", "");
    let extensions = sandbox.dirs.agent_dir.join("extensions");
    symlink(&real, extensions.join("e.ts")).unwrap();
    symlink(&real, extensions.join("f.ts")).unwrap();
    symlink(real.parent().unwrap(), extensions.join("linked")).unwrap();
    symlink(&extensions, extensions.join("loop")).unwrap();
    symlink("nowhere.ts", extensions.join("g.ts")).unwrap();
    sandbox.home("elsewhere/index.ts", "");
    let found = find(&sandbox);
    assert_eq!(
        below(&extensions, &found),
        ["c.ts", "d.ts", "e.ts", "linked/index.ts"]
    );

    let found = find_with(&sandbox, &[real.to_str().unwrap()], Discovery::On);
    assert_eq!(found.entries[0].source_info.source, "cli");
    assert!(!below_any(&found, "e.ts"), "the flag came first");
}

fn below_any(found: &FoundExtensions, name: &str) -> bool {
    found.entries.iter().any(|entry| entry.path.ends_with(name))
}

#[test]
fn patterns_filter_what_was_found_and_select_what_is_listed() {
    let sandbox = Sandbox::new();
    for name in [
        "extensions/a.ts",
        "extensions/b.ts",
        "extensions/mod/index.ts",
        "more/x-1.ts",
        "more/x-2.js",
        "more/y.ts",
        "more/z/index.ts",
    ] {
        sandbox.agent(name, "");
    }
    let base = sandbox.dirs.agent_dir.clone();
    let auto = [
        "extensions/a.ts",
        "extensions/b.ts",
        "extensions/mod/index.ts",
    ];
    for (list, expected) in [
        (json!([]), auto.to_vec()),
        (json!(["!extensions/*.ts"]), vec![auto[2]]),
        (json!(["!*.ts", "+extensions/b.ts"]), vec![auto[1]]),
        (json!(["-extensions/b.ts"]), vec![auto[0], auto[2]]),
        (json!(["-extensions/mod"]), vec![auto[0], auto[1]]),
        (
            json!(["+extensions/a.ts", "-extensions/a.ts", "!b.ts"]),
            vec![auto[2]],
        ),
        (
            json!(["more/x-*", "!extensions/**"]),
            vec!["more/x-1.ts", "more/x-2.js"],
        ),
        (
            json!(["more", "!y.ts", "!extensions/**"]),
            vec!["more/x-1.ts", "more/x-2.js", "more/z/index.ts"],
        ),
        (
            json!(["more/*", "-more/y.ts", "-more/x-1.ts", "!extensions/**"]),
            vec!["more/x-2.js", "more/z/index.ts"],
        ),
    ] {
        let text = settings(&json!({ "extensions": list }));
        sandbox.agent("settings.json", &text);
        let found = find(&sandbox);
        assert_eq!(below(&base, &found), expected, "{text}");
        assert_eq!(found.notices, [], "{text}");
    }
    sandbox.agent(
        "settings.json",
        &settings(&json!({"extensions": ["gone.ts"]})),
    );
    assert_eq!(codes(&find(&sandbox).notices), ["unreadable_file"]);
}

#[test]
fn a_package_brings_what_its_manifest_lists() {
    let sandbox = Sandbox::new();
    let skill = "---\nname: tidy\ndescription: Tidies\n---\nTidy.";
    for (name, text) in [
        ("pack/lib/one.ts", ""),
        ("pack/lib/two.ts", ""),
        ("pack/lib/two.test.ts", ""),
        ("pack/extensions/unlisted.ts", ""),
        ("pack/know/tidy/SKILL.md", skill),
        ("pack/say/review.md", "Review $1"),
        ("pack/prompts/unlisted.md", "no"),
    ] {
        sandbox.agent(name, text);
    }
    let manifest = json!({"name": "pack", "pi": {
        "extensions": ["./lib/*.ts", "!**/*.test.ts"],
        "skills": ["know"],
        "prompts": ["say/review.md"],
    }});
    sandbox.agent("pack/package.json", &settings(&manifest));
    sandbox.agent("settings.json", &settings(&json!({"packages": ["pack"]})));
    let root = sandbox.dirs.agent_dir.join("pack");
    assert_eq!(below(&root, &find(&sandbox)), ["lib/one.ts", "lib/two.ts"]);

    let (resources, notices) = sandbox.resources(UNTRUSTED);
    assert_eq!(notices, []);
    assert_eq!(names(&resources), ["review", "skill:tidy"]);
    let listing = serde_json::to_value(resources.commands()).unwrap();
    assert_eq!(listing[0]["description"], "Review $1 (pack)");
    assert_eq!(listing[0]["location"], "user");
    assert_eq!(
        listing[1]["sourceInfo"],
        json!({"path": root.join("know/tidy/SKILL.md"), "source": "pack", "scope": "user",
               "origin": "package", "baseDir": root})
    );
}

#[test]
fn a_package_without_a_manifest_has_conventional_directories_or_is_a_module() {
    let sandbox = Sandbox::new();
    let skill = "---\ndescription: Tidies\n---\nTidy.";
    sandbox.agent("plain/extensions/a.ts", "");
    sandbox.agent("plain/skills/tidy/SKILL.md", skill);
    sandbox.agent("plain/prompts/review.md", "Review");
    sandbox.agent("plain/index.ts", "");
    sandbox.agent("module/index.js", "");
    sandbox.agent("module/package.json", "{\"name\": \"module\"}");
    sandbox.agent("texts/prompts/say.md", "Say");
    sandbox.agent("texts/index.ts", "");
    sandbox.agent("single.ts", "");
    let list = json!({"packages": ["plain", "module", "texts", "single.ts"]});
    sandbox.agent("settings.json", &settings(&list));
    let found = find(&sandbox);
    assert_eq!(
        below(&sandbox.dirs.agent_dir, &found),
        ["plain/extensions/a.ts", "module/index.js", "single.ts"]
    );
    let single = &found.entries[2].source_info;
    assert_eq!(
        single.base_dir.as_deref(),
        Some(sandbox.dirs.agent_dir.as_path())
    );
    assert_eq!(single.origin, "package");
    let (resources, _) = sandbox.resources(UNTRUSTED);
    assert_eq!(names(&resources), ["review", "say", "skill:tidy"]);
}

#[test]
fn a_directory_that_is_one_module_is_known_as_it_was_named() {
    let sandbox = Sandbox::new();
    sandbox.project("one/index.ts", "");
    sandbox.project("listed/index.ts", "");
    sandbox.project(
        "listed/package.json",
        r#"{"pi": {"extensions": ["index.ts"]}}"#,
    );
    let found = find_with(&sandbox, &["one", "listed"], Discovery::Off);
    let known: Vec<&Path> = found
        .entries
        .iter()
        .map(|entry| entry.source_info.path.as_path())
        .collect();
    let cwd = &sandbox.dirs.cwd;
    assert_eq!(known, [cwd.join("one"), cwd.join("listed/index.ts")]);
    assert!(found.entries[0].path.ends_with("one/index.ts"));
}

#[test]
fn an_entry_narrows_what_a_package_brings() {
    let sandbox = Sandbox::new();
    for name in ["a.ts", "b.ts", "c.ts"] {
        sandbox.agent(&format!("pack/extensions/{name}"), "");
    }
    sandbox.agent("pack/prompts/review.md", "Review");
    sandbox.agent("pack/prompts/tell.md", "Tell");
    let root = sandbox.dirs.agent_dir.join("pack/extensions");
    for (filter, expected, prompts) in [
        (
            json!({}),
            vec!["a.ts", "b.ts", "c.ts"],
            vec!["review", "tell"],
        ),
        (json!({"extensions": []}), vec![], vec!["review", "tell"]),
        (
            json!({"extensions": ["extensions/a.ts"]}),
            vec!["a.ts"],
            vec!["review", "tell"],
        ),
        (
            json!({"extensions": ["a.ts", "b.*"]}),
            vec!["a.ts", "b.ts"],
            vec!["review", "tell"],
        ),
        (
            json!({"extensions": ["!b.ts"], "prompts": []}),
            vec!["a.ts", "c.ts"],
            vec![],
        ),
        (
            json!({"extensions": ["!*.ts", "+extensions/c.ts"], "prompts": ["prompts/t*"]}),
            vec!["c.ts"],
            vec!["tell"],
        ),
        (
            json!({"extensions": ["-extensions/c.ts"]}),
            vec!["a.ts", "b.ts"],
            vec!["review", "tell"],
        ),
    ] {
        let mut entry = filter.clone();
        entry["source"] = json!("./pack");
        sandbox.agent("settings.json", &settings(&json!({"packages": [entry]})));
        assert_eq!(below(&root, &find(&sandbox)), expected, "{filter}");
        let (resources, _) = sandbox.resources(UNTRUSTED);
        assert_eq!(names(&resources), prompts, "{filter}");
    }
}

#[test]
fn installed_packages_are_found_and_the_project_entry_wins() {
    let sandbox = Sandbox::new();
    sandbox.agent("npm/node_modules/@me/tools/extensions/user.ts", "");
    sandbox.agent("git/host.org/o/r/extensions/user.ts", "");
    sandbox.project(".pi/npm/node_modules/@me/tools/extensions/project.ts", "");
    let user = json!({"packages": ["npm:@me/tools", "git:host.org/o/r@v1", "npm:gone"]});
    sandbox.agent("settings.json", &settings(&user));
    let found = find(&sandbox);
    assert_eq!(
        below(&sandbox.dirs.agent_dir, &found),
        [
            "npm/node_modules/@me/tools/extensions/user.ts",
            "git/host.org/o/r/extensions/user.ts"
        ]
    );
    assert_eq!(found.missing.len(), 1);
    assert_eq!(found.missing[0].text(), "npm:gone");
    assert_eq!(codes(&found.notices), ["missing_package"]);
    assert!(
        found.notices[0]
            .message
            .contains("`pinion install npm:gone`")
    );

    let project = json!({"packages": [{"source": "npm:@me/tools@1.0.0"}]});
    sandbox.project(".pi/settings.json", &settings(&project));
    let found = find(&sandbox);
    assert_eq!(
        paths(&sandbox, &found),
        [
            "parent/work/.pi/npm/node_modules/@me/tools/extensions/project.ts",
            "home/.pi/agent/git/host.org/o/r/extensions/user.ts"
        ]
    );
    assert_eq!(found.entries[0].source_info.source, "npm:@me/tools@1.0.0");
}

#[test]
fn another_version_than_the_pinned_one_is_used_and_named() {
    let sandbox = Sandbox::new();
    sandbox.agent(
        "npm/node_modules/t/package.json",
        "{\"version\": \"1.0.0\"}",
    );
    sandbox.agent("npm/node_modules/t/index.ts", "");
    for (source, expected) in [
        ("npm:t@1.0.0", &[][..]),
        ("npm:t@2.0.0", &["other_version"][..]),
        ("npm:t@^2", &[][..]),
    ] {
        sandbox.agent("settings.json", &settings(&json!({"packages": [source]})));
        let found = find(&sandbox);
        assert_eq!(found.entries.len(), 1, "{source}");
        assert_eq!(codes(&found.notices), expected, "{source}");
    }
}

#[test]
fn odd_entries_cost_only_themselves() {
    let sandbox = Sandbox::new();
    sandbox.agent("pack/extensions/a.ts", "");
    sandbox.agent("broken/package.json", "{");
    sandbox.agent("broken/extensions/b.ts", "");
    let list = json!({"packages": [{"extensions": []}, "npm:../x", "pack", "broken", "gone"]});
    sandbox.agent("settings.json", &settings(&list));
    let found = find(&sandbox);
    assert_eq!(
        below(&sandbox.dirs.agent_dir, &found),
        ["pack/extensions/a.ts", "broken/extensions/b.ts"]
    );
    assert_eq!(
        codes(&found.notices),
        [
            "bad_package",
            "bad_package",
            "broken_file",
            "missing_package"
        ]
    );
}

#[test]
fn flags_name_files_directories_and_packages() {
    let sandbox = Sandbox::new();
    sandbox.project("odd-name", "");
    sandbox.project(
        "pack/package.json",
        "{\"pi\": {\"extensions\": [\"./src\"]}}",
    );
    sandbox.project("pack/src/index.ts", "");
    sandbox.project("pack/extensions/unlisted.ts", "");
    sandbox.project("module/index.ts", "");
    sandbox.project("module/other.ts", "");
    sandbox.project("loose/a.ts", "");
    sandbox.project("texts/prompts/say.md", "Say");
    sandbox.agent("npm/node_modules/tools/index.js", "");
    sandbox.home("mine.ts", "");
    let flags = [
        "odd-name",
        "pack",
        "module",
        "loose",
        "texts",
        "npm:tools",
        "npm:gone",
        "~/mine.ts",
        "gone.ts",
    ];
    let found = find_with(&sandbox, &flags, Discovery::Off);
    assert_eq!(
        paths(&sandbox, &found),
        [
            "parent/work/odd-name",
            "parent/work/pack/src/index.ts",
            "parent/work/module/index.ts",
            "parent/work/loose",
            "home/.pi/agent/npm/node_modules/tools/index.js",
            "home/mine.ts",
            "parent/work/gone.ts",
        ],
        "what cannot be loaded is there all the same, so that loading it says why"
    );
    assert!(
        found
            .entries
            .iter()
            .all(|entry| entry.source_info.source == "cli")
    );
    assert_eq!(codes(&found.notices), ["missing_package"]);

    let flags = ResourceFlags {
        extensions: vec!["texts".into(), "odd-name".into()],
        prompt_discovery: Discovery::Off,
        ..ResourceFlags::default()
    };
    let (resources, notices) = sandbox.resources_with(&flags, UNTRUSTED);
    assert_eq!(names(&resources), ["say"]);
    assert_eq!(notices, []);

    // As pi does, only templates name their package.
    let commands = json!(resources.commands());
    let info = &commands[0]["sourceInfo"];
    assert_eq!(info["source"], "texts");
    assert_eq!(info["origin"], "package");
    assert!(info["baseDir"].as_str().unwrap().ends_with("work/texts"));
    assert!(commands[0]["description"].as_str().unwrap().ends_with(')'));
    let plain = ResourceFlags {
        plain_descriptions: true,
        ..flags
    };
    let (resources, _) = sandbox.resources_with(&plain, UNTRUSTED);
    let commands = json!(resources.commands());
    assert!(!commands[0]["description"].as_str().unwrap().contains('('));
}

#[test]
fn an_untrusted_project_brings_no_code() {
    let sandbox = Sandbox::new();
    sandbox.project(".pi/extensions/evil.ts", "");
    sandbox.project(".pi/extensions/worse/index.ts", "");
    sandbox.project(".pi/pack/extensions/evil.ts", "");
    sandbox.project(".pi/pack/prompts/evil.md", "evil");
    sandbox.project(".pi/npm/node_modules/t/index.ts", "");
    let list = json!({"extensions": ["../evil.ts"], "packages": ["./pack", "npm:t"]});
    sandbox.project(".pi/settings.json", &settings(&list));
    sandbox.project("evil.ts", "");
    let (loaded, notices) = Settings::load(&sandbox.dirs, UNTRUSTED);
    assert_eq!(codes(&notices), ["untrusted_settings"]);
    let flags = ExtensionFlags::default();
    let found = find_extensions(&sandbox.dirs, &loaded, &flags, UNTRUSTED);
    assert_eq!(found.entries, []);
    assert_eq!(codes(&found.notices), ["untrusted_extensions"]);
    let notice = found.notices[0].to_string();
    assert!(
        notice.contains("2 extensions") && notice.contains("pinion trust"),
        "{notice}"
    );
    let (resources, _) =
        Resources::load(&sandbox.dirs, &loaded, &ResourceFlags::default(), UNTRUSTED);
    assert_eq!(names(&resources), [""; 0]);

    // Flags load the named file, but do not use an untrusted project's copy of a package.
    let flags = ExtensionFlags {
        extensions: vec!["evil.ts".into(), "npm:t".into()],
        discovery: Discovery::Off,
    };
    let found = find_extensions(&sandbox.dirs, &loaded, &flags, UNTRUSTED);
    assert_eq!(paths(&sandbox, &found), ["parent/work/evil.ts"]);
    assert_eq!(codes(&found.notices), ["missing_package"]);
}

#[test]
fn an_agent_directory_that_is_a_dot_pi_is_the_users() {
    let mut sandbox = Sandbox::new();
    sandbox.dirs.agent_dir = sandbox.dirs.project_dir.clone();
    sandbox.project(".pi/extensions/mine.ts", "");
    let (settings, _) = Settings::load(&sandbox.dirs, UNTRUSTED);
    let flags = ExtensionFlags::default();
    let found = find_extensions(&sandbox.dirs, &settings, &flags, UNTRUSTED);
    assert_eq!(found.notices, []);
    assert_eq!(found.entries[0].source_info.scope, "user");
}

#[test]
fn packages_are_recorded_once_and_forgotten() {
    let sandbox = Sandbox::new();
    let dirs = &sandbox.dirs;
    let parse =
        |text: &str| pinion_config::PackageSource::parse(text, &dirs.cwd, &dirs.home).unwrap();
    let lists = json!({"theme": "dark", "packages": [{"source": "npm:t@1", "skills": []}]});
    let file = sandbox.agent("settings.json", &settings(&lists));
    record_package(dirs, Scope::User, &parse("npm:t@2")).unwrap();
    record_package(dirs, Scope::User, &parse("./pack")).unwrap();
    record_package(dirs, Scope::User, &parse("pack/")).unwrap();
    let pack = dirs.cwd.join("pack");
    let read = |file: &Path| -> Value { serde_json::from_slice(&fs::read(file).unwrap()).unwrap() };
    assert_eq!(
        read(&file),
        json!({"theme": "dark", "packages": [{"source": "npm:t@2", "skills": []}, pack]})
    );

    let text = record_package(dirs, Scope::Project, &parse("./pack")).unwrap();
    assert_eq!(text, "../pack");
    assert_eq!(
        read(&dirs.project_settings()),
        json!({"packages": ["../pack"]})
    );
    let (all, _) = Settings::load(dirs, TRUSTED);
    let (packages, notices) = list_packages(dirs, &all);
    assert_eq!(notices, []);
    let scopes: Vec<Scope> = packages.iter().map(|package| package.scope).collect();
    assert_eq!(
        scopes,
        [Scope::Project, Scope::User],
        "one package is one package"
    );

    let gone = remove_package(dirs, Scope::User, &parse("npm:t")).unwrap();
    assert_eq!(gone.as_deref(), Some("npm:t@2"));
    assert_eq!(
        remove_package(dirs, Scope::User, &parse("npm:t")).unwrap(),
        None
    );
    assert_eq!(read(&file), json!({"theme": "dark", "packages": [pack]}));

    sandbox.agent("settings.json", "{\"packages\": \"npm:t\"}");
    let error = record_package(dirs, Scope::User, &parse("npm:t")).unwrap_err();
    assert_eq!(error.code(), "wrong_type");
    assert_eq!(read(&file), json!({"packages": "npm:t"}));
}
