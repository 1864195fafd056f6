//! Reads the children and the judge of a plan: their names, prompts and settings.

use std::collections::HashSet;
use std::path::Path;

use pinion_yaml::{Entry, Node, NodeKind};

use super::fields::display_path;
use super::read::PlanReader;
use super::settings::Settings;
use super::{ChildPlan, OutputFormat, Problem, Verdict};
use crate::prompt::{CHILD_NAMES, JUDGE_NAMES, unknown_names};

/// The name of the child that receives all results.
pub(crate) const JUDGE: &str = "judge";
const MAX_NAME: usize = 64;

impl PlanReader<'_> {
    pub fn children(&mut self, list: &Node, defaults: &Settings) -> Vec<ChildPlan> {
        let mut names = HashSet::new();
        let mut children = Vec::new();
        let items = self.fields.items(list, "children");
        if items.is_empty() {
            self.fields.problem(
                list.at.line,
                "there are no children; a plan needs at least one",
            );
        }
        for item in items {
            let (settings, rest) = self.settings(item, "a child", &["name", "prompt"]);
            let (mut name, mut prompt) = (None, None);
            for (key, node) in rest {
                match key {
                    "name" => name = self.name(node, &mut names),
                    _ => prompt = self.prompt(node, &CHILD_NAMES),
                }
            }
            let has = |key: &str| match &item.kind {
                NodeKind::Map(members) => members.iter().any(|member| member.key == key),
                _ => true,
            };
            if !has("name") {
                self.fields
                    .problem(item.at.line, "this child has no name; add `name:`");
            }
            if !has("prompt") {
                self.fields
                    .problem(item.at.line, "this child has no prompt; add `prompt:`");
            }
            let settings = settings.or(defaults);
            let models = self.models(&settings, item.at.line);
            self.check_program(&settings, &models, item.at.line);
            let (name, prompt) = (name.unwrap_or_default(), prompt.unwrap_or_default());
            children.push(settings.child(name, prompt, models));
        }
        children
    }

    pub fn judge(
        &mut self,
        node: &Node,
        defaults: &Settings,
    ) -> (Option<ChildPlan>, Option<Verdict>) {
        let (settings, rest) = self.settings(node, "the judge", &["prompt", "verdict"]);
        let (mut prompt, mut verdict) = (None, None);
        for (key, node) in &rest {
            match *key {
                "prompt" => prompt = self.prompt(node, &JUDGE_NAMES),
                _ => verdict = self.verdict(node),
            }
        }
        if !rest.iter().any(|(key, _)| *key == "prompt") {
            self.fields
                .problem(node.at.line, "the judge has no prompt; add `prompt:`");
        }
        let settings = settings.or(defaults);
        let models = self.models(&settings, node.at.line);
        self.check_program(&settings, &models, node.at.line);
        let mut judge = settings.child(JUDGE.into(), prompt.unwrap_or_default(), models);
        if verdict.is_some() && judge.output == OutputFormat::Text {
            judge.output = OutputFormat::Json { schema: None };
        }
        (Some(judge), verdict)
    }

    fn verdict(&mut self, node: &Node) -> Option<Verdict> {
        let mut verdict = Verdict {
            field: "verdict".into(),
            exit: Vec::new(),
        };
        for Entry { key, value, .. } in self.fields.members(node, "the verdict", &["field", "exit"])
        {
            match key.as_str() {
                "field" => verdict.field = self.fields.text(value, "field")?,
                "exit" => {
                    for Entry { key, value, .. } in self.fields.free_members(value, "exit") {
                        let code = self.fields.count(value, "an exit code", 0);
                        match code.map(u8::try_from) {
                            Some(Ok(code)) => verdict.exit.push((key.clone(), code)),
                            Some(Err(_)) => {
                                self.fields
                                    .problem(value.at.line, "an exit code is at most 255");
                            }
                            None => {}
                        }
                    }
                }
                _ => {}
            }
        }
        Some(verdict)
    }

    fn name(&mut self, node: &Node, names: &mut HashSet<String>) -> Option<String> {
        let name = self.fields.text(node, "name")?;
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(fits) {
            let rule = format!("use up to {MAX_NAME} letters, digits, - and _");
            self.fields.problem(
                node.at.line,
                format!("\"{name}\" is not a valid name for a child; {rule}"),
            );
        } else if name == JUDGE {
            self.fields.problem(
                node.at.line,
                "a child cannot be called \"judge\"; that name is reserved for the plan's judge",
            );
        } else if !names.insert(name.clone()) {
            self.fields.problem(
                node.at.line,
                format!("there is another child called \"{name}\"; names must be unique"),
            );
        }
        Some(name)
    }

    /// Reads `{ file: … }`, `{ text: … }` or a plain text.
    fn prompt(&mut self, node: &Node, names: &[&str]) -> Option<String> {
        if let NodeKind::Text(text) = &node.kind {
            self.check_names(text, names, None, node.at.line);
            return Some(text.clone());
        }
        let members = self.fields.members(node, "a prompt", &["file", "text"]);
        match members {
            [Entry { key, value, .. }] if key == "text" => {
                let text = self.fields.text(value, "text")?;
                self.check_names(&text, names, None, value.at.line);
                Some(text)
            }
            [Entry { key, value, .. }] if key == "file" => {
                let (path, text) = self.fields.file(value, "prompt")?;
                self.check_names(&text, names, Some(&path), 1);
                Some(text)
            }
            _ => {
                self.fields.problem(
                    node.at.line,
                    "a prompt is a file or a text: { file: … } or { text: … }",
                );
                None
            }
        }
    }

    fn check_names(&mut self, text: &str, names: &[&str], file: Option<&Path>, line: u64) {
        let unknown = unknown_names(text, names);
        for (index, (offset, name)) in unknown.iter().enumerate() {
            let message = format!(
                "there is no {{{{ {name} }}}}; use one of {}",
                names.join(", ")
            );
            match file {
                Some(path) => {
                    let problem = Problem {
                        file: display_path(path, &self.fields.directory),
                        line: line + offset,
                        message,
                    };
                    self.fields.problems.push(problem);
                }
                None => {
                    let before = unknown[..index].iter();
                    let nth = before.filter(|(_, other)| other == name).count();
                    let line = self.line_of(name, nth, line);
                    self.fields.problem(line, message);
                }
            }
        }
    }

    /// Returns the line of the nth `{{ name }}` in a text that begins on `line`; `line` itself if escapes hide the name.
    fn line_of(&self, name: &str, nth: usize, line: u64) -> u64 {
        let first = usize::try_from(line).unwrap_or_default().saturating_sub(1);
        let lines = self.lines.iter().skip(first).zip(line..);
        let mut found = lines.flat_map(|(text, line)| {
            let names = unknown_names(text, &[]).into_iter();
            names.filter_map(move |(_, other)| (other == name).then_some(line))
        });
        found.nth(nth).unwrap_or(line)
    }
}
