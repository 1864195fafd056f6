//! Context files and the system prompt they end up in.

#![allow(
    clippy::unwrap_used,
    reason = "a sandbox that cannot be built fails the test"
)]

mod sandbox;

use std::fs;
use std::os::unix::fs::symlink;

use pinion_config::{
    ContextFile, ProjectTrust, PromptParts, PromptTexts, compose_system_prompt, load_context_files,
    today,
};
use sandbox::{Sandbox, codes};

const TRUSTED: ProjectTrust = ProjectTrust::Trusted;
const UNTRUSTED: ProjectTrust = ProjectTrust::Untrusted;
const TOOLS: [(&str, &str); 4] = [
    ("read", "Reads"),
    ("bash", "Runs"),
    ("edit", "Changes"),
    ("write", "Writes"),
];

/// The markers of a prompt in order, as the recordings of pi list them.
fn markers(prompt: &str) -> Vec<&str> {
    let word = |character: char| !(character.is_ascii_uppercase() || character == '_');
    prompt
        .split(word)
        .filter(|text| text.starts_with("MARK_"))
        .collect()
}

fn prompt(
    sandbox: &Sandbox,
    tools: &[(&str, &str)],
    system: Option<&str>,
    append: &[&str],
) -> String {
    let append: Vec<String> = append.iter().map(|text| (*text).to_owned()).collect();
    let (texts, notices) = PromptTexts::load(&sandbox.dirs, system, &append, TRUSTED);
    assert_eq!(notices, []);
    let (files, notices) = load_context_files(&sandbox.dirs, UNTRUSTED);
    assert_eq!(notices, []);
    compose_system_prompt(&PromptParts {
        tools,
        guidelines: &[],
        custom: texts.custom.as_deref(),
        append: texts.append.as_deref(),
        context_files: &files,
        skills: sandbox.resources(TRUSTED).0.skills(),
        cwd: &sandbox.dirs.cwd,
        date: "2026-01-02",
    })
}

fn recorded_sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.agent("AGENTS.md", "MARK_GLOBAL_RULES\n");
    sandbox.project("../AGENTS.md", "MARK_PARENT_RULES\n");
    sandbox.project("AGENTS.md", "MARK_PROJECT_RULES be kind\n");
    sandbox.agent(
        "skills/tidy/SKILL.md",
        "---\ndescription: MARK_TIDY_DESC <x> & 'y'.\n---\n",
    );
    sandbox.agent(
        "skills/hidden/SKILL.md",
        "---\ndescription: MARK_HIDDEN_DESC\ndisable-model-invocation: true\n---\n",
    );
    sandbox
}

#[test]
fn parts_come_in_the_recorded_order() {
    let sandbox = recorded_sandbox();
    assert_eq!(
        markers(&prompt(&sandbox, &TOOLS, None, &[])),
        [
            "MARK_GLOBAL_RULES",
            "MARK_PARENT_RULES",
            "MARK_PROJECT_RULES",
            "MARK_TIDY_DESC"
        ]
    );
    assert_eq!(
        markers(&prompt(
            &sandbox,
            &TOOLS,
            Some("MARK_CUSTOM_SYSTEM x"),
            &["MARK_APPENDED tail"]
        )),
        [
            "MARK_CUSTOM_SYSTEM",
            "MARK_APPENDED",
            "MARK_GLOBAL_RULES",
            "MARK_PARENT_RULES",
            "MARK_PROJECT_RULES",
            "MARK_TIDY_DESC"
        ]
    );
    assert_eq!(
        markers(&prompt(&sandbox, &[], None, &[])),
        [
            "MARK_GLOBAL_RULES",
            "MARK_PARENT_RULES",
            "MARK_PROJECT_RULES"
        ],
        "without read a skill is of no use"
    );
}

#[test]
fn the_whole_prompt_reads_well() {
    let sandbox = recorded_sandbox();
    let text = prompt(&sandbox, &TOOLS, None, &["And be kind."]);
    let cwd = sandbox.dirs.cwd.display().to_string();
    let tidy = sandbox
        .dirs
        .agent_dir
        .join("skills/tidy/SKILL.md")
        .display()
        .to_string();
    for part in [
        "Available tools:\n- read: Reads\n- bash: Runs\n- edit: Changes\n- write: Writes\n",
        "\n- Use bash for file operations",
        "\n- Be concise\n",
        "\n\nAnd be kind.\n\n# Project Context\n\n",
        &format!("## {cwd}/AGENTS.md\n\nMARK_PROJECT_RULES be kind\n\n\n"),
        "<available_skills>\n  <skill>\n    <name>tidy</name>\n    <description>MARK_TIDY_DESC &lt;x&gt; &amp; &apos;y&apos;.</description>\n",
        &format!("<location>{tidy}</location>\n  </skill>\n</available_skills>\n"),
    ] {
        assert!(text.contains(part), "{part:?} is missing in:\n{text}");
    }
    assert!(text.ends_with(&format!(
        "\nCurrent date: 2026-01-02\nCurrent working directory: {cwd}"
    )));
}

#[test]
fn guidelines_follow_the_tools() {
    let sandbox = Sandbox::new();
    let with = |tools: &[(&str, &str)]| prompt(&sandbox, tools, None, &[]);
    let none = with(&[]);
    assert!(none.contains("Available tools:\n(none)\n"));
    assert!(!none.contains("bash") && !none.contains("edit"), "{none}");
    let searching = with(&[("bash", ""), ("grep", "")]);
    assert!(searching.contains("prefer grep") && !searching.contains("Use bash for"));
    let writing = with(&[("write", "")]);
    assert!(writing.contains("Use write only") && writing.contains("plain text"));
    assert!(!writing.contains("before you edit"));

    let extra = compose_system_prompt(&PromptParts {
        tools: &[],
        guidelines: &["Ask first"],
        custom: None,
        append: None,
        context_files: &[],
        skills: &[],
        cwd: "/w".as_ref(),
        date: "d",
    });
    assert!(extra.contains("\n- Ask first\n- Be concise\n"), "{extra}");
}

#[test]
fn flags_may_name_files_and_files_have_an_order() {
    let sandbox = Sandbox::new();
    let load = |system: Option<&str>, append: &[&str]| {
        let append: Vec<String> = append.iter().map(|text| (*text).to_owned()).collect();
        let (texts, notices) = PromptTexts::load(&sandbox.dirs, system, &append, TRUSTED);
        (texts.custom, texts.append, notices.len())
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(load(None, &[]), (None, None, 0));
    sandbox.agent("SYSTEM.md", "user");
    sandbox.agent("APPEND_SYSTEM.md", "user tail");
    assert_eq!(load(None, &[]), (some("user"), some("user tail"), 0));
    sandbox.project(".pi/SYSTEM.md", "project");
    sandbox.project(".pi/APPEND_SYSTEM.md", "project tail");
    assert_eq!(load(None, &[]), (some("project"), some("project tail"), 0));
    let (texts, notices) = PromptTexts::load(&sandbox.dirs, None, &[], UNTRUSTED);
    assert_eq!(
        (texts.custom, texts.append),
        (some("user"), some("user tail"))
    );
    assert_eq!(codes(&notices), ["untrusted_resources"; 2]);
    sandbox.project("p.txt", "from a file");
    assert_eq!(
        load(Some("p.txt"), &["p.txt", "plain"]),
        (some("from a file"), some("from a file\n\nplain"), 0)
    );
    assert_eq!(load(Some(""), &[]), (some(""), some("project tail"), 0));
    let (custom, _, notices) = load(Some(".pi"), &[]);
    assert_eq!(
        (custom, notices),
        (some(".pi"), 1),
        "a directory is not a text"
    );
    let long = "x".repeat(100_000);
    assert_eq!(load(Some(&long), &[]).0, some(&long));
}

#[test]
fn an_untrusted_project_cannot_link_its_prompt_to_a_secret() {
    let sandbox = Sandbox::new();
    let secret = sandbox.home("secret", "SECRET");
    sandbox.agent("SYSTEM.md", "user");
    fs::create_dir_all(&sandbox.dirs.project_dir).unwrap();
    symlink(&secret, sandbox.dirs.project_dir.join("SYSTEM.md")).unwrap();
    let (texts, notices) = PromptTexts::load(&sandbox.dirs, None, &[], UNTRUSTED);
    assert_eq!(texts.custom.as_deref(), Some("user"));
    assert_eq!(codes(&notices), ["untrusted_resources"]);
    let (texts, _) = PromptTexts::load(&sandbox.dirs, None, &[], TRUSTED);
    assert_eq!(texts.custom.as_deref(), Some("SECRET"));

    symlink(&secret, sandbox.dirs.cwd.join("AGENTS.md")).unwrap();
    sandbox.project("CLAUDE.md", "mine");
    let (files, notices) = load_context_files(&sandbox.dirs, UNTRUSTED);
    assert_eq!(contents(&files), ["mine"]);
    assert_eq!(codes(&notices), ["untrusted_link"]);
    let (files, _) = load_context_files(&sandbox.dirs, TRUSTED);
    assert_eq!(contents(&files), ["SECRET"]);
}

fn contents(files: &[ContextFile]) -> Vec<&str> {
    files.iter().map(|file| file.content.trim()).collect()
}

#[test]
fn one_context_file_per_directory_and_agents_before_claude() {
    let sandbox = Sandbox::new();
    sandbox.project("CLAUDE.md", "claude");
    sandbox.project("../CLAUDE.md", "above");
    assert_eq!(
        contents(&load_context_files(&sandbox.dirs, UNTRUSTED).0),
        ["above", "claude"]
    );
    sandbox.project("AGENTS.md", "agents");
    assert_eq!(
        contents(&load_context_files(&sandbox.dirs, UNTRUSTED).0),
        ["above", "agents"]
    );
}

#[test]
fn an_unreadable_context_file_gives_way_to_the_next() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.dirs.cwd.join("AGENTS.md")).unwrap();
    sandbox.project("CLAUDE.md", "claude");
    let (files, notices) = load_context_files(&sandbox.dirs, UNTRUSTED);
    assert_eq!(contents(&files), ["claude"]);
    assert_eq!(codes(&notices), ["unreadable_file"]);
}

#[test]
fn links_between_context_files_are_followed() {
    let sandbox = Sandbox::new();
    sandbox.project("AGENTS.md", "agents");
    sandbox.home("dotfiles/CLAUDE.md", "shared");
    symlink(
        sandbox.dirs.home.join("dotfiles/CLAUDE.md"),
        sandbox.dirs.cwd.join("../AGENTS.md"),
    )
    .unwrap();
    symlink("AGENTS.md", sandbox.dirs.cwd.join("CLAUDE.md")).unwrap();
    let (files, notices) = load_context_files(&sandbox.dirs, UNTRUSTED);
    assert_eq!(
        (contents(&files), notices),
        (vec!["shared", "agents"], vec![])
    );
}

#[test]
fn an_agent_directory_above_the_project_is_read_once() {
    let mut sandbox = Sandbox::new();
    sandbox.dirs.agent_dir = sandbox.dirs.cwd.parent().unwrap().to_owned();
    sandbox.agent("AGENTS.md", "once");
    sandbox.project("AGENTS.md", "project");
    assert_eq!(
        contents(&load_context_files(&sandbox.dirs, UNTRUSTED).0),
        ["once", "project"]
    );
}

#[test]
fn today_is_a_date() {
    let date = today();
    assert_eq!(date.len(), 10, "{date}");
    let numbers: Vec<u32> = date.split('-').map(|part| part.parse().unwrap()).collect();
    assert!(numbers[0] >= 2024 && (1..=12).contains(&numbers[1]) && (1..=31).contains(&numbers[2]));
}
