//! Prompt templates: Markdown files that a user calls as `/name arguments`.

use std::path::PathBuf;

use crate::discovery::{self, Candidate, Inputs, Location, SearchKind};
use crate::{Notice, SourceInfo, arguments, frontmatter, text_file};

#[derive(Debug, Clone)]
pub struct PromptTemplate {
    /// The file's name without `.md`.
    pub name: String,
    /// From the header, else the beginning of the first line.
    pub description: String,
    /// The text with its placeholders.
    pub content: String,
    pub path: PathBuf,
    pub location: Location,
    /// The place where it was found, for newer clients.
    pub source_info: SourceInfo,
    pub(crate) label: String,
}

/// Characters of the first line that become the description.
const DESCRIPTION_LENGTH: usize = 60;

/// All templates; of several with the same name the first counts.
pub(crate) fn load(inputs: Inputs<'_>, notices: &mut Vec<Notice>) -> Vec<PromptTemplate> {
    let mut templates: Vec<PromptTemplate> = Vec::new();
    for candidate in discovery::candidates(SearchKind::Prompts, inputs, notices) {
        let path = candidate.path.clone();
        match read(candidate) {
            Ok(template) => match templates.iter().find(|other| other.name == template.name) {
                None => templates.push(template),
                Some(first) => {
                    let message = format!("/{} is already {}", template.name, first.path.display());
                    notices.push(Notice::about(&path, "name_taken", message));
                }
            },
            Err(message) => {
                let message = format!("not used as a prompt template: {message}");
                notices.push(Notice::about(&path, "bad_template", message));
            }
        }
    }
    templates
}

fn read(candidate: Candidate) -> Result<PromptTemplate, String> {
    let Candidate {
        path,
        location,
        label,
        info,
    } = candidate;
    let text = text_file::read_text(&path).map_err(|error| error.to_string())?;
    let document = frontmatter::parse(&text)?;
    let description = document.text("description").filter(|text| !text.is_empty());
    let description = description.unwrap_or_else(|| first_line(&document.body));
    let name = path
        .file_stem()
        .map(|name| name.to_string_lossy().into_owned());
    let name = name.unwrap_or_default();
    let content = document.body;
    Ok(PromptTemplate {
        name,
        description,
        content,
        path,
        location,
        source_info: info,
        label,
    })
}

fn first_line(body: &str) -> String {
    let line = body
        .lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or_default();
    match line.char_indices().nth(DESCRIPTION_LENGTH) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line.to_owned(),
    }
}

impl PromptTemplate {
    /// The description followed by the place where the template was found, as in `get_commands`.
    pub fn listing(&self) -> String {
        if self.source_info.source.starts_with("extension:") {
            return self.description.clone();
        }
        if self.description.is_empty() {
            format!("({})", self.label)
        } else {
            format!("{} ({})", self.description, self.label)
        }
    }
}

/// The text for a `/name arguments` line; `None` if it does not name a template.
pub(crate) fn expand(text: &str, templates: &[PromptTemplate]) -> Option<String> {
    let call = text.strip_prefix('/')?;
    let (name, line) = call.split_once(' ').unwrap_or((call, ""));
    let template = templates.iter().find(|template| template.name == name)?;
    Some(arguments::substitute(
        &template.content,
        &arguments::split(line),
    ))
}
