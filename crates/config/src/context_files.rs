//! `AGENTS.override.md`, `AGENTS.md` or `CLAUDE.md`: the instructions of a directory for every model.

use std::fs;
use std::path::{Path, PathBuf};

use crate::boundary::PathBoundary;
use crate::{Dirs, Notice, ProjectTrust, text_file};

const NAMES: [&str; 3] = ["AGENTS.override.md", "AGENTS.md", "CLAUDE.md"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextFile {
    pub path: PathBuf,
    pub content: String,
}

/// Reads one context file per directory: the agent directory first, then from the root of the
/// file system down to the working directory.
pub fn load_context_files(dirs: &Dirs, trust: ProjectTrust) -> (Vec<ContextFile>, Vec<Notice>) {
    let mut files: Vec<ContextFile> = Vec::new();
    let mut notices = Vec::new();
    files.extend(read_from(
        &dirs.agent_dir,
        ProjectTrust::Trusted,
        &mut notices,
    ));
    let mut ancestors: Vec<&Path> = dirs.cwd.ancestors().collect();
    ancestors.reverse();
    for directory in ancestors {
        if directory != dirs.agent_dir {
            files.extend(read_from(directory, trust, &mut notices));
        }
    }
    (files, notices)
}

fn read_from(
    directory: &Path,
    trust: ProjectTrust,
    notices: &mut Vec<Notice>,
) -> Option<ContextFile> {
    for name in NAMES {
        let path = directory.join(name);
        let Ok(metadata) = fs::symlink_metadata(&path) else {
            continue;
        };
        if metadata.is_symlink() && !may_follow(&path, directory, trust) {
            // A broken link counts as absent.
            if path.exists() {
                notices.push(PathBoundary::notice(&path));
            }
            continue;
        }
        match text_file::read_text(&path) {
            Ok(content) => return Some(ContextFile { path, content }),
            Err(error) => {
                let message = format!("could not be read ({error})");
                notices.push(Notice::about(&path, "unreadable_file", message));
            }
        }
    }
    None
}

/// Reports whether a link may be followed: it leads to a file in its directory, or to another
/// context file anywhere. Sharing one between projects is common, and such a file is meant to be
/// read by models.
fn may_follow(link: &Path, directory: &Path, trust: ProjectTrust) -> bool {
    let Ok(real) = fs::canonicalize(link) else {
        return false;
    };
    let is_context_file = NAMES
        .iter()
        .any(|name| real.file_name() == Some(name.as_ref()));
    is_context_file || PathBoundary::around(directory, trust).permits(link)
}
