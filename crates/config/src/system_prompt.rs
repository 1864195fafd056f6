//! The system prompt: role, tools, guidelines, the user's and the project's texts, skills, date.
//!
//! Built once per tool set, so that providers can cache it; the caller decides when.

use std::fmt::Write;
use std::path::Path;

use crate::context_files::ContextFile;
use crate::skills::{Skill, SkillVisibility};
use crate::{Dirs, Notice, ProjectTrust, text_file};

/// The parts of a system prompt.
#[derive(Debug, Clone, Copy)]
pub struct PromptParts<'a> {
    /// The active tools in order: name and a purpose of one line.
    pub tools: &'a [(&'a str, &'a str)],
    /// Guidelines of extensions.
    pub guidelines: &'a [&'a str],
    /// Replaces role, tools, guidelines and the pointer to help.
    pub custom: Option<&'a str>,
    /// Comes last.
    pub append: Option<&'a str>,
    pub context_files: &'a [ContextFile],
    /// Skills; hidden ones are left out.
    pub skills: &'a [Skill],
    pub cwd: &'a Path,
    /// `YYYY-MM-DD`; see [`today`].
    pub date: &'a str,
}

/// The current date in the user's time zone, as `YYYY-MM-DD`.
pub fn today() -> String {
    pinion_text::zone::now().date().to_string()
}

/// Returns the system prompt.
pub fn compose_system_prompt(parts: &PromptParts<'_>) -> String {
    let sections = sections(parts).into_iter();
    sections.map(|(_, text)| text).collect()
}

/// Returns the sections of the system prompt by name, in order, without the blank lines between them.
pub fn system_prompt_sections(parts: &PromptParts<'_>) -> Vec<(&'static str, String)> {
    let sections = sections(parts).into_iter();
    sections
        .map(|(name, text)| (name, text.trim().to_owned()))
        .collect()
}

/// Returns the sections with the blank lines between them.
fn sections(parts: &PromptParts<'_>) -> Vec<(&'static str, String)> {
    let has = |name: &str| parts.tools.iter().any(|(tool, _)| *tool == name);
    let mut sections = match parts.custom {
        Some(custom) => vec![("preamble", custom.to_owned())],
        None => default_sections(parts, has),
    };
    if let Some(append) = parts.append {
        sections.push(("addendum", format!("\n\n{append}")));
    }
    if !parts.context_files.is_empty() {
        let mut text =
            String::from("\n\n# Project Context\n\nInstructions that belong to this project:\n\n");
        for file in parts.context_files {
            let _ = write!(text, "## {}\n\n{}\n\n", file.path.display(), file.content);
        }
        sections.push(("project_context", text));
    }
    if has("read")
        && let Some(skills) = skill_list(parts.skills)
    {
        sections.push(("skills", skills));
    }
    let place = format!(
        "\nCurrent date: {}\nCurrent working directory: {}",
        parts.date,
        parts.cwd.display()
    );
    sections.push(("cwd", place));
    sections
}

fn default_sections(
    parts: &PromptParts<'_>,
    has: impl Fn(&str) -> bool,
) -> Vec<(&'static str, String)> {
    let preamble = "You are an expert coding assistant. You work inside pinion, a program that runs coding \
                    agents: you read files, run commands, and change or write code for the user.\n\n";
    let mut tools = String::from("Available tools:\n");
    if parts.tools.is_empty() {
        tools.push_str("(none)\n");
    }
    for (name, purpose) in parts.tools {
        let _ = writeln!(tools, "- {name}: {purpose}");
    }
    tools.push_str(
        "\nA project may bring more tools of its own; use them as they describe themselves.\n\n",
    );
    let mut rules = String::from("Guidelines:\n");
    for guideline in guidelines(has)
        .into_iter()
        .chain(parts.guidelines.iter().copied())
    {
        let _ = writeln!(rules, "- {guideline}");
    }
    rules.push_str("- Be concise\n- Name the files you work with by their paths\n\n");
    let docs =
        "If the user asks about pinion itself, `pinion --help` lists its commands and settings.";
    vec![
        ("preamble", preamble.to_owned()),
        ("tools", tools),
        ("rules", rules),
        ("docs", docs.to_owned()),
    ]
}

/// The guidelines for a set of tools.
fn guidelines(has: impl Fn(&str) -> bool) -> Vec<&'static str> {
    let searches = has("grep") || has("find") || has("ls");
    let rules = [
        (
            has("bash") && !searches,
            "Use bash for file operations such as ls, rg and find",
        ),
        (
            has("bash") && searches,
            "To explore files, prefer grep, find and ls to bash: they are faster and leave out \
             ignored files",
        ),
        (
            has("read") && has("edit"),
            "Read a file with read, not with cat, before you edit it",
        ),
        (
            has("edit"),
            "The text that edit replaces must match the file exactly, blanks included",
        ),
        (
            has("write"),
            "Use write only for new files and for complete rewrites",
        ),
        (
            has("edit") || has("write"),
            "When you report what you did, write plain text; do not print it with bash",
        ),
    ];
    rules
        .into_iter()
        .filter_map(|(applies, rule)| applies.then_some(rule))
        .collect()
}

/// Returns the list of skills; `None` if all are hidden.
fn skill_list(skills: &[Skill]) -> Option<String> {
    let mut listed = skills
        .iter()
        .filter(|skill| skill.visibility == SkillVisibility::Listed)
        .peekable();
    listed.peek()?;
    let mut prompt = String::from(
        "\n\nSkills are instructions for particular tasks. When a task fits a description, read \
         the file at its location first.\nPaths in a skill are relative to the directory of its \
         file; use absolute paths in tool calls.\n\n<available_skills>\n",
    );
    for skill in listed {
        let _ = write!(
            prompt,
            "  <skill>\n    <name>{}</name>\n    <description>{}</description>\n    \
             <location>{}</location>\n  </skill>\n",
            escape(&skill.name),
            escape(&skill.description),
            escape(&skill.path.display().to_string()),
        );
    }
    prompt.push_str("</available_skills>");
    Some(prompt)
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// The user's replacement of the built-in texts, and an addition to them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PromptTexts {
    /// `--system-prompt`, else `SYSTEM.md` of a trusted project, else of the user.
    pub custom: Option<String>,
    /// `--append-system-prompt`, else `APPEND_SYSTEM.md` of a trusted project, else of the user.
    pub append: Option<String>,
}

impl PromptTexts {
    /// Reads the texts. A flag that names an existing file means its content; several texts to
    /// append are separated by blank lines.
    pub fn load(
        dirs: &Dirs,
        system: Option<&str>,
        append: &[String],
        trust: ProjectTrust,
    ) -> (Self, Vec<Notice>) {
        let mut notices = Vec::new();
        let custom = match system {
            Some(value) => Some(flag_text(dirs, value, &mut notices)),
            None => file_text(dirs, "SYSTEM.md", trust, &mut notices),
        };
        let append = if append.is_empty() {
            file_text(dirs, "APPEND_SYSTEM.md", trust, &mut notices)
        } else {
            let texts = append
                .iter()
                .map(|value| flag_text(dirs, value, &mut notices));
            Some(texts.collect::<Vec<_>>().join("\n\n"))
        };
        (Self { custom, append }, notices)
    }
}

/// The content of the file that a flag names, else the flag's value itself.
fn flag_text(dirs: &Dirs, value: &str, notices: &mut Vec<Notice>) -> String {
    let path = dirs.cwd.join(value);
    if value.is_empty() || !path.exists() {
        return value.to_owned();
    }
    text_file::read_text(&path).unwrap_or_else(|error| {
        let message = format!("could not be read ({error}); its name is used as the text");
        notices.push(Notice::about(&path, "unreadable_file", message));
        value.to_owned()
    })
}

fn file_text(
    dirs: &Dirs,
    name: &str,
    trust: ProjectTrust,
    notices: &mut Vec<Notice>,
) -> Option<String> {
    let projects = dirs.project_dir.join(name);
    let users = dirs.agent_dir.join(name);
    let is_own = dirs.project_dir == dirs.agent_dir;
    for (path, of_project) in [(projects, !is_own), (users, false)] {
        if !path.exists() {
            continue;
        }
        if of_project && trust == ProjectTrust::Untrusted {
            let message = "this project is not trusted, so the file is not read; look at it, then run \
                           `pinion trust` here to accept the project";
            notices.push(Notice::about(&path, "untrusted_resources", message));
            continue;
        }
        match text_file::read_text(&path) {
            Ok(text) => return Some(text),
            Err(error) => {
                let message = format!("could not be read ({error})");
                notices.push(Notice::about(&path, "unreadable_file", message));
            }
        }
    }
    None
}
