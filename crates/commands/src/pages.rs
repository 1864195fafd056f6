//! Help pages: Markdown with YAML front matter.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::command::read_file;
use crate::error::CommandError;

/// A help page of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HelpPage {
    /// The word that selects the page.
    pub slug: String,
    pub title: String,
    /// One line of summary.
    pub short: String,
    /// `GeneralTopic`, `Example`, `Application` or `Tutorial`.
    pub section: String,
    pub topics: Vec<String>,
    /// The commands that the page belongs to.
    pub commands: Vec<String>,
    /// The options that the page belongs to.
    pub flags: Vec<String>,
    /// The page is in the list of all pages.
    pub top_level: bool,
    /// The position in lists, smallest first.
    pub order: i64,
    /// The text after the front matter.
    pub body: String,
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
    /// Returns the page for reading: its body, below its title unless the body begins with a heading.
    pub fn text(&self) -> String {
        let body = self.body.trim_end();
        if body.starts_with('#') {
            format!("{body}\n")
        } else {
            format!("# {}\n\n{body}\n", self.title)
        }
    }

    /// Returns one line of summary.
    pub fn summary(&self) -> &str {
        if self.short.is_empty() {
            &self.title
        } else {
            &self.short
        }
    }

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
