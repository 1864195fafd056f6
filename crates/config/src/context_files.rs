//! `AGENTS.md` or `CLAUDE.md`: what a directory wants every model to know.

use std::fs;
use std::path::{Path, PathBuf};

use crate::fence::Fence;
use crate::{Dirs, Notice, ProjectTrust, text_file};

const NAMES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];

/// A context file, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextFile {
    /// The file.
    pub path: PathBuf,
    /// Its text.
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
            // A link that leads nowhere is as good as no file.
            if path.exists() {
                notices.push(Fence::notice(&path));
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

/// A link may lead to a file in its directory, or to another context file wherever that is:
/// sharing one between projects is common, and such a file is meant to be read by models.
fn may_follow(link: &Path, directory: &Path, trust: ProjectTrust) -> bool {
    let Ok(real) = fs::canonicalize(link) else {
        return false;
    };
    let is_context_file = NAMES
        .iter()
        .any(|name| real.file_name() == Some(name.as_ref()));
    is_context_file || Fence::around(directory, trust).admits(link)
}
