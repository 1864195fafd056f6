//! The directories of sessions, and the search for a session by path, by id or by age.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use bytes::Bytes;

use crate::list::describe;
use crate::{Header, SessionError};

/// Byte limit of a header line.
const HEADER_LIMIT: u64 = 1 << 20;

/// The session that the argument of `--session` names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoundSession {
    /// A path; the file may not exist yet.
    Path(PathBuf),
    /// A session of this project, found by the prefix of its id.
    Id(PathBuf),
}

impl FoundSession {
    /// Returns the path of the session file.
    pub fn into_path(self) -> PathBuf {
        match self {
            Self::Path(path) | Self::Id(path) => path,
        }
    }
}

/// Returns the directory for the sessions of one project: `<agent_dir>/sessions/--home-me-proj--`.
pub fn project_directory(agent_dir: &Path, cwd: &Path) -> PathBuf {
    let cwd = cwd.to_string_lossy();
    let relative = cwd.strip_prefix(['/', '\\']).unwrap_or(&cwd);
    let encoded = relative.replace(['/', '\\', ':'], "-");
    agent_dir.join("sessions").join(format!("--{encoded}--"))
}

/// Returns the session in `directory` that was written last; `None` if there is none.
pub fn most_recent(directory: &Path) -> Option<PathBuf> {
    let mut files: Vec<(SystemTime, PathBuf)> = session_files(directory)
        .filter_map(|path| Some((fs::metadata(&path).ok()?.modified().ok()?, path)))
        .collect();
    files.sort_by(|a, b| b.cmp(a));
    files
        .into_iter()
        .map(|(_, path)| path)
        .find(|path| header_of(path).is_some())
}

/// Finds the session that a user named by its path or by a prefix of its id.
///
/// Of several sessions of the project the last used one is returned. An id that exists only in another project is an
/// error that names its place.
pub fn find(
    sessions_root: &Path,
    project_directory: &Path,
    argument: &str,
) -> Result<FoundSession, SessionError> {
    if argument.contains(['/', '\\']) || argument.ends_with(".jsonl") {
        return Ok(FoundSession::Path(PathBuf::from(argument)));
    }
    if let Some((path, _)) = newest_with_prefix(session_files(project_directory), argument) {
        return Ok(FoundSession::Id(path));
    }
    let projects = fs::read_dir(sessions_root).into_iter().flatten().flatten();
    let everywhere = projects.flat_map(|project| session_files(&project.path()));
    match newest_with_prefix(everywhere, argument) {
        Some((path, Header { id, cwd, .. })) => Err(SessionError::OtherProject { id, path, cwd }),
        None => Err(SessionError::NoMatch(argument.to_owned())),
    }
}

/// Returns the session in `directory` with exactly this id.
pub fn find_id(directory: &Path, id: &str) -> Option<PathBuf> {
    session_files(directory).find(|path| header_of(path).is_some_and(|header| header.id == id))
}

/// Returns the session with exactly this id in any of the directories below `root`.
pub fn find_id_below(root: &Path, id: &str) -> Option<PathBuf> {
    let projects = fs::read_dir(root).into_iter().flatten().flatten();
    projects
        .map(|project| project.path())
        .find_map(|project| find_id(&project, id))
}

fn newest_with_prefix(
    files: impl Iterator<Item = PathBuf>,
    prefix: &str,
) -> Option<(PathBuf, Header)> {
    let mut matches: Vec<(PathBuf, Header)> = files
        .filter_map(|path| header_of(&path).map(|header| (path, header)))
        .filter(|(_, header)| header.id.starts_with(prefix))
        .collect();
    if matches.len() > 1 {
        // Whole files are read only if several match.
        matches.sort_by_cached_key(|(path, _)| describe(path).map(|info| info.modified));
    }
    matches.pop()
}

/// Lists the `.jsonl` files of a directory.
pub(crate) fn session_files(directory: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let files = fs::read_dir(directory).into_iter().flatten().flatten();
    files.map(|file| file.path()).filter(|path| {
        path.extension()
            .is_some_and(|extension| extension == "jsonl")
    })
}

/// Reads the header of a session file from its first line.
pub(crate) fn header_of(path: &Path) -> Option<Header> {
    let mut line = Vec::new();
    let file = pinion_files::open(path).ok()?.take(HEADER_LIMIT);
    BufReader::with_capacity(1024, file)
        .read_until(b'\n', &mut line)
        .ok()?;
    Header::parse(&Bytes::from(line.trim_ascii().to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_has_its_own_directory() {
        let directory = |cwd: &str| project_directory(Path::new("/a"), Path::new(cwd));
        assert_eq!(
            directory("/home/me/proj"),
            Path::new("/a/sessions/--home-me-proj--")
        );
        assert_eq!(directory("/"), Path::new("/a/sessions/----"));
        assert_eq!(directory("C:\\x\\y"), Path::new("/a/sessions/--C--x-y--"));
        assert_eq!(directory("//x"), Path::new("/a/sessions/---x--"));
    }
}
