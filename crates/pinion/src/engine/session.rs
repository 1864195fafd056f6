//! Opens or creates the session that the command line names.

use std::path::{Path, PathBuf};

use pinion_config::{Dirs, Settings};
use pinion_session::{NewEntry, NewSession, Opened, SessionError, Store};

use super::{Basis, tell};
use crate::cli::Flags;
use crate::failure::Failure;

/// A session's stored entries and the directory of its file.
pub(crate) struct Conversation {
    pub store: Store,
    /// The directory of further sessions; `None` holds them in memory.
    pub(super) directory: Option<PathBuf>,
    /// Marks the session's commands if the process runs several sessions.
    pub family: Option<String>,
}

impl Conversation {
    /// Opens or creates the session that the flags name.
    pub fn open(flags: &Flags, basis: &Basis) -> Result<Self, Failure> {
        let directory = session_directory(&basis.dirs, flags, &basis.settings);
        let store = open_session(&basis.dirs, flags, directory.as_deref())?;
        Ok(Self {
            store,
            directory,
            family: None,
        })
    }
}

impl Conversation {
    /// Opens the session in `file`, or a copy of it, to continue in `cwd`.
    pub fn open_file(
        file: &Path,
        is_copy: bool,
        directory: Option<PathBuf>,
        cwd: &Path,
    ) -> Result<Self, SessionError> {
        let new = NewSession {
            cwd: cwd.to_owned(),
            directory: directory.clone(),
            id: None,
            parent_session: None,
        };
        let found = if is_copy {
            Store::copy_of(file, new)?
        } else {
            Store::open(file, cwd)?
        };
        tell(&found.notices);
        Ok(Self {
            store: found.store,
            directory,
            family: None,
        })
    }
}

/// Returns the directory of the session files and creates it; `None` holds sessions in memory.
pub(crate) fn session_directory(
    dirs: &Dirs,
    flags: &Flags,
    settings: &Settings,
) -> Option<PathBuf> {
    if flags.no_session {
        return None;
    }
    let named = dirs.session_dir(flags.session_dir.as_deref(), settings);
    let directory =
        named.unwrap_or_else(|| pinion_session::project_directory(&dirs.agent_dir, &dirs.cwd));
    if let Err(error) = std::fs::create_dir_all(&directory) {
        eprintln!(
            "Warning: {}: {error}; sessions cannot be saved there",
            directory.display()
        );
    }
    Some(directory)
}

fn open_session(dirs: &Dirs, flags: &Flags, directory: Option<&Path>) -> Result<Store, Failure> {
    let new = |id: Option<String>| NewSession {
        cwd: dirs.cwd.clone(),
        directory: directory.map(Path::to_owned),
        id,
        parent_session: None,
    };
    let Some(directory) = directory else {
        return Ok(Store::create(new(flags.session_id.clone()))?);
    };
    let sessions_root = dirs.agent_dir.join("sessions");
    let find = |argument: &str| {
        pinion_session::find(&sessions_root, directory, argument)
            .map(|found| dirs.cwd.join(found.into_path()))
    };
    let existing = if let Some(argument) = &flags.session {
        Some(find(argument)?)
    } else if let Some(id) = &flags.session_id {
        match pinion_session::find_id(directory, id) {
            Some(path) => Some(path),
            None => {
                eprintln!("Note: no session has the id \"{id}\", so it is created.");
                return Ok(Store::create(new(Some(id.clone())))?);
            }
        }
    } else if let Some(argument) = &flags.fork {
        let source = find(argument)?;
        return Ok(opened(Store::copy_of(&source, new(None))?, None));
    } else if flags.continue_last {
        pinion_session::most_recent(directory)
    } else {
        None
    };
    Ok(match existing {
        Some(path) if path.exists() => {
            opened(Store::open(&path, &dirs.cwd)?, flags.session_dir.as_deref())
        }
        Some(path) => Store::at_path(&path, &dirs.cwd),
        None => Store::create(new(None))?,
    })
}

fn opened(opened: Opened, directory: Option<&str>) -> Store {
    tell(&opened.notices);
    let mut store = opened.store;
    if let Some(directory) = directory {
        store.set_directory(directory.into());
    }
    store
}

pub(super) fn append(store: &mut Store, entry: NewEntry) {
    if let Err(error) = store.append(entry) {
        eprintln!("Warning: {error}");
    }
}
