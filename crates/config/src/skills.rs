//! Skills: instructions a model may read when it needs them, or a user calls as `/skill:name`.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::discovery::{self, Candidate, Inputs, Location, SearchKind};
use crate::{Notice, SourceInfo, frontmatter, text_file};

const NAME_LIMIT: usize = 64;
const DESCRIPTION_LIMIT: usize = 1024;

/// A skill; its body is read each time it is used.
#[derive(Debug, Clone)]
pub struct Skill {
    /// From the header, else the name of the directory.
    pub name: String,
    /// From the header.
    pub description: String,
    pub path: PathBuf,
    pub visibility: SkillVisibility,
    pub location: Location,
    /// The place where it was found, for newer clients.
    pub source_info: SourceInfo,
}

/// The presence of a skill in the system prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkillVisibility {
    /// Listed in the system prompt.
    Listed,
    /// Not listed: users call it by its name.
    Hidden,
}

/// A skill that was called and could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpansionError {
    pub path: PathBuf,
    pub message: String,
}

/// All skills; of several with the same name the first counts.
pub(crate) fn load(inputs: Inputs<'_>, notices: &mut Vec<Notice>) -> Vec<Skill> {
    let mut skills: Vec<Skill> = Vec::new();
    for candidate in discovery::candidates(SearchKind::Skills, inputs, notices) {
        let path = candidate.path.clone();
        match read(candidate, notices) {
            Ok(skill) => match skills.iter().find(|other| other.name == skill.name) {
                None => skills.push(skill),
                Some(first) => {
                    let message =
                        format!("/skill:{} is already {}", skill.name, first.path.display());
                    notices.push(Notice::about(&path, "name_taken", message));
                }
            },
            Err(message) => {
                let message = format!("not used as a skill: {message}");
                notices.push(Notice::about(&path, "bad_skill", message));
            }
        }
    }
    skills
}

fn read(candidate: Candidate, notices: &mut Vec<Notice>) -> Result<Skill, String> {
    let Candidate {
        path,
        location,
        info,
        ..
    } = candidate;
    let text = text_file::read_text(&path).map_err(|error| error.to_string())?;
    let document = frontmatter::parse(&text)?;
    let description = document.text("description").unwrap_or_default();
    if description.trim().is_empty() {
        return Err("its header has no description".into());
    }
    let directory = directory_name(&path);
    let name = document.text("name").filter(|name| !name.is_empty());
    let name = name.unwrap_or_else(|| directory.clone());
    let mut warn = |message: String| {
        notices.push(Notice::about(&path, "skill_header", message));
    };
    for fault in name_faults(&name, &directory) {
        warn(format!(
            "skill name {name:?} {fault}; the skill is loaded nevertheless"
        ));
    }
    let length = description.chars().count();
    if length > DESCRIPTION_LIMIT {
        warn(format!(
            "the description has {length} characters; {DESCRIPTION_LIMIT} is the limit"
        ));
    }
    let visibility = match document.fields.get("disable-model-invocation") {
        Some(Value::Bool(true)) => SkillVisibility::Hidden,
        _ => SkillVisibility::Listed,
    };
    Ok(Skill {
        name,
        description,
        path,
        visibility,
        location,
        source_info: info,
    })
}

fn directory_name(path: &Path) -> String {
    let directory = path.parent().and_then(Path::file_name);
    directory.map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// The violations of the naming rules for skills.
fn name_faults(name: &str, directory: &str) -> Vec<String> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let rules = [
        (
            name != directory,
            format!("differs from its directory {directory:?}"),
        ),
        (
            name.chars().count() > NAME_LIMIT,
            format!("is longer than {NAME_LIMIT} characters"),
        ),
        (
            !name.bytes().all(plain),
            "may contain only a-z, 0-9 and -".into(),
        ),
        (
            name.starts_with('-') || name.ends_with('-'),
            "starts or ends with -".into(),
        ),
        (name.contains("--"), "holds two - in a row".into()),
    ];
    rules
        .into_iter()
        .filter_map(|(broken, fault)| broken.then_some(fault))
        .collect()
}

/// The text for a `/skill:name rest` line; `None` if it does not name a skill.
pub(crate) fn expand(text: &str, skills: &[Skill]) -> Option<Result<String, ExpansionError>> {
    let call = text.strip_prefix("/skill:")?;
    let (name, rest) = call.split_once(' ').unwrap_or((call, ""));
    let skill = skills.iter().find(|skill| skill.name == name)?;
    Some(match text_file::read_text(&skill.path) {
        Ok(file) => Ok(block(skill, &frontmatter::body(&file), rest.trim())),
        Err(error) => Err(ExpansionError {
            path: skill.path.clone(),
            message: error.to_string(),
        }),
    })
}

/// The element that clients recognise in a conversation.
fn block(skill: &Skill, body: &str, rest: &str) -> String {
    let file = skill.path.display();
    let directory = skill.path.parent().unwrap_or(Path::new("/")).display();
    let name = &skill.name;
    let mut text = format!(
        "<skill name=\"{name}\" location=\"{file}\">\n\
         References are relative to {directory}.\n\n{body}\n</skill>"
    );
    if !rest.is_empty() {
        text.push_str("\n\n");
        text.push_str(rest);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked() {
        for (name, directory, faults) in [
            ("tidy-2", "tidy-2", 0),
            ("tidy", "other", 1),
            ("Tidy", "Tidy", 1),
            ("-a", "-a", 1),
            ("a--b-", "a--b-", 2),
            ("ä b", "x", 2),
        ] {
            assert_eq!(name_faults(name, directory).len(), faults, "{name}");
        }
        let long = "x".repeat(65);
        assert_eq!(name_faults(&long, &long).len(), 1);
    }
}
