//! Parses rules such as `bash`, `bash(git status *)`, `write(src/**)` and `*(.env*)`.

use crate::command::CommandPattern;
use crate::files::PathPattern;

/// The tools that take a path.
pub(crate) const PATH_TOOLS: &[&str] = &["read", "write", "edit", "grep", "find", "ls"];
/// The tool that takes a command.
pub(crate) const COMMAND_TOOL: &str = "bash";

/// A rule for tool calls, as written in a list of allowed or denied calls.
#[derive(Debug, Clone)]
pub struct Rule {
    text: String,
    origin: Origin,
    pub(crate) tool: ToolName,
    pub(crate) scope: Scope,
}

/// The source of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The command line.
    Flag,
    /// The user's settings.
    Settings,
    /// The project's settings.
    Project,
}

impl Origin {
    /// Returns the stable name that clients receive.
    pub fn code(self) -> &'static str {
        match self {
            Self::Flag => "flag",
            Self::Settings => "settings",
            Self::Project => "project",
        }
    }
}

/// The tools that a rule applies to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ToolName {
    Any,
    One(String),
}

impl ToolName {
    pub fn is(&self, name: &str) -> bool {
        match self {
            Self::Any => true,
            Self::One(tool) => tool == name,
        }
    }
}

/// The calls that a rule applies to.
#[derive(Debug, Clone)]
pub(crate) enum Scope {
    All,
    Paths(Box<PathPattern>),
    Commands(CommandPattern),
}

/// A rule that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the rule \"{rule}\" cannot be used: {problem}")]
pub struct RuleError {
    /// The rule as written.
    pub rule: String,
    /// A description of the mistake.
    pub problem: String,
}

impl Rule {
    pub fn parse(text: &str, origin: Origin) -> Result<Self, RuleError> {
        let (tool, scope) = read(text.trim()).map_err(|problem| RuleError {
            rule: text.to_owned(),
            problem,
        })?;
        Ok(Self {
            text: text.trim().to_owned(),
            origin,
            tool,
            scope,
        })
    }

    /// Returns the rule as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the tool it names; `None` if it applies to all tools.
    pub fn tool(&self) -> Option<&str> {
        match &self.tool {
            ToolName::Any => None,
            ToolName::One(name) => Some(name),
        }
    }

    pub fn origin(&self) -> Origin {
        self.origin
    }
}

fn read(text: &str) -> Result<(ToolName, Scope), String> {
    let (name, pattern) = match text.split_once('(') {
        None => (text, None),
        Some((name, rest)) => match rest.strip_suffix(')') {
            Some(pattern) => (name, Some(pattern.trim())),
            None => return Err("it has a `(` and does not end with `)`".into()),
        },
    };
    let is_name = |c: char| !c.is_whitespace() && !c.is_control() && !"(),;".contains(c);
    if name.is_empty() || !name.chars().all(is_name) {
        return Err("it must begin with the name of a tool, as in bash(git status)".into());
    }
    let tool = match name {
        "*" => ToolName::Any,
        name if name.contains('*') => {
            return Err("`*` stands for all tools, not for a part of a name".into());
        }
        name => ToolName::One(name.to_owned()),
    };
    let scope = match pattern {
        None => Scope::All,
        Some("") => {
            return Err(format!(
                "there is nothing between the parentheses; write {name} for all its calls"
            ));
        }
        Some(pattern) if name == COMMAND_TOOL => Scope::Commands(CommandPattern::parse(pattern)?),
        Some(pattern) if name == "*" || PATH_TOOLS.contains(&name) => {
            Scope::Paths(Box::new(PathPattern::parse(pattern)?))
        }
        Some(_) => {
            let path_tools = PATH_TOOLS.join(", ");
            return Err(format!(
                "only {COMMAND_TOOL} takes a command, and only {path_tools} take a path; write {name} for all its calls"
            ));
        }
    };
    Ok((tool, scope))
}
