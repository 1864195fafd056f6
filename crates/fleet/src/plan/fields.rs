//! Reads the values of a plan one at a time. Mistakes are collected, and reading continues.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pinion_text::{duration, nearest};
use pinion_yaml::{Entry, Node, NodeKind};
use serde_json::Number;

use super::Problem;
use crate::Micros;

/// The largest file that a plan may name as a prompt, in bytes.
const PROMPT_LIMIT: u64 = 64 << 20;

/// Reads values and collects the mistakes in them.
#[derive(Debug)]
pub(super) struct Fields {
    pub file: String,
    /// The directory that relative paths start from.
    pub directory: PathBuf,
    pub problems: Vec<Problem>,
}

impl Fields {
    /// Adds a mistake.
    pub fn problem(&mut self, line: u64, message: impl Into<String>) {
        let problem = Problem {
            file: self.file.clone(),
            line,
            message: message.into(),
        };
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    fn wrong_type(&mut self, node: &Node, what: &str, expected: &str) {
        let found = node.describe();
        self.problem(
            node.at.line,
            format!("{what} must be {expected}, but this is {found}"),
        );
    }

    /// Returns the members of a mapping, and reports keys that are not in `known`.
    pub fn members<'a>(&mut self, node: &'a Node, what: &str, known: &[&str]) -> &'a [Entry] {
        let members = self.free_members(node, what);
        for Entry { key, at, .. } in members {
            if !known.contains(&key.as_str()) {
                let hint = match nearest(key, known.iter().copied()) {
                    Some(nearest) => format!("did you mean \"{nearest}\"?"),
                    None => format!("use one of {}", known.join(", ")),
                };
                self.problem(at.line, format!("unknown key \"{key}\" in {what}; {hint}"));
            }
        }
        members
    }

    /// Returns the members of a mapping whose keys the user chooses.
    pub fn free_members<'a>(&mut self, node: &'a Node, what: &str) -> &'a [Entry] {
        match &node.kind {
            NodeKind::Map(members) => members,
            NodeKind::Null => &[],
            _ => {
                self.wrong_type(node, what, "a mapping");
                &[]
            }
        }
    }

    pub fn items<'a>(&mut self, node: &'a Node, what: &str) -> &'a [Node] {
        match &node.kind {
            NodeKind::List(items) => items,
            NodeKind::Null => &[],
            _ => {
                self.wrong_type(node, what, "a list");
                &[]
            }
        }
    }

    pub fn text(&mut self, node: &Node, what: &str) -> Option<String> {
        match &node.kind {
            NodeKind::Text(text) => Some(text.clone()),
            NodeKind::Number(number) => Some(decimal(number)),
            NodeKind::Bool(yes) => Some(yes.to_string()),
            _ => {
                self.wrong_type(node, what, "text");
                None
            }
        }
    }

    /// Reads a list of texts; a single text is a list of one.
    pub fn texts(&mut self, node: &Node, what: &str) -> Vec<String> {
        match &node.kind {
            NodeKind::List(items) => items
                .iter()
                .filter_map(|item| self.text(item, what))
                .collect(),
            _ => self.text(node, what).into_iter().collect(),
        }
    }

    pub fn boolean(&mut self, node: &Node, what: &str) -> Option<bool> {
        match node.kind {
            NodeKind::Bool(yes) => Some(yes),
            _ => {
                self.wrong_type(node, what, "true or false");
                None
            }
        }
    }

    pub fn count(&mut self, node: &Node, what: &str, least: u64) -> Option<u64> {
        let count = match &node.kind {
            NodeKind::Number(number) => decimal(number).parse::<u64>().ok(),
            _ => None,
        };
        if count.is_none_or(|count| count < least) {
            self.problem(
                node.at.line,
                format!("{what} must be a whole number, {least} or more"),
            );
            return None;
        }
        count
    }

    /// Reads a time such as `5m`, `90s`, `1h30m` or `500ms`; a bare number is in seconds.
    pub fn time(&mut self, node: &Node, what: &str) -> Option<Duration> {
        let time = match &node.kind {
            NodeKind::Number(number) => parse_time(&decimal(number)),
            NodeKind::Text(text) => parse_time(text),
            _ => None,
        };
        if time.is_none() {
            self.problem(
                node.at.line,
                format!("{what} must be a time such as 90s, 5m or 1h30m"),
            );
        }
        time
    }

    pub fn money(&mut self, node: &Node, what: &str) -> Option<Micros> {
        let money = match &node.kind {
            NodeKind::Number(number) => Micros::parse(&decimal(number)),
            NodeKind::Text(text) => Micros::parse(text),
            _ => None,
        };
        if money.is_none() {
            self.problem(
                node.at.line,
                format!("{what} must be an amount of US dollars such as 1.50"),
            );
        }
        money
    }

    /// Reads one of the given words and returns its value.
    pub fn choice<T: Copy>(&mut self, node: &Node, what: &str, words: &[(&str, T)]) -> Option<T> {
        let text = self.text(node, what)?;
        let found = words.iter().find(|(word, _)| *word == text);
        if found.is_none() {
            let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            let hint = match nearest(&text, names.iter().copied()) {
                Some(nearest) => format!("did you mean \"{nearest}\"?"),
                None => format!("use {}", names.join(", ")),
            };
            self.problem(node.at.line, format!("unknown {what} \"{text}\"; {hint}"));
        }
        found.map(|(_, value)| *value)
    }

    /// Reads a path, relative to the directory of the plan.
    pub fn path(&mut self, node: &Node, what: &str) -> Option<PathBuf> {
        let text = self.text(node, what)?;
        Some(self.directory.join(text))
    }

    /// Reads the path of a file, and the file itself.
    pub fn file(&mut self, node: &Node, what: &str) -> Option<(PathBuf, String)> {
        let path = self.path(node, what)?;
        match pinion_files::read(&path, PROMPT_LIMIT) {
            Ok(bytes) => Some((path, String::from_utf8_lossy(&bytes).into_owned())),
            Err(error) => {
                let shown = display_path(&path, &self.directory);
                self.problem(
                    node.at.line,
                    format!("{what} \"{shown}\" cannot be read: {error}"),
                );
                None
            }
        }
    }
}

/// Formats a number without an exponent: JSON would write `1e-5`.
fn decimal(number: &Number) -> String {
    match number.as_f64().filter(|_| number.is_f64()) {
        Some(number) => number.to_string(),
        None => number.to_string(),
    }
}

/// Formats a path relative to the plan's directory.
pub(super) fn display_path(path: &Path, directory: &Path) -> String {
    let short = path.strip_prefix(directory).unwrap_or(path);
    short.display().to_string()
}

fn parse_time(text: &str) -> Option<Duration> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds)
            .ok()
            .filter(|time| !time.is_zero());
    }
    duration::parse(text).filter(|time| !time.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_read_as_people_write_them() {
        let text = |yaml: &str| match pinion_yaml::parse(yaml).unwrap().kind {
            NodeKind::Number(number) => decimal(&number),
            other => panic!("{other:?}"),
        };
        assert_eq!(text("0.00001"), "0.00001");
        assert_eq!(text("4.00"), "4");
        assert_eq!(text("18446744073709551615"), "18446744073709551615");
    }

    #[test]
    fn times_are_read_as_people_write_them() {
        for (text, milliseconds) in [
            ("60s", 60_000),
            ("5m", 300_000),
            ("1h30m", 5_400_000),
            ("500ms", 500),
            ("90", 90_000),
            ("0.5", 500),
        ] {
            assert_eq!(
                parse_time(text),
                Some(Duration::from_millis(milliseconds)),
                "{text}"
            );
        }
        for text in [
            "",
            "0",
            "0s",
            "5 m",
            "m",
            "5x",
            "-5s",
            "99999999999999999999h",
            "NaN",
            "inf",
        ] {
            assert_eq!(parse_time(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_time_or_none(text in ".{0,12}") {
            let _ = parse_time(&text);
        }
    }
}
