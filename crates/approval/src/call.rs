//! Finds out what a tool call would do, as far as rules can describe it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pinion_agent::{Admission, Maker};
use pinion_tools::run_blocking;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::files::Target;
use crate::rule::{COMMAND_TOOL, PATH_TOOLS};
use crate::shell::{Script, read};

/// A tool call to decide about.
#[derive(Debug)]
pub(crate) struct ToolCall<'a> {
    pub id: &'a str,
    pub tool: &'a str,
    pub arguments: &'a Value,
    pub maker: Maker,
    pub subject: Subject<'a>,
}

/// The part of a call that rules match.
#[derive(Debug)]
pub(crate) enum Subject<'a> {
    Command { text: &'a str, script: Script },
    Path { written: &'a str, target: Target },
    Arguments,
}

impl<'a> ToolCall<'a> {
    /// Finds out what a call would do. Paths are resolved on another thread, because they may be on a mount that does not
    /// respond.
    pub async fn of(admission: &Admission<'a>, roots: &Arc<[PathBuf]>) -> Self {
        let tool = admission.run.name.as_str();
        let text = |name: &str| admission.arguments.get(name).and_then(Value::as_str);
        let subject = if tool == COMMAND_TOOL {
            text("command").map(|text| Subject::Command {
                text,
                script: read(text),
            })
        } else if PATH_TOOLS.contains(&tool) {
            let searches = matches!(tool, "grep" | "find");
            let lists = searches || tool == "ls";
            // The tools that list and search start in the working directory by default.
            let path = text("path").or(lists.then_some("."));
            match path {
                None => None,
                Some(written) => Some(Subject::Path {
                    written,
                    target: find(written, admission.cwd, roots, searches).await,
                }),
            }
        } else {
            None
        };
        Self {
            id: &admission.run.call_id,
            tool,
            arguments: admission.arguments,
            maker: admission.maker,
            subject: subject.unwrap_or(Subject::Arguments),
        }
    }

    /// Returns the permission that an answer for the rest of the run would grant.
    pub fn grant(&self) -> Grant {
        let scope = match (&self.subject, self.maker) {
            (Subject::Command { text, .. }, Maker::BuiltIn) => Some((*text).to_owned()),
            (Subject::Path { target, .. }, Maker::BuiltIn) => {
                let real = target.real.as_ref();
                real.map(|paths| format!("{:?} {paths:?}", target.reach))
            }
            _ => None,
        };
        Grant {
            tool: self.tool.to_owned(),
            scope: scope.unwrap_or_else(|| self.arguments.to_string()),
        }
    }
}

async fn find(path: &str, cwd: &Path, roots: &Arc<[PathBuf]>, whole_tree: bool) -> Target {
    let (written, directory) = (path.to_owned(), cwd.to_owned());
    let roots = Arc::clone(roots);
    // The token is never cancelled: an abort drops this future instead.
    let never = CancellationToken::new();
    let found = run_blocking(&never, move || {
        Target::find(&written, &directory, whole_tree).within(&roots)
    });
    let found = found.await;
    found.unwrap_or_else(|_| Target::unknown(path, cwd, whole_tree))
}

/// A permission for the rest of a run.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Grant {
    tool: String,
    scope: String,
}
