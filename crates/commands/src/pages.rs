//! Help pages: Markdown with a head of YAML.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::command::read_file;
use crate::error::CommandError;

/// A page of help that comes with a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HelpPage {
    /// The word that shows it.
    pub slug: String,
    /// Its title.
    pub title: String,
    /// One line about it.
    pub short: String,
    /// `GeneralTopic`, `Example`, `Application` or `Tutorial`.
    pub section: String,
    /// What it is about.
    pub topics: Vec<String>,
    /// The commands it belongs to.
    pub commands: Vec<String>,
    /// The options it belongs to.
    pub flags: Vec<String>,
    /// Whether it stands in the list of all pages.
    pub top_level: bool,
    /// Where it stands in lists, smallest first.
    pub order: i64,
    /// The page, without its head.
    pub body: String,
    /// The file.
    pub path: PathBuf,
}

#[derive(Deserialize)]
struct Head {
    #[serde(rename = "Title")]
    title: Option<String>,
    #[serde(rename = "Slug")]
    slug: Option<String>,
    #[serde(rename = "Short")]
    short: Option<String>,
    #[serde(rename = "SectionType")]
    section: Option<String>,
    #[serde(rename = "Topics")]
    topics: Option<Vec<String>>,
    #[serde(rename = "Commands")]
    commands: Option<Vec<String>>,
    #[serde(rename = "Flags")]
    flags: Option<Vec<String>>,
    #[serde(rename = "IsTopLevel")]
    top_level: Option<bool>,
    #[serde(rename = "Order")]
    order: Option<i64>,
}

impl HelpPage {
    /// The page as it is read: its body, below its title if it does not begin with one.
    pub fn text(&self) -> String {
        let body = self.body.trim_end();
        match body.starts_with('#') {
            true => format!("{body}\n"),
            false => format!("# {}\n\n{body}\n", self.title),
        }
    }

    /// One line about it.
    pub fn summary(&self) -> &str {
        match self.short.is_empty() {
            true => &self.title,
            false => &self.short,
        }
    }

    /// Reads a page.
    pub fn load(path: &Path) -> Result<Self, CommandError> {
        let text = read_file(path).map_err(|reason| CommandError::Unreadable {
            path: path.to_owned(),
            reason,
        })?;
        let malformed = |reason: &str| CommandError::Malformed {
            place: path.display().to_string(),
            reason: reason.to_owned(),
        };
        let rest = text
            .strip_prefix("---\n")
            .ok_or_else(|| malformed("a help page begins with `---` and its title and slug"))?;
        let (head, body) = rest
            .split_once("\n---\n")
            .or_else(|| rest.strip_suffix("\n---").map(|head| (head, "")))
            .ok_or_else(|| malformed("the head of the page has no end: expected `---`"))?;
        let head: Head = crate::yaml::command(head).map_err(|error| {
            let problem = pinion_yaml::problem(&error);
            // The line `---` comes before the head.
            match problem.line {
                0 => malformed(&problem.message),
                line => CommandError::Malformed {
                    place: format!("{}:{}:{}", path.display(), line + 1, problem.column),
                    reason: problem.message,
                },
            }
        })?;
        let slug = head
            .slug
            .filter(|slug| !slug.is_empty())
            .ok_or_else(|| malformed("the page has no `Slug`"))?;
        Ok(Self {
            title: head.title.unwrap_or_else(|| slug.clone()),
            slug,
            short: head.short.unwrap_or_default(),
            section: head.section.unwrap_or_else(|| "GeneralTopic".to_owned()),
            topics: head.topics.unwrap_or_default(),
            commands: head.commands.unwrap_or_default(),
            flags: head.flags.unwrap_or_default(),
            top_level: head.top_level.unwrap_or(false),
            order: head.order.unwrap_or(0),
            body: body.trim_start_matches('\n').to_owned(),
            path: path.to_owned(),
        })
    }
}
