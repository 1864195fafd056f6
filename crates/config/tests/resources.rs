//! Templates and skills: discovery, listing and expansion.

#![allow(
    clippy::unwrap_used,
    reason = "a sandbox that cannot be built fails the test"
)]

mod sandbox;

use std::fs;
use std::os::unix::fs::symlink;

use pinion_config::{
    Discovery, LazyResources, Location, ProjectTrust, ResourceFlags, Settings, SkillVisibility,
};
use sandbox::{Sandbox, codes, names};
use serde_json::{Value, json};

const TRUSTED: ProjectTrust = ProjectTrust::Trusted;
const UNTRUSTED: ProjectTrust = ProjectTrust::Untrusted;

/// Recorded from pi: files, the listing in its old and its new form, and expansions.
fn recorded() -> (Sandbox, Value) {
    let sandbox = Sandbox::new();
    let text = include_str!("vectors/resources.json")
        .replace("${AGENT}", sandbox.dirs.agent_dir.to_str().unwrap())
        .replace("${CWD}", sandbox.dirs.cwd.to_str().unwrap());
    let vectors: Value = serde_json::from_str(&text).unwrap();
    for (name, text) in vectors["agentFiles"].as_object().unwrap() {
        sandbox.agent(name, text.as_str().unwrap());
    }
    for (name, text) in vectors["projectFiles"].as_object().unwrap() {
        sandbox.project(name, text.as_str().unwrap());
    }
    (sandbox, vectors)
}

#[test]
fn the_listing_is_the_recorded_one() {
    let (sandbox, vectors) = recorded();
    let (resources, notices) = sandbox.resources(TRUSTED);
    let listing = serde_json::to_value(resources.commands()).unwrap();
    let expected: Vec<Value> = vectors["commands"]
        .as_array()
        .unwrap()
        .iter()
        .map(|command| {
            let mut command = command.clone();
            let name = command["name"].as_str().unwrap().to_owned();
            command["sourceInfo"] = vectors["sourceInfo"][&name].clone();
            command
        })
        .collect();
    assert_eq!(
        listing.to_string(),
        Value::Array(expected).to_string(),
        "member order included"
    );
    assert_eq!(
        codes(&notices),
        ["bad_skill"],
        "the skill without a description: {notices:?}"
    );
}

#[test]
fn prompts_expand_as_recorded() {
    let (sandbox, vectors) = recorded();
    let (resources, _) = sandbox.resources(TRUSTED);
    for case in vectors["expansions"].as_array().unwrap() {
        let prompt = case["prompt"].as_str().unwrap();
        let expanded = resources.expand(prompt);
        assert_eq!(expanded.text, case["text"].as_str().unwrap(), "{prompt}");
        assert_eq!(expanded.error, None);
    }
}

#[test]
fn only_a_space_ends_a_name() {
    let sandbox = Sandbox::new();
    sandbox.agent("prompts/t.md", "T[$@]");
    sandbox.agent("skills/s/SKILL.md", "---\ndescription: d\n---\nS");
    let (resources, _) = sandbox.resources(TRUSTED);
    for (prompt, expected) in [
        ("/t", "T[]"),
        ("/t  a   b ", "T[a b]"),
        ("/t\na", "/t\na"),
        ("/t\ta", "/t\ta"),
        ("/T", "/T"),
        ("say /t", "say /t"),
        ("/skill:s\nmore", "/skill:s\nmore"),
        ("/skill: s", "/skill: s"),
        ("/", "/"),
        ("", ""),
    ] {
        assert_eq!(resources.expand(prompt).text, expected, "{prompt:?}");
    }
    let expanded = resources.expand("/skill:s \n two\nlines  ");
    assert!(
        expanded.text.ends_with("\n</skill>\n\ntwo\nlines"),
        "{}",
        expanded.text
    );
}

#[test]
fn a_skill_is_read_again_when_it_is_called() {
    let sandbox = Sandbox::new();
    let file = sandbox.agent("skills/s/SKILL.md", "---\ndescription: d\n---\nold");
    let (resources, _) = sandbox.resources(TRUSTED);
    fs::write(&file, "---\r\ndescription: d\r\n---\r\n\r\nnew\r\n").unwrap();
    assert!(
        resources
            .expand("/skill:s")
            .text
            .contains("\n\nnew\n</skill>")
    );
    fs::remove_file(&file).unwrap();
    let expanded = resources.expand("/skill:s x");
    assert_eq!(expanded.text, "/skill:s x");
    let error = expanded.error.unwrap();
    assert_eq!(error.path, file);
    assert!(!error.message.is_empty());
}

#[test]
fn templates_are_described_by_their_header_or_their_first_line() {
    let sandbox = Sandbox::new();
    let long = "x".repeat(61);
    sandbox.agent("prompts/a.md", &format!("\n\n{long}\nmore"));
    sandbox.agent("prompts/b.md", &"ä".repeat(60));
    sandbox.agent("prompts/c.md", "---\ndescription: ''\n---\nbody line\n");
    sandbox.agent("prompts/d.md", "");
    sandbox.agent("prompts/e.md", "---\ndescription: [\n---\nbroken\n");
    sandbox.agent("prompts/.hidden.md", "x");
    sandbox.agent("prompts/note.txt", "x");
    sandbox.agent("prompts/sub/f.md", "x");
    let (resources, notices) = sandbox.resources(TRUSTED);
    let listed: Vec<String> = resources
        .commands()
        .into_iter()
        .map(|command| command.description)
        .collect();
    let expected = [
        format!("{}... (user)", "x".repeat(60)),
        format!("{} (user)", "ä".repeat(60)),
        "body line (user)".to_owned(),
        "(user)".to_owned(),
    ];
    assert_eq!(listed, expected);
    assert_eq!(codes(&notices), ["bad_template"]);
}

#[test]
fn the_first_definition_of_a_name_counts() {
    let sandbox = Sandbox::new();
    sandbox.agent("prompts/x.md", "user");
    sandbox.project(".pi/prompts/x.md", "project");
    sandbox.project(".pi/prompts/y.md", "project");
    let x = sandbox.project("more/x.md", "flag");
    let z = sandbox.project("more/z.md", "flag");
    let flags = ResourceFlags {
        prompt_templates: vec![x.to_str().unwrap().into(), "more".into(), "absent".into()],
        ..ResourceFlags::default()
    };
    let (resources, notices) = sandbox.resources_with(&flags, TRUSTED);
    let found: Vec<_> = resources
        .commands()
        .into_iter()
        .map(|command| (command.name, command.description, command.location))
        .collect();
    let expected = [
        ("x", "user (user)", Location::User),
        ("y", "project (project)", Location::Project),
        ("z", "flag (path:more)", Location::Path),
    ];
    assert_eq!(
        found,
        expected.map(|(name, text, place)| (name.into(), text.into(), place))
    );
    assert_eq!(
        codes(&notices),
        ["unreadable_file", "name_taken", "name_taken"]
    );
    let info = &resources.templates()[2].source_info;
    assert_eq!(
        (&*info.source, info.scope, &info.base_dir),
        ("cli", "temporary", &None)
    );
    assert_eq!(info.path, z);
}

#[test]
fn without_discovery_only_flags_count() {
    let sandbox = Sandbox::new();
    sandbox.agent("settings.json", r#"{"skills":["../../listed"]}"#);
    sandbox.home("listed/l/SKILL.md", "---\ndescription: d\n---\n");
    sandbox.agent("skills/a/SKILL.md", "---\ndescription: d\n---\n");
    sandbox.agent("prompts/p.md", "p");
    sandbox.project("own/SKILL.md", "---\ndescription: d\n---\n");
    sandbox.project("own/README.md", "not a skill");
    let mut flags = ResourceFlags {
        skills: vec!["own".into()],
        ..ResourceFlags::default()
    };
    assert_eq!(
        names(&sandbox.resources_with(&flags, TRUSTED).0),
        ["p", "skill:a", "skill:l", "skill:own"]
    );
    flags.skill_discovery = Discovery::Off;
    flags.prompt_discovery = Discovery::Off;
    let (resources, notices) = sandbox.resources_with(&flags, TRUSTED);
    assert_eq!(
        (names(&resources), notices),
        (vec!["skill:own".to_owned()], vec![])
    );
}

#[test]
fn skills_are_found_at_any_depth_and_in_all_places() {
    let sandbox = Sandbox::new();
    let skill = "---\ndescription: d\n---\n";
    sandbox.agent(
        "skills/single.md",
        "---\nname: skills\ndescription: d\n---\n",
    );
    sandbox.agent("skills/deep/er/nested/SKILL.md", skill);
    sandbox.agent("skills/deep/notes.md", skill);
    sandbox.agent("skills/node_modules/n/SKILL.md", skill);
    sandbox.agent("skills/.dot/d/SKILL.md", skill);
    sandbox.agent("skills/.gitignore", "ignored-*\n");
    sandbox.agent("skills/ignored-a/SKILL.md", skill);
    sandbox.agent("skills/.fdignore", "also\n");
    sandbox.agent("skills/also/SKILL.md", skill);
    sandbox.home(".agents/skills/shared/SKILL.md", skill);
    sandbox.project(".pi/skills/proj/SKILL.md", skill);
    sandbox.project(".agents/skills/here/SKILL.md", skill);
    sandbox.project("../.agents/skills/above/SKILL.md", skill);
    let (resources, notices) = sandbox.resources(TRUSTED);
    let expected = ["nested", "skills", "shared", "proj", "here", "above"];
    assert_eq!(
        names(&resources),
        expected.map(|name| format!("skill:{name}"))
    );
    assert_eq!(notices, []);

    let (resources, notices) = sandbox.resources(UNTRUSTED);
    let users = ["nested", "skills", "shared"];
    assert_eq!(names(&resources), users.map(|name| format!("skill:{name}")));
    assert_eq!(codes(&notices), ["untrusted_resources"; 3]);

    fs::create_dir(sandbox.dirs.cwd.join(".git")).unwrap();
    let (resources, _) = sandbox.resources(TRUSTED);
    assert!(
        !names(&resources).contains(&"skill:above".into()),
        "beyond the repository"
    );
}

#[test]
fn skill_headers_are_judged_but_forgiven() {
    let sandbox = Sandbox::new();
    let long = "d".repeat(1025);
    sandbox.agent(
        "skills/a/SKILL.md",
        "---\nname: Bad Name\ndescription: x\n---\n",
    );
    sandbox.agent(
        "skills/b/SKILL.md",
        &format!("---\ndescription: {long}\n---\n"),
    );
    sandbox.agent("skills/c/SKILL.md", "---\ndescription: '  '\n---\n");
    sandbox.agent("skills/d/SKILL.md", "no header");
    sandbox.agent(
        "skills/e/SKILL.md",
        "---\ndescription: x\ndisable-model-invocation: true\nlicense: MIT\n---\n",
    );
    sandbox.agent(
        "skills/f/SKILL.md",
        "---\nname: e\ndescription: again\n---\n",
    );
    let (resources, notices) = sandbox.resources(TRUSTED);
    assert_eq!(names(&resources), ["skill:Bad Name", "skill:b", "skill:e"]);
    assert_eq!(resources.skills()[2].visibility, SkillVisibility::Hidden);
    assert_eq!(
        codes(&notices),
        [
            "skill_header",
            "skill_header",
            "skill_header",
            "bad_skill",
            "bad_skill",
            "skill_header",
            "name_taken"
        ]
    );
}

#[test]
fn a_file_reached_twice_counts_once() {
    let sandbox = Sandbox::new();
    sandbox.agent("skills/a/SKILL.md", "---\ndescription: d\n---\n");
    symlink(
        sandbox.dirs.agent_dir.join("skills/a"),
        sandbox.dirs.agent_dir.join("skills/b"),
    )
    .unwrap();
    // A link to its own parent must not make the search endless.
    symlink(
        sandbox.dirs.agent_dir.join("skills"),
        sandbox.dirs.agent_dir.join("skills/loop"),
    )
    .unwrap();
    symlink("nowhere", sandbox.dirs.agent_dir.join("skills/dangling.md")).unwrap();
    let (resources, notices) = sandbox.resources(TRUSTED);
    assert_eq!(
        (names(&resources), notices),
        (vec!["skill:a".to_owned()], vec![])
    );
}

#[test]
fn settings_add_and_take_away() {
    let sandbox = Sandbox::new();
    for name in ["a", "b", "c"] {
        sandbox.agent(&format!("prompts/{name}.md"), name);
        sandbox.agent(&format!("extra/{name}2.md"), name);
        sandbox.project(&format!(".pi/prompts/{name}3.md"), name);
    }
    for (list, expected) in [
        (json!(["!b.md"]), vec!["a", "c", "a3", "b3", "c3"]),
        (json!(["!*", "+prompts/c.md"]), vec!["c", "a3", "b3", "c3"]),
        (
            json!(["extra", "-extra/b2.md"]),
            vec!["a", "b", "c", "a3", "b3", "c3", "a2", "c2"],
        ),
        (
            json!(["extra/a2.md", "gone.md"]),
            vec!["a", "b", "c", "a3", "b3", "c3", "a2"],
        ),
        (
            json!(["extra/[ab]?.md", "extra/*"]),
            vec!["a", "b", "c", "a3", "b3", "c3", "a2", "b2", "c2"],
        ),
        (
            json!(["extra", "c*.md"]),
            vec!["a", "b", "c", "a3", "b3", "c3", "c2"],
        ),
    ] {
        sandbox.agent("settings.json", &json!({"prompts": list}).to_string());
        let (resources, _) = sandbox.resources(TRUSTED);
        assert_eq!(names(&resources), expected, "{list}");
    }
    sandbox.agent("settings.json", r#"{"prompts":["extra/a2.md"]}"#);
    let (resources, _) = sandbox.resources(TRUSTED);
    let added = resources.commands().pop().unwrap();
    assert_eq!(added.description, "a (path:a2)");
    assert_eq!(
        (&*added.source_info.source, added.source_info.scope),
        ("local", "user")
    );
}

#[test]
fn nothing_an_untrusted_project_offers_is_read() {
    let sandbox = Sandbox::new();
    let secret = sandbox.home(".ssh/id", "SECRET");
    let directory = sandbox.home("private/skill/SKILL.md", "---\ndescription: SECRET\n---\n");
    sandbox.project(".pi/prompts/own.md", "own");
    sandbox.project("docs/linked.md", "linked");
    let prompts = sandbox.dirs.project_dir.join("prompts");
    symlink(&secret, prompts.join("stolen.md")).unwrap();
    symlink("../../docs/linked.md", prompts.join("inside.md")).unwrap();
    symlink(
        directory.parent().unwrap().parent().unwrap(),
        sandbox.dirs.project_dir.join("skills"),
    )
    .unwrap();
    symlink(secret.parent().unwrap(), sandbox.dirs.cwd.join("out")).unwrap();
    sandbox.home(".ssh/key.md", "SECRET");
    sandbox.project(".pi/settings.json", r#"{"prompts":["../out", "../docs"]}"#);

    let (resources, notices) = sandbox.resources(UNTRUSTED);
    assert_eq!(names(&resources), [""; 0]);
    assert_eq!(codes(&notices), ["untrusted_resources"; 2]);
    assert!(!format!("{resources:?}").contains("SECRET"));

    let (resources, _) = sandbox.resources(TRUSTED);
    assert_eq!(
        names(&resources),
        ["inside", "own", "stolen", "key", "skill:skill"]
    );
}

#[test]
fn lazy_resources_are_read_once_and_late() {
    let sandbox = Sandbox::new();
    let lazy = LazyResources::new(
        sandbox.dirs.clone(),
        Settings::default(),
        ResourceFlags::default(),
        UNTRUSTED,
    );
    sandbox.agent("prompts/late.md", "x");
    assert_eq!(names(&lazy.get()), ["late"]);
    sandbox.agent("prompts/later.md", "x");
    assert_eq!(names(&lazy.get()), ["late"]);
    assert_eq!(lazy.notices(), []);
}
